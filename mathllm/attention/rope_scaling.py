"""How models with rotary positions read texts longer than those of their training: their pairs rotate more slowly."""

import math
from dataclasses import dataclass

import numpy as np

from ..errors import ShapeError, one_of, within

_SETTINGS = {  # the kinds, and the settings that each has besides its factor
    "linear": (), "ntk": (), "dynamic": ("trained",), "yarn": ("trained", "turns", "whole_pairs", "attention_factor"),
    "longrope": ("trained", "attention_factor", "short", "long"), "llama3": ("trained", "turns"),
}  # fmt: skip
_TURNS = {"yarn": (1, 32), "llama3": (1, 4)}


@dataclass(frozen=True)
class RotaryScaling:
    """How the frequencies of rotary positions are scaled for a context `factor` times as long as the trained one.

        "linear"     all frequencies divided by the factor
        "ntk"        base · factor^(K/(K−2)): the highest frequency is kept, the lowest divided by the factor
        "dynamic"    as "ntk", with the factor that the text needs: factor · length/trained − (factor − 1), at least 1
        "yarn"       divided for pairs with less than `turns[0]` rotations in the trained length, kept from `turns[1]`
                     on, and in between linearly in the number of the pair
        "llama3"     the same, in between linearly in the number of rotations
        "longrope"   each pair divided by a number of its own: `short` up to the trained length, `long` beyond

    trained: the trained length; a `Config` fills in its context   turns: (1, 32) for "yarn" and (1, 4) for "llama3"
    whole_pairs: whether "yarn" rounds its limits to whole pairs   attention_factor: by what "yarn" and "longrope"
    multiply queries and keys, if it is not the paper's value, see `score_factor`

    Raises: ValueError for an unknown kind, and for settings that the kind does not have or cannot use.
    Source: Chen et al. 2023; Peng et al. 2023; Grattafiori et al. 2024; Ding et al. 2024.

    >>> RotaryScaling("llama3", factor=8.0, trained=8192).turns
    (1, 4)
    """

    kind: str
    factor: float = 1.0
    trained: int | None = None
    turns: tuple[float, float] | None = None
    whole_pairs: bool = True
    attention_factor: float | None = None
    short: tuple[float, ...] | None = None
    long: tuple[float, ...] | None = None

    def __post_init__(self):
        one_of("RotaryScaling", _SETTINGS, kind=self.kind)
        for name in {name for names in _SETTINGS.values() for name in names} - {"trained", *_SETTINGS[self.kind]}:
            if getattr(self, name) != getattr(RotaryScaling, name):
                kinds = " and ".join(kind for kind, names in _SETTINGS.items() if name in names)
                raise ValueError(f"RotaryScaling() has {name} for {kinds}, not for {self.kind}")
        if self.kind == "longrope" and (not self.short or not self.long or len(self.short) != len(self.long)):
            raise ValueError(f"longrope needs a number for each pair, short and long, got {self.short} and {self.long}")
        if self.turns is None:
            object.__setattr__(self, "turns", _TURNS.get(self.kind))
        if self.turns is not None and not 0 < self.turns[0] < self.turns[1]:
            raise ValueError(f"RotaryScaling() needs two numbers of turns, the smaller one first, got {self.turns}")
        within("RotaryScaling", "[1, ∞)", factor=self.factor)
        within("RotaryScaling", "[2, ∞)", trained=2 if self.trained is None else self.trained)
        if self.attention_factor is not None:
            within("RotaryScaling", "(0, ∞)", attention_factor=self.attention_factor)

    @property
    def score_factor(self) -> float:
        """By what scores are multiplied: the square of the attention factor, which acts on queries and on keys.

            attention factor = 1 + 0.1 ln factor      "yarn"
                             = √(1 + ln factor / ln trained)      "longrope"

        Raises: ValueError for "longrope" if the trained length is not known.
        Source: Peng et al. 2023, eq. 22; the program of Ding et al. 2024 (their paper does not have it).
        """
        if self.attention_factor is not None:
            return self.attention_factor**2
        if self.kind == "yarn":
            return (1 + 0.1 * math.log(self.factor)) ** 2
        if self.kind == "longrope":
            self._check_trained()
            return 1 + math.log(self.factor) / math.log(self.trained)
        return 1.0

    @property
    def limit(self) -> int | None:
        """The length beyond which the angles of all tokens change, so that no earlier key can be used, or None.

        For "dynamic" they change again with each new token, for "longrope" only once.
        """
        changes = self.kind == "dynamic" or (self.kind == "longrope" and self.short != self.long)
        return self.trained if changes else None

    def stretched(self, frequencies: np.ndarray, base: float, length: int) -> np.ndarray:
        """The frequencies (K/2,) for a text of this length.

        Raises: ShapeError for "longrope" with other than K/2 numbers; ValueError if the trained length is not known.
        """
        self._check_trained()
        if self.kind == "linear":
            return frequencies / self.factor
        if self.kind in ("ntk", "dynamic"):
            needed = self.factor * length / self.trained - (self.factor - 1) if self.kind == "dynamic" else self.factor
            pairs = len(frequencies)
            return frequencies * max(needed, 1) ** (-np.arange(pairs) / max(pairs - 1, 0.5))
        if self.kind == "longrope":
            divisors = np.array(self.short if length <= self.trained else self.long)
            if divisors.shape != frequencies.shape:
                raise ShapeError(f"rotary_angles() has {len(frequencies)} pairs, longrope numbers for {len(divisors)}")
            return frequencies / divisors
        kept = self._kept(frequencies, base)
        return kept * frequencies + (1 - kept) * frequencies / self.factor

    def _check_trained(self):
        if self.trained is None and "trained" in _SETTINGS[self.kind]:
            raise ValueError(f"{self.kind} needs the length of the training: RotaryScaling({self.kind!r}, trained=...)")

    def _kept(self, frequencies, base):
        """How much of each frequency is kept: 1 for high frequencies, 0 for low ones, (K/2,)."""
        slow, fast = self.turns
        if self.kind == "llama3":
            return np.clip((self.trained * frequencies / (2 * np.pi) - slow) / (fast - slow), 0, 1)
        width = 2 * len(frequencies)
        first, last = (width * np.log(self.trained / (2 * np.pi * n)) / (2 * np.log(base)) for n in (fast, slow))
        if self.whole_pairs:
            first, last = np.floor(first), np.ceil(last)
        first, last = max(first, 0), min(last, width - 1)  # numbers of pairs
        return 1 - np.clip((np.arange(len(frequencies)) - first) / max(last - first, 1e-3), 0, 1)
