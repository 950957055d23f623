"""onnxruntime: `GroupQueryAttention` gives 0 to a query whose last visible key is NaN; without its flash attention,
NaN."""

import os
import subprocess
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

NAMES = ["query", "key", "value", "", "", "seqlens_k", "total_sequence_length"]
OUTPUTS = ["Y", "present_key", "present_value"]


def lost(keys):
    """The queries that get a number where the key of their own place, the last that they see, is NaN."""
    node = helper.make_node("GroupQueryAttention", NAMES, OUTPUTS, domain="com.microsoft", num_heads=1, kv_num_heads=1)
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, keys, 8]) for name in NAMES[:3]]
    inputs.append(helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, [1]))
    inputs.append(helper.make_tensor_value_info("total_sequence_length", TensorProto.INT32, []))
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in OUTPUTS]
    graph = helper.make_graph([node], "g", inputs, made)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    ones = np.ones((1, keys, 8), np.float32)
    feeds = {"query": ones, "value": ones, "seqlens_k": np.array([keys - 1], np.int32)}
    feeds["total_sequence_length"] = np.array(keys, np.int32)
    found = []
    for query in range(keys):
        key = ones.copy()
        key[0, query] = np.nan
        if not np.isnan(session.run(["Y"], {**feeds, "key": key})[0][0, query]).any():
            found.append(query)
    return found


if len(sys.argv) > 1:
    print({keys: lost(keys) for keys in (2, 4, 8, 15, 16, 17, 64, 300)})
    sys.exit()
got = {}
for value in ("0", "1"):
    around = {**os.environ, "ORT_GQA_DISABLE_FLASH_ATTENTION": value}
    ran = subprocess.run([sys.executable, __file__, "run"], env=around, stdout=subprocess.PIPE, text=True, check=True)
    got[value] = ran.stdout.strip()
print(f"onnxruntime {onnxruntime.__version__}: queries that lost a NaN, by the number of keys: got {got['0']}")
print(f"with ORT_GQA_DISABLE_FLASH_ATTENTION=1: got {got['1']}, expected none for each")
sys.exit(got["0"] != got["1"])
