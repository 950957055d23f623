"""PaddlePaddle on processors: `softmax` makes -64 of NaN in full vectors of 8, so that its result depends on the
row's length."""

import numpy as np
import paddle
from paddle.nn.functional import scaled_dot_product_attention, softmax

LENGTHS = (2, 7, 8, 15, 16, 41, 64, 65)


def first(row):
    return round(softmax(paddle.to_tensor(row)).numpy()[0].item(), 4)


one_nan = {n: first(np.array([0, np.nan] + [0] * (n - 2), np.float32)) for n in LENGTHS}
all_hidden = {n: first(np.full(n, -np.inf, np.float32)) for n in LENGTHS}
one = paddle.ones([1, 1, 1, 1])
attention = {}
for n in LENGTHS:
    mask = paddle.zeros([1, 1, 1, n], dtype="bool")
    key = paddle.ones([1, n, 1, 1])
    attention[n] = scaled_dot_product_attention(one, key, key, attn_mask=mask, training=False).numpy().item()
print("First of the results by the length of the row, expected nan for each:")
print(f"softmax of a row with one NaN: got {one_nan}")
print(f"softmax of a row of -inf: got {all_hidden}")
print("Output of a query that sees none of the keys, by their number, expected one answer:")
print(f"scaled_dot_product_attention: got {attention}")
raise SystemExit(not np.isnan(list(one_nan.values()) + list(all_hidden.values())).all())
