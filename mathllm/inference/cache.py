"""The keys and values of earlier tokens do not change when a new one comes: store them, and count what that costs."""

from collections.abc import Callable

import numpy as np

from ..attention import padding_mask, sliding_window_mask
from ..autodiff import ArrayLike
from ..errors import ShapeError, within
from ..shapes import Contract
from ..transformer import Config, forward_flops


class KVCache:
    """The keys and values of all tokens so far, in arrays made beforehand; give it to the model as `cache`.

        step t:  K ← [K; Kₜ],   V ← [V; Vₜ],   Yₜ = Attention(Qₜ, K, V)              (14.9)

    config: of the model   batch_size: B   capacity: the largest number of tokens, padding included; the context if
    not given   window: if given, each token attends only to the last `window` ones, its own included; older keys are
    dropped, and the arrays hold twice the window, however long the text becomes

    `length` counts the tokens so far, `visible` the stored keys that the newest attend to, `nbytes` the memory.
    Raises: ValueError for sizes below 1, and for a model that is not causal.
    Source: the window: Jiang et al. 2023, §2.

    >>> from mathllm.transformer import Transformer
    >>> model = Transformer(Config(vocabulary=10, width=8, layers=2, heads=2))
    >>> params, cache = model.init(np.random.default_rng(0)), KVCache(model.config, capacity=3)
    >>> step_by_step = [model(params, [[token]], cache=cache)[0, 0] for token in (1, 2, 3)]
    >>> np.allclose(step_by_step, model(params, [[1, 2, 3]])[0]), cache.length
    (True, 3)
    """

    def __init__(
        self, config: Config, batch_size: int = 1, capacity: int | None = None, dtype: np.dtype | type = np.float64,
        window: int | None = None,
    ):  # fmt: skip
        capacity = config.context if capacity is None else capacity
        within("KVCache", "whole [1, ∞)", batch_size=batch_size, capacity=capacity)
        within("KVCache", "whole [1, ∞)", window=1 if window is None else window)
        if not config.causal:
            raise ValueError("an encoder attends to all tokens at once: only a causal model can use a cache")
        self.config, self.window = config, window
        capacity = capacity if window is None else 2 * window
        shape = (config.layers, batch_size, config.kv_heads, capacity, config.head_width)
        self.keys, self.values = np.zeros(shape, dtype), np.zeros(shape, dtype)  # (L, B, G, S, K)
        self.marks = np.zeros((batch_size, capacity), bool)  # False for padding
        self.counts = np.zeros(batch_size, np.int64)  # the tokens of each sequence that are no padding
        self.length = 0
        self.source = None  # the last vectors of an encoder, and the mask of its padding
        self._start = self._stop = self._new = 0  # the visible part of the arrays, and how much of it is new

    @property
    def batch_size(self) -> int:
        """The number of sequences, B."""
        return self.keys.shape[1]

    @property
    def capacity(self) -> int:
        """The number of tokens that the arrays can hold."""
        return self.keys.shape[3]

    @property
    def visible(self) -> int:
        """The number of stored keys that the newest tokens can see, S."""
        return self._stop - self._start

    @property
    def nbytes(self) -> int:
        """The memory of the keys and values, in bytes."""
        return self.keys.nbytes + self.values.nbytes

    def advance(self, shape: tuple[int, int], attention_mask: ArrayLike | None = None) -> np.ndarray | None:
        """Make room for new tokens of this shape (B, count); the model calls this once, before its layers.

        attention_mask: (B, count), 1 for a token and 0 for padding   ->   the mask of attention: (count, S), or
        (B, 1, count, S) where there is padding, or None where everything is allowed

        Raises: ShapeError for more tokens than there is room for, another batch, or a mask of another shape; ValueError
        for a text beyond which rotary positions change all keys.
        """
        if shape[0] != self.batch_size:
            raise ShapeError(f"the cache is for {self.batch_size} sequences, got tokens of shape {shape}")
        if self.config.outgrown_by(self.length + shape[1]):
            limit = f"longer than {self.config.rope_scaling.limit} tokens"
            raise ValueError(f"these rotary positions change all keys of a text {limit}: read it without a cache")
        marks, count = True, shape[1]
        counts = count
        if attention_mask is not None:
            marks = padding_mask(attention_mask)[:, 0, 0]
            Contract(f"{self.batch_size} {count}").check("KVCache.advance", ["attention_mask"], [marks])
            counts = marks.sum(axis=1)
        self._make_room(count)
        self.marks[:, self._stop : self._stop + count] = marks
        self._stop, self._new, self.length = self._stop + count, count, self.length + count
        self.counts = self.counts + counts
        return self._mask(count)

    def _make_room(self, count):
        """Set where the keys that the new tokens see begin; with a window they move to the front if the end is near."""
        keep = self._stop if self.window is None else min(self._stop, self.window - 1)
        if keep + count > self.capacity:
            raise ShapeError(
                f"the cache has room for {self.capacity - keep} more tokens, got {count}; give it a larger capacity"
                + ("" if self.window is None else ", or the tokens in pieces no longer than the window")
            )
        if self._stop + count > self.capacity:  # only with a window: the keys still visible move to the front
            old = slice(self._stop - keep, self._stop)
            for part in (self.keys, self.values):
                part[..., :keep, :] = part[..., old, :].copy()
            self.marks[:, :keep] = self.marks[:, old].copy()
            self._stop = keep
        self._start = self._stop - keep

    def _mask(self, count):
        mask = None if count == 1 else sliding_window_mask(count, self.window or self.visible, self.visible)
        marks = self.marks[:, self._start : self._stop]
        if marks.all():
            return mask
        seen = padding_mask(marks)  # (B, 1, 1, S)
        return seen if mask is None else mask & seen

    def layer(self, number: int) -> Callable:
        """The function that stores the new keys and values of one layer, (B, G, T, K), and returns all visible ones."""

        def extend(key, value):
            if not isinstance(key, np.ndarray):
                raise TypeError("a cache holds numbers and no gradients: train without one")
            new, all_ = slice(self._stop - self._new, self._stop), slice(self._start, self._stop)
            self.keys[number][..., new, :], self.values[number][..., new, :] = key, value
            return self.keys[number][..., all_, :], self.values[number][..., all_, :]

        return extend

    def new_token(self) -> tuple[np.ndarray, np.ndarray]:
        """The visible keys and values of the first sequence in all layers, (L, G, S, K), the newest token's last."""
        visible = slice(self._start, self._stop)
        return self.keys[:, 0, :, visible], self.values[:, 0, :, visible]

    def select(self, rows: ArrayLike) -> None:
        """Keep these sequences, each of which may occur several times, as beam search needs.

        rows: (B',) indices of sequences
        """
        self.keys, self.values = self.keys[:, rows], self.values[:, rows]
        self.marks, self.counts = self.marks[rows], self.counts[rows]
        if self.source is not None:
            self.source = tuple(None if part is None else part[rows] for part in self.source)

    def crop(self, length: int) -> None:
        """Drop all tokens from position `length` on, as speculative decoding needs after a rejection.

        Raises: ValueError for a length beyond what is stored, and for a window, which has forgotten what would return.
        """
        if self.window is not None:
            raise ValueError("a cache with a window cannot go back: it has forgotten what would become visible again")
        within("KVCache.crop", f"[0, {self.length}]", length=length)
        self.counts = self.counts - self.marks[:, length : self.length].sum(axis=1)
        self.length = self._stop = length


def kv_cache_bytes(
    *, layers: int, kv_heads: int, head_width: int, tokens: int, batch_size: int = 1, bytes_per_number: int = 2
) -> int:
    """The memory of the keys and values, in bytes.

        2 · L · G · d_k · T · B · bytes      2 for keys and values, G = H unless shared (14.13)

    A 70B model (80 layers, 64 heads of 128) needs 2.5 MiB for each token: 320 GiB for 131,072 tokens, and 40 GiB with
    8 shared heads.
    Raises: ValueError for negative sizes.

    >>> size = dict(layers=80, head_width=128, tokens=131072)
    >>> [kv_cache_bytes(kv_heads=heads, **size) / 2**30 for heads in (64, 8)]
    [320.0, 40.0]
    """
    sizes = {"layers": layers, "kv_heads": kv_heads, "head_width": head_width, "tokens": tokens}
    within("kv_cache_bytes", "[0, ∞)", **sizes, batch_size=batch_size, bytes_per_number=bytes_per_number)
    return 2 * layers * kv_heads * head_width * tokens * batch_size * bytes_per_number


def keys_computed(steps: int, cached: bool) -> np.ndarray:
    """The number of tokens whose keys and values each step of generation computes, in each layer.

        without a cache 1, 2, …, T, together T(T+1)/2;      with one 1, 1, …, 1, together T (14.10)

    steps: T   ->   (T,) int   Raises: ValueError for fewer than 0 steps.

    >>> keys_computed(3, cached=False), keys_computed(3, cached=True)
    (array([1, 2, 3]), array([1, 1, 1]))
    """
    within("keys_computed", "whole [0, ∞)", steps=steps)
    return np.ones(steps, int) if cached else np.arange(1, steps + 1)


def step_flops(config: Config, length: int, cached: bool) -> float:
    """Floating-point operations of the step that reads a text of T = `length` tokens and generates the next one.

        with a cache 24LD² + 4LTD (if F = 4D);      without one T times as much, all tokens again (14.11)

    Raises: ValueError for a length below 1.

    >>> config = Config(vocabulary=10, width=8, layers=2, heads=2)
    >>> step_flops(config, 100, cached=False) / step_flops(config, 100, cached=True)
    100.0
    """
    within("step_flops", "[1, ∞)", length=length)
    return forward_flops(config, length) / (length if cached else 1)
