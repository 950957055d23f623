"""onnxruntime: a mask of one row for all queries is an error, and the operator takes what is broadcastable."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

names = ["Q", "K", "V", "attn_mask"]
node = helper.make_node("Attention", names, ["Y"])
inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, None, None]) for name in names]
output = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [1, 1, None, None])
graph = helper.make_graph([node], "g", inputs, [output])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
onnx.checker.check_model(model)

q = k = np.zeros((1, 1, 2, 1), np.float32)
v = np.array([1, 3], np.float32).reshape(1, 1, 2, 1)
mask = np.zeros((1, 1, 1, 2), np.float32)
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
try:
    got = session.run(None, {"Q": q, "K": k, "V": v, "attn_mask": mask})[0].ravel()
except Exception as error:  # the package's own types have no common base
    got = "an error: ..." + str(error)[-110:].strip()
print(f"onnxruntime {onnxruntime.__version__}: got {got}, expected [2. 2.]")
raise SystemExit(isinstance(got, str) or not np.array_equal(got, [2, 2]))
