"""ONNX's reference evaluator: `Attention` gives capped scores for `qk_matmul_output_mode=0`, where the text says raw
ones."""

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

names = ["Q", "K", "V"]
node = helper.make_node("Attention", names, ["Y", "", "", "scores"], scale=1.0, softcap=2.0, qk_matmul_output_mode=0)
inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, 1, 1]) for name in names]
outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, 1, 1]) for name in ("Y", "scores")]
graph = helper.make_graph([node], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=10)
onnx.checker.check_model(model)

one = np.ones((1, 1, 1, 1), np.float32)
got = ReferenceEvaluator(model).run(["scores"], {"Q": 2 * one, "K": 3 * one, "V": one})[0].item()
print(f"onnx {onnx.__version__}: got {got}, expected 6: the raw product 2 * 3 (2 tanh(6 / 2) is 1.990...)")
raise SystemExit(got != 6)
