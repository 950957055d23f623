"""Case lines of a model in ONNX: one for each node or subgraph that computes attention."""

from __future__ import annotations

import math
import os
from typing import Any, Mapping, Optional

from attest import _attest
from attest._onnx_graph import Graph, Shape
from attest._onnx_scores import Mask, NotRead, Spelled, is_causal, spelled_out
from attest._suite_text import SuiteText, joined, number

_DTYPES = {"DOUBLE": "f64", "FLOAT": "f32", "FLOAT16": "f16", "BFLOAT16": "bf16"}
_STAGES = {0: "raw", 1: "capped", 2: "biased", 3: "weights"}
#: Fused operators that compute attention, but in ways that are not read here.
_NOT_READ = {
    "DecoderAttention", "DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention", "FlexAttention",
    "LinearAttention", "LongformerAttention", "PackedAttention", "PackedMultiHeadAttention", "PagedAttention",
    "QAttention", "QOrderedAttention", "RelativePositionBias", "SparseAttention",
}  # fmt: skip


def suite_of_onnx(path: str, sizes: Mapping[str, int], dtype: str = "", added: str = "") -> SuiteText:
    """The attention of a model at these sizes. Raises UserError for a file that is no model, or has no attention."""
    graph = Graph(path, sizes)
    suite = SuiteText(f"Attention of {os.path.basename(path)}, made by `attest import`.")
    for name, size in sizes.items():
        suite.note(f"{name}={size}: asked for with --size")
    reader = Reader(graph, suite, dtype, added)
    for node in graph.nodes:
        reader.add_fused(node)
    for node, read, reason in spelled_out(graph):
        reader.add_spelled(node, read, reason)
    if not suite.lines:
        left = f"; {suite.notes[-1]}" if reader.left else ""
        raise _attest.UserError(f"{path}: has no attention that is read{left}")
    return suite


class Reader:
    """Case lines of the nodes and subgraphs of a model, for a suite."""

    def __init__(self, graph: Graph, suite: SuiteText, dtype: str, added: str) -> None:
        self.graph, self.suite, self.dtype, self.added = graph, suite, dtype, added
        self.left = 0

    def add_fused(self, node: Any) -> None:
        readers = {
            ("", "Attention"): self.attention,
            ("com.microsoft", "Attention"): self._packed_weights,
            ("com.microsoft", "MultiHeadAttention"): self._multi_head,
            ("com.microsoft", "GroupQueryAttention"): self._group_query,
        }
        reader = readers.get((node.domain.replace("ai.onnx", ""), node.op_type))
        if reader is None and node.op_type not in _NOT_READ:
            return
        try:
            if reader is None:
                raise NotRead("this operator is not read")
            self._add(node, reader(node), node.op_type)
        except NotRead as reason:
            self._leave_out(node, str(reason))

    def add_spelled(self, node: Any, read: Optional[Spelled], reason: str) -> None:
        try:
            if read is None:
                raise NotRead(reason)
            self._add(node, self.spelled(read), "softmax")
            if read.quantised:
                self.suite.note("operands are quantised to 8 bits around the products; lines have what they stand for")
        except NotRead as why:
            self._leave_out(node, str(why))

    def _add(self, node: Any, words: str, what: str) -> None:
        try:
            self.suite.add(joined([words, self.added]), f"{what} {name_of(node)}")
        except _attest.UserError as error:
            if self.added:
                raise
            self._leave_out(node, str(error))

    def _leave_out(self, node: Any, reason: str) -> None:
        self.left += 1
        self.suite.note(f"left out: {node.op_type} {name_of(node)}: {reason}")

    def _shape(self, node: Any, index: int, name: str) -> Shape:
        found = self.graph.shape(self.graph.given(node, index))
        if found is None:
            raise NotRead(f"the shape of its {name} isn't known")
        return found

    def _dtype_of(self, name: str) -> str:
        kind = self.graph.types.get(name, "FLOAT")
        if self.dtype:
            return f"dtype={self.dtype}"
        if kind not in _DTYPES:
            raise NotRead(f"its storage is {kind}")
        return f"dtype={_DTYPES[kind]}"

    def _scale(self, scale: float, dim: int) -> str:
        if math.isclose(scale, dim**-0.5, rel_tol=1e-6):
            return ""
        return f"scale={number(scale)}"

    # Fused operators.

    def attention(self, node: Any) -> str:
        """ai.onnx.Attention, since opset 23."""
        q, k, v = (self._shape(node, index, name) for index, name in enumerate(("Q", "K", "V")))
        graph, past = self.graph, self.graph.shape(self.graph.given(node, 4))
        if len(q) == 4:
            (batch, heads, queries, dim), (key_heads, keys), value_dim = q, k[1:3], v[3]
            layout = ""
        else:
            heads, key_heads = graph.attribute(node, "q_num_heads", 1), graph.attribute(node, "kv_num_heads", 1)
            (batch, queries), keys, layout = q[:2], k[1], "layout=bld"
            dim, value_dim = q[2] // heads, v[2] // key_heads
        words = self._sizes(node, batch, heads, key_heads, queries, keys, dim, value_dim, layout, past)
        if graph.attribute(node, "is_causal", 0):
            total = keys + (past[2] if past else 0)
            words += " causal" + (" align=top-left" if not past and queries != total else "")
        if graph.given(node, 3):
            scores = (batch, heads, queries, keys + (past[2] if past else 0))
            words += " " + self._mask(self._mask_named(graph.given(node, 3)), scores, of_first_keys=True)
        if graph.given(node, 6):
            self.suite.note("nonpad_kv_seqlen is data: lines have full lengths")
        cap = graph.attribute(node, "softcap", 0.0)
        words += f" softcap={number(cap)}" if cap else ""
        if len(node.output) > 3 and node.output[3]:
            words += f" out=o,{_STAGES.get(graph.attribute(node, 'qk_matmul_output_mode', 0), 'raw')}"
        return joined([words, self._given_scale(node, dim)])

    def _given_scale(self, node: Any, dim: int) -> str:
        scale = self.graph.attribute(node, "scale", 0.0)
        return self._scale(scale, dim) if scale else ""

    def _sizes(
        self, node: Any, batch: int, heads: int, key_heads: int, queries: int, keys: int, dim: int, value_dim: int,
        layout: str, past: Optional[Shape], past_axis: int = 2,
    ) -> str:  # fmt: skip
        cached = past[past_axis] if past else 0
        total = keys + cached
        return joined([
            self._dtype_of(self.graph.given(node, 0)), f"batch={batch} heads={heads}/{key_heads}",
            f"seq={queries}x{total} dim={dim}/{value_dim}", f"past={cached}" if cached else "", layout,
        ])  # fmt: skip

    def _multi_head(self, node: Any) -> str:
        """com.microsoft.MultiHeadAttention: rows of all heads side by side, or packed."""
        graph, q = self.graph, self._shape(node, 0, "query")
        heads = graph.attribute(node, "num_heads", 1)
        past = graph.shape(graph.given(node, 6))
        batch, queries, layout = q[0], q[1], "layout=bld"
        if len(q) == 5:
            dim = value_dim = q[4]
            keys, layout = queries, "layout=qkv"
        else:
            k = self._shape(node, 1, "key")
            dim = q[2] // heads
            if len(k) == 5:
                keys, value_dim, layout = k[1], k[4], "layout=kv"
            elif len(k) == 4:
                keys, value_dim, layout = k[2], self._shape(node, 2, "value")[3], "layout=bld k.layout=bhld v.layout=bhld"
            else:
                keys, value_dim = k[1], self._shape(node, 2, "value")[2] // heads
        words = self._sizes(node, batch, heads, heads, queries, keys, dim, value_dim, layout, past)
        total = keys + (past[2] if past else 0)
        return self._microsoft_options(node, words, (batch, heads, queries, total), past, dim, padding=4, bias=5, added=3)

    def _packed_weights(self, node: Any) -> str:
        """com.microsoft.Attention, which projects its input as well."""
        graph, x, weights = self.graph, self._shape(node, 0, "input"), self._shape(node, 1, "weights")
        heads = graph.attribute(node, "num_heads", 1)
        widths = graph.attribute(node, "qkv_hidden_sizes") or [weights[1] // 3] * 3
        past = graph.shape(graph.given(node, 4))
        dim, value_dim = widths[0] // heads, widths[2] // heads
        words = self._sizes(node, x[0], heads, heads, x[1], x[1], dim, value_dim, "", past, 3)
        total = x[1] + (past[3] if past else 0)
        self.suite.note("com.microsoft.Attention projects its input first; lines begin with q, k and v")
        return self._microsoft_options(node, words, (x[0], heads, x[1], total), past, dim, padding=3, bias=5, added=-1)

    def _microsoft_options(
        self, node: Any, words: str, scores: Shape, past: Optional[Shape], dim: int, padding: int, bias: int, added: int
    ) -> str:
        graph = self.graph
        if graph.attribute(node, "unidirectional", 0):
            words += " causal" + (" align=bottom-right" if not past and scores[2] != scores[3] else "")
        if hidden := graph.given(node, padding):
            if len(graph.shape(hidden) or ()) == 2:
                words += " mask=bool:B11K:random(0.9)"
                self.suite.note("mask=bool:B11K: padding of keys, which is data")
            else:
                self.suite.note("lengths of keys are data: lines have full lengths")
        if graph.given(node, bias):
            if "mask=" in words:
                raise NotRead("it has padding and a bias, and lines have one mask")
            words += " " + self._mask_of(graph.given(node, bias), scores)
        if added >= 0 and graph.given(node, added):
            self.suite.note("biases of projections are added before the lines begin")
        return joined([words, self._given_scale(node, dim)])

    def _group_query(self, node: Any) -> str:
        """com.microsoft.GroupQueryAttention: decoders, with the new keys behind the cached ones."""
        graph, q = self.graph, self._shape(node, 0, "query")
        heads, key_heads = graph.attribute(node, "num_heads", 1), graph.attribute(node, "kv_num_heads", 1)
        packed = not graph.given(node, 1)
        dim = q[2] // (heads + 2 * key_heads if packed else heads)
        past = graph.shape(graph.given(node, 3))
        words = self._sizes(node, q[0], heads, key_heads, q[1], q[1], dim, dim, "layout=bld", past) + " causal"
        window = graph.attribute(node, "local_window_size", -1)
        if window > 0:
            words += f" window={window - 1}:0"
            self.suite.note(f"window={window - 1}:0: local_window_size {window}, the query's own key among them")
        cap = graph.attribute(node, "softcap", 0.0)
        words += f" softcap={number(cap)}" if cap else ""
        if graph.given(node, 11):
            words += " sinks"
        elif graph.attribute(node, "smooth_softmax", 0):
            words += " sinks=" + ",".join(["0"] * heads)
        if graph.attribute(node, "do_rotary", 0):
            style = "interleaved" if graph.attribute(node, "rotary_interleaved", 0) else "halves"
            table = graph.shape(graph.given(node, 7))
            part = f":{2 * table[1]}" if table and 2 * table[1] < dim else ""
            words += f" rope={style}{part}" + (" rope.cache=rotated" if past and past[2] else "")
            self.suite.note("rope: do_rotary; tables are data")
        if graph.given(node, 10):
            total = q[1] + (past[2] if past else 0)
            words += " " + self._mask_of(graph.given(node, 10), (q[0], heads, q[1], total))
        self.suite.note("lengths of sequences are data: lines have full ones, with all cached keys in use")
        return joined([words, self._given_scale(node, dim)])

    # Subgraphs.

    def spelled(self, read: Spelled) -> str:
        """A softmax between two products."""
        graph = self.graph
        q, k, v = (graph.shapes[name] for name in (read.query, read.key, read.value))
        (queries, dim), (key_dim, keys), value_dim = q[-2:], k[-2:], v[-1]
        if dim != key_dim or v[-2] != keys or len(q) > 5 or len(q) < 2:
            raise NotRead(f"its shapes {q}, {k} and {v} are no q, k and v")
        batch, heads, key_heads = self.leading(q, k, v)
        words = joined([
            self._dtype_of(read.weights), f"batch={batch} heads={heads}/{key_heads}",
            f"seq={queries}x{keys} dim={dim}/{value_dim}", self._scale(read.scale, dim),
            f"softcap={number(read.softcap)}" if read.softcap else "",
        ])  # fmt: skip
        kinds = set()
        for mask in read.masks:
            align = is_causal(graph, mask, queries, keys)
            if align:
                words += " causal" + (f" align={align}" if queries != keys else "")
                continue
            kinds.add(mask.additive)
            if len(kinds) > 1 or "mask=" in words:
                raise NotRead("it has several masks, and lines have one")
            words += " " + self._mask(mask, (batch, heads, queries, keys))
        return words

    def leading(self, q: Shape, k: Shape, v: Shape) -> tuple[int, int, int]:
        """Batches, query heads and key heads."""
        if len(q) == 2:
            return 1, 1, 1
        if len(q) == 3:
            self.suite.note("batch: batches and heads are one axis in this model")
            return q[0], 1, 1
        if len(q) == 4:
            key_heads = k[1] if len(k) == 4 else 1
            return q[0], q[1], key_heads
        if len(k) == 5 and k[2] == 1 and v[2] == 1:
            return q[0], q[1] * q[2], q[1]
        return q[0] * q[1], q[2], k[2]

    def _mask_of(self, name: str, scores: Shape) -> str:
        return self._mask(self._mask_named(name), scores)

    def _mask_named(self, name: str) -> Mask:
        return Mask(name, additive=self.graph.types.get(name) != "BOOL")

    def _mask(self, mask: Mask, scores: Shape, of_first_keys: bool = False) -> str:
        """Words of a mask whose numbers are data: its shape is the model's, what it holds is drawn. `of_first_keys`: one
        with a shorter last axis hides the other keys."""
        shape = self.graph.shape(mask.name)
        if shape is None or len(shape) > 4:
            raise NotRead(f"the shape of its mask {mask.name} isn't known")
        full = (scores[0], 1, *scores[2:]) if len(shape) == 3 and scores[1] == 1 else scores
        if len(shape) == 3 and scores[1] == 1:
            shape = (shape[0], 1, *shape[1:])  # of a model whose batches and heads are one axis
        shape = (1,) * (4 - len(shape)) + shape
        if of_first_keys and shape[3] < scores[3]:
            shape = (*shape[:3], scores[3])
        axes = "".join(letter if size > 1 else "1" for letter, size in zip("BHQK", shape))
        if any(size not in (1, whole) for size, whole in zip(shape, full)):
            raise NotRead(f"its mask has shape {shape} for scores {scores}")
        if not mask.additive:
            self.suite.note(f"mask=bool:{axes}: {mask.name}, whose data are drawn")
            return f"mask=bool:{axes}:random(0.9)"
        value = self.graph.constants.get(mask.name)
        hides = value is not None and value.size and value.min() <= -1e4
        padding = hides or (value is None and axes[2:] == "1K")
        self.suite.note(f"mask=add:{axes}: {mask.name}, whose data are drawn" + (" as padding" if padding else ""))
        return f"mask=add:{axes}:{'padding(0.1)' if padding else 'normal'}"


def name_of(node: Any) -> str:
    """What a node is called, for people."""
    return str(node.name or next((name for name in node.output if name), "without a name"))
