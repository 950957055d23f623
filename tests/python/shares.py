"""How much of the suite `matrix` the examples for Python take, and how much they pass.

    python tests/python/shares.py [--every N] [--reasons] [EXAMPLE...]

One line for each example whose libraries are installed, of every Nth case of the suite (24). Those of the pages are
read from the pages, so that no copy of them can differ.
"""

import argparse
import collections
import importlib.util
import os
import re
import sys
import tempfile
from pathlib import Path

import kernels

import attest

PAGES = Path(os.environ.get("ATTEST_PAGES", Path(__file__).parent / "../../harness/python"))


def of_page(page, name):
    """The class that a page's first block defines, with an interpreted kernel's source where it looks for it."""
    program = re.findall(r"^```python\n(.*?)^```$", (PAGES / page).read_text(), re.MULTILINE | re.DOTALL)[0]
    path = Path(tempfile.mkdtemp()) / f"{name.lower()}_of_page.py"
    path.write_text(program)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


# What it is called, how it is made, the libraries that it needs, and which cases it is known to fail.
EXAMPLES = {
    "NumPy": (lambda: kernels.Exact, ["ml_dtypes"], None),
    "PyTorch": (lambda: of_page("PYTORCH.md", "Judged"), ["torch"], " poison="),
    "Triton": (lambda: of_page("TRITON.md", "Fused"), ["torch", "triton"], " poison="),
}


def missing(example):
    """A library that the example needs and that isn't installed, or None."""
    return next((name for name in EXAMPLES[example][1] if importlib.util.find_spec(name) is None), None)


def measure(example, every):
    lines = attest.cases("matrix")[::every]
    return attest.check(EXAMPLES[example][0](), lines, once=True, shrink=False)


def shares(results):
    """Percent of the cases, rounded down, that were accepted and that passed."""
    refused, passed = results.count("refused"), results.count("pass") + results.count("weak")
    return (len(results) - refused) * 100 // len(results), passed * 100 // len(results)


def unexpected(example, results):
    """Failures other than those that the example is known for."""
    known = EXAMPLES[example][2]
    return [verdict for verdict in results.failures if known is None or known not in verdict.case]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=24)
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("examples", nargs="*")
    asked = parser.parse_args()
    for example in asked.examples or EXAMPLES:
        if missing(example):
            print(f"{example}: left out, {missing(example)} is not installed")
            continue
        found = measure(example, asked.every)
        accepted, passed = shares(found)
        print(f"{example}: accepts {accepted}% and passes {passed}% of {len(found)} cases: {found.summary()}", flush=True)
        if asked.reasons:
            reasons = collections.Counter(v.reason.split(":")[0] for v in found if v.status == "refused")
            print("  refused: " + ", ".join(f"{reason} {count}" for reason, count in reasons.most_common()))
            for verdict in unexpected(example, found):
                print(f"  fails: {verdict.case}: {verdict.reason}")
