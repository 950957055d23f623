"""attest: tells whether an implementation of scaled dot-product attention is right, and how fast it is.

>>> import attest
>>> sorted(attest.suites())[:2]
['axes', 'backward']
"""

import os
import sys

from attest import _attest

_attest.set_data_folder(os.path.join(os.path.dirname(os.path.abspath(__file__)), "data"))
_attest.set_interpreter(sys.executable, [sys.executable, "-m", "attest"])

from attest._api import cases, check, suites  # noqa: E402
from attest._attest import Call, OutputError, UserError  # noqa: E402
from attest._backend import Backend, FunctionBackend, backend_of  # noqa: E402
from attest._capture import Capture, CapturedCall, capture  # noqa: E402
from attest._closer import (  # noqa: E402
    Benchmark, Benchmarks, Explanation, Finding, Fuzzing, Reference, Shrinking, Statement, Statements, Timing, Timings,
    bench, explain, fuzz, reference, shrink, statements,
)  # fmt: skip
from attest._judge import judge  # noqa: E402
from attest._relate import Relations, RelationVerdict, relate  # noqa: E402
from attest._results import Results, RightIf, Shrunk, Verdict  # noqa: E402

__version__ = _attest.version
__all__ = [
    "Backend", "Benchmark", "Benchmarks", "Call", "Capture", "CapturedCall", "Explanation", "Finding", "FunctionBackend", "Fuzzing",
    "OutputError", "Reference", "RelationVerdict", "Relations", "Results", "RightIf", "Shrinking", "Shrunk",
    "Statement", "Statements", "Timing", "Timings", "UserError", "Verdict",
    "backend_of", "bench", "capture", "cases", "check", "explain", "fuzz", "judge", "reference", "relate", "shrink",
    "statements", "suites",
]  # fmt: skip
