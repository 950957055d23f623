#!/usr/bin/env python3
"""Makes a task of attest out of a problem of a board, as far as that is about attention.

    make_task.py definition.json [workload.jsonl]    FlashInfer-Bench, or SOL-ExecBench
    make_task.py 97_ScaledDotProductAttention.py     KernelBench
    make_task.py task.yml                            GPU MODE

The task goes to standard output. What a task can't say is refused in one line, with exit code 2. Cases are drawn around
the problem's options, smaller than its sizes, so that they are checked in seconds; its sizes are timed, jittered. Bounds
are attest's: tolerances of the board are not taken over.
"""

import ast
import json
import re
import sys
from pathlib import Path

LARGEST_BATCH = 64  # sequences that a timed line lists by their lengths
DRAWN_BATCH = 3
DRAWN_LENGTH = 160
TYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
CACHE_TYPES = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "int8": "i8"}
FILLS = "fill=spread(10..60)|ties|onehot|activations"


class Refused(Exception):
    pass


def around(size):
    """A range around a size that is timed."""
    return str(size) if size < 16 else f"{size - size // 32}..{size}"


def few_heads(query_heads, key_heads):
    """Fewer heads in the same proportion."""
    group = query_heads // key_heads
    return heads_text(2 * group, 2) if key_heads > 1 else heads_text(min(query_heads, 16), 1)


def heads_text(query_heads, key_heads):
    if key_heads <= 0 or query_heads % key_heads:
        raise Refused(f"{query_heads} query heads are no multiple of {key_heads} key heads")
    return f"{query_heads}" if query_heads == key_heads else f"{query_heads}/{key_heads}"


class Problem:
    """What the boards' problems come to. Lengths are the longest of a batch."""

    def __init__(self, about, dtype, query_heads, key_heads, dim):
        self.about, self.dtype, self.dim = about, dtype, dim
        self.query_heads, self.key_heads = query_heads, key_heads
        self.batch, self.queries, self.keys = 1, 1, 1
        self.causal = self.packed = self.ragged = False
        self.page = 0
        self.words = []  # further ones of every case
        self.call = ""  # how the board calls what is submitted
        self.declared = []
        self.timed = []  # (batch, queries, keys)

    def lengths(self, batch, queries, keys, sharp):
        """Lengths of each sequence: anything up to the longest, or close to it where that is timed."""
        of_keys = ",".join([around(keys) if sharp else f"1..{keys}"] * batch)
        if not self.packed:
            return f"lengths={of_keys}"
        if queries == keys:
            return f"lengths={of_keys}"
        least = queries if self.causal and queries < keys else 1
        of_keys = ",".join([around(keys) if sharp else f"{least}..{keys}"] * batch)
        return "lengths=q:" + ",".join([around(queries) if sharp else f"1..{queries}"] * batch) + "/k:" + of_keys

    def case(self, batch, queries, keys, heads, sharp):
        line = [f"batch={batch}"] if batch > 1 else []
        line.append(f"heads={heads}")
        if self.ragged:
            line.append(f"seq={queries}" if queries == keys else f"seq={queries}x{keys}")
        else:
            size = around if sharp else lambda n: f"1..{n}"
            line.append(f"seq={size(queries)}" if queries == keys else f"seq={queries}x{size(keys)}")
        line.append(f"dim={self.dim}")
        if self.dtype != "f32":
            line.append(f"dtype={self.dtype}")
        if self.causal:
            line.append("causal" if queries == keys else "causal align=bottom-right")
        if self.page:
            line.append(f"paged={self.page}")
        if self.ragged:
            line.append(self.lengths(batch, queries, keys, sharp))
        if self.packed:
            line.append("layout=thd")
        return " ".join(line + self.words)

    def task(self):
        whole, few = heads_text(self.query_heads, self.key_heads), few_heads(self.query_heads, self.key_heads)
        batch = min(self.batch, DRAWN_BATCH)
        queries, keys = min(self.queries, DRAWN_LENGTH), min(self.keys, DRAWN_LENGTH)
        lines = [f"about {self.about}", "draw 20 " + self.case(batch, queries, keys, few, False)]
        lines.append("draw 6  " + self.case(1, queries, keys, few, False) + " " + FILLS)
        for timed in self.timed or [(self.batch, self.queries, self.keys)]:
            if self.ragged and timed[0] > LARGEST_BATCH:
                raise Refused(f"a batch of {timed[0]} sequences is too large for a line that is timed")
            lines.append("time 1  " + self.case(*timed, whole, True))
        if self.call:
            lines.append(f"call {self.call}")
        lines += [f"declare {word}" for word in self.declared]
        return "\n".join(lines) + "\n"


# ---- FlashInfer-Bench -----------------------------------------------------------------------------------------------


def shape_of(definition, name):
    tensor = definition["inputs"].get(name)
    if tensor is None or tensor["shape"] is None:
        raise Refused(f"{definition['name']}: there is no tensor {name}")
    return tensor["shape"]


def axis(definition, name, values):
    found = definition["axes"].get(name, {})
    if found.get("type") == "const":
        return found["value"]
    return values.get(name)


def constant(definition, name):
    value = axis(definition, name, {})
    if value is None:
        raise Refused(f"{definition['name']}: the axis {name} is no constant")
    return value


def type_of(definition, name, known):
    word = definition["inputs"][name]["dtype"]
    if word not in known:
        raise Refused(f"{definition['name']}: {name} is stored as {word}")
    return known[word]


def scale_words(definition, workloads):
    for workload in workloads:
        given = workload["inputs"].get("sm_scale", {})
        if given.get("type") == "scalar":
            return [f"scale={given['value']:.9g}"]
    return []


def common_words(problem, definition):
    known = {"q", "k", "v", "k_cache", "v_cache", "q_nope", "q_pe", "ckv_cache", "kpe_cache", "qo_indptr", "kv_indptr"}
    known |= {"kv_indices", "kv_last_page_len", "sm_scale"}
    for name in definition["inputs"]:
        if name not in known:
            raise Refused(f"{definition['name']}: a task can't say the input {name}")
    if "lse" in definition["outputs"]:
        problem.words.append("out=o,lse")
        problem.declared.append("lse_base=2")  # as the board has it
    problem.declared += ["stored_weights=bf16", "stored_weights=f16"]


def sizes_of(definition, workload, problem):
    """(batch, queries, keys) of a workload: the lengths of its sequences lie in files, their sum is an axis."""
    axes = workload["axes"]

    def value(name, fallback=None):
        found = axis(definition, name, axes)
        return fallback if found is None else found

    indptr = value("len_indptr")
    batch = value("batch_size", indptr - 1 if indptr else 1)
    pages = value("num_kv_indices", value("num_pages"))
    keys = value("total_kv", pages * max(problem.page, 1) if pages else None)
    queries = value("total_q", batch)
    if not keys or batch < 1:
        raise Refused(f"{definition['name']}: workload {workload['uuid']} doesn't say how many keys there are")
    return batch, max(1, -(-queries // batch)), max(1, -(-keys // batch))


def of_flashinfer(definition, workloads):
    kind = definition["op_type"]
    if kind.startswith("gqa_paged"):
        q, cache = shape_of(definition, "q"), shape_of(definition, "k_cache")
        key_heads, name = constant(definition, cache[2]), "q"
    elif kind.startswith("gqa_ragged"):
        q, cache = shape_of(definition, "q"), None
        key_heads, name = constant(definition, shape_of(definition, "k")[1]), "q"
    elif kind.startswith("mla_paged"):
        q, cache = shape_of(definition, "q_nope"), shape_of(definition, "ckv_cache")
        key_heads, name = 1, "q_nope"
    else:
        raise Refused(f"{definition['name']}: op_type {kind} is not among gqa_paged, gqa_ragged and mla_paged")
    width = constant(definition, q[-1])
    dim = str(width)
    if kind.startswith("mla"):
        dim = f"{width + constant(definition, shape_of(definition, 'q_pe')[-1])}/{width}"
    about = " ".join(definition.get("description", "").split()) or definition["name"]
    problem = Problem(about.replace("#", "no."), type_of(definition, name, TYPES), constant(definition, q[-2]), key_heads, dim)
    problem.ragged = True
    problem.packed = problem.causal = "qo_indptr" in definition["inputs"]
    if cache:
        problem.page = constant(definition, cache[1])
    if kind.startswith("mla"):
        problem.words += ["latent", "latent.parts=apart"]
    elif cache:
        for tensor, stored in (("k_cache", "k"), ("v_cache", "v")):
            if definition["inputs"][tensor]["dtype"] != definition["inputs"]["q"]["dtype"]:
                problem.words.append(f"{stored}.dtype={type_of(definition, tensor, CACHE_TYPES)}")
    problem.words += scale_words(definition, workloads)
    if kind.startswith("mla") and not any(word.startswith("scale=") for word in problem.words):
        raise Refused(f"{definition['name']}: the scale is a workload's; give a file of them")
    common_words(problem, definition)
    problem.timed = sorted({sizes_of(definition, one, problem) for one in workloads})[-3:]
    if problem.timed:
        problem.batch, problem.queries, problem.keys = (max(one[n] for one in problem.timed) for n in range(3))
    else:
        problem.batch, problem.queries, problem.keys = 4, 64 if problem.packed else 1, 512
    problem.call = "run " + " ".join(definition["inputs"]) + " -> " + " ".join(definition["outputs"])
    return problem.task()


def read_workloads(path, definition):
    found = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        one = json.loads(line)
        if one.get("definition", definition["name"]) != definition["name"]:
            raise Refused(f"{path}:{number}: it belongs to the definition {one['definition']}")
        found.append(one.get("workload", one))
    return found


# ---- KernelBench ----------------------------------------------------------------------------------------------------


def called(node):
    """The last name of a function that a node calls: "rand" of torch.rand(...)."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)


def function_in(body, name):
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise Refused(f"there is no {name}()")


def of_kernelbench(path):
    module = ast.parse(Path(path).read_text(encoding="utf-8"))
    numbers, tensors = {}, {}
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            numbers[node.targets[0].id] = node.value.value
    model = next((n for n in module.body if isinstance(n, ast.ClassDef) and n.name == "Model"), None)
    if model is None:
        raise Refused(f"{path}: there is no class Model")
    forward = function_in(model.body, "forward")
    steps = [n for n in forward.body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
    if len(steps) == 2 and isinstance(steps[0], ast.Assign) and isinstance(steps[1], ast.Return):
        result = steps[0].value if ast.dump(steps[1].value, False) == ast.dump(
            ast.Name(steps[0].targets[0].id, ast.Load()), False) else None
    else:
        result = steps[0].value if len(steps) == 1 and isinstance(steps[0], ast.Return) else None
    if called(result) != "scaled_dot_product_attention":
        raise Refused(f"{path}:{forward.lineno}: forward() isn't one call of scaled_dot_product_attention")
    arguments = [argument.arg for argument in forward.args.args[1:]]
    if [getattr(a, "id", None) for a in result.args] != arguments[:3] or len(arguments) != 3:
        raise Refused(f"{path}:{result.lineno}: q, k and v are not the arguments of forward()")
    options = {}
    for keyword in result.keywords:
        if keyword.arg not in ("is_causal", "enable_gqa", "scale") or not isinstance(keyword.value, ast.Constant):
            raise Refused(f"{path}:{result.lineno}: a task can't say {keyword.arg}")
        options[keyword.arg] = keyword.value.value
    inputs = function_in(module.body, "get_inputs")
    for node in inputs.body:
        if isinstance(node, ast.Assign) and called(node.value) in ("rand", "randn"):
            tensors[node.targets[0].id] = node.value
    listed = inputs.body[-1].value.elts if isinstance(inputs.body[-1], ast.Return) else []
    shapes, dtype = [], "float32"
    for element in listed:
        call = tensors.get(getattr(element, "id", None), element)
        if called(call) not in ("rand", "randn"):
            raise Refused(f"{path}:{inputs.lineno}: an input isn't drawn by rand or randn")
        sizes = call.args[0].elts if call.args and isinstance(call.args[0], (ast.Tuple, ast.List)) else call.args
        shapes.append([numbers.get(getattr(s, "id", None), getattr(s, "value", None)) for s in sizes])
        for keyword in call.keywords:
            if keyword.arg == "dtype":
                dtype = keyword.value.attr
    if len(shapes) != 3 or any(len(s) != 4 or not all(isinstance(n, int) for n in s) for s in shapes):
        raise Refused(f"{path}:{inputs.lineno}: q, k and v of four known sizes are wanted")
    (batch, heads, queries, dim), (_, key_heads, keys, _), (_, _, _, value_dim) = shapes
    if dtype not in TYPES:
        raise Refused(f"{path}:{inputs.lineno}: tensors are stored as {dtype}")
    about = f"scaled dot product attention, KernelBench {Path(path).stem}"
    problem = Problem(about, TYPES[dtype], heads, key_heads, str(dim) if dim == value_dim else f"{dim}/{value_dim}")
    problem.batch, problem.queries, problem.keys = batch, queries, keys
    problem.causal = bool(options.get("is_causal"))
    if problem.causal and queries != keys:
        raise Refused(f"{path}:{result.lineno}: is_causal of {queries} queries and {keys} keys is top-left in PyTorch")
    if options.get("scale"):
        problem.words.append(f"scale={options['scale']:.9g}")
    if dtype != "float32":
        problem.declared.append(f"stored_weights={TYPES[dtype]}")
    problem.call = "ModelNew" + init_word(path, module, numbers) + " q k v"
    return problem.task()


def init_word(path, module, numbers):
    """What Model and ModelNew are made with, where that is anything."""
    made = next((n for n in module.body if isinstance(n, ast.FunctionDef) and n.name == "get_init_inputs"), None)
    if made is None:
        return ""
    listed = made.body[-1].value.elts if isinstance(made.body[-1], ast.Return) else [None]
    values = [numbers.get(getattr(e, "id", None), getattr(e, "value", None)) for e in listed]
    if not all(isinstance(value, (bool, int, float, str)) and " " not in str(value) for value in values):
        raise Refused(f"{path}:{made.lineno}: get_init_inputs() returns other things than numbers")
    return f" init={json.dumps(values, separators=(',', ':'))}" if values else ""


# ---- GPU MODE -------------------------------------------------------------------------------------------------------

WORDS = {
    "batch": "batch", "batch_size": "batch", "batchsize": "batch", "bs": "batch", "b": "batch",
    "heads": "heads", "num_heads": "heads", "nheads": "heads", "num_q_heads": "heads", "num_qo_heads": "heads",
    "kv_heads": "key_heads", "num_kv_heads": "key_heads", "n_kv_heads": "key_heads",
    "seq": "queries", "seq_len": "queries", "seqlen": "queries", "sequence_length": "queries", "q_len": "queries",
    "seqlen_q": "queries", "kv_len": "keys", "seqlen_k": "keys", "seqlen_kv": "keys", "seq_len_kv": "keys",
    "dim": "dim", "head_dim": "dim", "headdim": "dim", "d": "dim",
    "causal": "causal", "is_causal": "causal", "dtype": "dtype",
}  # fmt: skip


def flow_mappings(path, key):
    """The mappings {a: 1, b: 2} of a list in a YAML file, as the board writes them."""
    found, inside = [], False
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if re.match(r"\S", line) and not line.startswith("#"):
            inside = line.split("#")[0].strip() == f"{key}:" or (inside and line.startswith("-"))
        if not inside or not line.strip().startswith("-"):
            continue
        text = line.split("#")[0].strip()[1:].strip()
        if not re.fullmatch(r"\{.*\}", text):
            raise Refused(f"{path}:{number}: a mapping {{name: value, ...}} is wanted")
        pairs = re.findall(r'"?(\w+)"?\s*:\s*("[^"]*"|[^,}]+)', text)
        found.append({name: value.strip().strip('"') for name, value in pairs})
    return found


AXES = {"batch": "b", "heads": "h", "key_heads": "h", "queries": "l", "keys": "l", "dim": "d"}


def arguments_of(path):
    """The tensors of `data` and how their axes lie: as generate_input() of the reference makes them, where there is one."""
    if not path.is_file():
        return ["q:bhld", "k:bhld", "v:bhld"]
    body = function_in(ast.parse(path.read_text(encoding="utf-8")).body, "generate_input").body
    shapes = {}
    for node in body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and called(node.value) in ("rand", "randn", "empty", "zeros"):
            arguments = node.value.args
            first = arguments[0] if arguments else None
            shapes[target.id] = first.elts if isinstance(first, (ast.Tuple, ast.List)) else arguments
    returned = body[-1].value if isinstance(body[-1], ast.Return) else None
    names = [getattr(element, "id", None) for element in getattr(returned, "elts", [])]
    if sorted(str(name)[:1].lower() for name in names) != ["k", "q", "v"] or not all(name in shapes for name in names):
        raise Refused(f"{path}: generate_input() doesn't return q, k and v, drawn by randn")
    words = []
    for name in names:
        layout = "".join(AXES.get(WORDS.get(getattr(s, "id", "").lower()), "?") for s in shapes[name])
        if sorted(layout) != ["b", "d", "h", "l"]:
            raise Refused(f"{path}: the sizes of {name} aren't batch, heads, length and head_dim by their names")
        words.append(f"{name[0].lower()}:{layout}")
    return words


def of_gpumode(path):
    sizes = flow_mappings(path, "tests")
    timed = flow_mappings(path, "benchmarks")
    if not sizes + timed:
        raise Refused(f"{path}: there are neither tests nor benchmarks")
    problems = []
    for one in sizes + timed:
        told = {}
        for name, value in one.items():
            if name == "seed":
                continue
            if name.lower() not in WORDS:
                raise Refused(f"{path}: {name} is no size of attention; known are {', '.join(sorted(WORDS))}")
            told[WORDS[name.lower()]] = value
        for needed in ("heads", "queries", "dim"):
            if needed not in told:
                raise Refused(f"{path}: a test says no {needed}: {one}")
        problems.append(told)
    last = problems[-1]
    dtype = last.get("dtype", "bf16").replace("torch.", "")
    dtype = TYPES.get(dtype, dtype)
    if dtype not in TYPES.values():
        raise Refused(f"{path}: tensors are stored as {dtype}")
    heads = int(last["heads"])
    text = re.search(r"^description:\s*\|?\s*\n?\s*(.+)$", Path(path).read_text(encoding="utf-8"), re.M)
    about = text.group(1).strip().replace("#", "no.") if text else "attention"
    problem = Problem(about, dtype, heads, int(last.get("key_heads", heads)), last["dim"])
    problem.causal = last.get("causal", "false").lower() in ("true", "1")
    for told in problems:
        if any(told.get(key, last.get(key)) != last.get(key) for key in ("heads", "key_heads", "dim", "causal", "dtype")):
            raise Refused(f"{path}: heads, dim, causal and dtype differ among the tests; make a file of each")
    every = [(int(p.get("batch", 1)), int(p["queries"]), int(p.get("keys", p["queries"]))) for p in problems]
    problem.batch, problem.queries, problem.keys = (max(one[n] for one in every) for n in range(3))
    problem.timed = every[len(sizes):]
    problem.declared.append(f"stored_weights={dtype}") if dtype != "f32" else None
    problem.call = "custom_kernel tuple " + " ".join(arguments_of(Path(path).parent / "reference.py"))
    return problem.task()


def task_of(arguments):
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):
        raise Refused("a definition .json with its workloads .jsonl, a problem .py or a task.yml is wanted")
    path = arguments[0]
    if not Path(path).is_file():
        raise Refused(f"{path}: there is no such file")
    try:
        if path.endswith(".json"):
            definition = json.loads(Path(path).read_text(encoding="utf-8"))
            workloads = read_workloads(arguments[1], definition) if len(arguments) == 2 else []
            return of_flashinfer(definition, workloads)
        if path.endswith(".py"):
            return of_kernelbench(path)
        if path.endswith((".yml", ".yaml")):
            return of_gpumode(path)
    except (KeyError, TypeError, AttributeError, IndexError, StopIteration) as error:
        raise Refused(f"{path}: it isn't as the board writes it: {type(error).__name__} {error}") from error
    except (json.JSONDecodeError, SyntaxError, OSError) as error:
        raise Refused(f"{path}: it can't be read: {error}") from error
    raise Refused(f"{path}: a file .json, .py or .yml is wanted")


if __name__ == "__main__":
    try:
        sys.stdout.write(task_of(sys.argv[1:]))
    except Refused as refused:
        print(f"make_task.py: {refused}", file=sys.stderr)
        sys.exit(2)
