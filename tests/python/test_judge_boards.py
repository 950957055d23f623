"""Submissions in the formats of boards, judged on the boards' own problems: right ones pass, wrong ones fail."""

import importlib.util
import json

import pytest

import attest

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")

KERNELBENCH = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, dropout):
        super(Model, self).__init__()

    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        out = torch.nn.functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
        return out

batch_size = 2
num_heads = 2
sequence_length = 40
embedding_dimension = 16
dropout = 0.5

def get_inputs():
    Q = torch.rand(batch_size, num_heads, sequence_length, embedding_dimension)
    K = torch.rand(batch_size, num_heads, sequence_length, embedding_dimension)
    V = torch.rand(batch_size, num_heads, sequence_length, embedding_dimension)
    return [Q, K, V]

def get_init_inputs():
    return [dropout]
"""

# The format wants a module of torch; what is called is an object of this class, whatever it is.
MODEL_NEW = """
import numpy as np

class ModelNew:
    def __init__(self, dropout):
        assert dropout == 0.5

    def __call__(self, q, k, v):
        scores = q @ k.swapaxes(-1, -2) * q.dtype.type(q.shape[-1] ** -0.5)
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights @ v / weights.sum(-1, keepdims=True)
"""

MODEL_NEW_IN_TORCH = """
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.dropout = dropout

    def forward(self, Q, K, V):
        scores = Q @ K.transpose(-1, -2) * Q.shape[-1] ** -0.5
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return scores.masked_fill(hidden, float("-inf")).softmax(-1) @ V
"""

GPUMODE = """
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
lang: "py"
description: |
  Attention without a mask.
config:
  main: "eval.py"
tests:
  - {"batch": 2, "num_heads": 2, "seqlen": 33, "head_dim": 16, "dtype": "float32", "seed": 4242}
benchmarks:
  - {"batch": 1, "num_heads": 2, "seqlen": 64, "head_dim": 16, "dtype": "float32", "seed": 1}
"""

REFERENCE = """
import torch
from task import input_t, output_t

def generate_input(batch: int, num_heads: int, seqlen: int, head_dim: int, dtype: str, seed: int) -> input_t:
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    v = torch.randn((batch, seqlen, num_heads, head_dim), device="cuda", generator=gen)
    q = torch.randn((batch, seqlen, num_heads, head_dim), device="cuda", generator=gen)
    k = torch.randn((batch, seqlen, num_heads, head_dim), device="cuda", generator=gen)
    return (v, q, k)
"""

CUSTOM_KERNEL = """
from task import input_t, output_t
import numpy as np

def custom_kernel(data: input_t) -> output_t:
    v, q, k = (np.ascontiguousarray(t.swapaxes(1, 2)) for t in data)
    scores = q @ k.swapaxes(-1, -2) * q.dtype.type(q.shape[-1] ** -0.5)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights @ v / weights.sum(-1, keepdims=True)).swapaxes(1, 2)
"""

CUSTOM_KERNEL_IN_TORCH = """
from task import input_t, output_t
import torch

def custom_kernel(data: input_t) -> output_t:
    v, q, k = (t.transpose(1, 2) for t in data)
    weights = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1)
    return (weights @ v).transpose(1, 2)
"""


def axes(**values):
    return {name: {"type": "const", "value": n} if n else {"type": "var"} for name, n in values.items()}


def tensors(dtype, **shapes):
    kind = {name: "int32" if "ind" in name or "len" in name else dtype for name in shapes}
    return {name: {"shape": shape, "dtype": kind[name]} for name, shape in shapes.items()}


RAGGED = {
    "name": "gqa_ragged_prefill", "op_type": "gqa_ragged",
    "axes": axes(num_qo_heads=4, num_kv_heads=2, head_dim=16, total_q=0, total_kv=0, len_indptr=0),
    "inputs": {
        **tensors("float32", q=["total_q", "num_qo_heads", "head_dim"], k=["total_kv", "num_kv_heads", "head_dim"],
                  v=["total_kv", "num_kv_heads", "head_dim"], qo_indptr=["len_indptr"], kv_indptr=["len_indptr"]),
        "sm_scale": {"shape": None, "dtype": "float32"},
    },
    "outputs": tensors("float32", output=["total_q", "num_qo_heads", "head_dim"], lse=["total_q", "num_qo_heads"]),
    "reference": "",
}  # fmt: skip

PAGED = {
    "name": "gqa_paged_decode", "op_type": "gqa_paged",
    "axes": axes(num_qo_heads=4, num_kv_heads=2, head_dim=16, page_size=8, batch_size=0, num_pages=0, len_indptr=0,
                 num_kv_indices=0),
    "inputs": {
        **tensors("float32", q=["batch_size", "num_qo_heads", "head_dim"],
                  k_cache=["num_pages", "page_size", "num_kv_heads", "head_dim"],
                  v_cache=["num_pages", "page_size", "num_kv_heads", "head_dim"], kv_indptr=["len_indptr"],
                  kv_indices=["num_kv_indices"], kv_last_page_len=["batch_size"]),
        "sm_scale": {"shape": None, "dtype": "float32"},
    },
    "outputs": tensors("float32", output=["batch_size", "num_qo_heads", "head_dim"], lse=["batch_size", "num_qo_heads"]),
    "reference": "",
}  # fmt: skip

LATENT = {
    "name": "mla_paged_decode", "op_type": "mla_paged",
    "axes": axes(num_qo_heads=2, head_dim_ckv=32, head_dim_kpe=8, page_size=1, batch_size=0, num_pages=0, len_indptr=0,
                 num_kv_indices=0),
    "inputs": {
        **tensors("float32", q_nope=["batch_size", "num_qo_heads", "head_dim_ckv"],
                  q_pe=["batch_size", "num_qo_heads", "head_dim_kpe"], ckv_cache=["num_pages", "page_size", "head_dim_ckv"],
                  kpe_cache=["num_pages", "page_size", "head_dim_kpe"], kv_indptr=["len_indptr"], kv_indices=["num_kv_indices"]),
        "sm_scale": {"shape": None, "dtype": "float32"},
    },
    "outputs": tensors("float32", output=["batch_size", "num_qo_heads", "head_dim_ckv"], lse=["batch_size", "num_qo_heads"]),
    "reference": "",
}  # fmt: skip

ROWS = """
import numpy as np

def attend(q, k, v, scale, causal):
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(t, group, 1).swapaxes(0, 1) for t in (k, v))
    scores = q.swapaxes(0, 1) @ k.swapaxes(1, 2) * np.float32(scale)
    if causal:
        visible = np.tri(q.shape[0], k.shape[1], k.shape[1] - q.shape[0], dtype=bool)
        scores = np.where(visible, scores, -np.inf)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    top[np.isinf(top)] = 0
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    with np.errstate(all="ignore"):
        o = np.where(total > 0, (weights @ v) / total, 0)
        lse = (top + np.log(total))[..., 0] / np.float32(np.log(2))
    return o.swapaxes(0, 1), lse.T
"""

RAGGED_RUN = """
from .rows import attend

def run(q, k, v, qo_indptr, kv_indptr, sm_scale, output, lse):
    for b in range(len(qo_indptr) - 1):
        rows, keys = slice(*qo_indptr[b : b + 2]), slice(*kv_indptr[b : b + 2])
        output[rows], lse[rows] = attend(q[rows], k[keys], v[keys], sm_scale, True)
"""

PAGED_RUN = """
import numpy as np
from rows import attend

def run(q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, sm_scale):
    output, lse = np.zeros_like(q), np.full(q.shape[:2], -np.inf, np.float32)
    for b in range(len(q)):
        pages = kv_indices[kv_indptr[b] : kv_indptr[b + 1]]
        if not len(pages):
            continue
        n = (len(pages) - 1) * k_cache.shape[1] + kv_last_page_len[b]
        k, v = (t[pages].reshape(-1, *t.shape[2:])[:n] for t in (k_cache, v_cache))
        output[b : b + 1], lse[b : b + 1] = attend(q[b : b + 1], k, v, sm_scale, False)
    return output, lse
"""

LATENT_RUN = """
import numpy as np
from rows import attend

def run(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, sm_scale):
    output, lse = np.zeros_like(q_nope), np.full(q_nope.shape[:2], -np.inf, np.float32)
    q = np.concatenate([q_nope, q_pe], -1)
    for b in range(len(q)):
        pages = kv_indices[kv_indptr[b] : kv_indptr[b + 1]]
        if not len(pages):
            continue
        ckv, kpe = ckv_cache[pages, 0], kpe_cache[pages, 0]
        k = np.concatenate([ckv, kpe], -1)[:, None]
        output[b : b + 1], lse[b : b + 1] = attend(q[b : b + 1], k, ckv[:, None], sm_scale, False)
    return {"lse": lse, "output": output}
"""

WORKLOAD = {
    "definition": "mla_paged_decode", "solution": None, "evaluation": None,
    "workload": {
        "uuid": "u", "axes": {"batch_size": 2, "num_kv_indices": 80, "len_indptr": 3, "num_pages": 100},
        "inputs": {"sm_scale": {"type": "scalar", "value": 0.1}},
    },
}  # fmt: skip


def solution(run, into, **spec):
    return {
        "name": "rows", "definition": "d", "author": "nobody",
        "spec": {
            "language": "python", "target_hardware": ["cpu"], "entry_point": "main.py::run", "dependencies": [],
            "destination_passing_style": into, **spec,
        },
        "sources": [{"path": "main.py", "content": run}, {"path": "rows.py", "content": ROWS}],
    }  # fmt: skip


@pytest.fixture
def judged(tmp_path):
    """judged(problem's files, a submission's name and text): the first file is the problem."""

    def judge(problem, name, submission):
        board, work = tmp_path / "board", tmp_path / "work"
        board.mkdir(exist_ok=True), work.mkdir(exist_ok=True)
        for file, text in problem.items():
            (board / file).write_text(text if isinstance(text, str) else json.dumps(text))
        (work / name).write_text(submission if isinstance(submission, str) else json.dumps(submission))
        return attest.judge(work / name, board / next(iter(problem)), seed=20261128, budget=120, threads=1)

    return judge


def passes(found):
    assert found["verdict"] == "pass" and found["cases"]["passed"] == found["cases"]["drawn"], found
    assert found["speeds"] and all(one["seconds"] > 0 for one in found["speeds"]), found


def test_a_model_of_kernelbench_is_made_with_its_problems_arguments(judged):
    problem = {"97_Attention.py": KERNELBENCH}
    found = judged(problem, "model.py", MODEL_NEW)
    passes(found)
    assert found["task"] == "97_Attention" and found["backend"] == "modelnew"
    wrong = judged(problem, "model.py", MODEL_NEW.replace("np.tri(*scores.shape[-2:], dtype=bool)", "True"))
    assert wrong["verdict"] == "fail" and "causal" in wrong["failing_case"], wrong


@needs_torch
def test_a_module_of_torch_for_kernelbench(judged):
    problem = {"97_Attention.py": KERNELBENCH}
    passes(judged(problem, "model.py", MODEL_NEW_IN_TORCH))
    assert judged(problem, "model.py", MODEL_NEW_IN_TORCH.replace("triu(1)", "triu(2)"))["verdict"] == "fail"
    half = {"97_Attention.py": KERNELBENCH.replace("embedding_dimension)", "embedding_dimension, dtype=torch.bfloat16)")}
    assert judged(half, "model.py", MODEL_NEW_IN_TORCH)["cases"]["drawn"] > 0


def test_a_kernel_of_gpu_mode_is_given_what_its_reference_makes(judged):
    problem = {"task.yml": GPUMODE, "reference.py": REFERENCE}
    found = judged(problem, "kernel.py", CUSTOM_KERNEL)
    passes(found)
    assert found["task"] == "board"  # the folder's name, as every file is called task
    assert judged(problem, "kernel.py", CUSTOM_KERNEL.replace("v, q, k", "q, k, v"))["verdict"] == "fail"
    without = CUSTOM_KERNEL.replace("v, q, k", "q, k, v").replace("t.swapaxes(1, 2)", "t").replace(".swapaxes(1, 2)\n", "\n")
    passes(judged({"attention.yml": GPUMODE, "reference.py": REFERENCE.replace("(v, q, k)", "(q, k, v)").replace(
        "batch, seqlen, num_heads", "batch, num_heads, seqlen")}, "kernel.py", without))  # fmt: skip


@needs_torch
def test_a_kernel_of_gpu_mode_in_torch(judged):
    problem = {"task.yml": GPUMODE, "reference.py": REFERENCE}
    passes(judged(problem, "kernel.py", CUSTOM_KERNEL_IN_TORCH))
    assert judged(problem, "kernel.py", CUSTOM_KERNEL_IN_TORCH.replace("** -0.5", "** -0.4"))["verdict"] == "fail"


@pytest.mark.parametrize(
    "definition, run, into",
    [(RAGGED, RAGGED_RUN, True), (PAGED, PAGED_RUN, False), (LATENT, LATENT_RUN, False)],
    ids=["ragged", "paged", "latent"],
)
def test_a_solution_of_flashinfer_bench(judged, definition, run, into):
    problem = {definition["name"] + ".json": definition}
    if definition is LATENT:
        problem[definition["name"] + ".jsonl"] = json.dumps(WORKLOAD)
    passes(judged(problem, "solution.json", solution(run, into)))
    wrong = judged(problem, "solution.json", solution(run.replace("sm_scale, ", "1.01 * sm_scale, ", 2).replace(
        "1.01 * sm_scale, output", "sm_scale, output"), into))  # fmt: skip
    assert wrong["verdict"] == "fail", wrong


@pytest.mark.parametrize(
    "spec, text",
    [
        ({"language": "cuda"}, "its language is cuda"),
        ({"entry_point": "main.py"}, "no FILE::FUNCTION"),
        ({"entry_point": "main.py::run.real"}, "no FILE::FUNCTION"),
        ({"entry_point": "other.py::run"}, "other.py is none of its sources"),
        ({"entry_point": "../main.py::run"}, "is no path of a source"),
        ({"entry_point": "main.py::nothing"}, "has no `nothing`"),
        ({"destination_passing_style": "yes"}, "neither true nor false"),
    ],
)
def test_solutions_that_cant_be_called_are_invalid(judged, spec, text):
    found = judged({"r.json": RAGGED}, "solution.json", solution(RAGGED_RUN, True, **spec))
    assert found["verdict"] == "invalid" and text in found["reason"], found


@pytest.mark.parametrize("path", ["/etc/attest", "../outside.py", "a/../../outside.py", "", "a\nb.py", "rows.py/inner.py", "main.py"])
def test_sources_stay_in_their_folder(judged, path):
    one = solution(RAGGED_RUN, True)
    one["sources"].append({"path": path, "content": "x = 1\n"})
    found = judged({"r.json": RAGGED}, "solution.json", one)
    assert found["verdict"] == "invalid", found


def test_what_calls_none_of_this_is_judged_as_before(judged):
    honest = MODEL_NEW.split("class")[0] + """
def attention(q, k, v, *, causal=False):
    scores = q @ k.swapaxes(-1, -2) * q.dtype.type(q.shape[-1] ** -0.5)
    scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights @ v / weights.sum(-1, keepdims=True)
"""
    passes(judged({"97_Attention.py": KERNELBENCH}, "kernel.py", honest))
    lonely = judged({"prefill.task": "draw 1 seq=4 dim=4\n"}, "solution.json", solution(RAGGED_RUN, True))
    assert lonely["verdict"] == "invalid" and "made of its definition" in lonely["reason"]


def test_problems_of_which_no_task_can_be_made_are_refused_in_one_line(judged):
    for problem, text in (
        ({"p.py": KERNELBENCH.replace("is_causal=True", "dropout_p=0.5")}, "a task can't say dropout_p"),
        ({"p.py": "x = ("}, "it can't be read"),
        ({"p.yml": GPUMODE, "reference.py": REFERENCE.replace("num_heads, head_dim)", "3, head_dim)")}, "aren't batch, heads"),
        ({"p.yml": "tests:\n"}, "neither tests nor benchmarks"),
    ):
        with pytest.raises(attest.UserError, match="no task can be made of it: .*") as told:
            judged(problem, "model.py", MODEL_NEW)
        assert text in str(told.value) and "\n" not in str(told.value)
