"""As much of torch as attest uses for tensors on a device, with a "device" in the host's memory that can be lost."""

import sys
import types

import numpy as np

uint8 = np.uint8
lost = False


class Tensor(np.ndarray):
    requires_grad = False
    where = "cpu"

    def __array_finalize__(self, source):
        self.where = getattr(source, "where", "cpu")

    @property
    def device(self):
        return device(self.where)

    def numel(self):
        return self.size

    def stride(self):
        return tuple(step // self.itemsize for step in self.strides)

    def as_strided(self, size, stride):
        steps = [step * self.itemsize for step in stride]
        return np.lib.stride_tricks.as_strided(self, size, steps, subok=True, writeable=self.flags.writeable)

    def to(self, place):
        there = np.array(self).view(Tensor)
        there.where = place.type
        return there

    def copy_(self, other):
        assert other.where != self.where
        self[...] = other
        return self

    def cpu(self):
        return self.to(device("cpu"))


class device:
    def __init__(self, name):
        self.type = name


def from_dlpack(array):
    return np.from_dlpack(array).view(Tensor)


def equal(a, b):
    return np.array_equal(a, b)


def synchronize():
    if lost:
        raise RuntimeError("the device does not answer")


def lose():
    """What a kernel that reads a wrong address does."""
    global lost
    lost = True
    raise RuntimeError("misaligned address\nmore about it")


pretended = types.SimpleNamespace(synchronize=synchronize, get_device_name=lambda device: "Pretended 200")
utils = types.ModuleType("torch.utils")
utils.dlpack = types.ModuleType("torch.utils.dlpack")
utils.dlpack.from_dlpack = from_dlpack
sys.modules.update({"torch": sys.modules[__name__], "torch.utils": utils, "torch.utils.dlpack": utils.dlpack})
