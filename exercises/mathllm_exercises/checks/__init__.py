"""What is code in an exercise: its checks, one module per chapter. The text stands in `exercises/assignments/`.

    @checks("06.softmax.softmax", expected=ml.softmax)
    def _(c):
        c.values(2, normals(3, 7, 1), name="one row")
        c.keeps_dtype(1, normals(5, (2, 3), dtype=np.float32))

    @draws("06.softmax.own_shares")
    def _(rng):
        return {"logits": rng.normal(size=3).tolist()}

Without `expected` the model solution says what is right. The check of a value is in its text: points and decimals.
"""

import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace

from .. import scoring
from ..item import Check, gradient, keeps_dtype, leaves_inputs, raised, refuses, shape, values

__all__ = ["Checks", "Rules", "checks", "draws", "rules"]


@dataclass(frozen=True)
class Rules:
    """What Python says of an exercise; None where its text says it all."""

    write: Callable | None = None  # called with Checks, adds to them
    expected: Callable | None = None
    numbers: Callable | None = None


class Checks(list):
    """The checks of an exercise, in the order in which they are added; each method adds one."""

    of_gradient = False  # whether one of them measures a slope

    def values(self, *args, **options):
        """See `item.values`."""
        self.append(values(*args, **options))

    def shape(self, *args, **options):
        """See `item.shape`."""
        self.append(shape(*args, **options))

    def keeps_dtype(self, *args, **options):
        """See `item.keeps_dtype`."""
        self.append(keeps_dtype(*args, **options))

    def leaves_inputs(self, *args, **options):
        """See `item.leaves_inputs`."""
        self.append(leaves_inputs(*args, **options))

    def refuses(self, *args, **options):
        """See `item.refuses`."""
        self.append(refuses(*args, **options))

    def gradient(self, *args, **options):
        """See `item.gradient`."""
        self.append(gradient(*args, **options))
        self.of_gradient = True

    def scored(self, *args):
        """The one check of a challenge: see `scoring.check`."""
        self.append(scoring.check(*args))

    def judge(self, name, points, cases, judge, **options):
        """A check of its own: `judge(expected, case, observation)` returns None, or the reason in words."""

        def answered(expected, case, observation):
            return raised(observation) or judge(expected, case, observation)

        self.append(Check(name, points, cases, answered, **options))


_RULES: dict[str, Rules] = {}


def checks(id, expected=None):
    """Register the function below as the one that adds the checks of this exercise.

    expected: the right function; by default the model solution
    """

    def register(write):
        _RULES[id] = replace(_RULES.get(id, Rules()), write=write, expected=expected)
        return write

    return register


def draws(id):
    """Register the function below as the one that draws a learner's own numbers: numbers(rng) -> dict."""

    def register(numbers):
        _RULES[id] = replace(_RULES.get(id, Rules()), numbers=numbers)
        return numbers

    return register


@functools.cache
def module(slug):
    """The checks of a chapter, or None where Python has nothing to say."""
    known = {name for _, name, _ in pkgutil.iter_modules(__path__)}
    return importlib.import_module(f"{__name__}.{slug}") if slug in known else None


def rules(id) -> Rules:
    """What Python says of an exercise."""
    module(id.split(".")[1])
    return _RULES.get(id, Rules())


def rules_without_text(ids) -> list[str]:
    """The ids that have checks but no text."""
    for _, name, _ in pkgutil.iter_modules(__path__):
        module(name)
    return sorted(_RULES.keys() - set(ids))
