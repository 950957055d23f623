"""Keras on TensorFlow: `keras.ops.dot_product_attention` raises for one key head, which its documentation offers."""

import os
import re

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow  # noqa: E402

q, k = np.ones((1, 2, 4, 8), np.float32), np.ones((1, 2, 1, 8), np.float32)
try:
    got = tuple(keras.ops.dot_product_attention(q, k, k).shape)
except tensorflow.errors.InvalidArgumentError as error:
    got = "InvalidArgumentError: " + re.search(r"Expected dimension .*?\]", str(error))[0]
print(f"Keras {keras.__version__} on TensorFlow {tensorflow.__version__}: got {got}, expected (1, 2, 4, 8)")
raise SystemExit(got != (1, 2, 4, 8))
