"""PaddlePaddle on processors: `scaled_dot_product_attention` with `is_causal` shows a later key whose score is 10000
higher."""

import numpy as np
import paddle

q = np.ones((1, 2, 1, 1), np.float32)
k = np.array([0, 20000], np.float32).reshape(1, 2, 1, 1)
v = np.array([1, 3], np.float32).reshape(1, 2, 1, 1)
tensors = [paddle.to_tensor(array) for array in (q, k, v)]
mask = paddle.to_tensor(np.tril(np.ones((1, 1, 2, 2), bool)))
attention = paddle.nn.functional.scaled_dot_product_attention
got = attention(*tensors, is_causal=True, training=False).numpy().ravel()
masked = attention(*tensors, attn_mask=mask, training=False).numpy().ravel()
print(f"PaddlePaddle {paddle.__version__}: got {got}, with the same mask as attn_mask {masked}; expected [1. 3.]")
raise SystemExit(got[0] != 1)
