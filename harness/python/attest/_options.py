"""Which keyword of a callable carries what of a call."""

from __future__ import annotations

import difflib
import functools
import inspect
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Optional

from attest._attest import Call, all_features, options_by_key


class Option(NamedTuple):
    """A keyword: the features that a callable with it takes, and its value where that is no tensor."""

    features: tuple[str, ...]
    value: Optional[Callable[[Call], Any]] = None  # of the call; None: a tensor, or nothing in this call
    needs: tuple[str, ...] = ()  # other keywords without which it says too little
    since: int = 0  # version of the contract that brought it, where that is no older one


def _segments(call: Call) -> Any:
    if call.key_segments is None:
        return None
    return call.query_segments or call.key_segments, call.key_segments


def _key_lengths(call: Call) -> Any:
    """Of a cache in pages, too: pages don't show how many rows of the last one count."""
    if call.key_lengths is None and (call.page_size is not None or "gap" in call.features):
        return [call.key_length] * call.batch
    return call.key_lengths


def _query_lengths(call: Call) -> Any:
    """Of packed sequences with a gap, too: where the next one begins doesn't show where one ends."""
    if call.query_lengths is None and "gap" in call.features:
        return [call.query_length] * call.batch
    return call.query_lengths


def _words(start: str, *without: str) -> tuple[str, ...]:
    """Features that begin so, without those that arrays or other keywords tell."""
    return tuple(word for word in all_features() if word.startswith(start) and word not in without)


TYPES = ("dtype=f64", "dtype=f32", "dtype=f16", "dtype=bf16")  # that arrays show

OPTIONS: dict[str, Option] = {
    "dtype": Option(_words("dtype=", *TYPES), lambda c: None if "dtype=" + c.dtype in TYPES else c.dtype),
    "scale": Option(("scale",), lambda c: c.scale if "scale" in c.features else None),
    "causal": Option(("causal",), lambda c: True if c.causal else None),
    "align": Option(("align=bottom-right",), lambda c: c.align if c.align != "top-left" else None),
    "window": Option(("window",), lambda c: c.window if c.window != (None, None) else None),
    "prefix": Option(("prefix",), lambda c: c.prefix or None),
    "prefix_causal": Option(("prefix=causal",), lambda c: c.prefix_causal or None, needs=("prefix", "causal")),
    "key_lengths": Option(("lengths",), _key_lengths),
    "query_lengths": Option(("lengths of queries", "gap"), _query_lengths, needs=("key_lengths",)),
    "segments": Option(("segments",), _segments),
    "mask": Option(("mask=bool",)),
    "bias": Option(("mask=add", "mask.dtype")),
    "added": Option(("mask=add", "mask.dtype", "alibi", "alibi per batch")),
    "visible": Option(
        ("causal", "align=bottom-right", "window", "prefix", "lengths", "lengths of queries", "segments", "mask=bool",
         "blocks", "prefix=causal"),
    ),
    "blocks": Option(("blocks",), needs=("block_size",)),
    "block_size": Option((), lambda c: c.block_size, needs=("blocks",)),
    "softcap": Option(("softcap",), lambda c: c.softcap),
    "alibi_slopes": Option(("alibi",)),
    "sinks": Option(("sinks",)),
    "dropout": Option((), lambda c: c.dropout or None, needs=("keep",)),
    "keep": Option(("dropout",), needs=("dropout",)),
    "past_k": Option(("past",), needs=("past_v",)),
    "past_v": Option((), needs=("past_k",)),
    "past": Option(("past",), lambda c: c.past or None),
    "past_lengths": Option(("past per batch",)),
    "page_table": Option(("paged",), needs=("page_size", "key_lengths")),
    "page_size": Option((), lambda c: c.page_size, needs=("page_table",)),
    "latent": Option(("latent",), lambda c: True if "latent" in c.features else None, since=9),
    "q_rope": Option(("latent.parts=apart",), needs=("latent", "k_rope"), since=9),
    "k_rope": Option((), needs=("q_rope",), since=9),
    "rope": Option(
        ("rope=halves", "rope=interleaved", "rope of some features"),
        functools.partial(Call.option, key="rope"),
        needs=("cos", "sin"),
        since=9,
    ),
    "cos": Option((), needs=("rope",), since=9),
    "sin": Option((), needs=("rope",), since=9),
    "q_positions": Option(("rope.positions",), needs=("rope", "k_positions"), since=9),
    "k_positions": Option((), needs=("q_positions",), since=9),
    "rotated_cache": Option(
        ("rope.cache=rotated",), lambda c: True if "rope.cache=rotated" in c.features else None, since=9
    ),
    "norm": Option(("norm", "norm=after"), functools.partial(Call.option, key="norm"), ("q_norm", "k_norm"), 9),
    "q_norm": Option((), needs=("norm",), since=9),
    "k_norm": Option((), needs=("norm",), since=9),
    "q_scale": Option(("q.scale",), functools.partial(Call.option, key="q.scale"), ("q_scales",), 9),
    "k_scale": Option(("k.scale",), functools.partial(Call.option, key="k.scale"), ("k_scales",), 9),
    "v_scale": Option(("v.scale",), functools.partial(Call.option, key="v.scale"), ("v_scales",), 9),
    "q_scales": Option((), needs=("q_scale",), since=9),
    "k_scales": Option((), needs=("k_scale",), since=9),
    "v_scales": Option((), needs=("v_scale",), since=9),
    "head_scales": Option(("scales=head",), since=9),
    "query_scales": Option(("scales=query",), since=9),
    "unscaled_cap": Option(
        ("softcap=unscaled",), lambda c: True if "softcap=unscaled" in c.features else None, ("softcap",), 9
    ),
    "indices": Option((), needs=("select",), since=9),
    "select": Option(("select",), functools.partial(Call.option, key="select"), needs=("indices",), since=9),
    "dynamic": Option(
        ("dynamic",), lambda c: True if c.dynamic else None, needs=("query_lengths", "key_lengths"), since=9
    ),
    "max_query_length": Option((), lambda c: c.query_length if c.dynamic else None, needs=("dynamic",), since=9),
    "max_key_length": Option((), lambda c: c.key_length if c.dynamic else None, needs=("dynamic",), since=9),
    "new_k": Option(("append",), needs=("new_v",), since=9),
    "new_v": Option((), needs=("new_k",), since=9),
    "query_starts": Option(("layout=thd",), needs=("key_starts",)),
    "key_starts": Option((), needs=("query_starts",)),
    "op": Option(
        _words("op=", "op=attention", "op=gated", "op=delta", "op=gated_delta", "op=merge"),
        lambda c: c.op if c.op != "attention" else None,
    ),
    "decay": Option(("op=gated", "decay=head"), needs=("op",)),
    "beta": Option(("op=delta", "beta=one"), needs=("op",)),
    "state": Option(("state",), needs=("op",)),
    "l2norm": Option(("l2norm",), functools.partial(Call.option, key="l2norm"), needs=("op",), since=9),
    "part_o": Option(("op=merge",), needs=("part_lse",), since=7),
    "part_lse": Option((), needs=("part_o",)),
    "base": Option(("base=2",), lambda c: 2 if "base=2" in c.features else None, needs=("part_o",)),
    "outputs": Option(_words("out="), lambda c: c.outputs if c.outputs != ("o",) else None),
    "do": Option(("pass=backward", "out=dq", "out=dk", "out=dv")),
    "pass_": Option(
        ("pass=backward", "pass=both"), lambda c: c.pass_ if c.pass_ != "forward" else None, needs=("do",)
    ),
    "saved_o": Option((), needs=("do",)),
    "saved_lse": Option((), needs=("do",)),
    "dlse": Option(("dlse",), needs=("do",)),
    "dpresent": Option(("dpresent",), needs=("do", "op"), since=6),
    "output_types": Option(("mixed types",), lambda c: c.output_types if "mixed types" in c.features else None),
}

# Options and tensors of the table that have no keyword above: each has its key.
for _key, _is_tensor, _since in options_by_key():
    _value = None if _is_tensor else functools.partial(Call.option, key=_key)
    OPTIONS.setdefault(_key, Option((_key,), _value, since=_since))

# What says a part of what these say as a whole.
PARTS = {
    "visible": (
        "causal", "align", "window", "prefix", "key_lengths", "query_lengths", "segments", "mask", "blocks",
        "block_size", "prefix_causal",
    ),
    "added": ("bias", "alibi_slopes"),
}  # fmt: skip


def is_array(call: Call, name: str) -> bool:
    """Whether a keyword carries a tensor of this call, and not what the call says."""
    return OPTIONS[name].value is None or (call.dynamic and name in ("query_lengths", "key_lengths"))


# What arrays show by themselves: no keyword tells it.
SHOWN = (
    *TYPES, "op=attention", "batch", "heads", "grouped heads",
    "seq=LqxLk", "dim=Dqk/Dv", "a size 0", "strides", "strides of other tensors",
    "alibi per batch", "parts", *_words("stored="), *_words("scales in "),
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One call made ready, as the module reads it."""

    function: Callable[..., Any]
    constants: Mapping[str, Any]  # keywords whose value the call fixes
    arrays: Mapping[str, str]  # attest's name of a tensor and the callable's keyword for it
    outputs: tuple[str, ...]
    tensors: Any  # "numpy", "torch", "dlpack" or a function
    workspace: int = 0  # bytes
    device_time: Optional[Callable[[], Any]] = None  # seconds of the last run, or None
    ready: Optional[Callable[..., Callable[[], Any]]] = None  # given what the function is; run() calls what it returns
    to_device: Optional[Callable[[Any], Any]] = None
    unchanged: Optional[Callable[[Any, Any], bool]] = None  # of an array and what to_device made of it
    from_device: Optional[Callable[[Any, Any], None]] = None  # copies what to_device made of an array back into it
    synchronize: Optional[Callable[[], None]] = None
    to_host: Optional[Callable[[Any], Any]] = None


def parameters_of(function: Callable[..., Any], said: Mapping[str, str]) -> Optional[set[str]]:
    """Names that may be given by keyword, without those of q, k and v; None: it has no signature. A callable with
    a parameter for `part_o` merges, and has no q, k and v. `said` are keywords that it calls otherwise."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    by_keyword = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    merges = any(p.name == said.get("part_o", "part_o") for p in parameters if p.kind in by_keyword)
    tensors = [] if merges else [p.name for p in parameters if p.kind in positional][:3]
    takes_any = any(p.kind == inspect.Parameter.VAR_POSITIONAL for p in parameters)
    if len(tensors) < 3 and not takes_any and not merges:
        raise TypeError(f"{title(function)} takes no q, k and v: its first three arguments are theirs")
    required = [p.name for p in parameters if p.kind in by_keyword and p.default is p.empty and p.name not in tensors]
    unknown = [name for name in required if name not in OPTIONS and name not in said.values()]
    if unknown:
        raise TypeError(
            f"{title(function)} needs `{unknown[0]}`, which attest knows nothing of; give it a default, "
            "or map one of attest's keywords to it: keywords={...}"
        )
    return {p.name for p in parameters if p.kind in by_keyword and p.name not in tensors}


def nearest(typed: str, names: Iterable[str]) -> str:
    """The nearest of the names, or all where none is near."""
    near = difflib.get_close_matches(typed, list(names), 1, 0.6)
    return f"nearest: {near[0]}" if near else f"there are {', '.join(names)}"


def title(function: Any) -> str:
    """What a callable is called, for people."""
    return str(getattr(function, "__name__", None) or type(function).__name__)


def keywords_of(function: Callable[..., Any], said: Optional[Mapping[str, str]]) -> dict[str, str]:
    """attest's keywords that a callable takes, and what it calls them. `said` are those that it calls otherwise."""
    for name in said or {}:
        if name not in OPTIONS:
            raise ValueError(f'keywords: attest has no "{name}"; {nearest(name, OPTIONS)}')
    parameters = parameters_of(function, said or {})
    taken = {name: name for name in OPTIONS if parameters is not None and name in parameters}
    for name, keyword in (said or {}).items():
        if parameters is not None and keyword not in parameters:
            raise TypeError(f"{title(function)} has no parameter `{keyword}`")
        taken[name] = keyword
    for name in taken:
        missing = [other for other in OPTIONS[name].needs if other not in taken]
        if missing:
            raise TypeError(f"{title(function)} takes `{name}` without `{missing[0]}`, and the one says nothing alone")
    return taken


def keywords_given(call: Call, keywords: Mapping[str, str]) -> dict[str, str]:
    """Of the keywords that a callable takes those that this call gives it: `visible` and `added` where the others can't
    say all that is hidden or added, and then without them."""
    given = dict(keywords)
    for whole, parts in PARTS.items():
        if whole not in keywords:
            continue
        said = {feature for name in keywords if name in parts for feature in OPTIONS[name].features}
        asked = set(OPTIONS[whole].features) & set(call.features)
        moved = whole == "visible" and call.past > 0 and "past" not in keywords
        ends = {"key_lengths", "query_lengths"} if call.dynamic or "gap" in call.features else set()
        ends |= {"key_lengths"} if call.page_size is not None else set()
        for name in (whole,) if asked <= said and not moved else parts:
            if name not in ends:
                given.pop(name, None)
    return given


def features_of(keywords: Iterable[str], refuses: Iterable[str], more: Iterable[str] = ()) -> frozenset[str]:
    """What a callable with these keywords takes, and `more`, but for what it is said to refuse."""
    known = set(all_features())
    taken = {*SHOWN, *more}
    names = set(keywords)
    for name in names:
        taken.update(OPTIONS[name].features)
    if "part_o" in names:
        taken.discard("op=attention")
    if {"decay", "beta"} <= names:
        taken.add("op=gated_delta")
    for word in refuses:
        if word.split("=")[0] == "poison":
            raise ValueError(
                f'refuses: "{word}" is data, of which a call says nothing; state NaN in hidden keys that reaches the '
                'output as conventions={"hidden_nan": "leaks"}'
            )
        if word not in known:
            raise ValueError(f'refuses: there is no feature "{word}"; {nearest(word, all_features())}')
        taken.discard(word)
    return frozenset(taken)


# Keywords of gradients that calls of a pass do not give.
NOT_GIVEN = {
    "forward": ("do", "dlse", "dpresent", "saved_o", "saved_lse"), "both": ("saved_o", "saved_lse"), "backward": (),
}  # fmt: skip


def _is_required(function: Callable[..., Any], keyword: str) -> bool:
    parameter = inspect.signature(function).parameters.get(keyword)
    return parameter is not None and parameter.default is parameter.empty


def refusal(call: Call, taken: frozenset[str], names: Mapping[str, str], function: Any) -> Optional[str]:
    """Why a callable that takes these features by these keywords can't be asked for this call; None: it can."""
    for feature in call.features:
        if feature in taken:
            continue
        keywords = [name for name, option in OPTIONS.items() if name not in PARTS and feature in option.features]
        keyword = keywords[0] if keywords else None
        if keyword is None or feature in SHOWN:
            return f"{feature}: not supported"
        more = ', and no gradients="autodiff" is stated' if keyword in ("do", "pass_") else ""
        return f"{feature}: {title(function)} has no parameter `{keyword}` for it{more}"
    for name in NOT_GIVEN[call.pass_]:
        if name in names and _is_required(function, names[name]):
            return f"pass={call.pass_}: {title(function)} needs `{names[name]}`, which this pass does not give"
    if call.past > 0:
        if call.page_size is None and "past_k" not in names:
            return f"past: {title(function)} has no parameter `past_k` for it"
        if call.page_size is not None and not {"past", "visible"} & set(names):
            return f"past: {title(function)} has no parameter `past` for it, and pages don't show where new keys begin"
    return None
