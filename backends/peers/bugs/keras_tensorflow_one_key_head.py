"""Keras on TensorFlow: one key head for several query heads, which the documentation offers, raises."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow  # noqa: E402

q, k = np.ones((1, 2, 4, 8), np.float32), np.ones((1, 2, 1, 8), np.float32)
try:
    got = tuple(keras.ops.dot_product_attention(q, k, k).shape)
except tensorflow.errors.InvalidArgumentError as error:
    got = f"InvalidArgumentError: {str(error)[:160]}"
print(f"Keras {keras.__version__} on TensorFlow {tensorflow.__version__}: got {got}, expected (1, 2, 4, 8)")
raise SystemExit(got != (1, 2, 4, 8))
