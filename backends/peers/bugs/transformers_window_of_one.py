"""Transformers: with `sliding_window=1` and a cache a token attends to all tokens before it."""

import torch
from transformers import MistralConfig
from transformers.cache_utils import DynamicCache
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import create_sliding_window_causal_mask

wrong = False
for window in (1, 2):
    config = MistralConfig(num_hidden_layers=1, sliding_window=window, attn_implementation="sdpa")
    cache = DynamicCache(config=config)
    values = torch.arange(4.0).reshape(1, 1, 4, 1)
    zeros = torch.zeros(1, 1, 4, 1)
    cache.update(zeros[:, :, :3], values[:, :, :3], 0)
    mask = create_sliding_window_causal_mask(config, torch.zeros(1, 1, 1), None, cache)
    keys, held = cache.update(zeros[:, :, 3:], values[:, :, 3:], 0)
    module = torch.nn.Module()
    got = float(sdpa_attention_forward(module, zeros[:, :, 3:], keys, held, mask)[0])
    expected = float(values[0, 0, 4 - window :].mean())
    print(f"sliding_window={window}: got {got}, expected {expected}, the mean of the last {window} of [0, 1, 2, 3]")
    wrong |= got != expected
raise SystemExit(wrong)
