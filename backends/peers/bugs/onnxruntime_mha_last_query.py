"""onnxruntime: `MultiHeadAttention` with `unidirectional=1` and more keys than queries lets the last query see the
future."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

names = ["query", "key", "value"]
node = helper.make_node("MultiHeadAttention", names, ["Y"], domain="com.microsoft", num_heads=1, unidirectional=1)
inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, None, 1]) for name in names]
output = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [1, None, 1])
graph = helper.make_graph([node], "g", inputs, [output])
versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
model = helper.make_model(graph, opset_imports=versions, ir_version=9)

q, k = np.zeros((1, 3, 1), np.float32), np.zeros((1, 5, 1), np.float32)  # all scores are 0
v = np.array([1, 3, 5, 100, 200], np.float32).reshape(1, 5, 1)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
got = session.run(None, {"query": q, "key": k, "value": v})[0].ravel()
print(f"onnxruntime {onnxruntime.__version__}: got {got}, expected [1. 2. 3.]: query i sees keys up to i")
raise SystemExit(not np.array_equal(got, [1, 2, 3]))
