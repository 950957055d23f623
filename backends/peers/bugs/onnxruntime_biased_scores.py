"""onnxruntime: qk_matmul_output_mode=2 shows -3.4e38 where a boolean mask hides, and the operator's text says -inf."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

given = {"Q": TensorProto.FLOAT, "K": TensorProto.FLOAT, "V": TensorProto.FLOAT, "attn_mask": TensorProto.BOOL}
node = helper.make_node("Attention", list(given), ["Y", "", "", "scores"], qk_matmul_output_mode=2)
inputs = [helper.make_tensor_value_info(name, kind, [1, 1, None, None]) for name, kind in given.items()]
outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, None, None]) for name in ("Y", "scores")]
graph = helper.make_graph([node], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)

one = np.ones((1, 1, 1, 1), np.float32)
two = np.ones((1, 1, 2, 1), np.float32)
mask = np.array([True, False]).reshape(1, 1, 1, 2)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
got = session.run(["scores"], {"Q": one, "K": two, "V": two, "attn_mask": mask})[0].ravel()
print(f"onnxruntime {onnxruntime.__version__}: got {got}, expected [1. -inf]: QK + the mask as a bias of 0 and -inf")
raise SystemExit(not np.array_equal(got, [1, -np.inf]))
