"""onnxruntime: a float mask of the smallest finite number is taken for -inf, and the row becomes 0."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

names = ["Q", "K", "V", "attn_mask"]
node = helper.make_node("Attention", names, ["Y"])
inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, None, None]) for name in names]
output = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [1, 1, None, None])
graph = helper.make_graph([node], "g", inputs, [output])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)

q = k = np.zeros((1, 1, 1, 1), np.float32)
v = np.ones((1, 1, 1, 1), np.float32)
mask = np.full((1, 1, 1, 1), np.finfo(np.float32).min)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
got = session.run(None, {"Q": q, "K": k, "V": v, "attn_mask": mask})[0].item()
print(f"onnxruntime {onnxruntime.__version__}: got {got}, expected 1: softmax of one finite score is 1")
raise SystemExit(got != 1)
