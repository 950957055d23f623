"""Keras on PyTorch: `keras.ops.dot_product_attention` with `is_causal` and `bias` raises; NumPy, TensorFlow and JAX
take both."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
import numpy as np  # noqa: E402

q = k = np.zeros((1, 2, 1, 1), np.float32)
v = np.array([1, 3], np.float32).reshape(1, 2, 1, 1)
bias = np.zeros((1, 1, 2, 2), np.float32)
try:
    got = keras.ops.convert_to_numpy(keras.ops.dot_product_attention(q, k, v, bias=bias, is_causal=True)).ravel()
except RuntimeError as error:
    got = f"RuntimeError: {str(error).splitlines()[0]}"
print(f"got {got}, expected [1. 2.]")
raise SystemExit(isinstance(got, str) or not np.array_equal(got, [1, 2]))
