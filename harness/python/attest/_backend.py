"""Backends that are objects of Python."""

from __future__ import annotations

import copy
import difflib
import functools
import importlib.util
import inspect
import platform
import re
from typing import Any, Callable, Iterable, Mapping, Optional, Union

from attest import _autodiff
from attest._attest import Call, UserError
from attest._options import OPTIONS, Step, features_of, is_array, keywords_given, keywords_of, refusal, title

Tensors = Union[str, Callable[[Any], Any]]
_HOST = ("", "CPU", "cpu")


class Backend:
    """An implementation of attention, with what it takes and how it rounds.

    Write a subclass with a method ``attention(q, k, v, *, causal=False, ...)``. Its keywords say which options of a
    call it takes: a call with any other is refused, with a sentence. All else here has a default.

    >>> import numpy as np
    >>> import attest
    >>> class Mine(attest.Backend):
    ...     name = "mine"
    ...     def attention(self, q, k, v):
    ...         scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]).astype(q.dtype)
    ...         weights = np.exp(scores - scores.max(-1, keepdims=True))
    ...         return weights @ v / weights.sum(-1, keepdims=True)
    >>> print(attest.check(Mine(), "seq=4x8 dim=4").summary())
    1 passed, 0 failed, 0 skipped
    """

    name: str = ""  #: of verdicts and tables: [a-z][a-z0-9_]*; "": the class's own, in lower case
    library: str = ""  #: what it is, with its version; "": the name and Python's version
    device: str = "CPU"  #: what it runs on; with ``tensors="torch"`` torch's name of a device, as "cuda"
    contract: int = 5  #: version of attest's contract that it was written for: options that came later are refused
    tensors: Tensors = "numpy"  #: what attention() is given: "numpy", "torch", "dlpack", or a function from DLPack
    keywords: Mapping[str, str] = {}  #: attest's name of an option and the method's, where they differ
    refuses: Iterable[str] = ()  #: features that the arrays would show, or the keywords take, and that it can't do
    gradients: str = ""  #: "autodiff": gradients come from PyTorch or JAX, which differentiate attention()
    threads: int = 1  #: the most that may compute at once; told before anything runs

    def attention(self, q: Any, k: Any, v: Any, /) -> Any:
        """The outputs for q (B,Hq,Lq,D), k and v (B,Hkv,Lk,D): an array of their type, new and complete."""
        raise NotImplementedError(f"{type(self).__name__} has no method `attention`")

    def refuse(self, call: Call) -> Optional[str]:
        """Why it doesn't do this call, as a sentence; None is a promise to honour every option of it."""
        return None

    def arithmetic(self, call: Call) -> Mapping[str, Any]:
        """How it rounds, where that isn't what plain loops in float32 (float64 for float64) do. See README.md."""
        return {}

    def conventions(self) -> Mapping[str, str]:
        """What it does where the field disagrees. See README.md."""
        return {}

    def workspace(self, call: Call) -> int:
        """Bytes that it holds for this call besides inputs and outputs."""
        return 0

    def device_time(self) -> Optional[float]:
        """Seconds of the last run by the device's own clock; None where there is none. Asked after every run."""
        return None

    def ready(self, q: Any, k: Any, v: Any, /) -> Callable[[], Any]:
        """Where a subclass has it, it is given what attention() would be, keywords included, before the clock starts:
        what it returns is called, without arguments, in place of attention(). Data are new each time."""
        raise NotImplementedError(f"{type(self).__name__} has no method `ready`")

    def function(self) -> Callable[..., Any]:
        """What is called, and whose signature says what it takes."""
        return self.attention

    # What the module asks. `self` is a copy that belongs to one context.

    def _made_for(self, threads: int, device: str) -> "Backend":
        made = copy.copy(self)
        made.threads = threads
        made.name = made.name or _name_from(type(self).__name__)
        made.library = made.library or f"{made.name} on Python {platform.python_version()}"
        if device:
            made.device = device
        check_tensors(made.tensors)
        for member in ("arithmetic", "conventions"):  # a method, or a dict that is the same for every call
            stated = getattr(made, member)
            if isinstance(stated, Mapping):
                setattr(made, member, functools.partial(_given, dict(stated)))
            elif not callable(stated):
                raise UserError(f"{member} of {made.name} is neither a method nor a dict")
        check_gradients(made.gradients, made.tensors)
        function = made.function()
        names = keywords_of(function, dict(made.keywords))
        made._names = names
        made._taken = features_of(names, made.refuses, _autodiff.features(names) if made.gradients else ())
        # What differentiates linear attention has its gradients.
        since = [OPTIONS[name].since for name in names] + [6 if made.gradients else 0]
        made.contract = max([made.contract, *since])
        return made

    _names: Mapping[str, str] = {}
    _taken: frozenset[str] = frozenset()

    def _stated_device(self) -> str:
        of_torch = self.tensors == "torch" and isinstance(self.device, str) and self.device not in _HOST
        return _name_of_device(self.device) if of_torch else self.device

    def _refusal(self, call: Call) -> Optional[str]:
        if call.dtype == "bf16" and self.tensors == "numpy" and not _has_ml_dtypes():
            return "dtype=bf16: NumPy has no such type without the package ml_dtypes"
        reason = refusal(call, self._taken, self._names, self.function())
        if not reason and self._differentiates(call):
            reason = _autodiff.refusal(call)
        return reason or self.refuse(call)

    def _differentiates(self, call: Call) -> bool:
        return bool(self.gradients) and call.pass_ != "forward" and "do" not in self._names

    def _step(self, call: Call) -> Step:
        constants: dict[str, Any] = {}
        arrays: dict[str, str] = {}
        for name, keyword in keywords_given(call, self._names).items():
            value = OPTIONS[name].value
            if value is None or is_array(call, name):
                arrays[name] = keyword
            elif (said := value(call)) is not None:
                constants[keyword] = said
        function = self.function()
        if self._differentiates(call):
            constants.pop(self._names.get("outputs", ""), None)
            arrays.update(do="do", dlse="dlse", dpresent="dpresent")
            function = _autodiff.differentiated(function, call, self._names)
        clock = None if type(self).device_time is Backend.device_time else self.device_time
        ready = None if type(self).ready is Backend.ready or self._differentiates(call) else self.ready
        step = Step(
            function, constants, arrays, tuple(call.outputs), self.tensors, self.workspace(call), clock, ready
        )
        return step if self.tensors != "torch" else _torch_step(step, self.device)


def _name_of_device(device: str) -> str:
    """The name that torch's driver gives a device, by which a benchmark knows it, and torch's name of it behind."""
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return device  # said where tensors are wanted
    module = getattr(torch, torch.device(device).type, None)
    name = getattr(module, "get_device_name", None)
    return device if name is None else f"{name(device)} ({device})"


@functools.lru_cache(maxsize=None)
def _has_ml_dtypes() -> bool:
    return importlib.util.find_spec("ml_dtypes") is not None


def _torch_step(step: Step, device: str) -> Step:
    """Tensors on a device of torch: one copy each way, and a wait after each run. None of these on the host."""
    import dataclasses

    import torch  # type: ignore[import-not-found, unused-ignore]

    def without_gradient(tensor: Any) -> Any:
        return tensor.detach() if isinstance(tensor, torch.Tensor) and tensor.requires_grad else tensor

    if device in _HOST:
        return dataclasses.replace(step, to_host=without_gradient)
    place = torch.device(device)

    def to_host(tensor: Any) -> Any:
        if not isinstance(tensor, torch.Tensor):
            return tensor
        if tensor.device.type != place.type:
            raise RuntimeError(f"returned a tensor on {tensor.device}, and works on {place}")
        return without_gradient(tensor).cpu()

    def span_of(tensor: Any) -> Any:
        """All that the tensor spans, gaps too: torch's own copy would close them, and repeat what stride 0 repeats."""
        length = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
        return tensor.as_strided((length if tensor.numel() else 0,), (1,))

    def to_device(tensor: Any) -> Any:
        return span_of(tensor).to(place).as_strided(tensor.shape, tensor.stride())

    def unchanged(tensor: Any, there: Any) -> bool:
        return bool(torch.equal(span_of(tensor).view(torch.uint8), span_of(there).cpu().view(torch.uint8)))

    def from_device(tensor: Any, there: Any) -> None:
        span_of(tensor).copy_(span_of(there))

    wait: Callable[[], None] = getattr(torch, place.type).synchronize
    return dataclasses.replace(
        step, to_device=to_device, unchanged=unchanged, from_device=from_device, synchronize=wait, to_host=to_host
    )


class FunctionBackend(Backend):
    """A callable as a backend: what attest.check makes of a function."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        library: str = "",
        device: str = "CPU",
        tensors: Tensors = "numpy",
        keywords: Optional[Mapping[str, str]] = None,
        refuses: Iterable[str] = (),
        arithmetic: Optional[Mapping[str, Any]] = None,
        conventions: Optional[Mapping[str, str]] = None,
        gradients: str = "",
    ) -> None:
        self._function = function
        self._arithmetic = dict(arithmetic or {})
        self._conventions = dict(conventions or {})
        self.name = name or _name_from(title(function))
        self.library = library
        self.device = device
        self.tensors = tensors
        self.keywords = dict(keywords or {})
        self.refuses = tuple(refuses)
        self.gradients = gradients

    def function(self) -> Callable[..., Any]:
        return self._function

    def arithmetic(self, call: Call) -> Mapping[str, Any]:
        return self._arithmetic

    def conventions(self) -> Mapping[str, str]:
        return self._conventions


def check_tensors(tensors: Any) -> None:
    """Raises UserError for what no array can be made as, or for a library that isn't there."""
    if callable(tensors):
        return
    if tensors not in ("numpy", "torch", "dlpack"):
        near = difflib.get_close_matches(str(tensors), ("numpy", "torch", "dlpack"), 1, 0.5)
        raise UserError(
            f'tensors: there is no "{tensors}"; '
            + (f"nearest: {near[0]}" if near else "numpy, torch, dlpack or a function such as jax.dlpack.from_dlpack")
        )
    if tensors == "torch":
        try:
            import torch  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
        except ImportError as error:
            raise UserError(f'tensors: "torch" can\'t be had here: {error}; install PyTorch') from None


def check_gradients(gradients: str, tensors: Any) -> None:
    """Raises UserError for what is no way to gradients, or for tensors that can't be differentiated."""
    if gradients not in ("", "autodiff"):
        raise UserError(f'gradients: there is no "{gradients}"; nearest: autodiff')
    if gradients and not callable(tensors) and tensors != "torch":
        raise UserError(
            f'gradients: "autodiff" is that of PyTorch or JAX, and tensors are "{tensors}"; '
            'say tensors="torch" or tensors=jax.dlpack.from_dlpack'
        )


def is_implementation(value: Any) -> bool:
    """Whether it is a Backend, a subclass of it, or a callable that takes three tensors or merges parts."""
    if isinstance(value, Backend) or (isinstance(value, type) and issubclass(value, Backend)):
        return True
    if isinstance(value, type) or not callable(value):
        return False
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return False
    tensors = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(tensors) >= 3 or any(p.name == "part_o" for p in parameters)


def backend_of(implementation: Any, **statements: Any) -> Backend:
    """The backend that `implementation` is: a Backend, a subclass of it, or a callable, with what is stated of it."""
    if isinstance(implementation, type) and issubclass(implementation, Backend):
        implementation = implementation()
    given = {key: value for key, value in statements.items() if value}
    if isinstance(implementation, Backend):
        if given:
            raise TypeError(f"{next(iter(given))}: a Backend states this itself")
        made = copy.copy(implementation)
        made.name = made.name or _name_from(type(made).__name__)
        return made
    if not callable(implementation):
        raise TypeError(f"{implementation!r} is no callable and no attest.Backend")
    return FunctionBackend(implementation, **given)


def _given(stated: dict[str, Any], *_call: Any) -> dict[str, Any]:
    return stated


def _name_from(title: str) -> str:
    """A name for verdicts from what Python calls it: MyKernel is my_kernel, <lambda> is lambda."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", title).lower()
    name = re.sub(r"[^a-z0-9_]", "", snake).lstrip("_0123456789")[:64]
    return "callable" if name in ("", "reference") else name
