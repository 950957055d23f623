"""Transformers: in float16 with `attn_implementation="eager"` padding on the left makes NaN of the tokens behind it."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    vocab_size=8, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=1, pad_token_id=0,
    attention_bias=True,
)  # fmt: skip
ids = torch.tensor([[0, 0, 3, 4, 5]])
seen = torch.tensor([[0, 0, 1, 1, 1]])
places = torch.tensor([[0, 0, 0, 1, 2]])


def logits(implementation, dtype):
    config._attn_implementation = implementation
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).to(dtype).eval()
    with torch.no_grad():
        for layer in model.model.layers:  # scores about -25, by what changes least with places
            layer.self_attn.q_proj.bias[7], layer.self_attn.k_proj.bias[7] = 10, -10
        return model(ids, attention_mask=seen, position_ids=places).logits[0, 2:]


found = {
    (name, str(dtype)): int(logits(name, dtype).isnan().sum())
    for name in ("eager", "sdpa") for dtype in (torch.float16, torch.bfloat16, torch.float32)
}  # fmt: skip
for (name, dtype), count in found.items():
    print(f"{name}, {dtype}: got {count} NaN in the 24 logits of three tokens behind two of padding, expected 0")
raise SystemExit(any(found.values()))
