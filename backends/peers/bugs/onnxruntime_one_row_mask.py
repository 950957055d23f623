"""onnxruntime: `Attention` refuses three masks that the operator takes: one row for all queries, a short last axis,
rank 1."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

names = ["Q", "K", "V", "attn_mask"]
q = k = np.zeros((1, 1, 2, 1), np.float32)
v = np.array([1, 3], np.float32).reshape(1, 1, 2, 1)
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
bad = False
cases = (("one row", (1, 1, 1, 2), [2, 2]), ("short last axis", (2, 1), [1, 1]), ("rank 1", (2,), [2, 2]))
for name, shape, expected in cases:
    node = helper.make_node("Attention", names, ["Y"])
    inputs = [helper.make_tensor_value_info(each, TensorProto.FLOAT, [1, 1, None, None]) for each in names[:3]]
    inputs.append(helper.make_tensor_value_info("attn_mask", TensorProto.FLOAT, [None] * len(shape)))
    output = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [1, 1, None, None])
    graph = helper.make_graph([node], "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
    onnx.checker.check_model(model)
    feeds = {"Q": q, "K": k, "V": v, "attn_mask": np.zeros(shape, np.float32)}
    evaluated = ReferenceEvaluator(model).run(None, feeds)[0].ravel()
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    try:
        got = session.run(None, feeds)[0].ravel()
    except Exception as error:  # the package's own types have no common base
        got = "an error: " + str(error).split("was false. ")[-1].split("Message: ")[-1][-120:].strip()
    print(f"{name}, attn_mask of shape {shape}: got {got}, expected {expected}; onnx's evaluator gives {evaluated}")
    bad |= isinstance(got, str)
raise SystemExit(bad)
