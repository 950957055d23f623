"""PaddlePaddle on processors: a hidden key keeps the weight exp(-64), so that the future reaches the past."""

import math

import numpy as np
import paddle

q = k = np.zeros((1, 2, 1, 1), np.float32)
v = np.array([1, 1e30], np.float32).reshape(1, 2, 1, 1)
tensors = [paddle.to_tensor(array) for array in (q, k, v)]
got = paddle.nn.functional.scaled_dot_product_attention(*tensors, is_causal=True, training=False).numpy().ravel()
print(f"PaddlePaddle {paddle.__version__}: got {got[0]}, expected 1: the first query sees the first value alone")
print(f"(1e30 exp(-64) is {1e30 * math.exp(-64):.6g})")
raise SystemExit(got[0] != 1)
