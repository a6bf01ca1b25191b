"""The figure of chapter 4 rounds as NumPy's number types do, and its logarithms are those of mathllm."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml

FILE = "log_product.js"
TYPES = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
rng = np.random.default_rng(1)
CASES = [(float(rng.integers(1, 100)) / 100, int(n)) for n in rng.integers(1, 1001, size=60)] + [(0.5, 24), (0.5, 25)]


def test_float16_is_rounded_as_numpy_rounds_it():
    numbers = np.concatenate([10.0 ** rng.uniform(-9, 1, size=500), [0.0, 2.0**-24, 2.0**-25, 1.5 * 2.0**-24, 1.0]])
    ours = run_js(FILE, "toHalf", [[x] for x in numbers.tolist()])
    np.testing.assert_array_equal(ours, numbers.astype(np.float16).astype(float))


@pytest.mark.parametrize("name", TYPES)
def test_the_product_is_that_of_the_number_type_bit_by_bit(name):
    wanted = []
    for p, factors in CASES:
        result = TYPES[name](1)
        for _ in range(factors):
            with np.errstate(under="ignore"):
                result = result * TYPES[name](p)
        wanted.append(float(result))
    assert run_js(FILE, "product", [[p, factors, name] for p, factors in CASES]) == wanted
    assert 0 in wanted
    assert max(wanted) > 0


def test_the_sum_of_logarithms_is_that_of_mathllm():
    ours = run_js(FILE, "logSum", [list(case) for case in CASES])
    np.testing.assert_allclose(ours, [ml.exponentials.log_product(np.full(n, p)) for p, n in CASES], rtol=SAME)


@pytest.mark.parametrize("name", TYPES)
def test_the_track_ends_where_the_type_ends(name):
    (ours,) = run_js(FILE, "lowest", [[name]])
    assert ours == pytest.approx(ml.exponentials.exponent_range(TYPES[name]).lowest, rel=SAME)


def test_small_numbers_are_written_with_powers_of_ten():
    assert run_js(FILE, "format", [[0], [0.25], [1e-100], [3.4567e-12]]) == [
        "0", "0.2500", "1.000 × 10⁻¹⁰⁰", "3.457 × 10⁻¹²",
    ]  # fmt: skip
