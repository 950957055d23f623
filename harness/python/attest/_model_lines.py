"""Case lines of a model, from the config.json that Hugging Face's libraries read."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Mapping, Optional

from attest import _attest
from attest._suite_text import SuiteText, joined, number

_DTYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "half": "f16", "float": "f32"}
_ENCODERS = {
    "albert", "bert", "camembert", "clip_vision_model", "deit", "dinov2", "distilbert", "electra", "ernie",
    "modernbert", "roberta", "siglip_vision_model", "vit", "xlm-roberta",
}  # fmt: skip
_OTHER_SCORES = {  # they add terms to the scores that depend on positions and weights of their own
    "deberta", "deberta-v2", "longformer", "mpnet", "nezha", "transfo-xl", "xlnet",
}  # fmt: skip
_NORMALISED = {"gemma3", "gemma3_text", "qwen3", "qwen3_moe", "qwen3_next"}  # rows of q and k, each head by itself
_INTERLEAVED = {"chatglm", "codegen", "cohere", "cohere2", "gptj"}
_SPEAKS_OF_ATTENTION = re.compile(r"attn|attention|window|softcap|sink|alibi|index_|block_|sparse|rotary|rope", re.I)
_NO_MATTER = {  # they change nothing in what a kernel is asked
    "_attn_implementation", "attention_bias", "attention_dropout", "attention_probs_dropout_prob", "attn_pdrop",
    "attn_implementation", "attention_out_bias", "final_logit_softcapping", "position_embedding_type",
    "rope_parameters", "rope_scaling", "rope_theta", "scale_attn_weights", "swin_norm",
}  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """What a config does not say: how much is asked at once, and in which storage."""

    batches: tuple[int, ...] = (1,)
    queries: tuple[int, ...] = (1, 512)
    keys: tuple[int, ...] = ()  #: empty: the largest number of queries
    dtype: str = ""  #: empty: the config's
    rope: bool = False  #: the kernel rotates and normalises rows of q and k
    added: str = ""  #: words behind every line

    def pairs(self) -> list[tuple[int, int]]:
        """Numbers of queries and keys; a sequence has no more queries than keys."""
        keys = self.keys or (max(self.queries),)
        return [(q, k) for k in keys for q in self.queries if q <= k]


class Config:
    """A config whose names differ between models. It remembers what was read."""

    def __init__(self, values: Mapping[str, Any], path: str) -> None:
        self.values, self.path, self.read = values, path, set[str]()

    def get(self, *names: str) -> Any:
        """The value under the first of these names that has one."""
        self.read.update(names)
        return next((self.values[name] for name in names if self.values.get(name) is not None), None)

    def named(self, *names: str) -> str:
        """The name under which `get` finds it."""
        return next((name for name in names if self.values.get(name) is not None), names[0])

    def size(self, *names: str) -> Optional[int]:
        """A whole number above 0, or None where there is none of these names."""
        value = self.get(*names)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise _attest.UserError(f"{self.path}: {self.named(*names)} is {value!r}; a number above 0 is wanted")
        return value

    def real(self, *names: str) -> Optional[float]:
        """A finite number, or None where there is none of these names."""
        value = self.get(*names)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise _attest.UserError(f"{self.path}: {self.named(*names)} is {value!r}; a number is wanted")
        return float(value)


@dataclass(frozen=True)
class _Layers:
    """Layers that attend alike."""

    kind: str  # "full", "sliding", "chunked" or "linear"
    count: int
    words: str = ""  # of visibility


def suite_of_config(path: str, sizes: Sizes) -> SuiteText:
    """The calls of each kind of layer, at each size. Raises UserError for a file that is no such config."""
    config = _read(path)
    model = str(config.get("model_type") or "model")
    name = str(config.get("_name_or_path", "name_or_path") or model)
    suite = SuiteText(f"Calls of {name}, from its config.json, made by `attest import`.")
    reader = _Reader(config, model, sizes, suite)
    reader.add_all()
    left = sorted(
        f"{key}={value!r}" for key, value in config.values.items()
        if key not in config.read | _NO_MATTER and _SPEAKS_OF_ATTENTION.search(key)
        and value not in (None, False, "", [], 0)
    )  # fmt: skip
    for one in left:
        suite.note(f"not read, may matter: {one[:80]}")
    return suite


def _read(path: str) -> Config:
    try:
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
    except OSError as error:
        raise _attest.UserError(f"{path}: {error.strerror}; name the config.json of a model") from None
    except ValueError as error:
        raise _attest.UserError(f"{path}: is no JSON: {error}") from None
    if not isinstance(values, dict):
        raise _attest.UserError(f"{path}: holds no object; name the config.json of a model")
    inner = values.get("text_config")
    if isinstance(inner, dict):  # of a model that also sees or hears
        values = {"_name_or_path": values.get("_name_or_path"), "dtype": values.get("torch_dtype"), **inner}
    return Config(values, path)


class _Reader:
    def __init__(self, config: Config, model: str, sizes: Sizes, suite: SuiteText) -> None:
        self.config, self.model, self.sizes, self.suite = config, model, sizes, suite
        if config.get("is_encoder_decoder"):
            raise _attest.UserError(
                f"{config.path}: {model} has an encoder and a decoder, which are not read; write the lines by hand"
            )
        if model in _OTHER_SCORES:
            raise _attest.UserError(f"{config.path}: {model} adds terms to its scores that no case line has")
        self.causal = model not in _ENCODERS or bool(config.get("is_decoder"))
        heads = config.size("num_attention_heads", "n_head", "n_heads", "num_heads")
        if heads is None:
            raise _attest.UserError(f"{config.path}: num_attention_heads is missing; is it the config.json of a model?")
        self.heads = heads
        self.count = config.size("num_hidden_layers", "n_layer", "n_layers", "num_layers") or 1
        self.dtype = self._dtype()
        self.latent = config.size("kv_lora_rank")
        if not self.latent:
            self.key_heads, self.dim = self._key_heads(), self._dim()
        self.shared = self._words_of_scores()
        self.layers = self._layers()

    def add_all(self) -> None:
        pairs = self.sizes.pairs()
        if not pairs:
            raise _attest.UserError("--queries: each is more than --keys; a sequence has no more queries than keys")
        if not self.causal:
            pairs = [(k, k) for k in dict.fromkeys(k for _, k in pairs)]
        for queries, keys in pairs:
            for layers in self.layers:
                for batch in self.sizes.batches:
                    self._add(layers, batch, queries, keys)

    def _add(self, layers: _Layers, batch: int, queries: int, keys: int) -> None:
        start = f"dtype={self.dtype} batch={batch}"
        what = f"{layers.count} of {self.count} layers"
        phase = "encoder" if not self.causal else _phase(queries, keys)
        if layers.kind == "linear":
            words = joined([layers.words, start, f"seq={queries}", "state" if queries < keys else ""])
            self.suite.add(joined([words, self.sizes.added]), f"{phase}, {what}: linear attention")
            return
        if self.latent:
            shape = self._latent_words(queries)
        else:
            shape = f"heads={self.heads}/{self.key_heads} dim={self.dim}"
        visible = layers.words
        if self.causal and layers.kind != "chunked":
            rotated = bool(self._rope_words(layers)) and queries < keys
            offset = f"past={keys - queries} rope.cache=rotated" if rotated else "align=bottom-right"
            visible = joined(["causal", offset if queries < keys else "", layers.words])
        rope = self._rope_words(layers)
        words = joined([start, shape, f"seq={queries}x{keys}", visible, self.shared, rope, self.sizes.added])
        self.suite.add(words, f"{phase}, {what}: {layers.kind} attention")

    def _dtype(self) -> str:
        said = self.config.get("torch_dtype", "dtype")
        if self.sizes.dtype:
            self.suite.note(f"dtype={self.sizes.dtype}: asked for with --dtype")
            return self.sizes.dtype
        if said is None:
            self.suite.note("dtype=f32: the config names no torch_dtype")
            return "f32"
        name = str(said).rpartition(".")[2]
        if name not in _DTYPES:
            raise _attest.UserError(f"{self.config.path}: torch_dtype {said!r} is no storage of q, k and v; say --dtype")
        self.suite.note(f"dtype={_DTYPES[name]}: torch_dtype {name}")
        return _DTYPES[name]

    def _key_heads(self) -> int:
        config = self.config
        names = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
        found = config.size(*names)
        if config.get("multi_query") and not config.get("new_decoder_architecture"):
            found, why = 1, "multi_query"
        else:
            why = f"{config.named(*names)} {found}" if found else "no num_key_value_heads: as many key heads"
        heads = config.named("num_attention_heads", "n_head", "n_heads", "num_heads")
        self.suite.note(f"heads={self.heads}/{found or self.heads}: {heads} {self.heads}, {why}")
        return found or self.heads

    def _dim(self) -> int:
        dim = self.config.size("head_dim", "kv_channels", "attention_head_dim")
        if dim:
            self.suite.note(f"dim={dim}: {self.config.named('head_dim', 'kv_channels', 'attention_head_dim')}")
            return dim
        names = ("hidden_size", "n_embd", "d_model", "dim")
        width = self.config.size(*names)
        if width is None or width % self.heads:
            raise _attest.UserError(f"{self.config.path}: neither head_dim nor a hidden_size that the heads divide")
        self.suite.note(f"dim={width // self.heads}: {self.config.named(*names)} {width} / {self.heads} heads")
        return width // self.heads

    def _words_of_scores(self) -> str:
        """What holds for every layer: scale, softcap, sinks, ALiBi."""
        config, words = self.config, []
        scalar, multiplier = config.real("query_pre_attn_scalar"), config.real("attention_multiplier")
        if multiplier is not None:
            words.append(self._said(f"scale={number(multiplier)}", "attention_multiplier"))
        elif scalar is not None and scalar > 0 and not self.latent and scalar != self.dim:
            words.append(self._said(f"scale={number(scalar**-0.5)}", f"1/sqrt(query_pre_attn_scalar {scalar:g})"))
        cap = config.real("attn_logit_softcapping")
        if cap:
            words.append(self._said(f"softcap={number(cap)}", "attn_logit_softcapping"))
        if self.model == "gpt_oss":
            words.append(self._said("sinks", "gpt_oss has a learned logit for each head"))
        if config.get("alibi") or self.model == "bloom":
            words.append(self._said("alibi", "slopes by heads" if self.model == "bloom" else "alibi"))
        return " ".join(words)

    def _said(self, words: str, why: str) -> str:
        self.suite.note(f"{words}: {why}")
        return words

    def _latent_words(self, queries: int) -> str:
        """Multi-head latent attention: prompts with keys of all heads, decoding with the latent ones."""
        config = self.config
        parts = [config.size(name) for name in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")]
        if None in parts or self.latent is None:
            raise _attest.UserError(f"{config.path}: kv_lora_rank without qk_nope_head_dim, qk_rope_head_dim, v_head_dim")
        plain, rotated, values = (part or 0 for part in parts)
        config.get("q_lora_rank", "num_key_value_heads", "head_dim")  # they change nothing here
        scale, why = (plain + rotated) ** -0.5, f"1/sqrt({plain} + {rotated})"
        scaling = config.get("rope_scaling", "rope_parameters") or {}
        scaling = scaling if isinstance(scaling, dict) else {}
        factor, share = scaling.get("factor") or 1, scaling.get("mscale_all_dim") or 0
        if share and factor > 1:
            scale *= (0.1 * share * math.log(factor) + 1) ** 2
            why += f" times the square of YaRN's 0.1 * {share:g} * ln({factor:g}) + 1"
        self._said(f"scale={number(scale)}", why)
        if queries > 1:
            self.suite.note(f"dim={plain + rotated}/{values}: qk_nope_head_dim + qk_rope_head_dim, v_head_dim; prompts")
            return f"heads={self.heads} dim={plain + rotated}/{values} scale={number(scale)}"
        self.suite.note(
            f"latent, dim={self.latent + rotated}/{self.latent}: kv_lora_rank + qk_rope_head_dim, kv_lora_rank; decoding"
        )
        return f"heads={self.heads}/1 dim={self.latent + rotated}/{self.latent} scale={number(scale)} latent"

    def _rope_words(self, layers: _Layers) -> str:
        """Rotation and norm in the kernel, where --rope asks for them."""
        config = self.config
        nested = config.get("rope_parameters")
        share = config.real("partial_rotary_factor", "rotary_pct")
        base = config.real("rope_theta", "rotary_emb_base")
        if base is None and isinstance(nested, dict) and isinstance(nested.get("rope_theta"), (int, float)):
            base = float(nested["rope_theta"])
        local = config.real("rope_local_base_freq")
        width = config.size("rotary_dim") or (int(self.dim * share) if share and not self.latent else None)
        rotates = base is not None or width is not None
        if not self.sizes.rope or self.latent or not rotates:
            if rotates:
                self.suite.note("rope: before the kernel; --rope puts it into it" if not self.latent else
                                "rope: before the kernel")  # fmt: skip
            return ""
        style = "interleaved" if self.model in _INTERLEAVED or config.get("rope_interleave") else "halves"
        if layers.kind == "sliding" and local is not None:
            base = local
        words = f"rope={style}" + (f":{width}" if width and width < self.dim else "")
        words += f" rope.base={number(base)}" if base is not None else ""
        if config.get("rope_scaling"):
            self.suite.note("rope: the config scales its frequencies; the lines have plain ones, which are data")
        if self.model in _NORMALISED:
            words += f" norm={number(config.real('rms_norm_eps') or 1e-6)}"
        self.suite.note(f"{words}: in the kernel, asked for with --rope")
        return words

    def _layers(self) -> list[_Layers]:
        return [layers for layers in self._kinds() if layers.count]

    def _kinds(self) -> list[_Layers]:
        config, count = self.config, self.count
        window = config.size("sliding_window", "local_attention")
        used = config.get("use_sliding_window")
        if used is False or (used is None and self.model.startswith("qwen")):
            window = None
        sides = f"window={window - 1}:0" if window else ""
        types = config.get("layer_types")
        if isinstance(types, list) and types:
            return self._kinds_named([str(one) for one in types], sides)
        interval = config.size("full_attention_interval")
        if self.model == "qwen3_next" and interval:
            self.suite.note(f"full_attention_interval {interval}: the other layers have linear attention")
            return self._kinds_named(_every(interval, count, "full_attention", "linear_attention"), sides)
        if self.model == "llama4_text" and config.size("attention_chunk_size"):
            return self._kinds_named(_every(4, count, "full_attention", "chunked_attention"), sides)
        if self.model == "modernbert":
            each = config.size("global_attn_every_n_layers") or 3
            half = (window or 128) // 2
            self.suite.note(f"window={half}:{half}: local_attention, but for every layer of {each}")
            full = (count + each - 1) // each
            return [_Layers("full", full), _Layers("sliding", count - full, f"window={half}:{half}")]
        if not window:
            return [_Layers("full", count)]
        pattern = config.size("sliding_window_pattern")
        if self.model in ("gemma2", "gpt_oss"):
            pattern = 2
        elif self.model in ("gemma3", "gemma3_text"):
            pattern = pattern or 6
        if pattern:
            return self._kinds_named(_every(pattern, count, "full_attention", "sliding_attention"), sides)
        first = config.size("max_window_layers") if self.model.startswith("qwen") else None
        full = min(first or 0, count)
        self.suite.note(f"{sides}: sliding_window {window}, the query's own key among them")
        return [_Layers("full", full), _Layers("sliding", count - full, sides)]

    def _kinds_named(self, types: list[str], sides: str) -> list[_Layers]:
        """Kinds by the names that Transformers has for them."""
        kinds = []
        for name, count in Counter(types).items():
            if name == "full_attention":
                kinds.append(_Layers("full", count))
            elif name == "sliding_attention" and sides:
                self.suite.note(f"{sides}: sliding_window, the query's own key among them")
                kinds.append(_Layers("sliding", count, sides))
            elif name == "chunked_attention" and self.config.size("attention_chunk_size"):
                chunk = self.config.size("attention_chunk_size")
                self.suite.note(f"chunks({chunk}): attention_chunk_size; given as a mask")
                kinds.append(_Layers("chunked", count, f"mask=bool:11QK:chunks({chunk})"))
            elif name == "linear_attention" and self.config.size("linear_num_value_heads"):
                kinds.append(_Layers("linear", count, self._linear_words()))
            else:
                self.suite.note(f"left out: {count} layers of type {name}, which no line has")
        if not kinds:
            raise _attest.UserError(f"{self.config.path}: layer_types has no kind of attention that is read")
        return kinds

    def _linear_words(self) -> str:
        sizes = [
            self.config.size(f"linear_{name}")
            for name in ("num_value_heads", "num_key_heads", "key_head_dim", "value_head_dim")
        ]
        if None in sizes:
            raise _attest.UserError(f"{self.config.path}: linear_num_key_heads or a linear_..._head_dim is missing")
        heads, key_heads, key_dim, value_dim = sizes
        self.config.get("linear_conv_kernel_dim")
        words = f"op=gated_delta heads={heads} dim={key_dim}/{value_dim} decay=head l2norm out=o,present"
        words += f" qk_heads={key_heads}" if key_heads != heads else ""
        return self._said(words, "linear_num_value_heads, linear_num_key_heads and their head dims")


def _every(interval: int, count: int, last: str, others: str) -> list[str]:
    return [last if (layer + 1) % interval == 0 else others for layer in range(count)]


def _phase(queries: int, keys: int) -> str:
    if queries == keys:
        return "prefill"
    return "decode" if queries == 1 else f"prefill behind {keys - queries} keys"
