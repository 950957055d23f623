"""ncnn on x86: the layer `SDPA` gives a number to a query that sees a NaN in a key, or not, by where the key lies."""

import ncnn
import numpy as np

net = ncnn.Net()
net.opt.num_threads = 1
net.load_param_mem("7767517\n4 4\nInput q 0 1 q\nInput k 0 1 k\nInput v 0 1 v\nSDPA sdpa 3 1 q k v o\n")
net.load_model(ncnn.DataReaderFromEmpty())
ones = {keys: np.ones((1, keys, 8), np.float32) for keys in (1, 4, 16, 20)}
got = {}
for keys in (4, 16, 20):
    lost = []
    for at in range(keys):
        key = ones[keys].copy()
        key[0, at] = np.nan
        with net.create_extractor() as extractor:
            for name, array in (("q", ones[1]), ("k", key), ("v", ones[keys])):
                extractor.input(name, ncnn.Mat(array))
            o = np.array(extractor.extract("o")[1])
        if not np.isnan(o).any():
            lost.append(at)
    got[keys] = lost
print(f"ncnn {ncnn.__version__}: keys whose NaN was lost, by the number of keys: got {got}, expected none")
raise SystemExit(any(got.values()))
