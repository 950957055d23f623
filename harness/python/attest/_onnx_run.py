"""`python -m attest import MODEL.onnx --run DATA`: what a model hands to its attention, as tensor files."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional

import numpy as np

from attest import _attest
from attest._onnx_graph import Graph, onnx_package
from attest._onnx_lines import Reader, name_of
from attest._onnx_scores import NotRead, Spelled, is_causal, spelled_out
from attest._suite_text import SuiteText, joined, number
from attest._tensor_file import Tensor, tensor_of, write_tensors

#: Keys of a case line that a file's tensors, or the words of its own below, tell.
_SHOWN = {"dtype", "batch", "heads", "seq", "dim", "layout", "mask", "past", "scale", "k", "v"}
_FUSED = {"Attention", "MultiHeadAttention", "GroupQueryAttention"}


@dataclass
class _Call:
    """One attention of the model: which tensors it takes, and how these become those of a file."""

    node: Any
    options: str
    tensors: dict[str, str]  #: attest's names, and the model's
    arrange: Callable[[dict[str, Any]], dict[str, Any]]
    metadata: dict[str, str] = field(default_factory=dict)


def capture_onnx(path: str, data: str, out: str, added: str, limit_gib: float) -> list[str]:
    """Runs the model on DATA, writes a tensor file for each attention that is read, and returns what there is to tell,
    a line for each. Raises UserError where nothing is written."""
    onnx = onnx_package(path)
    given = _given(path, data, onnx)
    graph = Graph(path, _open_sizes(path, given, onnx))
    told: list[str] = []
    calls = list(_calls(graph, SuiteText(""), told))
    limit = limit_gib * (1 << 30)
    kept, size = [], 0
    for call in calls:
        bytes_of_call = sum(_bytes(graph, name) for name in call.tensors.values())
        if size + bytes_of_call > limit:
            told.append(_left_out(call.node, f"its tensors would make more than {limit_gib:g} GiB; --limit allows it"))
            continue
        size += bytes_of_call
        kept.append(call)
    values = _run(path, graph, given, {name for call in kept for name in call.tensors.values()}, onnx) if kept else {}
    written = 0
    for index, call in enumerate(kept):
        try:
            file = f"{index:03}_{re.sub(r'[^A-Za-z0-9_.-]+', '_', name_of(call.node).strip('/'))[:80]}.safetensors"
            options = _write(os.path.join(out, file), path, call, values, added)
        except NotRead as reason:
            told.append(_left_out(call.node, str(reason)))
            continue
        written += 1
        told.append(f"{os.path.join(out, file)}: {name_of(call.node)}{': ' if options else ''}{options}")
    if not written:
        raise _attest.UserError(f"{path}: has no attention that is captured{'; ' + told[-1] if told else ''}")
    return told


def _left_out(node: Any, reason: str) -> str:
    return f"left out: {node.op_type} {name_of(node)}: {reason}"


def _load(path: str, onnx: Any) -> Any:
    try:
        return onnx.load(path)
    except OSError as error:
        raise _attest.UserError(f"{path}: {error.strerror or error}; name a model in ONNX") from None
    except Exception as error:  # of protobuf, whose types differ between its versions
        raise _attest.UserError(f"{path}: is no model in ONNX: {type(error).__name__}") from None


def _given(path: str, data: str, onnx: Any) -> dict[str, Any]:
    """The model's inputs by name, from a folder with input_0.pb, ... or an .npz."""
    model = _load(path, onnx)
    stored = {one.name for one in model.graph.initializer}
    names = [one.name for one in model.graph.input if one.name not in stored]
    try:
        if os.path.isdir(data):
            found = {}
            for index, name in enumerate(names):
                file = os.path.join(data, f"input_{index}.pb")
                with open(file, "rb") as stream:
                    found[name] = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(stream.read()))
            return found
        with np.load(data) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except OSError as error:
        raise _attest.UserError(f"{error.filename or data}: {error.strerror or error}; --run wants a folder with "
                                "input_0.pb, ... or an .npz") from None  # fmt: skip
    except Exception as error:  # of protobuf and NumPy, of many types
        raise _attest.UserError(f"{data}: can't be read: {type(error).__name__}") from None
    missing = [name for name in names if name not in found]
    if missing:
        raise _attest.UserError(f"{data}: has no array {missing[0]}; the model's inputs are {', '.join(names)}")
    return {name: found[name] for name in names}


def _open_sizes(path: str, given: Mapping[str, Any], onnx: Any) -> dict[str, int]:
    """Of the dimensions that the model leaves open, by place. Raises UserError where the data don't fit the others."""
    sizes = {}
    for one in onnx.load(path, load_external_data=False).graph.input:
        if one.name not in given or not one.type.HasField("tensor_type"):
            continue
        dims, shape = one.type.tensor_type.shape.dim, given[one.name].shape
        fits = len(dims) == len(shape) and all(dim.dim_value in (0, size) for dim, size in zip(dims, shape))
        if not fits:
            wanted = ",".join(str(dim.dim_value or dim.dim_param or "?") for dim in dims)
            raise _attest.UserError(f"--run: {one.name} has shape {_text(shape)}; the model wants {wanted}")
        sizes.update({f"{one.name}.{axis}": size for axis, size in enumerate(shape) if dims[axis].dim_value < 1})
    return sizes


def _text(shape: Iterable[int]) -> str:
    return ",".join(str(size) for size in shape)


def _calls(graph: Graph, notes: SuiteText, told: list[str]) -> Iterator[_Call]:
    """In the order of the model. What is left out is added to `told`."""
    reader = Reader(graph, notes, "", "")
    spelled = {id(softmax): (read, reason) for softmax, read, reason in spelled_out(graph)}
    for node in graph.nodes:
        is_fused = node.op_type in _FUSED
        if not is_fused and id(node) not in spelled:
            continue
        try:
            if is_fused and (node.domain not in ("", "ai.onnx") or node.op_type != "Attention"):
                raise NotRead("inputs of this operator are not captured")
            if is_fused:
                yield _of_node(graph, reader, node)
                continue
            read, reason = spelled[id(node)]
            if read is None:
                raise NotRead(reason)
            yield _of_softmax(graph, reader, node, read)
        except NotRead as why:
            told.append(_left_out(node, str(why)))


def _options(words: str) -> str:
    return joined(word for word in words.split() if word.partition("=")[0].partition(".")[0] not in _SHOWN)


def _of_node(graph: Graph, reader: Reader, node: Any) -> _Call:
    """ai.onnx.Attention."""
    options = _options(reader.attention(node))
    if scale := graph.attribute(node, "scale", 0.0):
        options = joined([options, f"scale={number(scale)}"])
    places = {"q": 0, "k": 1, "v": 2, "mask": 3, "past_k": 4, "past_v": 5, "key_lengths": 6}
    tensors = {name: graph.given(node, place) for name, place in places.items() if graph.given(node, place)}
    metadata = {}
    if len(graph.shapes[tensors["q"]]) == 3:
        heads = (str(graph.attribute(node, name, 1)) for name in ("q_num_heads", "kv_num_heads"))
        metadata = dict(zip(("layout", "heads", "kv_heads"), ("bld", *heads)))
    keys = graph.shapes[tensors["k"]][-2] + (graph.shapes[tensors["past_k"]][2] if "past_k" in tensors else 0)

    def arrange(values: dict[str, Any]) -> dict[str, Any]:
        if "mask" in values:
            mask = values["mask"]
            hidden = [(0, 0)] * (mask.ndim - 1) + [(0, keys - mask.shape[-1])]  # it is of the first keys
            mask = np.pad(mask, hidden, constant_values=False if mask.dtype == bool else mask.dtype.type(-np.inf))
            values["mask"] = _of_four_axes(mask)
        return values

    return _Call(node, options, tensors, arrange, metadata)


def _of_softmax(graph: Graph, reader: Reader, node: Any, read: Spelled) -> _Call:
    q, k, v = (graph.shapes[name] for name in (read.query, read.key, read.value))
    words = reader.spelled(read)
    batch, heads, key_heads = reader.leading(q, k, v)
    options = joined([_options(words), f"scale={number(read.scale_of_scores)}"])
    tensors = {"q": read.query, "k": read.key, "v": read.value}
    others = [one for one in read.masks if not is_causal(graph, one, q[-2], k[-1])]
    if any(one.changed for one in read.masks):
        raise NotRead("its mask is scaled or capped with the scores")
    if others:
        tensors["mask"] = others[0].name

    def arrange(values: dict[str, Any]) -> dict[str, Any]:
        found = {
            "q": values["q"].reshape(batch, heads, *q[-2:]),
            "k": _with_heads(values["k"].swapaxes(-1, -2), batch, key_heads),
            "v": _with_heads(values["v"], batch, key_heads),
        }
        if others:
            mask = values["mask"] if others[0].additive else values["mask"].astype(bool) != others[0].true_hides
            if len(q) == 3 and mask.ndim == 3:
                mask = mask[:, None]
            if mask.ndim > 4:
                raise NotRead(f"its mask has {mask.ndim} axes")
            found["mask"] = _of_four_axes(mask)
        return found

    return _Call(node, options, tensors, arrange)


def _of_four_axes(array: Any) -> Any:
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def _with_heads(array: Any, batch: int, heads: int) -> Any:
    """B,H,L,D of keys or values, which may be the same for all batches."""
    rows = array.shape[-2:]
    if array.size == batch * heads * rows[0] * rows[1]:
        return array.reshape(batch, heads, *rows)
    if array.size == heads * rows[0] * rows[1]:
        return np.broadcast_to(array.reshape(1, heads, *rows), (batch, heads, *rows))
    raise NotRead("its keys and values have other batches or heads than its queries")


def _bytes(graph: Graph, name: str) -> int:
    """About: of a type that isn't known as of float32."""
    shape = graph.shape(name) or (0,)
    width = {"DOUBLE": 8, "INT64": 8, "FLOAT16": 2, "BFLOAT16": 2, "BOOL": 1}.get(graph.types.get(name, ""), 4)
    return int(np.prod(shape, dtype=np.int64)) * width


def _run(path: str, graph: Graph, given: Mapping[str, Any], wanted: set[str], onnx: Any) -> dict[str, Any]:
    """The tensors of these names; what the model computes behind them is left out."""
    model = _load(path, onnx)
    stored = {one.name: one for one in model.graph.initializer}
    values = {name: onnx.numpy_helper.to_array(stored[name]) for name in wanted if name in stored}
    values.update({name: given[name] for name in wanted if name in given})
    made = {name for node in model.graph.node for name in node.output}
    asked = sorted(name for name in wanted if name in made)
    values.update({name: graph.constants[name] for name in wanted if name in graph.constants and name not in made})
    if asked:
        _cut(model, asked, onnx)
        values.update(zip(asked, _evaluated(path, model, asked, given)))
    return values


def _cut(model: Any, asked: list[str], onnx: Any) -> None:
    """Makes these the model's outputs, and removes the nodes that they don't need."""
    needed, kept = set(asked), []
    for node in reversed(model.graph.node):
        if needed & set(node.output):
            needed.update(_inputs_of(node))
            kept.append(node)
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in reversed(kept)]
    del model.graph.node[:], model.graph.output[:]
    model.graph.node.extend(kept)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in asked)


def _inputs_of(node: Any) -> Iterator[str]:
    yield from node.input
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for one in attribute.g.node:
                yield from _inputs_of(one)


def _evaluated(path: str, model: Any, asked: list[str], given: Mapping[str, Any]) -> list[Any]:
    """By onnxruntime where it is installed and can, else by the evaluator of onnx."""
    reasons = []
    for run in (_by_onnxruntime, _by_the_evaluator):
        try:
            return run(model, asked, given)
        except ImportError:
            continue
        except Exception as error:  # of a library, of many types
            reasons.append(f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}")
    raise _attest.UserError(f"{path}: can't be run: {reasons[-1]}; onnxruntime has more operators than onnx")


def _by_onnxruntime(model: Any, asked: list[str], given: Mapping[str, Any]) -> list[Any]:
    import onnxruntime  # type: ignore[import-not-found, unused-ignore]

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(asked, {one.name: given[one.name] for one in session.get_inputs()}))


def _by_the_evaluator(model: Any, asked: list[str], given: Mapping[str, Any]) -> list[Any]:
    from onnx.reference import ReferenceEvaluator

    return list(ReferenceEvaluator(model).run(asked, dict(given)))


def _write(path: str, model: str, call: _Call, values: Mapping[str, Any], added: str) -> str:
    """Writes the file of a call, and returns the words of its options."""
    missing = next((name for name in call.tensors.values() if name not in values), None)
    if missing is not None:
        raise NotRead(f"{missing} is inside of a node's own graph")
    arrays = call.arrange({name: values[theirs] for name, theirs in call.tensors.items()})
    options = call.options
    lengths: Optional[Any] = arrays.pop("key_lengths", None)
    if lengths is not None:
        words = [word for word in options.split() if not word.startswith("align=")]
        align = "align=bottom-right" if "causal" in words else ""
        options = joined([*words, align, "lengths=" + ",".join(str(int(one)) for one in lengths.reshape(-1))])
    options = joined([options, added])
    try:
        tensors: dict[str, Tensor] = {name: tensor_of(array) for name, array in arrays.items()}
    except KeyError as error:
        raise NotRead(f"a tensor is of type {error}") from None
    about = f"{call.node.op_type} {name_of(call.node)} of {os.path.basename(model)}, run by `attest import`"
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        write_tensors(path, {"options": options, "about": about, **call.metadata}, tensors)
    except OSError as error:
        raise _attest.UserError(f"{path}: {error.strerror}; name another folder for --out") from None
    return options
