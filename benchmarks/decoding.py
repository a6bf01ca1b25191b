"""One step of decoding with a cache, batch 1: how long until the logits of the next token are known?

    python benchmarks/decoding.py          (in an environment with PyTorch; `make parity` makes one, .venv-parity)

A small LLaMA (width 128, 4 layers) with the same float32 weights on all sides reads the same tokens, one thread each.
They take turns in one process, a text at a time; the time of a step is the median over all steps of all texts.

    fast           mathllm.fast: what fast.generate does for each token
    readable       mathllm: what generate does for each token
    PyTorch        the model as its users write it, with a cache made beforehand, under torch.inference_mode
    transformers   LlamaForCausalLM with its own cache, under torch.inference_mode
    products       the vector-matrix products of the step and nothing else
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy and PyTorch are imported

import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import mathllm as ml
from mathllm import fast

CONFIG = ml.llama_config(vocabulary=256, width=128, layers=4, heads=4, hidden=344, context=256)
LENGTH, TEXTS = 128, 20


def stepwise(transformer):
    """The function that makes a side of a kind of model: parameters -> a function of the next token."""

    def side(params):
        model, cache = transformer(CONFIG), ml.KVCache(CONFIG, capacity=LENGTH, dtype=np.float32)
        return lambda token: model.last_logits(params, [[token]], cache=cache)[0, 0]

    return side


def products(params):
    blocks = [block[part] for block in params["blocks"] for part in ("attention", "feed_forward")]
    matrices = [matrix for part in blocks for matrix in part.values()] + [params["unembedding"]]
    pairs = [(np.ones(len(matrix), np.float32), matrix) for matrix in matrices]
    return lambda token: [vector.dot(matrix) for vector, matrix in pairs][-1]


def torch_model(params):
    """The same model as PyTorch's users write it, with a cache made beforehand; a call reads one token."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    c = CONFIG
    D, K = c.width, c.head_width

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention_norm, self.feed_forward_norm = (nn.RMSNorm(D, eps=c.norm_epsilon) for _ in range(2))
            self.query, self.key, self.value, self.output = (nn.Linear(D, D, bias=False) for _ in range(4))
            self.gate, self.up = (nn.Linear(D, c.hidden, bias=False) for _ in range(2))
            self.down = nn.Linear(c.hidden, D, bias=False)
            self.register_buffer("keys", torch.zeros(1, c.heads, LENGTH, K))
            self.register_buffer("values", torch.zeros(1, c.heads, LENGTH, K))

        def forward(self, x, place, cosine, sine):
            h = self.attention_norm(x)
            q, k, v = (part(h).view(1, 1, -1, K).transpose(1, 2) for part in (self.query, self.key, self.value))
            q, k = (part * cosine + rotate_half(part) * sine for part in (q, k))
            self.keys[:, :, place : place + 1], self.values[:, :, place : place + 1] = k, v
            seen = (part[:, :, : place + 1] for part in (self.keys, self.values))
            x = x + self.output(F.scaled_dot_product_attention(q, *seen).transpose(1, 2).reshape(x.shape))
            h = self.feed_forward_norm(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    def rotate_half(x):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(c.vocabulary, D)
            self.blocks = nn.ModuleList(Block() for _ in range(c.layers))
            self.final_norm = nn.RMSNorm(D, eps=c.norm_epsilon)
            self.unembedding = nn.Linear(D, c.vocabulary, bias=False)
            angles = torch.from_numpy(ml.rotary_angles(np.arange(LENGTH), K, c.rope_base)).float().repeat(1, 2)
            self.register_buffer("cosine", angles.cos())
            self.register_buffer("sine", angles.sin())

        def forward(self, token, place):
            x = self.embedding(token)
            cosine, sine = self.cosine[place], self.sine[place]
            for block in self.blocks:
                x = block(x, place, cosine, sine)
            return self.unembedding(self.final_norm(x))

    def copy(parameter, array):
        parameter.data.copy_(torch.from_numpy(array))

    model = Model().eval()
    copy(model.embedding.weight, params["embedding"])
    copy(model.unembedding.weight, params["unembedding"].T)
    for theirs, block in zip(model.blocks, params["blocks"], strict=True):
        for name, array in (block["attention"] | block["feed_forward"]).items():
            copy(getattr(theirs, name).weight, array.T)
    return model


def by_torch(params):
    import torch

    model, places = torch_model(params), iter(range(LENGTH))

    @torch.inference_mode()
    def step(token):
        return model(torch.tensor([[token]]), next(places))[0, 0]

    return step


def by_transformers(params):
    import torch
    import transformers

    from mathllm.pretrained.huggingface import to_hf

    c = CONFIG
    config = transformers.LlamaConfig(
        vocab_size=c.vocabulary, hidden_size=c.width, num_hidden_layers=c.layers, num_attention_heads=c.heads,
        intermediate_size=c.hidden, max_position_embeddings=c.context, rms_norm_eps=c.norm_epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": c.rope_base}, tie_word_embeddings=False,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    weights = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in to_hf(c, params).items()}
    model.load_state_dict(weights)
    cache = transformers.DynamicCache(config=config)

    @torch.inference_mode()
    def step(token):
        return model(torch.tensor([[token]]), past_key_values=cache, use_cache=True).logits[0, 0]

    return step


def timed(step, tokens):
    """Seconds of each step, and all logits."""
    seconds, logits = [], []
    for token in tokens:
        start = time.perf_counter()
        logits.append(step(token))
        seconds.append(time.perf_counter() - start)
    return seconds, np.array([np.asarray(row) for row in logits])


def main():
    rng = np.random.default_rng(0)
    params, tokens = ml.Transformer(CONFIG).init(rng, np.float32), rng.integers(CONFIG.vocabulary, size=LENGTH).tolist()
    sides = {"fast": stepwise(fast.Transformer), "readable": stepwise(ml.Transformer), "products": products}
    try:
        import torch
        import transformers

        torch.set_num_threads(1)
        sides |= {f"PyTorch {torch.__version__}": by_torch, f"transformers {transformers.__version__}": by_transformers}
    except ImportError:
        print("PyTorch and transformers are not installed: mathllm alone")
    seconds, logits = {name: [] for name in sides}, {}
    for _ in range(TEXTS):
        for name, side in sides.items():
            took, logits[name] = timed(side(params), tokens)
            seconds[name] += took
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}")
    print(f"d {CONFIG.width}, {CONFIG.layers} layers, batch 1, float32, one thread; {LENGTH} tokens, {TEXTS} times")
    medians = {name: statistics.median(took) for name, took in seconds.items()}
    exact = logits["readable"]
    for name, median in medians.items():
        ratio = median / medians["fast"]
        apart = np.abs(logits[name] - exact).max() / np.abs(exact).max()
        same = "" if name == "products" else f"{apart:.0e} apart"
        print(f"{name:22} {median * 1e3:6.3f} ms per step   this / fast {ratio:5.2f}   {same}")


if __name__ == "__main__":
    main()
