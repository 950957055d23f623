"""What lies between attest and a callable of Python, beyond the callable's own time.

    python tests/python/overhead.py [MICROSECONDS]

With a number it ends with exit code 1 where the whole way (upload, run and download) takes longer than that.
"""

import statistics
import sys
import timeit

import numpy as np

import attest

LINE = "seq=1 dim=1"  # of one key the weight is 1


def attention(q, k, v):
    return v.copy()


def measure(rounds=3):
    """Microseconds of upload, run and download, and of the callable alone; of several rounds the quickest."""
    v = np.ones((1, 1, 1, 1), np.float32)
    own = min(timeit.repeat(lambda: attention(v, v, v), number=10000, repeat=5)) / 10000
    best = None
    for _ in range(rounds):
        (timed,) = attest.bench(attention, LINE, against=[], repetitions=5, min_seconds=0.02, threads=1, isolate=False)
        line = timed["attention"]
        assert not line.wrong, line.wrong
        steps = [statistics.median(step) * 1e6 for step in (line.upload, line.seconds, line.download)]
        best = steps if best is None or sum(steps) < sum(best) else best
    return best, own * 1e6


if __name__ == "__main__":
    (upload, run, download), own = measure()
    print(f"the callable alone {own:.2f} us; upload {upload:.2f}, run {run:.2f}, download {download:.2f} us")
    whole = upload + run + download - own
    print(f"beyond the callable: run {run - own:.2f} us, the whole way {whole:.2f} us")
    sys.exit(len(sys.argv) > 1 and whole > float(sys.argv[1]))
