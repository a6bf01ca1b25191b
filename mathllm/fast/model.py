"""A model whose training loss is one primitive: the whole forward pass, and the whole backward pass as its pullback."""

from operator import index
from typing import Any

import numpy as np

from ..autodiff import Array, ArrayLike, WithPullback, primitive, vjp
from ..cross_entropy import cross_entropy
from ..inference import KVCache
from ..shapes import contract
from ..transformer import Config
from ..transformer import Transformer as ReadableTransformer
from ..trees import rebuild, tree_leaves, tree_map, walk
from .block import ACTIVATIONS, Memory, block, query_key_factors
from .decoding import DecodingStep, ReadingStep

_FEW = 64  # tokens that are read by a ReadingStep; for more, the products alone take most of the time


class Transformer(ReadableTransformer):
    """The model of chapter 12 with a faster `next_token_loss` and a faster step of decoding.

    Equal to `mathllm.Transformer` up to rounding. It is faster for the shapes of GPT-2 and LLaMA (`fits` says whether)
    in float32 and float64; any other model, a mask of padding and a tap are computed by the readable form.

    >>> from mathllm.transformer import llama_config
    >>> model = Transformer(llama_config(vocabulary=10, width=8, layers=2, heads=2, hidden=16))
    >>> params = model.init(np.random.default_rng(0))
    >>> round(float(model.next_token_loss(params, [[1, 2, 3]], [[2, 3, 4]])), 1)  # ln 10
    2.3
    """

    def __init__(self, config: Config):
        super().__init__(config)
        decoder = config.causal and not (config.encoder_layers or config.experts or config.bert or config.t5)
        known = config.positions in ("learned", "rotary", "none") and config.activation in ACTIVATIONS
        self.fits = decoder and known and config.norm_order == "pre"
        self._memories = []  # those that no pullback needs at the moment
        self._steps = {}  # of each kind, for the last parameters and cache

    @contract("_, _, B+ T+, B T, _")
    def next_token_loss(
        self, params: dict, tokens: ArrayLike, targets: ArrayLike, attention_mask: ArrayLike | None = None,
        **options: Any,
    ) -> np.ndarray:  # fmt: skip
        """Mean cross-entropy in nats: `cross_entropy(model(params, tokens), targets)`."""
        leaves = tree_leaves(params)
        precise = {leaf.dtype for leaf in leaves} in ({np.dtype(np.float32)}, {np.dtype(np.float64)})
        if not (self.fits and precise) or attention_mask is not None or options:
            return super().next_token_loss(params, tokens, targets, attention_mask, **options)
        return _loss(*leaves, model=self, structure=params, tokens=tokens, targets=targets)

    def last_logits(
        self, params: dict, tokens: ArrayLike, attention_mask: ArrayLike | None = None, *,
        cache: KVCache | None = None, **options: Any,
    ) -> np.ndarray:  # fmt: skip
        """Logits after the last tokens; few are read by a `ReadingStep`, one of one sequence by a `DecodingStep`."""
        tokens, plain = np.asarray(tokens), cache is not None and attention_mask is None and self.fits
        few = plain and tokens.ndim == 2 and 0 < tokens.size <= _FEW
        if not few or options.keys() - {"count"} or params["embedding"].dtype == np.float16:
            return super().last_logits(params, tokens, attention_mask, cache=cache, **options)
        if tokens.size == 1:
            return self._step(DecodingStep, params, cache)(index(tokens.item()))[None, None]
        step = self._step(ReadingStep, params, cache)
        x = self.embed(params, tokens, cache.counts[:, None] + np.arange(tokens.shape[1]))
        x = step(x)[:, -options.get("count", 1) :]
        return step.unembedding(x.reshape(-1, x.shape[2])).reshape(*x.shape[:2], -1)

    def _free_memory(self):
        try:
            return self._memories.pop()  # in one operation: another thread may take the last one
        except IndexError:
            return Memory()

    def _step(self, kind, params, cache):
        """The step that was made for these parameters and this cache before, or a new one with the other's blocks."""
        steps = {k: step for k, step in self._steps.items() if step.params is params and step.cache is cache}
        if kind not in steps:
            steps[kind] = kind(self.config, params, cache, *(step.blocks for step in steps.values()))
        self._steps = steps
        return steps[kind]


@primitive
def _loss(*leaves: Array, model: Transformer, structure: dict, tokens: np.ndarray, targets: np.ndarray) -> WithPullback:
    """The mean loss of a model whose parameters, in order, are `leaves`; its pullback can be called once."""
    c, params, (B, T) = model.config, rebuild(structure, iter(leaves)), tokens.shape
    memory, pullbacks, factors = model._free_memory(), [], query_key_factors(T, c, leaves[0].dtype)
    outer = {name: part for name, part in params.items() if name != "blocks"}
    x, embed_pullback = vjp(lambda outer: model.embed(outer, tokens, np.arange(T)[None]), outer)
    x = x.reshape(B * T, -1)
    for number, part in enumerate(params["blocks"]):
        x, block_pullback = block(x, part, c, factors, (B, T), memory, number)
        pullbacks.append(block_pullback)

    def last(x, outer):  # the readable norm says where numbers have become too large
        return cross_entropy(model.unembed(outer, model.norm(x, outer["final_norm"])), targets.reshape(-1))

    loss, last_pullback = vjp(last, x, outer)

    def pullback(dloss):
        if not pullbacks:
            raise RuntimeError("the gradient of this loss was computed already, and its memory is in use again")
        (dx, douter), blocks = last_pullback(dloss), []
        while pullbacks:
            dx, dblock = pullbacks.pop()(dx)
            blocks.insert(0, dblock)
        (dtables,) = embed_pullback(dx.reshape(B, T, -1))
        gradient = dict(walk(tree_map(np.add, douter, dtables) | {"blocks": blocks}))
        model._memories.append(memory)
        return tuple(gradient[path] for path, _ in walk(structure))

    return loss, pullback
