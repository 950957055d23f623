"""ONNX reference evaluator: an exception where there are no keys; the operator's own function body gives zeros."""

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

names = ["Q", "K", "V"]
node = helper.make_node("Attention", names, ["Y"])
inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 4) for name in names]
output = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None] * 4)
graph = helper.make_graph([node], "g", inputs, [output])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=10)
onnx.checker.check_model(model)

feeds = {
    "Q": np.ones((1, 1, 2, 1), np.float32),
    "K": np.ones((1, 1, 0, 1), np.float32),
    "V": np.ones((1, 1, 0, 1), np.float32),
}
try:
    got = ReferenceEvaluator(model).run(None, feeds)[0].ravel()
except ValueError as error:
    got = f"ValueError: {error}"
print(f"onnx {onnx.__version__}: got {got}, expected [0. 0.]: rows without an attended key are zero")
raise SystemExit(isinstance(got, str) or not np.array_equal(got, [0, 0]))
