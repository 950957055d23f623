"""`python -m attest`: attest's command line, with --python beside --plugin, and commands that are written in Python."""

from __future__ import annotations

import os
import sys

from attest import _attest


def main() -> int:
    """Runs the command in sys.argv and returns its exit code."""
    path = os.environ.pop("ATTEST_PYTHON_PATH", "")  # of the interpreter whose worker this is
    for folder in path.split(os.pathsep) if path else []:
        if folder not in sys.path:
            sys.path.append(folder)
    if sys.argv[1:2] == ["import"]:
        from attest import _import

        return _import.main(sys.argv[2:])
    if sys.argv[1:2] == ["changes"]:
        from attest import _changes

        return _changes.main(sys.argv[2:])
    if sys.argv[1:2] == ["onnx"]:
        from attest import _onnx_models

        return _onnx_models.main(sys.argv[2:])
    return _attest.main(["attest", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
