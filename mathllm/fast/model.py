"""A model whose training loss is one primitive: the whole forward pass, and the whole backward pass as its pullback."""

import math
from typing import Any

import numpy as np

from ..attention import rotary_angles
from ..autodiff import Array, ArrayLike, WithPullback, primitive
from ..cross_entropy import IGNORED
from ..errors import ShapeError
from ..inference import KVCache
from ..shapes import contract
from ..transformer import Config
from ..transformer import Transformer as ReadableTransformer
from ..trees import rebuild, tree_leaves, walk
from ..vectors import embedding, token_ids
from .block import _CACHE, ACTIVATIONS, Memory, block, normalise, normed_linear
from .decoding import DecodingStep, ReadingStep

_FEW = 64  # tokens that are read by a ReadingStep; for more, the products alone take most of the time


class Transformer(ReadableTransformer):
    """The model of chapter 12 with a faster `next_token_loss` and a faster step of decoding.

    Equal to `mathllm.Transformer` up to rounding. It is faster for the shapes of GPT-2 and LLaMA (`fits` says for
    which) in float32 and float64; any other model, a mask of padding and a tap are computed by the readable form.

    >>> from mathllm.transformer import llama_config
    >>> model = Transformer(llama_config(vocabulary=10, width=8, layers=2, heads=2, hidden=16))
    >>> params = model.init(np.random.default_rng(0))
    >>> round(float(model.next_token_loss(params, [[1, 2, 3]], [[2, 3, 4]])), 1)  # ln 10
    2.3
    """

    def __init__(self, config: Config):
        super().__init__(config)
        self.fits = fits(config)
        self._memories = []  # those that no pullback needs at the moment
        self._steps = {}  # the last step of each kind

    @contract("_, _, B T+, B T, _")
    def next_token_loss(
        self, params: dict, tokens: ArrayLike, targets: ArrayLike, attention_mask: ArrayLike | None = None,
        **options: Any,
    ) -> Array:  # fmt: skip
        """Mean cross-entropy in nats: `cross_entropy(model(params, tokens), targets)`."""
        leaves = tree_leaves(params)
        precise = {leaf.dtype for leaf in leaves} in ({np.dtype(np.float32)}, {np.dtype(np.float64)})
        if not (self.fits and precise) or attention_mask is not None or options:
            return super().next_token_loss(params, tokens, targets, attention_mask, **options)
        return _loss(*leaves, model=self, structure=params, tokens=tokens, targets=targets)

    def last_logits(
        self, params: dict, tokens: ArrayLike, attention_mask: ArrayLike | None = None, *,
        cache: KVCache | None = None, **options: Any,
    ) -> Array:  # fmt: skip
        """Logits after the last tokens; few are read by a `ReadingStep`, one of one sequence by a `DecodingStep`."""
        shape, plain = np.shape(tokens), cache is not None and attention_mask is None and self.fits
        few = plain and len(shape) == 2 and 0 < math.prod(shape) <= _FEW
        if not few or options.keys() - {"count"} or params["embedding"].dtype == np.float16:
            return super().last_logits(params, tokens, attention_mask, cache=cache, **options)
        step = self._step(DecodingStep if shape == (1, 1) else ReadingStep, params, cache)
        if shape == (1, 1):
            return step(int(tokens[0][0]))[None, None]
        x = self.embed(params, np.asarray(tokens), cache.counts[:, None] + np.arange(shape[1]))
        return self.unembed(params, step(x)[:, -options.get("count", 1) :])

    def _free_memory(self):
        try:
            return self._memories.pop()  # in one operation: another thread may take the last one
        except IndexError:
            return Memory()

    def _step(self, kind, params, cache):
        """The step that was made for these parameters and this cache before, or a new one."""
        last = self._steps.get(kind)
        if last is None or last.params is not params or last.cache is not cache:
            last = self._steps[kind] = kind(self.config, params, cache)
        return last


def fits(config: Config) -> bool:
    """Whether a model has one of the shapes that are faster here: a plain decoder with its norms before the sublayers.

    >>> from mathllm.transformer import bert_config, gpt2_config
    >>> fits(gpt2_config()), fits(bert_config())
    (True, False)
    """
    c = config
    plain = c.causal and c.norm_order == "pre" and c.positions in ("learned", "rotary", "none")
    return plain and c.activation in ACTIVATIONS and not (c.encoder_layers or c.experts or c.bert or c.t5)


@primitive
def _loss(*leaves: Array, model: Transformer, structure: dict, tokens: np.ndarray, targets: np.ndarray) -> WithPullback:
    """The mean loss of a model whose parameters, in order, are `leaves`; its pullback can be called once."""
    c, params, (B, T) = model.config, rebuild(structure, iter(leaves)), tokens.shape
    _require_targets(c, tokens, targets)
    memory = model._free_memory()
    x, pullbacks, rotation = embedding(params["embedding"], tokens), [], _rotation(c, T, params["embedding"].dtype)
    if c.positions == "learned":
        x += params["positions"][:T]
    x = x.reshape(B * T, -1)
    for number, part in enumerate(params["blocks"]):
        x, block_pullback = block(x, part, c, rotation, (B, T), memory, number)
        pullbacks.append(block_pullback)
    unit, norm_pullback = normalise(x, c.norm_epsilon, c.norm == "layer", memory, "last unit")
    head = {"logits": params["embedding"].T if c.tied else params["unembedding"]}
    logits, logits_pullback = normed_linear(unit, params["final_norm"], head, ["logits"], memory, "logits")
    loss = cross_entropy_in_place(logits, targets.reshape(-1))

    def pullback(dloss):
        if not pullbacks:
            raise RuntimeError("the gradient of this loss was computed already, and its memory is in use again")
        du, dnorm, dhead = logits_pullback(logits)
        dx, gradient = norm_pullback(du), {"final_norm": dnorm, "blocks": []}
        while pullbacks:
            dx, dblock = pullbacks.pop()(dx)
            gradient["blocks"].insert(0, dblock)
        gradient["embedding"] = _embedding_gradient(params["embedding"], tokens, dx)
        if c.positions == "learned":
            gradient["positions"] = np.zeros_like(params["positions"])
            gradient["positions"][:T] = dx.reshape(B, T, -1).sum(axis=0)
        if c.tied:
            gradient["embedding"] += dhead["logits"].T
        else:
            gradient["unembedding"] = dhead["logits"]
        model._memories.append(memory)
        found = dict(walk(gradient))
        return tuple(found[path] * dloss for path, _ in walk(structure))

    return loss, pullback


def _rotation(config, length, dtype):
    """e^(iθ) of each pair of all queries and keys, (T, (H + G) K/2), or None."""
    c = config
    if c.positions != "rotary":
        return None
    angles = rotary_angles(np.arange(length), c.head_width, c.rope_base, c.rope_scaling)
    return np.tile(np.exp(1j * angles), c.heads + c.kv_heads).astype(np.result_type(dtype, np.complex64))


def cross_entropy_in_place(logits: np.ndarray, targets: np.ndarray) -> np.floating:
    """`cross_entropy(logits, targets)`; the logits become its gradient, (p − one_hot(target)) / n (7.8).

    logits: (N, V)   targets: (N,), −100 where there is none   ->   one number

    >>> logits = np.zeros((1, 2))
    >>> round(float(cross_entropy_in_place(logits, np.array([0]))), 4), logits
    (0.6931, array([[-0.5,  0.5]]))
    """
    counted = targets != IGNORED
    weight = (counted / np.count_nonzero(counted)).astype(logits.dtype)[:, None]  # 1/n, or 0
    loss, rows = 0.0, max(1, _CACHE // logits.shape[1])
    for start in range(0, len(logits), rows):
        part = slice(start, start + rows)
        z, share = logits[part], weight[part]
        place = np.arange(len(z)), np.where(counted[part], targets[part], 0)
        z -= z.max(axis=1, keepdims=True)
        z_target = z[place][:, None]
        np.exp(z, out=z)
        total = (z @ np.ones(z.shape[1], z.dtype))[:, None]
        loss += np.sum((np.log(total) - z_target) * share, dtype=np.float64)
        z *= share / total
        z[place] -= share[:, 0]
    return logits.dtype.type(loss)


def _require_targets(config, tokens, targets):
    if config.positions == "learned" and tokens.shape[1] > config.context:
        raise ShapeError(f"the model's context is {config.context} tokens, got {tokens.shape[1]}")
    counted = token_ids("next_token_loss", targets[targets != IGNORED], config.vocabulary)
    if not counted.size:
        raise ValueError(f"next_token_loss() needs a target that counts, got none but {IGNORED}")


def _embedding_gradient(table, ids, dx):
    """The gradient of `embedding`: tokens are sorted first, so that those of one row stand together and are summed."""
    gradient, order = np.zeros_like(table), np.argsort(ids, axis=None, kind="stable")
    found, starts = np.unique(ids.reshape(-1)[order], return_index=True)
    gradient[found] = np.add.reduceat(dx[order], starts, axis=0)
    return gradient
