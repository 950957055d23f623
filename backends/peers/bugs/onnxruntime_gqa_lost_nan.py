"""onnxruntime: GroupQueryAttention gives 0 to a query whose last key is NaN; with causal=0 it gives NaN."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

names = ["query", "key", "value", "", "", "seqlens_k", "total_sequence_length"]
outputs = ["Y", "present_key", "present_value"]
q, v = np.ones((1, 2, 8), np.float32), np.ones((1, 2, 8), np.float32)
k = q.copy()
k[0, 0] = np.nan  # the first key, which both queries see, and the last that the first one sees
feeds = {"query": q, "key": k, "value": v}
feeds.update(seqlens_k=np.array([1], np.int32), total_sequence_length=np.array(2, np.int32))
got = {}
for causal in (0, 1):
    node = helper.make_node(
        "GroupQueryAttention", names, outputs, domain="com.microsoft", num_heads=1, kv_num_heads=1, causal=causal
    )
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, 8]) for name in names[:3]]
    inputs.append(helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, [1]))
    inputs.append(helper.make_tensor_value_info("total_sequence_length", TensorProto.INT32, []))
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph([node], "g", inputs, made)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    got[f"causal={causal}"] = session.run(["Y"], feeds)[0][0, :, 0].tolist()
print(f"onnxruntime {onnxruntime.__version__}: got {got}, expected nan for each")
raise SystemExit(not np.isnan(list(got.values())).all())
