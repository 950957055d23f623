"""Objects that are named in words: module:object, or file.py:object; and what is said of them there."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import sys
from typing import Any, Mapping, Optional

from attest._attest import UserError
from attest._backend import Backend, backend_of, is_implementation
from attest._boards import BoardCall, board_backend, board_call, module_in_package, prepared_import

#: What of attest.check the command line has an option for.
STATED = ("name", "tensors", "keywords", "refuses", "arithmetic", "conventions", "gradients")


def load(words: str) -> Backend:
    """The backend that `words` name, one a line: the object, then options with their values. A callable may be one."""
    named, *options = words.split("\n")
    if options[:1] == ["--call"]:
        found = _of_board(named, board_call(options[1]))
        if found is not None:
            return found
        options = options[2:]
    found = _object(named)
    try:
        stated = {option[2:]: _stated(option[2:], text) for option, text in zip(options[::2], options[1::2])}
        return backend_of(found, **stated)
    except (TypeError, ValueError) as error:
        raise UserError(str(error)) from None


def options_for(stated: Mapping[str, Any]) -> list[str]:
    """The options of the command line that state the same, the inverse of what load() reads. Raises UserError for
    what no text can say."""
    words: list[str] = []
    for key, value in stated.items():
        if not value:
            continue
        if key not in STATED:
            raise UserError(f"{key}: the command line has no option for it; write a Backend")
        words += ["--" + key, _text(key, value)]
    return words


def words_for(one: Any) -> str:
    """module:object, or file.py:object, of what another process can import under these words; "" of all else, as of
    what a notebook's cell defines."""
    module, path = getattr(one, "__module__", None), getattr(one, "__qualname__", None)
    if not module or not path or module in ("__main__", "builtins") or "<" in path:
        return ""
    try:
        found: Any = sys.modules[module]
        for part in path.split("."):
            found = getattr(found, part)
    except (KeyError, AttributeError):
        return ""
    return f"{module}:{path}" if found is one else ""


def command_words(one: Any) -> str:
    """The same as somebody types it in this folder, where the path of this process is not known: a file's where the
    module is not found there."""
    words = words_for(one)
    module, _, path = words.partition(":")
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    if not words or "." in module or os.path.basename(file) != module + ".py":
        return words  # of a package, or of what is no source
    folder = os.path.dirname(os.path.abspath(file))
    installed = os.path.basename(folder) in ("site-packages", "dist-packages")
    if installed or folder == os.getcwd() or folder in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        return words
    return f"{os.path.relpath(file)}:{path}"


def _of_board(words: str, call: BoardCall) -> Optional[Backend]:
    """What a file has for a board that calls it; None where it has nothing of that name, or another is named."""
    place, _, path = words.rpartition(":")
    if path not in ("*", call.name) or not place.endswith(".py"):
        return None
    file = os.path.abspath(place)
    prepared_import(os.path.dirname(file), call)
    found = getattr(module_in_package(file), call.name, None)
    return None if found is None else board_backend(found, call)


def _object(words: str) -> Any:
    place, colon, path = words.rpartition(":")
    if not colon or not place or not path:
        raise UserError(_without_object(words.strip(":")))
    found: Any = _module(place)
    if path == "*":
        path = _only_one(place, found)
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UserError(f"{place} has no `{path}`" + _nearest(path, _candidates(_module(place)))) from None
    return found


def _without_object(place: str) -> str:
    """What is missing, and what there is to choose from."""
    text = f'"{place}" names no object: say module:object or file.py:object'
    looked_at = place if place.endswith(".py") or not os.path.exists(place + ".py") else place + ".py"
    if not place or "/" in looked_at and not looked_at.endswith(".py"):
        return text
    try:
        names = _candidates(_module(looked_at))
    except SyntaxError as error:
        return f"{text}; it can't be looked into: {error.msg} ({error.filename}, line {error.lineno})"
    except Exception as error:  # its author's; what it has is not known then
        return f"{text}; it can't be looked into: {type(error).__name__}: {error}"
    if not names:
        return f"{text}; it defines no callable that takes q, k and v"
    return f"{text}; it has " + ", ".join(f"{place}:{name}" for name in names[:8])


def _only_one(place: str, module: Any) -> str:
    """What a file is about: its `attention`, or else its only Backend."""
    if is_implementation(getattr(module, "attention", None)):
        return "attention"
    backends = [name for name in _candidates(module) if isinstance(vars(module)[name], (type, Backend))]
    if len(backends) == 1:
        return backends[0]
    if backends:
        raise UserError(f"{os.path.basename(place)} has several backends: {', '.join(backends[:8])}; say which with :name behind the file")
    raise UserError(f"{os.path.basename(place)} has neither a function `attention(q, k, v)` nor a subclass of attest.Backend")


def _candidates(module: Any) -> list[str]:
    """Backends and callables for q, k and v that the module itself defines, its backends first."""
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", getattr(module, "__name__", "")) == getattr(module, "__name__", "")
        and is_implementation(value)
    ]
    return sorted(own, key=lambda name: not isinstance(vars(module)[name], (type, Backend)))


def _nearest(typed: str, names: list[str]) -> str:
    if not names:
        return ""
    near = difflib.get_close_matches(typed, names, 1, 0.5)
    return f"; nearest: {near[0]}" if near else f"; it has {', '.join(names[:8])}"


def _pairs(key: str, text: str) -> dict[str, str]:
    pairs = {}
    for one in text.split(","):
        name, equals, value = one.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UserError(f'--{key}: "{one}" is no name=value')
        pairs[name.strip()] = value.strip()
    return pairs


def _value(text: str) -> Any:
    """A member of an arithmetic: a word, a number or a truth."""
    if text in ("true", "True", "false", "False"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _stated(key: str, text: str) -> Any:
    if key == "refuses":
        return tuple(word.strip() for word in text.split(","))
    if key in ("keywords", "conventions"):
        return _pairs(key, text)
    if key == "arithmetic":
        return {name: _value(value) for name, value in _pairs(key, text).items()}
    if key == "tensors" and text not in ("numpy", "torch", "dlpack"):
        return _function(text)
    return text


def _function(text: str) -> Any:
    """jax.dlpack:from_dlpack, or jax.dlpack.from_dlpack as Python says it."""
    if ":" not in text and "." not in text:
        return text  # for whoever knows which words there are
    found = _object(text if ":" in text else ":".join(text.rsplit(".", 1)))
    if not callable(found):
        raise UserError(f"--tensors: {text} is no function")
    return found


def _text(key: str, value: Any) -> str:
    if isinstance(value, str):
        text = value
    elif key == "refuses":
        text = ",".join(value)
    elif isinstance(value, Mapping):
        text = ",".join(f"{name}={one}" for name, one in value.items())
    else:
        text = words_for(value) or _numpy_name(value)
    if not text or "\n" in text:
        raise UserError(f"{key}: no text says it to another process; write a Backend")
    return text


def _numpy_name(value: Any) -> str:
    """Functions in C of NumPy have no module that knows them."""
    name = getattr(value, "__name__", "")
    return f"numpy:{name}" if name and getattr(sys.modules.get("numpy"), name, None) is value else ""


def _module(place: str) -> Any:
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = os.path.abspath(place)
    name = os.path.splitext(os.path.basename(path))[0]
    known: Optional[Any] = sys.modules.get(name)
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
