"""Objects that are named in words: module:object, or file.py:object."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any

from attest._attest import UserError
from attest._backend import Backend, backend_of


def load(words: str) -> Backend:
    """The backend that `words` name. A callable may be one, too."""
    place, colon, path = words.rpartition(":")
    if not colon or not place or not path:
        raise UserError(f'"{words}" names no object: say module:object or file.py:object')
    found: Any = _module(place)
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UserError(f"{place} has no `{path}`") from None
    try:
        return backend_of(found)
    except TypeError as error:
        raise UserError(str(error)) from None


def _module(place: str) -> Any:
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = os.path.abspath(place)
    name = os.path.splitext(os.path.basename(path))[0]
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == path:
        return known
    if not os.path.exists(path):
        raise UserError(f"there is no file {place}")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"{place} is no source of Python")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(path))  # what lies beside it is imported as it would be by `python file.py`
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
