"""attest.capture: what a program asks of its attention, as case lines."""

from __future__ import annotations

import functools
import inspect
import math
import os
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional

import numpy as np

from attest import _attest
from attest._captured_masks import mask_words
from attest._suite_text import SuiteText, joined, number, write_text
from attest._tensor_file import Tensor, write_tensors

_SAMPLE = 1 << 14  #: elements of a tensor that its statistics are taken from
_SCORES = 64  #: rows of q and of k that scores are estimated from
#: Names of libraries' parameters: PyTorch, FlashAttention, JAX, and attest's own.
_NAMES = {
    "mask": ("mask", "attn_mask", "attention_mask", "bias", "attn_bias", "added"),
    "causal": ("causal", "is_causal"), "scale": ("scale", "softmax_scale", "sm_scale", "scaling"),
    "dropout": ("dropout", "dropout_p"), "window": ("window", "window_size", "local_window_size"),
    "softcap": ("softcap", "logits_soft_cap"), "alibi": ("alibi_slopes",), "sinks": ("sinks", "s_aux"),
    "align": ("align",),
}  # fmt: skip
_WITHOUT_EFFECT = {"enable_gqa", "deterministic", "return_attn_probs", "return_softmax_lse", "implementation"}
_OF_TORCH = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
_TYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_STORED = {"f64": "F64", "f32": "F32", "f16": "F16", "bf16": "BF16", "bool": "BOOL"}


@dataclass
class CapturedCall:
    """All calls that are described by one case line."""

    line: str
    count: int = 0
    #: of q, k and v in the first of them: "mean", "std", "largest", "zeros" and "non_finite" (shares), from a sample
    statistics: dict[str, dict[str, float]] = field(default_factory=dict)
    score_std: float = 0  #: standard deviation of its scores, from a sample
    tensors: dict[str, Any] = field(default_factory=dict)  #: arrays of the first call, where they were asked for

    @property
    def comment(self) -> str:
        """What is said behind its line."""
        largest = max((one["largest"] for one in self.statistics.values()), default=0)
        bad = sum(one["non_finite"] for one in self.statistics.values())
        said = [f"{self.count} calls" if self.count > 1 else "1 call", f"|q|, |k|, |v| up to {largest:.3g}"]
        said += [f"scores' std {self.score_std:.3g}"] + (["some NaN or infinite"] if bad else [])
        return ", ".join(said)


class Capture:
    """A callable that records what it is asked. `calls` has its lines, in the order in which they came first."""

    def __init__(
        self, function: Callable[..., Any], layout: str, align: str, keywords: Mapping[str, str], tensors: int,
        lines: int, seconds: float, memory_gib: float,
    ) -> None:  # fmt: skip
        functools.update_wrapper(self, function)
        self._function, self._layout, self._align, self._tensors = function, layout, align, tensors
        self._most_lines, self._seconds, self._bytes = lines, seconds, memory_gib * (1 << 30)
        self._names = {key: (keywords[key],) if key in keywords else names for key, names in _NAMES.items()}
        self._calls: dict[str, CapturedCall] = {}
        self._lock = threading.Lock()
        self.seconds = 0.0  #: that recording took
        self.unrecorded: dict[str, int] = {}  #: calls that no line describes, by reason
        try:
            self._signature: Optional[inspect.Signature] = inspect.signature(function)
        except (TypeError, ValueError):  # of what is no Python
            self._signature = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            self._record(args, kwargs)
        except _attest.UserError as error:
            self._leave_out(str(error))
        except Exception as error:  # the program goes on, whatever its tensors are
            self._leave_out(f"{type(error).__name__}: {error}")
        self.seconds += time.perf_counter() - start
        return self._function(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @property
    def calls(self) -> list[CapturedCall]:
        """What was recorded, by line."""
        return list(self._calls.values())

    @property
    def lines(self) -> list[str]:
        """The case lines, each once."""
        return list(self._calls)

    def suite(self) -> str:
        """The text of a suite file."""
        name = getattr(self._function, "__name__", "attention")
        suite = SuiteText(f"Calls of {name}, recorded by attest.capture.")
        for reason, count in self.unrecorded.items():
            suite.note(f"{count} calls are left out: {reason}")
        for call in self.calls:
            suite.add(call.line, call.comment)
        return str(suite)

    def write(self, path: Any) -> None:
        """Writes the suite file. Raises UserError where nothing was recorded, or for a path that can't be written."""
        if not self._calls:
            reasons = "; ".join(self.unrecorded) or "it was not called"
            raise _attest.UserError(f"capture: nothing was recorded: {reasons}")
        write_text(os.fspath(path), self.suite())

    def save(self, folder: Any) -> list[str]:
        """Writes the tensors that were kept as files, each of which is a case. Their paths."""
        kept = [call for call in self.calls if call.tensors]
        if not kept:
            raise _attest.UserError("capture: no tensors were kept; ask for them with tensors=N")
        os.makedirs(folder, exist_ok=True)
        paths = []
        for index, call in enumerate(kept):
            paths.append(os.path.join(os.fspath(folder), f"call{index:03}.safetensors"))
            _write_tensors(paths[-1], call)
        return paths

    def _leave_out(self, reason: str) -> None:
        reason = reason.splitlines()[0][:200] if reason else "unknown"
        if reason in self.unrecorded or len(self.unrecorded) < 16:
            self.unrecorded[reason] = self.unrecorded.get(reason, 0) + 1

    def _record(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if self.seconds > self._seconds:
            raise _attest.UserError(f"recording took more than {self._seconds:g} s")
        given = self._given(args, kwargs)
        named = list(given)
        q, k, v = (given.pop(name) for name in named[:3])
        words, scale = self._words(q, k, v, given)
        with self._lock:
            if words in self._by_words:
                self._by_words[words].count += 1
                return
            if len(self._calls) >= self._most_lines:
                raise _attest.UserError(f"more than {self._most_lines} different calls")
        statistics = {name: _statistics(one) for name, one in zip("qkv", (q, k, v))}
        std = self._score_std(q, k, scale)
        fill = f" fill=spread({number(round(2 * std, 1))})" if std > 3 and math.isfinite(std) else ""
        (line,) = _attest.cases_of([], [], [words + fill])
        with self._lock:
            call = self._calls.setdefault(line, CapturedCall(line, 0, statistics, std))
            call.count += 1
            self._by_words[words] = call
        if not call.tensors and sum(bool(one.tensors) for one in self._calls.values()) < self._tensors:
            self._keep(call, q, k, v, given)

    @functools.cached_property
    def _by_words(self) -> dict[str, CapturedCall]:
        return {}

    def _given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, q, k and v first."""
        if self._signature is not None:
            bound = self._signature.bind(*args, **kwargs)
            given = dict(bound.arguments)
            for name, parameter in self._signature.parameters.items():
                if parameter.kind is parameter.VAR_KEYWORD:
                    given.update(given.pop(name, {}))
                if parameter.kind is parameter.VAR_POSITIONAL and name in given:
                    given.update(zip(_OF_TORCH, given.pop(name)))
        else:
            given = {**dict(zip(_OF_TORCH, args)), **kwargs}
        first = [name for name in given if len(_shape(given[name])) >= 2][:3]
        if len(first) < 3:
            raise _attest.UserError("it got fewer than three tensors")
        start = list(given).index(first[0])  # in front of q there is an object that the function belongs to
        others = {name: one for name, one in list(given.items())[start:] if name not in first}
        return {**{name: given[name] for name in first}, **others}

    def _words(self, q: Any, k: Any, v: Any, given: dict[str, Any]) -> tuple[str, float]:
        """The call in words, and its scale."""
        (batch, heads, queries, dim), (_, key_heads, keys, _), (_, _, _, value_dim) = (
            _axes(_shape(one), self._layout) for one in (q, k, v)
        )
        said = {key: self._option(given, key) for key in _NAMES}
        words = [f"dtype={_type(q)} batch={batch} heads={heads}/{key_heads} seq={queries}x{keys} dim={dim}/{value_dim}"]
        words += [f"{name}.dtype={_type(one)}" for name, one in (("k", k), ("v", v)) if _type(one) != _type(q)]
        scale = dim**-0.5 if said["scale"] is None else float(said["scale"])
        words.append("" if math.isclose(scale, dim**-0.5, rel_tol=1e-6) else f"scale={number(scale)}")
        align = str(said["align"] or self._align) if queries != keys else ""
        needs_align = False
        if said["causal"]:
            words.append("causal")
            needs_align = True
        if said["window"] not in (None, (-1, -1), (None, None), -1):
            sides = said["window"] if isinstance(said["window"], (tuple, list)) else (said["window"], said["window"])
            words.append("window=" + ":".join("inf" if side is None or side < 0 else str(int(side)) for side in sides))
            needs_align = True
        if said["mask"] is not None:
            more = mask_words(said["mask"], (batch, heads, queries, keys))
            if more.startswith("causal"):
                align = more.partition("align=")[2]
                more = "causal" if "causal" not in words else ""
                needs_align = True
            words.append(more)
        words.append(f"softcap={number(float(said['softcap']))}" if said["softcap"] else "")
        words.append(f"dropout={number(float(said['dropout']))}" if said["dropout"] else "")
        for option in ("sinks", "alibi"):
            if said[option] is not None:
                words.append(option)
                needs_align = needs_align or option == "alibi"
        words.append(f"align={align}" if needs_align and align else "")
        for name, value in given.items():
            if value is not None and value is not False and name not in _WITHOUT_EFFECT:
                raise _attest.UserError(f"what {name}={_brief(value)} means isn't known; say keywords={{...}}")
        words.append(_storage({"q": q, "k": k, "v": v}, self._layout))
        return joined(words), scale

    def _option(self, given: dict[str, Any], key: str) -> Any:
        found = None
        for name in self._names[key]:
            value = given.pop(name, None)
            found = value if found is None else found
        return found

    def _score_std(self, q: Any, k: Any, scale: float) -> float:
        """Of one head of the first batch; groups of heads share the first key head."""
        rows = []
        for one in (q, k):
            four = one if len(_shape(one)) == 4 else one[(None,) * (4 - len(_shape(one)))]
            head = four[0, :, 0] if self._layout == "blhd" else four[0, 0]
            rows.append(_numbers(head[:: max(1, len(head) // _SCORES)][:_SCORES]).reshape(-1, _shape(one)[-1]))
        with np.errstate(all="ignore"):
            scores = (rows[0] @ rows[1].T) * scale
        return float(np.std(scores)) if scores.size else 0.0

    def _keep(self, call: CapturedCall, q: Any, k: Any, v: Any, given: Mapping[str, Any]) -> None:
        if any(word in call.line for word in ("mask=", "sinks", "alibi", "dropout", ".dtype")):
            return  # files hold them, but drawn ones would be other data
        held = sum(sum(one.nbytes for one in c.tensors.values()) for c in self._calls.values())
        arrays = {name: _bits(one) for name, one in (("q", q), ("k", k), ("v", v))}
        if held + sum(one.nbytes for one in arrays.values()) <= self._bytes:
            axes = (0, 2, 1, 3) if self._layout == "blhd" else (0, 1, 2, 3)
            call.tensors = {
                name: one.reshape((1,) * (4 - one.ndim) + one.shape).transpose(axes) for name, one in arrays.items()
            }


def capture(
    function: Optional[Callable[..., Any]] = None,
    *,
    layout: str = "bhld",
    align: str = "top-left",
    keywords: Optional[Mapping[str, str]] = None,
    tensors: int = 0,
    lines: int = 256,
    seconds: float = 10,
    memory_gib: float = 1,
) -> Any:
    """Records the calls of a function of q, k and v as case lines. It computes what it did before.

    >>> import numpy as np
    >>> import attest
    >>> @attest.capture
    ... def attention(q, k, v, *, is_causal=False):
    ...     return v
    >>> x = np.ones((2, 8, 16, 32), np.float32)
    >>> _ = attention(x, x[:, :4], x[:, :4], is_causal=True)
    >>> attention.lines
    ['batch=2 heads=8/4 seq=16 dim=32 causal k.strides=4096,512,32,1 v.strides=4096,512,32,1']

    Axes are (batch, heads, rows, features), or with `layout="blhd"` (batch, rows, heads, features). `align` is where
    the function's diagonal lies when there are more keys than queries. `keywords` gives the function's names of
    options, as in attest.check; names of PyTorch and FlashAttention are known. Of each line's first call a sample
    gives statistics, and with `tensors=N` the first N lines keep q, k and v, up to `memory_gib`. At most `lines`
    different lines and `seconds` of recording are spent; later calls are counted in `unrecorded`.
    """
    for name, value, known in (("layout", layout, ("bhld", "blhd")), ("align", align, ("top-left", "bottom-right"))):
        if value not in known:
            raise _attest.UserError(f'{name}: there is no "{value}"; {known[0]} or {known[1]}')
    for name in keywords or {}:
        if name not in _NAMES:
            raise _attest.UserError(f"keywords: {name} is no option that is recorded; {', '.join(_NAMES)}")
    options = (layout, align, keywords or {}, tensors, lines, seconds, memory_gib)
    if function is None:
        return lambda one: Capture(one, *options)
    return Capture(function, *options)


def _shape(one: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in getattr(one, "shape", ()) or ())


def _axes(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    if not 2 <= len(shape) <= 4:
        raise _attest.UserError(f"a tensor has {len(shape)} axes")
    if len(shape) == 3:
        return (shape[0], 1, *shape[1:])
    four = (1,) * (4 - len(shape)) + shape
    return (four[0], four[2], four[1], four[3]) if layout == "blhd" else four


def _type(one: Any) -> str:
    name = str(getattr(one, "dtype", "")).rpartition(".")[2]
    if name not in _TYPES:
        raise _attest.UserError(f"a tensor is of type {name or type(one).__name__}")
    return _TYPES[name]


def _strides(one: Any) -> Optional[tuple[int, ...]]:
    """In elements; None where the library doesn't tell."""
    stride = getattr(one, "stride", None)
    if callable(stride):
        return tuple(stride())
    steps, size = getattr(one, "strides", None), getattr(one, "itemsize", 0)
    return tuple(step // size for step in steps) if steps is not None and size else None


def _storage(tensors: Mapping[str, Any], layout: str) -> str:
    """How tensors lie in memory, where that isn't dense in the order of their axes."""
    words = []
    found: dict[str, str] = {}
    for name, one in tensors.items():
        strides, shape = _strides(one), _axes(_shape(one), layout)
        if strides is None or len(_shape(one)) != 4 or 0 in shape:
            continue
        b, h, r, d = (strides[0], strides[2], strides[1], strides[3]) if layout == "blhd" else strides
        whole = shape[1] * shape[2] * shape[3]
        own = {"bhld": (whole, shape[2] * shape[3], shape[3], 1), "blhd": (whole, shape[3], shape[1] * shape[3], 1)}
        for kind, dense in own.items():
            if all(size == 1 or a == e for size, a, e in zip(shape, (b, h, r, d), dense)):
                found.setdefault(name, kind)
        if name not in found:
            words.append(f"{name}.strides={b},{h},{r},{d}")
    kinds = set(found.values())
    if kinds == {"blhd"}:
        return joined(["layout=blhd", *words])
    return joined([*(f"{name}.layout={kind}" for name, kind in found.items() if kind != "bhld"), *words])


def _numbers(one: Any) -> Any:
    """As an array of float64 in this process's memory."""
    if hasattr(one, "detach"):
        one = one.detach().cpu().double().numpy()
    return np.asarray(one, dtype=np.float64)


def _bits(one: Any) -> Any:
    """A copy; of bf16 without ml_dtypes, its bits."""
    if hasattr(one, "detach"):
        one = one.detach().cpu().contiguous()
        if _type(one) == "bf16":
            import torch  # type: ignore[import-not-found, unused-ignore]

            return one.view(torch.int16).numpy().copy()
        return one.numpy().copy()
    return np.array(one)


def _statistics(one: Any) -> dict[str, float]:
    flat = one.reshape(-1)
    values = _numbers(flat[:: max(1, len(flat) // _SAMPLE)])
    finite = values[np.isfinite(values)]
    whole = finite if finite.size else np.zeros(1)
    return {
        "mean": float(whole.mean()), "std": float(whole.std()), "largest": float(np.abs(whole).max()),
        "zeros": float((values == 0).mean()) if values.size else 0.0,
        "non_finite": 1 - finite.size / values.size if values.size else 0.0,
    }  # fmt: skip


def _brief(value: Any) -> str:
    return f"a tensor {_shape(value)}" if _shape(value) else repr(value)[:40]


def _write_tensors(path: str, call: CapturedCall) -> None:
    options = [
        word for word in call.line.split()
        if word.partition("=")[0].partition(".")[0] not in ("dtype", "batch", "heads", "seq", "dim", "fill", "layout", "q", "k", "v")
    ]  # fmt: skip
    kind = next((word[6:] for word in call.line.split() if word.startswith("dtype=")), "f32")
    tensors = {
        name: Tensor(_STORED[kind], tuple(one.shape), np.ascontiguousarray(one).tobytes())
        for name, one in call.tensors.items()
    }
    write_tensors(path, {"options": " ".join(options), "about": call.comment}, tensors)
