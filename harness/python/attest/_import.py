"""`python -m attest import`: a suite from the config.json of a model, or from a model in ONNX."""

from __future__ import annotations

import argparse
import sys
from typing import Optional, Sequence

from attest import _attest
from attest._model_lines import Sizes, suite_of_config
from attest._onnx_lines import suite_of_onnx
from attest._onnx_run import capture_onnx
from attest._parser import Parser
from attest._suite_text import write_text

_ABOUT = """Writes a suite of the calls that a model makes: case lines, with a comment for each choice.

From the config.json of Hugging Face's libraries, with numbers of queries and keys: prompts where both are the same,
decoding with 1 query. From an ONNX file: each Attention, MultiHeadAttention or GroupQueryAttention, and each softmax
between two products (needs the package onnx). With --run the model runs, and what it hands to each attention is
written to tensor files, which are cases with these data."""
_LARGEST = 1 << 31


def main(words: Sequence[str]) -> int:
    """Runs the command and returns its exit code."""
    try:
        asked = _parser().parse_args(words)
        if asked.run:
            return _captured(asked)
        text = _suite(asked)
        if asked.out:
            write_text(asked.out, text)
        else:
            sys.stdout.write(text)
        return 0
    except _attest.UserError as error:
        print(f"attest: {error}", file=sys.stderr)
        return 2


def _captured(asked: argparse.Namespace) -> int:
    if not asked.model.endswith(".onnx"):
        raise _attest.UserError(f"--run: {asked.model} is no model in ONNX")
    if not asked.out:
        raise _attest.UserError("--run: name the folder for the tensor files with --out")
    for option in ("batch", "queries", "keys", "rope", "size", "dtype"):
        if getattr(asked, option):
            raise _attest.UserError(f"--{option}: with --run the data have their sizes and types")
    for line in capture_onnx(asked.model, asked.run, asked.out, asked.add, asked.limit):
        print(line)
    return 0


def _gib(word: str) -> float:
    number = float(word)
    if not 0 < number < 1e6:
        raise ValueError
    return number


def _suite(asked: argparse.Namespace) -> str:
    if asked.dtype not in ("", "f64", "f32", "f16", "bf16"):
        raise _attest.UserError(f"--dtype {asked.dtype}: nearest: f64, f32, f16 or bf16")
    if asked.model.endswith(".onnx"):
        for option in ("batch", "queries", "keys", "rope"):
            if getattr(asked, option):
                raise _attest.UserError(f"--{option}: an ONNX file has its own; --size NAME=N is for what it leaves open")
        return str(suite_of_onnx(asked.model, _sizes(asked.size or []), asked.dtype, asked.add))
    if asked.size:
        raise _attest.UserError("--size: is for ONNX files; say --batch, --queries and --keys")
    sizes = Sizes(
        batches=_numbers("--batch", asked.batch) or Sizes.batches,
        queries=_numbers("--queries", asked.queries) or Sizes.queries,
        keys=_numbers("--keys", asked.keys),
        dtype=asked.dtype, rope=asked.rope, added=asked.add,
    )  # fmt: skip
    return str(suite_of_config(asked.model, sizes))


def _numbers(option: str, text: Optional[str]) -> tuple[int, ...]:
    return tuple(_number(option, word) for word in text.split(",")) if text else ()


def _number(option: str, word: str) -> int:
    if not word.isascii() or not word.isdigit() or not 0 < int(word) < _LARGEST:
        raise _attest.UserError(f'{option}: "{word}" is no number above 0; several are separated by commas')
    return int(word)


def _sizes(words: Sequence[str]) -> dict[str, int]:
    sizes = {}
    for word in words:
        name, equals, number = word.rpartition("=")
        if not equals or not name:
            raise _attest.UserError(f"--size {word}: NAME=N is wanted, as batch=4")
        sizes[name] = _number("--size", number)
    return sizes


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m attest import", description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example: python -m attest import config.json --batch 1,4 --queries 1,512 --keys 4096 --out model.cases",
    )  # fmt: skip
    parser.add_argument("model", metavar="FILE", help="config.json of a model, or a model.onnx")
    parser.add_argument("--batch", metavar="N,...", help="numbers of sequences; 1 by default")
    parser.add_argument("--queries", metavar="N,...", help="queries of a sequence; 1 and 512 by default")
    parser.add_argument("--keys", metavar="N,...", help="keys of a sequence; the largest of --queries by default")
    parser.add_argument("--size", metavar="NAME=N", action="append", help="size of a dimension that an ONNX file leaves open")
    parser.add_argument("--dtype", default="", metavar="TYPE", help="f64, f32, f16 or bf16 in place of the model's storage")
    parser.add_argument("--rope", action="store_true", help="the kernel rotates q and k, and normalises where the model does")
    parser.add_argument("--add", default="", metavar="WORDS", help='words behind each line, as "layout=blhd out=o,lse"')
    parser.add_argument("--run", default="", metavar="DATA", help="run an ONNX file on a folder with input_0.pb, ... or an .npz")
    parser.add_argument("--limit", type=_gib, default=1, metavar="GIB", help="with --run, GiB of tensors; default: 1")
    parser.add_argument(
        "--out", default="", metavar="FILE", help="write the suite to this file, not to standard output; with --run a folder"
    )
    return parser
