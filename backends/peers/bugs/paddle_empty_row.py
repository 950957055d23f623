"""PaddlePaddle on processors: the output of a query that sees nothing depends on how many keys there are."""

import numpy as np
import paddle

got = {}
for keys in (1, 7, 8, 15, 16, 64, 65, 257):
    q = np.ones((1, 1, 1, 1), np.float32)
    k = np.ones((1, keys, 1, 1), np.float32)
    mask = paddle.to_tensor(np.zeros((1, 1, 1, keys), bool))
    tensors = [paddle.to_tensor(array) for array in (q, k, k)]
    o = paddle.nn.functional.scaled_dot_product_attention(*tensors, attn_mask=mask, training=False)
    got[keys] = o.numpy().item()
print(f"PaddlePaddle {paddle.__version__}: got {got} by the number of keys, expected one answer")
raise SystemExit(len({str(abs(value)) for value in got.values()}) > 1)
