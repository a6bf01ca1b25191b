"""Bounds, sums of one, symmetries and orders that the formulas promise also hold after rounding.

Each row of the tables in promises_of_functions.py and promises_of_models.py is one promise: what is promised, the hard
arguments it is tried on (hard_numbers.py), and the promise as a condition (conditions.py). An identity holds up to a
few roundings. A bound holds exactly, because the next function refuses a probability above 1 or a negative loss. What
follows from the digits that `make check-source` counts, at ordinary and at hard arguments, is not repeated here.
"""

from collections.abc import Iterator

import numpy as np
import promises_of_functions as functions
import promises_of_models as models
import pytest
from conditions import ONE

PROMISES = {
    1: functions.VECTORS, 2: functions.SIMILARITY, 3: functions.MATRICES, 4: functions.EXPONENTIALS,
    5: functions.PROBABILITY, 6: functions.SOFTMAX, 7: functions.CROSS_ENTROPY, 8: functions.GRADIENTS,
    9: models.GRADIENT_DESCENT, 10: models.ATTENTION, 11: models.BACKPROPAGATION, 12: models.TRANSFORMER,
    13: models.TRAINING, 14: models.INFERENCE, 15: models.ALIGNMENT, 16: models.INTERPRETABILITY, 17: models.SCALE,
}  # fmt: skip


def cases():
    """Every promise for every dtype it is made for, under the name `NN words [dtype]`."""
    for chapter, promises in PROMISES.items():
        for promise in promises:
            for dtype in promise.dtypes:
                name = f"{chapter:02} {promise.words}" + f" [{np.dtype(dtype)}]" * (promise.dtypes is not ONE)
                yield pytest.param(promise, dtype, id=name)


@pytest.mark.parametrize(("promise", "dtype"), [*cases()])
def test_the_promise_holds_at_hard_points(promise, dtype):
    with np.errstate(over="ignore", divide="ignore"):  # an infinity is an answer here; NaN breaks every promise
        for arguments in promise.points(dtype):
            held = promise.holds(*arguments)
            parts = held if isinstance(held, list | Iterator) else [held]
            assert all(np.all(part) for part in parts), arguments
