"""Keras on NumPy: an exception where there are no keys; Keras on PyTorch and TensorFlow gives zeros."""

import os

os.environ["KERAS_BACKEND"] = "numpy"

import keras  # noqa: E402
import numpy as np  # noqa: E402

q, k = np.ones((1, 2, 1, 8), np.float32), np.ones((1, 0, 1, 8), np.float32)
try:
    got = float(np.abs(keras.ops.dot_product_attention(q, k, k)).max())
except ValueError as error:
    got = f"ValueError: {error}"
print(f"Keras {keras.__version__} on NumPy: got {got}, expected 0")
raise SystemExit(got != 0)
