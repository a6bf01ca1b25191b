"""Exercises for The Mathematics of Large Language Models: the items and check().

from mathllm_exercises import check, numbers
check("01.vectors.norm", norm)           # immediate feedback; .score() gives the points as well
mine = numbers("01.vectors.own_length")  # your own numbers, the same at every call
"""

from .arranging import arrange
from .item import Check, Item, Mistake, gradient, keeps_dtype, leaves_inputs, refuses, shape, values
from .own_numbers import learner, numbers
from .registry import item, items
from .report import Report, check
from .starting import start_again

__all__ = [
    "Check", "Item", "Mistake", "Report", "arrange", "check", "gradient", "item", "items", "keeps_dtype", "learner",
    "leaves_inputs", "numbers", "refuses", "shape", "start_again", "values",
]  # fmt: skip
