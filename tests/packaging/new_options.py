"""Of a copy of attest with the options, the result, the operator and the format that new_options.sh adds, the module for
Python knows them all, without a change to it: a class that has them is right, one that ignores one of them is caught,
and one without the keyword refuses."""

import numpy as np

import attest

LINES = {
    "temperature": "heads=2 seq=5x7 dim=4 temperature=2 hidden_first=1,3",
    "hidden_first": "heads=2 seq=5x7 dim=4 hidden_first=1,3",
    "gate": "heads=4/2 seq=5x7 dim=4 gate",
    "received": "heads=4/2 seq=5x7 dim=4 out=o,received",
    "op": "op=average heads=4/2 seq=5x7 dim=4",
    "dtype": "dtype=m16 seq=5x7 dim=4 out.dtype=f32",
}


def from_m16(array):
    """Arrays show it as another type of 16 bits: six of these are the exponent, nine the mantissa."""
    bits = array.view(np.uint16).astype(int)
    exponent = bits >> 9 & 63
    size = np.ldexp((bits & 511) + 512.0 * (exponent > 0), np.maximum(exponent, 1) - 40)
    return np.where(bits >> 15, -size, size)


class Knows(attest.Backend):
    contract = 10
    ignores = ""

    def attention(
        self, q, k, v, *, temperature=1, hidden_first=None, gate=None, op=None, dtype=None, outputs=("o",),
        output_types=None,
    ):  # fmt: skip
        stored = np.float32 if output_types else q.dtype
        if dtype == "m16" and self.ignores != "dtype":
            q, k, v = from_m16(q), from_m16(k), from_m16(v)
        heads, group = k.shape[1], q.shape[1] // k.shape[1]
        k, v = (t.astype(float).repeat(group, 1) for t in (k, v))
        scores = q.astype(float) @ k.swapaxes(2, 3) / 2 / (1 if self.ignores == "temperature" else temperature)
        if op == "average" and self.ignores != "op":
            return (scores @ v / k.shape[2]).astype(stored)
        if hidden_first is not None and self.ignores != "hidden_first":
            scores[:, np.arange(k.shape[2]) < np.array(hidden_first)[:, None, None].repeat(q.shape[2], 1)] = -np.inf
        if gate is not None and self.ignores != "gate":
            scores = np.where(gate.repeat(group, 1).swapaxes(2, 3) < 0, -np.inf, scores)
        weights = np.exp(scores)
        weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-300)
        received = weights.reshape(len(q), heads, -1, k.shape[2]).sum(2)[..., None]
        results = {"o": weights @ v, "received": received * (2 if self.ignores == "received" else 1)}
        return tuple(results[name].astype(stored) for name in outputs)


class Older(attest.Backend):
    def attention(self, q, k, v, *, outputs=("o",), output_types=None):
        return Knows().attention(q, k, v, outputs=outputs)


def main():
    right = attest.check(Knows(), list(LINES.values()), isolate=False)
    assert right.count("pass") == len(LINES), right
    for name, line in LINES.items():
        wrong = Knows()
        wrong.ignores = name
        (verdict,) = attest.check(wrong, line, isolate=False)
        assert verdict.status == "fail", f"{name} is ignored, and {verdict}"
        for contract, reason in ((9, "came with version 10"), (10, f"no parameter `{name}`")):
            older = Older()
            older.contract = contract
            (verdict,) = attest.check(older, line, isolate=False)
            taken = contract == 10 and name == "received"  # one more of the results that `outputs` names
            assert taken or verdict.status == "refused" and reason in verdict.reason, (name, str(verdict))


if __name__ == "__main__":
    main()
