"""PaddlePaddle on processors: NaN in a key that all queries see disappears where it lies in a full vector of 8."""

import numpy as np
import paddle

got = {}
for keys in (2, 8, 16, 41):
    q = np.ones((1, 1, 1, 1), np.float32)
    k = np.ones((1, keys, 1, 1), np.float32)
    k[0, 1] = np.nan
    tensors = [paddle.to_tensor(array) for array in (q, k, np.ones_like(k))]
    got[keys] = paddle.nn.functional.scaled_dot_product_attention(*tensors, training=False).numpy().item()
print(f"PaddlePaddle {paddle.__version__}: got {got} by the number of keys, expected nan for each")
raise SystemExit(not all(np.isnan(value) for value in got.values()))
