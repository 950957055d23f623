"""What adapters to other libraries share, without any of these libraries."""

import ast
import importlib
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import attest
from attest._attest import all_features

PEERS = Path(os.environ.get("ATTEST_PEERS", str(Path(__file__).parent / "../../backends/peers")))
sys.path.insert(0, str(PEERS))

from attest_peers.gradients import GRADIENTS, OfNumpy  # noqa: E402
from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES, Peer  # noqa: E402
from attest_peers.request import Request, compact  # noqa: E402
from attest_peers.transformers_masking import masking_of  # noqa: E402


class Exact(Peer):
    """Attention in float64 with one mask and one bias, as a library would take them."""

    name = "exact_peer"
    takes = SHAPES | HIDING | ADDING | CACHE | {"dtype=f64", "dtype=f32"}
    cannot = {"softcap": "left out here"}

    def arithmetic(self, call):
        return {"accumulator": "f64", "stored_weights": "f64", "stored_scores": "f64"}

    def compute(self, q, k, v, request):
        k, v = (np.repeat(t, q.shape[1] // max(t.shape[1], 1), axis=1) for t in request.with_cached(k, v))
        seen = request.visible()
        scores = q.astype(np.float64) @ np.where(np.isfinite(k), k, 0).astype(np.float64).swapaxes(-1, -2)
        scores *= q.shape[-1] ** -0.5 if request.scale is None else request.scale
        bias = request.bias_with(None, np.float64)
        if bias is not None:
            scores = scores + bias
        scores = np.where(np.isfinite(k).all(-1)[:, :, None, :] | np.isneginf(scores), scores, np.nan)
        if seen is not None:
            scores = np.where(seen, scores, -np.inf)
        top = np.max(scores, -1, keepdims=True, initial=-np.inf)
        weights = np.exp(scores - np.where(np.isinf(top), 0, top))
        total = weights.sum(-1, keepdims=True)
        clean = np.where(np.isfinite(v), v, 0).astype(np.float64)
        o = np.divide(weights @ clean, total, out=np.zeros((*q.shape[:3], v.shape[3])), where=total != 0)
        o = np.where((~np.isneginf(scores)).astype(float) @ ~np.isfinite(v) > 0, np.nan, o)
        return o.astype(q.dtype)


class Differences(OfNumpy, Exact):
    """Its gradients by differences of float64, with q among what is differentiated."""

    name = "differences"
    takes = Exact.takes | GRADIENTS

    def pull(self, forward, inputs, derivatives):
        wide = [np.asarray(array, np.float64) for array in inputs]
        gradients = [np.zeros(array.shape) for array in wide]
        step = 2.0**-15
        for array, gradient in zip(wide, gradients):
            for at in np.ndindex(array.shape):
                kept = array[at]
                for sign in (1, -1):
                    array[at] = kept + sign * step
                    gradient[at] += sign * (forward(*wide)["o"] * derivatives["o"]).sum() / (2 * step)
                array[at] = kept
        found = {name: array.astype(np.float32) for name, array in forward(*wide).items()}
        return found, [gradient.astype(array.dtype) for gradient, array in zip(gradients, inputs)]


def seen_with(masking, request):
    """What transformers/masking_utils.py makes visible of its arguments: B,1,L,S."""
    keys = np.arange(request.keys)[None, :]
    queries = np.arange(request.queries)[:, None] + masking.cached
    places_of_queries, places_of_keys = queries, keys
    documents = np.ones((request.queries, request.keys), bool)
    if masking.positions is not None:
        places_of_queries, places_of_keys = masking.positions[:, None], masking.positions[None, :]
        document = (np.diff(masking.positions, prepend=masking.positions[:1] - 1) != 1).cumsum()
        documents = document[:, None] == document[None, :]
    difference = places_of_queries - places_of_keys
    seen = difference >= 0 if masking.causal else np.ones_like(difference, bool)
    if masking.window is not None:
        seen &= difference < masking.window if masking.causal else np.abs(difference) <= masking.window
    if masking.chunk is not None:
        seen &= queries // masking.chunk == keys // masking.chunk
    if request.prefix:
        seen |= np.broadcast_to(places_of_keys < request.prefix, seen.shape)
    seen = (seen & documents)[None, None]
    return seen if masking.padding is None else seen & masking.padding[:, None, None, :]


class Masked(Exact):
    """Of Transformers' arguments, where these can say what hides."""

    name = "masked_peer"
    said = []

    def compute(self, q, k, v, request):
        masking = masking_of(request)
        if masking is not None:
            seen = seen_with(masking, request)
            self.said.append(masking)
            seen = np.broadcast_to(seen, (request.batch, *seen.shape[1:]))
            request = Request(
                request.batch, request.heads, request.queries, request.keys, request.scale, bias=request.bias, mask=seen,
                alibi_slopes=request.alibi_slopes, past_k=request.past_k, past_v=request.past_v, align=request.align,
            )  # fmt: skip
        return super().compute(q, k, v, request)


def words_in(text):
    """Features that an adapter names, in its source."""
    words = set(re.findall(r'"([^"]+)" in call\.features', text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("takes", "cannot"):
            said = node.value.keys if isinstance(node.value, ast.Dict) else ast.walk(node.value)
            words |= {one.value for one in said if isinstance(one, ast.Constant) and not one.value.endswith("=")}
    return words


def test_words_of_adapters_are_features():
    words = set(SHAPES | HIDING | ADDING | CACHE)
    for path in (PEERS / "attest_peers").glob("*.py"):
        words |= words_in(path.read_text())
    assert len(words) > 20
    assert words <= set(all_features())


def test_one_mask_and_one_bias_say_all_that_hides_and_adds():
    lines = [
        re.sub(r" (out=o,lse|lse\.\w+=\S+)(?= |$)", "", line)
        for line in [*attest.cases("masks"), *attest.cases("matrix")[::40]]
    ]
    results = attest.check(Exact(), lines, once=True, shrink=False)
    assert results.ok, results
    assert results.count("pass") > 150


def test_arguments_of_transformers_hide_what_the_case_does():
    lines = [
        re.sub(r" (out=o,lse|lse\.\w+=\S+)(?= |$)", "", line)
        for line in [*attest.cases("masks"), *attest.cases("matrix")[::20]]
    ]
    lines += ["seq=6 dim=1 causal segments=2,2,2", "seq=6 dim=1 causal segments=3,1,2", "seq=3x7 dim=1 past=4 window=2:0"]
    lines += ["seq=2x9 dim=1 past=4 causal", "batch=2 seq=6 dim=1 causal segments=3,1,2 lengths=4,6"]
    lines += ["batch=2 seq=5 dim=1 causal mask=bool:B11K:random(0.5)", "seq=4x6 dim=1 align=top-left window=2:2"]
    Masked.said.clear()
    results = attest.check(Masked(), lines, once=True, shrink=False, isolate=False)
    assert results.ok, results
    for name in ("padding", "window", "chunk", "positions"):
        assert any(getattr(masking, name) is not None for masking in Masked.said), name
    assert any(masking.cached for masking in Masked.said)


def test_gradients_of_a_call_are_those_of_what_computes_it():
    results = attest.check(
        Differences(),
        ["pass=both heads=2/1 seq=2x3 dim=2 causal align=top-left", "pass=both seq=2x3 dim=2 past=1 out=o,dq,dk,dv",
         "pass=both batch=2 seq=2x3 dim=1 mask=add:1H1K:neginf(0.3) out=dq,dmask",
         "pass=both seq=2 dim=2 alibi out=dv,dq",
         "pass=both seq=0x2 dim=1 mask=add:11QK:normal out=dmask"],
        once=True, shrink=False,
    )  # fmt: skip
    assert [verdict.status for verdict in results] == ["pass"] * 4 + ["refused"], results


def test_gradients_are_asked_for_without_what_no_library_has():
    import run

    line = "pass=backward seq=2 dlse out=dq,lse saved_o.layout=bld do.dtype=f16 dlse.offset=3 mask=add:11QK"
    line += " mask.dtype=f32"
    both, saved = (run.gradients_alone(line, saved) for saved in (False, True))
    assert both == "pass=both seq=2 out=dq mask=add:11QK mask.dtype=f32"
    assert saved == "pass=backward seq=2 out=dq saved_o.layout=bld mask=add:11QK mask.dtype=f32"
    assert run.gradients_alone("pass=both seq=2 out=o,dq out.offset=1", True) == "pass=backward seq=2 out=dq"


@pytest.mark.parametrize(
    "broken", ["causal", "window", "prefix", "key_lengths", "segments", "mask", "blocks", "past_k"]
)
def test_each_part_of_the_mask_is_needed(broken, monkeypatch):
    whole = Request.visible

    def without(request):
        part, nothing = getattr(request, broken), Request.__dataclass_fields__[broken].default
        setattr(request, broken, nothing)
        try:
            return whole(request)
        finally:
            setattr(request, broken, part)

    monkeypatch.setattr(Request, "visible", without)
    results = attest.check(
        Exact(),
        ["seq=9x12 dim=4 causal align=top-left", "seq=9 dim=4 window=2:1", "seq=9 dim=4 causal prefix=4",
         "batch=2 seq=9 dim=4 lengths=4,9", "seq=9 dim=4 segments=4,5", "seq=9 dim=4 mask=bool:BHQK:random(0.5)",
         "seq=9 dim=4 blocks=2x3:random(0.5)", "seq=4x9 dim=4 causal past=5"],
        once=True, shrink=False,
    )  # fmt: skip
    assert not results.ok


def test_a_feature_that_is_not_taken_is_refused_with_the_adapters_sentence():
    results = attest.check(Exact(), ["seq=4 dim=4 softcap=2", "dtype=f16 seq=4 dim=4"], shrink=False)
    assert [verdict.status for verdict in results] == ["refused", "refused"]
    assert results[0].reason == "softcap: left out here"


def test_axes_that_repeat_have_length_1():
    stored = np.arange(6.0).reshape(1, 2, 1, 3)
    assert compact(np.broadcast_to(stored, (4, 2, 5, 3))).shape == (1, 2, 1, 3)
    assert np.array_equal(compact(np.broadcast_to(stored, (4, 2, 5, 3))), stored)


class Layers:
    """Stands for a library: what its one function gets is attended to in float64, in the axes H,L,D."""

    @staticmethod
    def attended(q, k, v, added, scale):
        k, v = (np.repeat(t, len(q) // len(t), axis=0) for t in (k, v))
        scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) * scale + added
        with np.errstate(invalid="ignore"):
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            return (weights / weights.sum(-1, keepdims=True) @ v).astype(np.float32)


def imported(monkeypatch, module, **libraries):
    """An adapter's module, where its libraries are replaced."""
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0")
    for name, stand_in in libraries.items():
        monkeypatch.setitem(sys.modules, name.replace("__", "."), stand_in)
    monkeypatch.delitem(sys.modules, f"attest_peers.{module}", raising=False)
    found = importlib.import_module(f"attest_peers.{module}")
    monkeypatch.delitem(sys.modules, f"attest_peers.{module}")
    return found


PLAIN = [
    "batch=2 heads=2 seq=5 dim=4 causal align=top-left", "seq=6 dim=3 window=2:1", "batch=2 seq=7 dim=2 lengths=4,7",
    "seq=9 dim=4/2 segments=4,5", "batch=2 heads=3 seq=4 dim=4 mask=add:B1QK:normal", "seq=5 dim=8 scale=0.3",
    "batch=2 heads=2 seq=5 dim=4 mask=bool:B11K:random(0.7)", "seq=8 dim=4 causal prefix=3",
]  # fmt: skip
LONGER = [
    "batch=2 heads=2 seq=3x8 dim=4 causal past=5", "seq=2x6 dim=4 causal align=bottom-right", "seq=3x7 dim=4",
    "seq=3x7 dim=4 causal align=top-left", "batch=2 seq=3x7 dim=4 past=4 lengths=5,7",
]  # fmt: skip


def passes(adapter, lines, least):
    results = attest.check(adapter, lines, once=True, shrink=False)
    assert not results.failures and results.count("pass") >= least, results


def test_ncnn_is_given_each_sequence_with_its_mask_and_cache(monkeypatch):
    class Extractor(dict):
        __enter__ = lambda self: self
        __exit__ = lambda self, *_: None
        input = dict.__setitem__

        def extract(self, name, as_it_is):
            assert as_it_is == (name != "o")
            joined = [
                np.concatenate([self[f"past_{t}"], self[t]], 1) if self.get(f"past_{t}", no).size else self[t]
                for t in "kv"
            ]
            scale = self.net.scale or self["q"].shape[-1] ** -0.5
            made = dict(zip(("present_k", "present_v"), joined))
            return 0, made[name] if name in made else Layers.attended(self["q"], *joined, self.get("mask", 0.0), scale)

    class Net:
        opt = SimpleNamespace()

        def load_param_mem(self, text):
            assert (
                text.splitlines()[0] == "7767517" and len(text.splitlines()) == int(text.splitlines()[1].split()[0]) + 2
            )
            self.scale = float(re.search(r" 6=(\S+)", text)[1])

        def load_model(self, reader):
            pass

        def create_extractor(self):
            made = Extractor()
            made.net = self
            return made

    no = np.zeros(0, np.float32)

    class Mat(np.ndarray):
        def __new__(cls, array=no):
            return array.view(cls)

        clone = np.ndarray.copy

    library = SimpleNamespace(__version__="0", Net=Net, Mat=Mat, DataReaderFromEmpty=lambda: None)
    adapter = imported(monkeypatch, "ncnn_sdpa", ncnn=library).Backend()
    passes(adapter, [*PLAIN, *LONGER, "heads=4/2 seq=2x5 dim=4 mask=add:1HQK:normal past=3"], 14)
    results = attest.check(adapter, ["seq=2 dim=2 scale=0", "seq=0 dim=2", "seq=2 dim=2 softcap=2"], shrink=False)
    assert [verdict.status for verdict in results] == ["refused"] * 3


def test_mnn_has_a_mask_for_all_heads_and_scales_the_query(monkeypatch):
    library = SimpleNamespace(expr=SimpleNamespace())
    mnn = imported(monkeypatch, "mnn_attention", _tools=SimpleNamespace(), MNN=library, MNN__expr=library.expr)

    def run(self, given):
        q, k, v = (t[0].transpose(1, 0, 2) for t in given[:3])
        length = q.shape[1]
        causal = np.where(np.tri(length, dtype=bool), 0.0, -np.inf)
        added = given[3][0] if len(given) > 3 else causal
        return Layers.attended(q, k, v, added, q.shape[-1] ** -0.5).transpose(1, 0, 2).reshape(-1)

    monkeypatch.setattr(mnn.Backend, "_run", run)
    passes(mnn.Backend(), PLAIN, 8)
    results = attest.check(mnn.Backend(), ["heads=2 seq=2 dim=2 alibi", "seq=2x3 dim=2"], shrink=False)
    assert [verdict.status for verdict in results] == ["refused"] * 2


def of_operator(node):
    """com.microsoft.Attention by its text in docs/ContribOperators.md."""
    attributes, given, asked = node
    heads, columns = attributes["num_heads"], given["input"].shape[2]
    widths = attributes.get("qkv_hidden_sizes", [columns // 3] * 3)
    projected = np.split(given["input"] @ given["weights"] + given["bias"], np.cumsum(widths)[:2], axis=2)
    q, k, v = (t.reshape(*t.shape[:2], heads, -1).transpose(0, 2, 1, 3) for t in projected)
    if "past" in given:
        k, v = (np.concatenate([old, new], 2) for old, new in zip(given["past"], (k, v)))
    batch, keys = len(q), k.shape[2]
    seen = np.ones((batch, q.shape[2], keys), bool)
    index = given.get("mask_index")
    if index is not None and index.ndim == 1:
        ends, starts = index[:batch], index[batch:] if len(index) > batch else np.zeros(batch)
        places = np.arange(keys)[None]
        seen &= ((places < ends[:, None]) & (places >= starts[:, None]))[:, None]
    elif index is not None:
        seen &= (index if index.ndim == 3 else index[:, None]) > 0
    if attributes.get("unidirectional"):
        seen &= np.tri(q.shape[2], keys, keys - q.shape[2], dtype=bool)
    added = np.where(seen, 0.0, -np.inf)[:, None] + given.get("attention_bias", 0.0)
    added = np.broadcast_to(added, (batch, heads, *seen.shape[1:]))
    scale = attributes.get("scale", q.shape[-1] ** -0.5)
    made = np.stack([Layers.attended(*each, scale) for each in zip(q, k, v, added)])
    o = made.transpose(0, 2, 1, 3).reshape(batch, q.shape[2], -1)
    return {name: o if name == "output" else np.stack([k, v]) for name in asked}


def test_the_projection_of_onnxruntime_gives_back_what_was_asked(monkeypatch):
    pytest.importorskip("onnx")
    library = SimpleNamespace(__version__="0")
    imported(monkeypatch, "onnxruntime_contrib", onnxruntime=library)
    projected = imported(monkeypatch, "onnxruntime_projected", onnxruntime=library)
    monkeypatch.setattr(projected.Attention, "run_node", lambda self, *node: of_operator(node))
    passes(projected.Attention(), [*PLAIN, *LONGER[:4], "heads=2 seq=2x5 dim=4 causal past=3 out=o,present"], 13)
    passes(projected.Attention(), ["batch=2 seq=7 dim=2 causal align=bottom-right lengths=q:3,7/k:5,7"], 0)
    forms = {
        (2,): [[1, 1, 0], [1, 1, 1]], (4,): [[0, 1, 1], [1, 1, 0]], (2, 3): [[1, 0, 1], [1, 1, 1]],
    }  # fmt: skip
    for shape, keys in forms.items():
        assert projected.mask_index(np.array(keys, bool)[:, None]).shape == shape
    assert projected.mask_index(np.zeros((2, 1, 3), bool)).tolist() == [0, 0]
    assert projected.mask_index(np.ones((2, 2, 3), bool)).shape == (2, 2, 3)


def test_codes_lie_in_a_cache_as_onnxruntime_has_them(monkeypatch):
    pytest.importorskip("onnx")
    imported(monkeypatch, "onnxruntime_contrib", onnxruntime=SimpleNamespace(__version__="0"))
    quantized = imported(monkeypatch, "onnxruntime_quantized", onnxruntime=SimpleNamespace(__version__="0"))
    codes = np.array([[-8, 7, 1, -1]], np.int8)
    assert quantized.stored(codes, 8) is codes
    assert quantized.stored(codes, 4).tolist() == [[0xF0, 0x79]]
    one = np.broadcast_to(np.float32(0.5), (2, 3, 4, 1))
    heads = np.broadcast_to(np.array([1, 2, 3], np.float32)[None, :, None, None], (2, 3, 4, 1))
    assert quantized.scale_of(one).tolist() == [0.5] and quantized.scale_of(heads).tolist() == [1, 2, 3]
    adapter, models = quantized.QuantizedCache(), []
    adapter._sessions = SimpleNamespace(session=lambda key, model, threads: models.append(model()))
    adapter.threads = 1
    q, k = np.ones((1, 1, 1, 8), np.float32), np.arange(24, dtype=np.int8).reshape(1, 1, 3, 8)
    attributes, given, asked = adapter.node(q, k, k, Request(1, 1, 1, 3, k_scales=one[:1, :1], v_scales=one[:1, :1]))
    assert np.array_equal(given["past_key"], k[:, :, :2]) and given["key"].tolist() == (k[:, 0, 2:] / 2).tolist()
    adapter.session_of(attributes, given, asked)
    types = [output.type.tensor_type.elem_type for output in models[0].graph.output]
    assert types == [quantized.TYPES[name] for name in ("float32", "int8", "int8")]


def test_executorch_has_a_place_of_the_first_query_or_a_mask(monkeypatch):
    words = imported(monkeypatch, "executorch_sdpa", torch=SimpleNamespace()).words_of
    assert words(Request(1, 1, 2, 5, causal=True, align="bottom-right")) == (3, True, None)
    assert words(Request(1, 1, 2, 5, causal=True)) == (0, True, None)
    assert words(Request(1, 1, 2, 5)) == (3, False, None)
    start, causal, mask = words(Request(2, 1, 2, 3, key_lengths=[1, 3]))
    assert (start, causal, mask.shape) == (1, False, (2, 2, 3))
    assert np.isneginf(mask).tolist() == [[[False, True, True]] * 2, [[False] * 3] * 2]
    assert words(Request(1, 1, 3, 2))[2].tolist() == [[[0.0, 0.0]] * 3]  # fewer keys than queries
