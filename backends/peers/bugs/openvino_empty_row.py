"""OpenVINO on processors: NaN for a query whose boolean mask is all false (openvinotoolkit/openvino#35959)."""

import numpy as np
import openvino
from openvino import opset13 as ops

nodes = [ops.parameter([1, 1, -1, 1], np.float32) for _ in range(3)] + [ops.parameter([1, 1, -1, -1], bool)]
model = openvino.Model([ops.scaled_dot_product_attention(*nodes, causal=False)], nodes, "attention")
one = np.ones((1, 1, 1, 1), np.float32)
got = openvino.Core().compile_model(model, "CPU")([one, one, one, np.zeros((1, 1, 1, 1), bool)])[0].item()
print(f"OpenVINO {openvino.__version__}: got {got}, expected 0")
raise SystemExit(got != 0)
