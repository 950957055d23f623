"""`python -m attest onnx`: the cases of a bundle as models in ONNX, in the layout of ONNX's backend tests."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Optional, Sequence

import numpy as np

from attest import _attest
from attest._onnx_graph import onnx_package
from attest._onnx_node import INPUTS, LACKS, MODES, TAKES, Node, node_of, side_by_side, unsaid
from attest._options import OPTIONS, TYPES
from attest._parser import Parser
from attest._request import Request
from attest._tensor_file import Tensor, read_tensors, tensor_of

_ABOUT = """Writes a folder for each case of a bundle of `attest export` that ONNX's operator Attention can say, named as
the case's file: model.onnx, and test_data_set_0 with the inputs and what is expected. Other cases are listed with the
reason. Needs the package onnx. Exit code 3: the operator can say none."""
_LIST = "models.jsonl"
_NOTHING, _INTERRUPTED = 3, 130  # attest's exit codes
_BUNDLE_LIST = "bundle.jsonl"
#: attest's names of the node's inputs and outputs.
_NAMES = {
    "Q": "q", "K": "k", "V": "v", "attn_mask": "mask", "past_key": "past_k", "past_value": "past_v",
    "nonpad_kv_seqlen": "key_lengths", "Y": "o", "present_key": "present_k", "present_value": "present_v",
}  # fmt: skip
_BY_VALUE = (
    "scale", "causal", "align", "window", "prefix", "key_lengths", "query_lengths", "segments", "block_size", "softcap",
)  # fmt: skip
_TYPES = {"F64": "DOUBLE", "F32": "FLOAT", "F16": "FLOAT16", "BF16": "BFLOAT16", "BOOL": "BOOL", "I64": "INT64"}


#: Features of calls that models have: tensors are dense here, however they lie in the case.
_TAKES = TAKES | {*TYPES, "strides of other tensors"}


class NotSaid(Exception):
    """Why the operator can't say a case."""


@dataclass(frozen=True)
class BundleCase:
    """A case as a bundle's list has it."""

    line: str
    file: str
    results: tuple[tuple[str, str], ...]  #: name and type

    @property
    def name(self) -> str:
        """Of its folder."""
        return self.file.rpartition(".")[0]


@dataclass(frozen=True)
class Model:
    """One node with its data, by attest's names and in the order of the node."""

    opset: int
    attributes: Mapping[str, Any]
    node_inputs: tuple[str, ...]  #: "" for one that is left out
    node_outputs: tuple[str, ...]
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]

    @property
    def bytes(self) -> int:
        return sum(len(one.data) for one in (*self.inputs.values(), *self.outputs.values()))


def main(words: Sequence[str]) -> int:
    """Runs the command and returns its exit code."""
    try:
        asked = _parser().parse_args(words)
        onnx_package(asked.bundle)
        return write_models(asked.bundle, asked.out, asked.opset, asked.limit)
    except KeyboardInterrupt:
        print("attest: interrupted; the same command goes on", file=sys.stderr)
        return _INTERRUPTED
    except _attest.UserError as error:
        print(f"attest: {error}", file=sys.stderr)
        return 2


def write_models(bundle: str, out: str, opset: int, limit_gib: float) -> int:
    """Writes what is not there yet, and tells what it does. The exit code."""
    listed = []
    said: list[BundleCase] = []
    size = left_out = 0
    for one in read_list(bundle):
        entry: dict[str, Any] = {"kind": "case", "case": one.line, "file": one.file}
        try:
            model = model_of(bundle, one, opset)
            entry.update(folder=one.name, bytes=model.bytes)
            said.append(one)
            size += model.bytes
        except NotSaid as reason:
            entry.update(reason=str(reason))
            left_out += 1
            print(f"left out: {one.name} {one.line}: {reason}")
        listed.append(entry)
    print(f"{_counted(len(said), 'case')}, {_size(size)}, opset {opset}: {_printable(out)}", flush=True)
    if not said:
        print(f"0 models; {_counted(left_out, 'case')} left out")
        return _NOTHING
    if size > limit_gib * (1 << 30):
        needed = size // (1 << 30) + 1
        raise _attest.UserError(f"that is more than {limit_gib:g} GiB; --limit {needed} allows it")
    header = {"kind": "onnx", "schema": 1, "attest": _attest.version, "opset": opset, "cases": len(listed)}
    text = "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in (header, *listed))
    written = 0
    try:
        _begin(out, text)
        for one in said:
            folder = os.path.join(out, one.name)
            # A folder gets its name when it is complete: the same command goes on where it was ended.
            if not os.path.isdir(folder):
                _write(folder, one, model_of(bundle, one, opset))
                written += 1
    except OSError as error:
        raise _attest.UserError(f"{error.filename or out}: {error.strerror}; name another folder for --out") from None
    there = f" and {len(said) - written} that were there" if written < len(said) else ""
    print(f"{_counted(written, 'model')} written{there}; {_counted(left_out, 'case')} left out")
    return 0


def read_list(bundle: str) -> Iterator[BundleCase]:
    """The cases of a bundle. Raises UserError for what is none."""
    path = os.path.join(bundle, _BUNDLE_LIST)
    try:
        with open(path, encoding="utf-8") as file:
            told = [json.loads(line) for line in file]
    except OSError as error:
        raise _attest.UserError(f"{path}: {error.strerror}; name a folder of `attest export`") from None
    except ValueError:
        raise _attest.UserError(f"{path}: is no list of `attest export`") from None
    try:
        header, *cases = told
        if (header["kind"], header["schema"], header["cases"]) != ("bundle", 1, len(cases)):
            raise ValueError
        for one in cases:
            if not re.fullmatch(r"\w+\.safetensors", one["file"]):
                raise ValueError
            yield BundleCase(
                str(one["case"]), one["file"], tuple((str(r["name"]), str(r["dtype"])) for r in one["results"])
            )
    except (ValueError, KeyError, TypeError):
        raise _attest.UserError(f"{path}: is no whole list of `attest export` that this attest reads") from None


def model_of(bundle: str, one: BundleCase, opset: int) -> Model:
    """A case with its data. Raises NotSaid with the reason where the operator has no such call."""
    call, rows_first = _attest.call_of(one.line)
    _check_features(call)
    stages = [name for name in call.outputs if name in MODES]
    if len(stages) > 1:
        raise NotSaid(f"out={','.join(stages)}: the operator has one output for the scores; export each alone")
    path = os.path.join(bundle, one.file)
    if not os.path.exists(path):
        raise _attest.UserError(f"{path}: is missing; the same `attest export` writes it")
    stored = read_tensors(path)
    try:
        arrays = {name: tensor.array() for name, tensor in stored.items() if "." not in name}
        seen = {name: _heads_first(array, name in rows_first) for name, array in arrays.items()}
        packed = "o" in rows_first
        request = _request(call, seen)
        _check_data(request, seen)
        node = node_of(
            seen["q"], seen["k"], seen["v"], request, opset, stages[0] if stages else None, packed, every_row=False
        )
        return _with_data(node, one, stored, seen, stages)
    except KeyError as error:
        raise _attest.UserError(f"{path}: tensor {error} is missing") from None


def _check_features(call: Any) -> None:
    strange = next((word for word in call.features if word not in _TAKES), None)
    if strange is not None:
        raise NotSaid(f"{strange}: {LACKS.get(strange, 'Attention has no input, output or attribute for it')}")
    if reason := unsaid(call):
        raise NotSaid(reason)


def _check_data(request: Request, seen: Mapping[str, Any]) -> None:
    """By its text the operator adds -inf to hidden scores, and multiplies values by weights of 0."""
    hides = request.causal or request.hides_by_position or request.mask is not None
    hides = hides or (request.bias is not None and bool(np.isneginf(request.bias.astype(np.float64)).any()))
    for name in ("q", "k", "v", "past_k", "past_v"):
        if hides and name in seen and not np.isfinite(seen[name].astype(np.float64)).all():
            raise NotSaid(f"{name} has NaN or infinity: from a hidden key they reach the operator's result")


def _heads_first(array: Any, rows_first: bool) -> Any:
    return array.transpose(0, 2, 1, 3) if rows_first else array


def _request(call: Any, seen: Mapping[str, Any]) -> Request:
    said = {name: OPTIONS[name].value(call) for name in _BY_VALUE}  # type: ignore[misc]
    slopes = seen["slopes"].reshape(-1) if call.alibi else None
    return Request(
        call.batch, call.query_heads, call.query_length, call.key_length,
        **{name: value for name, value in said.items() if value is not None},
        mask=seen["mask"] if call.mask == "bool" else None, bias=seen["mask"] if call.mask == "add" else None,
        blocks=seen["blocks"] if call.block_size is not None else None, alibi_slopes=slopes,
        past_k=seen["past_k"] if call.past else None, past_v=seen["past_v"] if call.past else None,
        outputs=call.outputs,
    )  # fmt: skip


def _with_data(
    node: Node, one: BundleCase, stored: Mapping[str, Tensor], seen: Mapping[str, Any], stages: Sequence[str]
) -> Model:
    types = dict(one.results)
    outputs = {}
    for name in node.outputs:
        ours = _NAMES.get(name) or stages[0]
        if "expected." + ours in stored:
            expected = stored["expected." + ours]
            tensor = rounded(expected.array(), types[ours])
            if ours == "o" and node.inputs["Q"].ndim == 3:
                batch, rows, heads, dim = tensor.shape
                tensor = Tensor(tensor.kind, (batch, rows, heads * dim), tensor.data)
        elif ours in ("present_k", "present_v"):  # of a node with a cache, whether the case asks for it or not
            tensor = tensor_of(np.concatenate([seen["past" + ours[-2:]], seen[ours[-1]]], 2))
        elif ours == "o":  # the node has it, but the case does not ask for it
            continue
        else:
            raise KeyError("expected." + ours)
        outputs[ours] = tensor
    inputs = {_NAMES[name]: tensor_of(array) for name, array in node.inputs.items()}
    given = [_NAMES[name] if name in node.inputs else "" for name in INPUTS]
    made = ["o", *(["present_k", "present_v"] if node.with_present else ["", ""]), *stages]
    for names in (given, made):
        while not names[-1]:
            names.pop()
    inputs = {name: inputs[name] for name in given if name}
    return Model(node.opset, node.attributes, tuple(given), tuple(made), inputs, outputs)


def rounded(values: Any, kind: str) -> Tensor:
    """Numbers in float64 as the nearest ones of a type, ties to even."""
    shape = tuple(values.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        if kind != "BF16":
            return Tensor(kind, shape, values.astype({"F64": "f8", "F32": "f4", "F16": "f2"}[kind]).tobytes())
        near = values.astype(np.float32)
    # To float32 with the last bit set where anything is lost, so that the second rounding can't take it for a tie.
    bits = near.view(np.uint32) - (np.abs(near) > np.abs(values)).astype(np.uint32)
    bits |= (near != values).astype(np.uint32)
    upper = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return Tensor(kind, shape, np.where(np.isnan(values), 0x7FC0, upper).astype("<u2").tobytes())


def _begin(out: str, text: str) -> None:
    """Makes the folder, or goes on with one that holds the models of this list."""
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, _LIST)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
        raise _attest.UserError(f"{_printable(out)}: it holds models of another bundle; name another folder")
    if os.listdir(out):
        raise _attest.UserError(f"{_printable(out)}: the folder is not empty; name another one")
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".part", path)


def _write(folder: str, one: BundleCase, model: Model) -> None:
    part = folder + ".part"
    shutil.rmtree(part, ignore_errors=True)
    data = os.path.join(part, "test_data_set_0")
    os.makedirs(data)
    with open(os.path.join(part, "model.onnx"), "wb") as file:
        file.write(_proto(one, model).SerializeToString())
    for side, tensors in (("input", model.inputs), ("output", model.outputs)):
        for number, (name, tensor) in enumerate(tensors.items()):
            with open(os.path.join(data, f"{side}_{number}.pb"), "wb") as file:
                file.write(_tensor_proto(name, tensor).SerializeToString())
    os.replace(part, folder)


def _proto(one: BundleCase, model: Model) -> Any:
    from onnx import helper

    given, made = (
        [helper.make_tensor_value_info(name, _type(tensor), tensor.shape) for name, tensor in side.items()]
        for side in (model.inputs, model.outputs)
    )
    node = helper.make_node("Attention", model.node_inputs, model.node_outputs, **model.attributes)
    graph = helper.make_graph([node], "attention", given, made)
    opsets = [helper.make_opsetid("", model.opset)]
    proto = helper.make_model(
        graph, opset_imports=opsets, producer_name="attest", producer_version=_attest.version, doc_string=one.line,
        ir_version=helper.find_min_ir_version_for(opsets),
    )  # fmt: skip
    helper.set_model_props(proto, {"case": one.line})
    return proto


def _tensor_proto(name: str, tensor: Tensor) -> Any:
    from onnx import helper

    return helper.make_tensor(name, _type(tensor), tensor.shape, tensor.data, raw=True)


def _type(tensor: Tensor) -> int:
    from onnx import TensorProto

    return int(TensorProto.DataType.Value(_TYPES[tensor.kind]))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _size(size: int) -> str:
    return f"{size / 1e3 + 0.5:.0f} KB" if size < 1e6 else f"{size / 1e6:.1f} MB"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


def _limit(word: str) -> float:
    number = float(word)
    if not 0 < number < 1e6:
        raise ValueError
    return number


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m attest onnx", description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example: python -m attest onnx bundle --out models",
    )  # fmt: skip
    parser.add_argument("bundle", metavar="BUNDLE", help="the folder that `attest export` wrote")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="the folder for the models")
    parser.add_argument("--opset", type=int, default=24, choices=(23, 24, 25), help="of the models; default: 24")
    parser.add_argument("--limit", type=_limit, default=1, metavar="GIB", help="GiB that the models may have; default: 1")
    return parser
