"""TensorFlow on processors: `tf.nn.softmax` of float32 gives 0 beside a NaN, so that gradients of values lose it."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import tensorflow as tf  # noqa: E402

key = tf.constant([float("nan"), 1.0])[None, :, None, None]
value = tf.ones((1, 2, 1, 1))
with tf.GradientTape() as tape:
    tape.watch(value)
    output = keras.ops.dot_product_attention(tf.ones((1, 1, 1, 1)), key, value)
got = tape.gradient(output, value).numpy().flatten().tolist()
weights = [tf.nn.softmax(tf.constant([float("nan"), 1.0], dtype)).numpy().tolist() for dtype in (tf.float32, tf.float64)]
print(
    f"TensorFlow {tf.__version__}, Keras {keras.__version__}: got {got} as the gradient of two values; softmax gives "
    f"{weights[0]} in float32, {weights[1]} in float64; expected nan throughout"
)
raise SystemExit(got[1] == 0)
