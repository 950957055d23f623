"""onnxruntime: `MultiHeadAttention` and `GroupQueryAttention` take `scale=0.0` for no scale at all."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
q = np.array([0, 4] + [0] * 14, np.float32).reshape(1, 2, 8)
v = np.zeros((1, 2, 8), np.float32)
v[0, :, 0] = 1, 3
q[0, :, 0] = 0, 4
given = {"query": q, "key": q, "value": v}
got = []
for operator, heads in (("MultiHeadAttention", {}), ("GroupQueryAttention", {"kv_num_heads": 1, "causal": 0})):
    names = list(given) + (["", "", "seqlens_k", "total_sequence_length"] if heads else [])
    outputs = ["Y"] + (["present_key", "present_value"] if heads else [])
    node = helper.make_node(operator, names, outputs, domain="com.microsoft", num_heads=1, scale=0.0, **heads)
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, 8]) for name in given]
    feeds = dict(given)
    if heads:
        inputs.append(helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, [1]))
        inputs.append(helper.make_tensor_value_info("total_sequence_length", TensorProto.INT32, []))
        feeds.update(seqlens_k=np.array([1], np.int32), total_sequence_length=np.array(2, np.int32))
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    model = helper.make_model(helper.make_graph([node], "g", inputs, made), opset_imports=versions, ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    got.append(session.run(["Y"], feeds)[0][0, :, 0].tolist())
print(f"onnxruntime {onnxruntime.__version__}: got {got}, expected 2 for each: with scale 0 all scores are 0")
raise SystemExit(not np.allclose(got, 2))
