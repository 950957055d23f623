"""Keras on NumPy: `keras.ops.dot_product_attention` raises for heads in groups, which its documentation offers."""

import os

os.environ["KERAS_BACKEND"] = "numpy"

import keras  # noqa: E402
import numpy as np  # noqa: E402

q, k = np.ones((1, 1, 4, 8), np.float32), np.ones((1, 1, 2, 8), np.float32)
try:
    got = keras.ops.dot_product_attention(q, k, k).shape
except ValueError as error:
    got = f"ValueError: {error}"
print(f"Keras {keras.__version__} on NumPy: got {got}, expected (1, 1, 4, 8)")
raise SystemExit(got != (1, 1, 4, 8))
