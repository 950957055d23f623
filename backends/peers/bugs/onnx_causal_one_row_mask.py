"""ONNX's reference evaluator: `Attention` with `is_causal` and a mask of one row hides from every query what it hides
from the first."""

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

names = ["Q", "K", "V", "attn_mask"]
node = helper.make_node("Attention", names, ["Y"], is_causal=1)
inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 4) for name in names]
output = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None] * 4)
graph = helper.make_graph([node], "g", inputs, [output])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=10)
onnx.checker.check_model(model)

q = k = np.zeros((1, 1, 2, 1), np.float32)  # all scores are 0
v = np.array([1, 3], np.float32).reshape(1, 1, 2, 1)
mask = np.zeros((1, 1, 1, 2), np.float32)  # adds nothing; broadcastable to (1, 1, 2, 2)
got = ReferenceEvaluator(model).run(None, {"Q": q, "K": k, "V": v, "attn_mask": mask})[0].ravel()
print(f"onnx {onnx.__version__}: got {got}, expected [1. 2.]: the second query sees both keys")
raise SystemExit(not np.array_equal(got, [1, 2]))
