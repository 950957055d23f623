#!/usr/bin/env python3
"""layering.py: dependencies point one way. Every #include and import of the project is held against the tables of
harness/README.md, and before that small projects are, in each of which one thing is wrong."""
import pathlib
import re
import sys
import tempfile

FOLDERS = ["reference", "backends", "harness", "tests", "scripts"]
ALL_ABOVE, STANDARD = "all above", "the standard library"
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]*)', re.MULTILINE)
IMPORT = re.compile(r"^\s*import ([\w., ]+)|^\s*from \.*([\w.]*) import \(?([\w, ]+)", re.MULTILINE)


class Table:
    """What sources of a place may include besides their own place. A place is a file, a folder with a / at the end, or
    "backends/*/", each folder of which is a place by itself."""

    def __init__(self, readme):
        text = readme.read_text()
        self.rows = {}
        for place, allowed in self._under(text, "folder"):
            self.rows[place] = (re.findall("`([^`]*)`", allowed), STANDARD in allowed)
        outside, above = self.rows.get("harness/", ([], False))[0], []
        for module, allowed in self._under(text, "module"):
            place = "harness/" + module
            own = [f"harness/{name}/" for name in re.findall("`([^`]*)`", allowed)]
            self.rows[place] = (outside + own + (above if ALL_ABOVE in allowed else []), False)
            above = [*above, place]

    @staticmethod
    def _under(text, heading):
        """The first and the last cell of the rows of a table, by the first cell of its heading."""
        table = re.search(rf"^\| {heading} \|.*\n((?:\|.*\n)*)", text, re.MULTILINE)
        return re.findall(r"^\| `([^`]*)` \|.*?([^|]*) \|$", table[1], re.MULTILINE) if table else []

    def place_of(self, path):
        """The most special place that holds the file, with a * replaced by the folder that it stands for; or None."""
        best = None
        for pattern, row in self.rows.items():
            place = pattern
            if "*" in pattern:
                start = pattern.index("*")
                if "/" not in path[start:]:
                    continue
                place = pattern.replace("*", path[start:].split("/")[0])
                if place in self.rows:
                    continue
            if covers(place, path) and (not best or len(place) > len(best[0])):
                best = place, *row
        return best

    def holds_modules(self, place):
        """Whether no source lies in the place itself, and each of its folders is a module."""
        return place.startswith("harness/") and any(
            other != place and other.endswith("/") and other.startswith(place) for other in self.rows
        )


def covers(place, path):
    return path.startswith(place) if place.endswith("/") else path == place


def imports_of(root, path, folders):
    """The project's files that a Python source imports; of two of one name the one beside the source is meant."""
    for whole, package, names in IMPORT.findall(path.read_text()):
        modules = re.findall(r"[\w.]+", whole) or [package, *(f"{package}.{one}" for one in re.findall(r"\w+", names))]
        for module in filter(None, modules):  # "as other" names nothing that is there
            at = module.strip(".").replace(".", "/")
            places = [path.parent, *folders]
            files = [file for place in places for file in (place / f"{at}.py", place / at / "__init__.py")]
            yield from [file.relative_to(root).as_posix() for file in files if file.exists()][:1]


def circle_in(graph):
    """A circle as "a -> b -> a", or None."""
    done, path = set(), []

    def visit(node):
        if node in done:
            return None
        if node in path:
            return " -> ".join([*path[path.index(node) :], node])
        path.append(node)
        circle = next(filter(None, map(visit, sorted(graph.get(node, ())))), None)
        path.pop()
        done.add(node)
        return circle

    return next(filter(None, map(visit, sorted(graph))), None)


def faults_of(root):
    """Everything in the project that its tables do not allow, a sentence each."""
    table = Table(root / "harness" / "README.md")
    faults = {f"{place} does not exist" for place in table.rows if "*" not in place and not (root / place).exists()}
    # What is built or installed is not looked at.
    files = [path for top in FOLDERS for path in (root / top).rglob("*")
             if path.is_file() and "build" not in path.relative_to(root).parts]  # fmt: skip
    for folder in {path.parent for path in files if path.suffix != ".md"}:
        for at in (folder, *folder.parents):
            name = at.relative_to(root).as_posix() if at.is_relative_to(root) else ""
            if table.holds_modules(str(pathlib.PurePosixPath(name).parent) + "/") and name + "/" not in table.rows:
                faults.add(f"{name}/ has no row")
    packages = {path.parent for path in files if path.name == "__init__.py"}
    folders = sorted({path.parent for path in files if path.suffix == ".py"} - packages | {p.parent for p in packages})
    places, headers = {}, {}
    for file in files:
        path = file.relative_to(root).as_posix()
        if file.suffix not in (".h", ".cpp", ".py"):
            continue
        place = table.place_of(path)
        if not place:
            faults.add(f"{path} lies in no place that has a row")
            continue
        own, allowed, standard_alone = place
        if table.holds_modules(own):
            faults.add(f"{path} lies in no module")
        python = file.suffix == ".py"
        for name in imports_of(root, file, folders) if python else INCLUDE.findall(file.read_text()):
            beside = (file.parent / name).resolve()
            to = name if (root / name).exists() else beside.relative_to(root).as_posix() if beside.exists() else None
            if not to:  # a header of a library, or one that the build writes
                if standard_alone and re.search("[/.]", name):
                    faults.add(f"{path} includes {name}")
                continue
            if not any(covers(one, to) for one in [own, *allowed]):
                faults.add(f"{path} {'imports' if python else 'includes'} {to}")
            target = table.place_of(to)
            if target and target[0] != own:
                places.setdefault(own, set()).add(target[0])
            if file.suffix == ".h":
                headers.setdefault(path, set()).add(to)
    for graph in places, headers:
        circle = circle_in(graph)
        if circle:
            faults.add(f"circle: {circle}")
    return sorted(faults)


SMALL = {
    "harness/README.md": """\
| module | holds | may include |
|---|---|---|
| `base/` | what knows nothing | - |
| `cases/` | cases | `base` |
| `cli/` | commands | all above |

| folder | may include |
|---|---|
| `reference/` | the standard library |
| `backends/backend.h` | `reference/` |
| `backends/registry.h` | - |
| `backends/*/` | `backends/backend.h` |
| `harness/` | `reference/`, `backends/backend.h` |
| `harness/cli/main.cpp` | `harness/cli/`, `backends/registry.h` |
| `tests/` | `reference/`, `backends/`, `harness/` |
""",
    "reference/call/problem.h": "#include <vector>\n",
    "backends/backend.h": '#include "reference/call/problem.h"\n',
    "backends/registry.h": "",
    "backends/one/one.cpp": '#include <omp.h>\n#include "backends/backend.h"\n',
    "backends/two/two.h": '#include "backends/backend.h"\n',
    "harness/base/file.h": "#include <unistd.h>\n",
    "harness/cases/case.h": '#include "harness/base/file.h"\n#include "reference/call/problem.h"\n',
    "harness/cli/check.cpp": '#include "harness/cases/case.h"\n#include "backends/backend.h"\n',
    "harness/cli/main.cpp": '#include "backends/registry.h"\n',
    "harness/cli/attest/__init__.py": "import json\nfrom attest import _load\n",
    "harness/cli/attest/_load.py": "",
    "tests/case_test.cpp": '#include "harness/cases/case.h"\n#include "backends/two/two.h"\n',
    "tests/python/kernels.py": "import attest\n",
}


def with_tables(old, new):
    return {"harness/README.md": SMALL["harness/README.md"].replace(old, new)}


MODULES = with_tables("| `cli/` |", "| `speed/` | modules | - |\n| `speed/roof/` | the roof | `base` |\n| `cli/` |")
KEPT = with_tables("| `backends/*/` |", "| `reference/softmax/` | - |\n| `backends/*/` | `reference/call/`,")
INNER = {"harness/speed/roof/roof.h": '#include "harness/base/file.h"\n'}
SOFTMAX = {"reference/softmax/attention.h": ""}
# What is written besides, or None for a file that is not there, and all that is found then.
TRIALS = [
    ({}, []),
    ({"backends/peers/build/one/circle.h": '#include "backends/peers/build/one/circle.h"\n'}, []),
    ({"harness/base/up.h": "  #  include <harness/cases/case.h>\n"},
     ["circle: harness/base/ -> harness/cases/ -> harness/base/", "harness/base/up.h includes harness/cases/case.h"]),
    ({"harness/base/up.cpp": '#include "../cases/case.h"\n'},
     ["circle: harness/base/ -> harness/cases/ -> harness/base/", "harness/base/up.cpp includes harness/cases/case.h"]),
    ({"backends/one/more.cpp": '#include "backends/two/two.h"\n'},
     ["backends/one/more.cpp includes backends/two/two.h"]),
    ({"reference/a.cpp": "#include <fmt/format.h>\n"}, ["reference/a.cpp includes fmt/format.h"]),
    ({"backends/one/b.cpp": '#include "harness/base/file.h"\n'}, ["backends/one/b.cpp includes harness/base/file.h"]),
    ({"harness/cli/c.cpp": '#include "backends/registry.h"\n'}, ["harness/cli/c.cpp includes backends/registry.h"]),
    ({"tests/a.h": "", "harness/cli/d.cpp": '#include "tests/a.h"\n'},
     ["circle: harness/cli/ -> tests/ -> harness/cli/", "harness/cli/d.cpp includes tests/a.h"]),
    ({"harness/cli/attest/_load.py": "def load():\n    import json, kernels\n"},
     ["circle: harness/cli/ -> tests/ -> harness/cli/", "harness/cli/attest/_load.py imports tests/python/kernels.py"]),
    ({"backends/one/peer.py": "from attest._load import load\n"},
     ["backends/one/peer.py imports harness/cli/attest/_load.py"]),
    ({"backends/two/two.py": "", "backends/one/other.py": "from two import (attention,\n"},
     ["backends/one/other.py imports backends/two/two.py"]),
    ({"harness/attic/old.h": "", "harness/loose.h": ""},
     ["harness/attic/ has no row", "harness/attic/old.h lies in no module", "harness/loose.h lies in no module"]),
    ({"harness/base/file.h": None, "harness/cases/case.h": ""}, ["harness/base/ does not exist"]),
    (MODULES | INNER, []),
    (MODULES | INNER | {"harness/speed/attic/old.h": "", "harness/speed/loose.h": ""},
     ["harness/speed/attic/ has no row", "harness/speed/attic/old.h lies in no module",
      "harness/speed/loose.h lies in no module"]),
    (MODULES | {"harness/speed/roof/roof.h": '#include "harness/cases/case.h"\n'},
     ["harness/speed/roof/roof.h includes harness/cases/case.h"]),
    (KEPT | SOFTMAX | {"backends/one/more.h": '#include "reference/call/problem.h"\n'}, []),
    (KEPT | SOFTMAX | {"backends/one/more.h": '#include "reference/softmax/attention.h"\n'},
     ["backends/one/more.h includes reference/softmax/attention.h"]),
    ({"harness/cases/a.h": '#include "harness/cases/b.h"\n', "harness/cases/b.h": '#include "harness/cases/a.h"\n'},
     ["circle: harness/cases/a.h -> harness/cases/b.h -> harness/cases/a.h"]),
]  # fmt: skip

wrong = 0
for files, expected in TRIALS:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for name, text in (SMALL | files).items():
            if text is not None:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
        found = faults_of(root)
    if found != expected:
        wrong = 1
        print(f"layering: of a project with {sorted(files)}: found {found}, and not {expected}", file=sys.stderr)
faults = faults_of(pathlib.Path(__file__).resolve().parents[2])
print(*faults, sep="\n", end="\n" if faults else "", file=sys.stderr)
if not wrong and not faults:
    print(f"layering: {len(TRIALS)} small projects as expected, and this one follows its tables")
sys.exit(1 if faults else wrong)
