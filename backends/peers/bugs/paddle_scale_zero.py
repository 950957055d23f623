"""PaddlePaddle on processors: `scaled_dot_product_attention` takes `scale=0.0` for no scale at all."""

import numpy as np
import paddle

q = k = np.array([0, 4], np.float32).reshape(1, 2, 1, 1)
v = np.array([1, 3], np.float32).reshape(1, 2, 1, 1)
tensors = [paddle.to_tensor(array) for array in (q, k, v)]
got = paddle.nn.functional.scaled_dot_product_attention(*tensors, scale=0.0, training=False).numpy().ravel()
print(f"PaddlePaddle {paddle.__version__}: got {got}, expected [2. 2.]: all scores are 0")
raise SystemExit(not np.allclose(got, 2))
