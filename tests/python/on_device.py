"""Kernels on a pretended device of torch. Programs import them, never a test, which may need the real torch."""

import kernels
import numpy as np
import pretended_torch

import attest


class OnDevice(attest.Backend):
    tensors = "torch"
    device = "pretended"

    def attention(self, q, k, v):
        assert all(tensor.where == "pretended" for tensor in (q, k, v))
        out = kernels.attention(*(np.asarray(tensor) for tensor in (q, k, v))).view(pretended_torch.Tensor)
        out.where = "pretended"
        return out


class KeepsStrides(OnDevice):
    def attention(self, q, k, v):
        assert k.stride() == (70, 70, 7, 1) and v.stride() == (0, 0, 0, 1), (k.stride(), v.stride())
        return super().attention(q, k, v)


class WritesInput(OnDevice):
    def attention(self, q, k, v):
        out = super().attention(q, k, v)
        q[0, 0, 0, 0] += 1
        return out


class Appends(OnDevice):
    def attention(self, q, k, v, *, new_k=None, new_v=None):
        if new_k is not None:
            for cache, new in (k, new_k), (v, new_v):
                assert cache.where == new.where == "pretended"
                cache[:, :, -new.shape[2] :] = new
        return super().attention(q, k, v)


class Dynamic(OnDevice):
    def attention(self, q, k, v, *, dynamic=False, query_lengths=None, key_lengths=None):
        if not dynamic:
            return super().attention(q, k, v)
        lengths = [np.asarray(array) for array in (query_lengths, key_lengths) if array.where == "pretended"]
        out = kernels.attention(*(np.asarray(tensor) for tensor in (q, k, v)), query_lengths=lengths[0], key_lengths=lengths[1])
        out = out.view(pretended_torch.Tensor)
        out.where = "pretended"
        return out


class AppendsBetween(Appends):
    def attention(self, q, k, v, *, new_k=None, new_v=None):
        out = super().attention(q, k, v, new_k=new_k, new_v=new_v)
        if k.stride()[2] > k.shape[3]:
            k.as_strided((k.shape[3] + 1,), (1,))[-1] = 3
        return out


class LosesDevice(OnDevice):
    def attention(self, q, k, v):
        if q.shape[2] == 3:
            pretended_torch.lose()
        pretended_torch.synchronize()
        return super().attention(q, k, v)


class Throws(OnDevice):
    def attention(self, q, k, v):
        error = RuntimeError("says this\nand more")
        if hasattr(error, "add_note"):
            error.add_note("a note")
        raise error
