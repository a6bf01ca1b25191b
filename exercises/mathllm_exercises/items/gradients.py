"""Chapter 08, gradients: slopes by hand and by nudges, the chain rule, kinds of level ground, activations backwards."""

import math

import numpy as np

import mathllm as ml

from ..cases import each, normals, refusing
from ..item import Item, Mistake, gradient, leaves_inputs, quick, refuses, values

BY_MACHINE = (
    "central_difference", "check_gradient", "grad", "hessian_vector_product", "jacobian", "numerical_derivative",
    "numerical_gradient", "numerical_hessian", "numerical_jacobian", "value_and_grad", "vjp",
)  # fmt: skip

# Warm-up ------------------------------------------------------------------------------------------------------------

CUBE_SLOPE = Item(
    id="08.gradients.cube_slope",
    kind="value",
    title="The slope of a cube",
    difficulty=1,
    minutes=3,
    source="The primer (003), chapter VIII, exercise 17",
    answer="cube",
    task="""
The derivative of $f(x) = x^3$ has the form $f'(x) = c\\,x^n$. Give three numbers in the list `cube`: $c$, $n$ and the
slope $f'(2)$.
""",
    expected=lambda: [3, 2, 3 * 2**2],
    checks=(values(2),),
    mistakes=(
        Mistake(lambda: [3, 3, 24], "The exponent comes down, and is then lowered by one."),
        Mistake(lambda: [1, 2, 4], "The exponent was lowered. It also comes down, as a factor in front."),
        Mistake(lambda: [3, 2, 36], "3x² is 3·(x²): only x is squared, not the 3."),
        Mistake(lambda: [3, 2, 8], "8 is the value f(2). The slope is f′(2)."),
        Mistake(lambda: 12, "The slope is right. Three numbers were asked for: write [c, n, slope]."),
        Mistake(
            lambda: [2, 3, 12], "The slope is right. The order is factor, exponent, slope: 3x² has c = 3 and n = 2."
        ),
        Mistake(lambda: [3, 2, 6], "At x = 2 the slope is 3·2², and 2² is 4."),
    ),
    hints=("The power rule: bring the exponent down, and lower it by one.", "Then put x = 2."),
    references=("primer.ch08.q17.deriv", "primer.ch08.q17.at2"),
)

GRADIENT_BY_HAND = Item(
    id="08.gradients.gradient_by_hand",
    kind="value",
    title="Uphill and downhill",
    difficulty=1,
    minutes=5,
    source="The primer (003), chapter VIII, exercise 18",
    answer="up_and_down",
    task="""
For $f(x, y) = 2x^2 - y^2 + xy$ compute both partial derivatives. Give two vectors in the list `up_and_down`: the
gradient at $(1, 3)$, and the direction in which to move to *decrease* $f$ fastest (as long as the gradient).
""",
    expected=lambda: [[7, -5], [-7, 5]],
    checks=(values(2),),
    mistakes=(
        Mistake(lambda: [[7, -5], [7, -5]], "The gradient points uphill. To decrease f, go against it."),
        Mistake(lambda: [[4, -6], [-4, 6]], "The term xy is missing: its slope is y in x, and x in y."),
        Mistake(lambda: [[7, 7], [-7, -7]], "The sign of y²: the slope of −y² is −2y."),
        Mistake(lambda: [[-5, 7], [5, -7]], "The slope in x comes first."),
        Mistake(lambda: [7, -5], "This is the gradient. The direction downhill belongs into the list, too."),
        Mistake(lambda: [[13, 1], [-13, -1]], "x and y have changed places: the place is x = 1, y = 3."),
        Mistake(lambda: [[-7, 5], [7, -5]], "Uphill and downhill have changed places: the gradient comes first."),
        Mistake(lambda: [7, -5, -7, 5], "The numbers are right. Give two vectors in a list: [[…, …], [… , …]]."),
    ),
    hints=("Hold y still: 2x² − y² + xy has the slope 4x + y in x.", "And −2y + x in y.", "Downhill is minus uphill."),
    references=(
        "primer.ch08.q18.dfdx",
        "primer.ch08.q18.dfdy",
        "primer.ch08.q18.grad",
        "primer.ch08.q18.descent",
    ),
)


def _quadratic(rng):
    """a x² + b x y + c y², and a place; the usual mistakes all give other numbers."""
    a, b, c = (int(n) for n in rng.choice([-5, -4, -3, -2, 2, 3, 4, 5], size=3, replace=False))
    x, y = (int(n) for n in rng.choice([-3, -2, 2, 3, 4], size=2, replace=False))
    return {"a": a, "b": b, "c": c, "x": x, "y": y}


OWN_GRADIENT = Item(
    id="08.gradients.own_gradient",
    kind="value",
    title="Your own slope",
    difficulty=1,
    minutes=5,
    source="after the primer (003), chapter VIII, example 8",
    answer="own_gradient",
    task="""
Your function is $f(x, y) = a\\,x^2 + b\\,x y + c\\,y^2$, with the numbers `mine.a`, `mine.b` and `mine.c`. Give its
gradient at the place (`mine.x`, `mine.y`) in `own_gradient`.
""",
    numbers=_quadratic,
    expected=lambda a, b, c, x, y: [2 * a * x + b * y, b * x + 2 * c * y],
    checks=(values(2),),
    mistakes=(
        Mistake(lambda a, b, c, x, y: [2 * a * x, 2 * c * y], "The term bxy is missing: its slopes are by and bx."),
        Mistake(lambda a, b, c, x, y: [a * x + b * y, b * x + c * y], "The slope of x² is 2x: bring the 2 down."),
        Mistake(
            lambda a, b, c, x, y: [2 * a * x + b * x, b * y + 2 * c * y],
            "The slope of bxy in x is by: x goes, y stays.",
        ),
        Mistake(lambda a, b, c, x, y: [-2 * a * x - b * y, -b * x - 2 * c * y], "This points downhill: the sign."),
    ),
    hints=("Hold y still and take the slope in x, then the other way round.", "∂f/∂x = 2ax + by."),
    references=("primer.ch08.ex8.dfdx", "primer.ch08.ex8.dfdy", "primer.ch08.ex8.grad"),
)

# Core ---------------------------------------------------------------------------------------------------------------


def _chain_numbers(rng):
    a, b = (int(n) for n in rng.choice([-4, -3, -2, 2, 3, 4], size=2, replace=False))
    return {"a": a, "b": b, "w": float(rng.choice([0.25, 0.75, 1.25, 1.75]))}


def _forwards(a, b, w):
    u = a * w + b
    return u, u * u + 1


OWN_CHAIN = Item(
    id="08.gradients.own_chain",
    kind="value",
    title="Forwards, then backwards",
    difficulty=2,
    minutes=7,
    source="Foundations (001), section 3.1.2",
    answer="own_chain",
    task="""
A weight $w$ reaches the loss in three steps: $u = a\\,w + b$, then $v = u^2 + 1$, then $\\mathcal{L} = \\ln v$. With
your numbers `mine.a`, `mine.b` and `mine.w`, give five numbers in the list `own_chain`, right to four decimals:
forwards $u$ and $v$, then backwards the slopes of $\\mathcal{L}$ with respect to $v$, to $u$ and to $w$.
""",
    numbers=_chain_numbers,
    expected=lambda a, b, w: [
        *_forwards(a, b, w),
        1 / _forwards(a, b, w)[1],
        2 * _forwards(a, b, w)[0] / _forwards(a, b, w)[1],
        2 * a * _forwards(a, b, w)[0] / _forwards(a, b, w)[1],
    ],
    checks=(values(3, decimals=4),),
    mistakes=(
        Mistake(
            lambda a, b, w: [
                *_forwards(a, b, w),
                1 / _forwards(a, b, w)[1],
                2 * _forwards(a, b, w)[0],
                a,
            ],
            "These are the local slopes. Each has to be multiplied by the slope that arrives from the right.",
        ),
        Mistake(
            lambda a, b, w: [
                *_forwards(a, b, w),
                1 / _forwards(a, b, w)[1],
                2 * _forwards(a, b, w)[0] / _forwards(a, b, w)[1],
                2 * _forwards(a, b, w)[0] / _forwards(a, b, w)[1],
            ],
            "The last step is missing: u moves a times as far as w.",
        ),
        Mistake(
            lambda a, b, w: [
                *_forwards(a, b, w),
                np.log(_forwards(a, b, w)[1]),
                2 * _forwards(a, b, w)[0] * np.log(_forwards(a, b, w)[1]),
                2 * a * _forwards(a, b, w)[0] * np.log(_forwards(a, b, w)[1]),
            ],
            "The third number is the loss itself. Its slope with respect to v is 1/v.",
        ),
        Mistake(
            lambda a, b, w: [
                *_forwards(a, b, w),
                1 / _forwards(a, b, w)[1],
                _forwards(a, b, w)[0] / _forwards(a, b, w)[1],
                a * _forwards(a, b, w)[0] / _forwards(a, b, w)[1],
            ],
            "The slope of u² is 2u: bring the exponent down.",
        ),
    ),
    hints=("dv = 1/v; then du = dv · 2u; then dw = du · a.", "Check the last one by nudging w by a millionth."),
)


def _polynomial(coefficients, x):
    return sum(c * np.asarray(x, float) ** n for n, c in enumerate(coefficients))


def _central(coefficients, x, h):
    if not h > 0:
        raise ValueError(f"the step must be positive, got {h}")
    return (_polynomial(coefficients, x + h) - _polynomial(coefficients, x - h)) / (2 * h)


_refusing = refusing(lambda coefficients, x, h: not h > 0)


def _cut_to_the_type_of_x(coefficients, x, h):
    """Slopes written into an array like x: whole numbers where x has whole numbers."""
    return _central(coefficients, x, h).astype(x.dtype)


def _divided_by_zero(coefficients, x, h):
    with np.errstate(divide="ignore", invalid="ignore"):
        return (_polynomial(coefficients, x + h) - _polynomial(coefficients, x - h)) / (2 * np.float64(h))


@each
def _polynomials(rng, shape):
    return rng.normal(size=rng.integers(4, 7)), rng.normal(size=shape), float(rng.uniform(0.05, 0.5))


CENTRAL = Item(
    id="08.gradients.central_slopes",
    kind="function",
    title="A slope by nudges",
    difficulty=2,
    minutes=10,
    source="The primer (003), chapter VIII; Foundations (001), section 4.4",
    answer="central_slopes",
    masked=(*BY_MACHINE, "secant_slope"),
    task="""
A polynomial $p(x) = c_0 + c_1 x + c_2 x^2 + \\dots$ is given by the array of its coefficients. Write
`central_slopes(coefficients, x, h)`: the **central difference** of $p$ with step `h` at every entry of the array `x`.

- Not the exact derivative: with a large step the bend has to show.
- A step that is not positive is refused with `ValueError`.
- `x` may hold whole numbers.
""",
    expected=_central,
    checks=(
        values(
            3,
            _polynomials(1, 4, (2, 3)),
            public=[(np.array([0.0, 0, 0, 1]), np.array([2.0]), 0.1), (np.array([1.0, 2, 3]), np.array([0.0, 1]), 0.5)],
            rtol=1e-8,
            atol=1e-9,
        ),
        values(1, public=[(np.array([0, 0, 0, 1]), np.array([2, 1, -1]), 0.25)], name="whole numbers", rtol=1e-8),
        leaves_inputs(1, _polynomials(5)),
        refuses(1, public=[(np.ones(3), np.ones(2), 0.0), (np.ones(3), np.ones(2), -0.1)], name="refuses h ≤ 0"),
    ),
    mistakes=(
        Mistake(
            _refusing(lambda c, x, h: (_polynomial(c, x + h) - _polynomial(c, x)) / h),
            "This steps to one side only. The central difference steps to both.",
            score=1,
        ),
        Mistake(
            _refusing(lambda c, x, h: (_polynomial(c, x + h) - _polynomial(c, x - h)) / h),
            "The two points are 2h apart: divide by 2h.",
            score=1,
        ),
        Mistake(
            _refusing(lambda c, x, h: _polynomial([n * b for n, b in enumerate(c)][1:], x)),
            "This is the exact derivative. Asked for is what a step of size h measures.",
            score=1,
        ),
        Mistake(
            lambda c, x, h: (_polynomial(c, x + h) - _polynomial(c, x - h)) / (2 * h) if h else np.zeros(np.shape(x)),
            "A step of zero makes no line, and was not refused. Raise ValueError unless h > 0.",
            score=5,
        ),
        Mistake(
            _refusing(lambda c, x, h: (_polynomial(c[::-1], x + h) - _polynomial(c[::-1], x - h)) / (2 * h)),
            "The coefficients are read in the wrong order: the first belongs to x⁰.",
            score=1,
        ),
        Mistake(
            _refusing(lambda c, x, h: (_polynomial(c, x + h) - _polynomial(c, x - h)) / 2 * h),
            "`/ 2 * h` divides by 2 and multiplies by h. Write `/ (2 * h)`.",
            score=1,
        ),
        Mistake(
            _refusing(lambda c, x, h: (_polynomial(c, x) - _polynomial(c, x - h)) / h),
            "This steps to the left only. The central difference steps to both sides.",
            score=1,
        ),
        Mistake(
            _refusing(lambda c, x, h: (_polynomial(c, x + h / 2) - _polynomial(c, x - h / 2)) / h),
            "You went half a step to each side. The step is h to the right and h to the left.",
            score=1,
        ),
        Mistake(
            _refusing(lambda c, x, h: _central([0, *c], x, h)),
            "The powers begin with x¹ in your polynomial. The first coefficient belongs to x⁰.",
            score=1,
        ),
        Mistake(
            _cut_to_the_type_of_x,
            "The slopes were written into an array of whole numbers, which cuts them. `np.zeros_like(x, dtype=float)`.",
            score=5,
        ),
        Mistake(
            _divided_by_zero,
            "A step of zero gives 0/0, and a negative one is taken. Raise ValueError unless h > 0.",
            score=5,
        ),
    ),
    hints=(
        "Write a small function p(x) first: Σ cₙ xⁿ.",
        "[p(x + h) − p(x − h)] / 2h; NumPy does it for all entries of x at once.",
    ),
)


def _layer_jacobian(W, x):
    return W.T * (x @ W > 0)[:, None]


LAYER_JACOBIAN = Item(
    id="08.gradients.layer_jacobian",
    kind="function",
    title="The table of a layer",
    difficulty=2,
    minutes=10,
    source="Foundations (001), sections 3.1.1 and 4.2.1",
    answer="layer_jacobian",
    masked=BY_MACHINE,
    task="""
A layer computes $f(x) = \\operatorname{relu}(xW)$, with $x$ of shape `(n,)` and $W$ of shape `(n, m)`. Write
`layer_jacobian(W, x)`: its Jacobian at $x$, of shape `(m, n)`, from the formulas (no nudges). At 0 the slope of ReLU
counts as 0.
""",
    expected=_layer_jacobian,
    checks=(
        values(
            3,
            normals([(3, 4), 3], [(2, 5), 2], [(1, 1), 1]),
            public=[(np.array([[1.0, -1], [2, 0]]), np.array([1.0, 1]))],
        ),
        values(1, normals([(3, 3), 3], [(4, 4), 4]), name="square weights"),
        values(1, public=[(np.array([[1.0, 4], [1, 2]]), np.array([1.0, -1.0]))], name="a unit at exactly 0"),
    ),
    mistakes=(
        Mistake(lambda W, x: W.T, "This is the Jacobian of xW. ReLU stops the slopes of the units that are off."),
        Mistake(lambda W, x: W * (x @ W > 0), "Rows are outputs, columns are inputs: this is the transpose.", score=0),
        Mistake(
            lambda W, x: W.T * np.maximum(x @ W, 0)[:, None],
            "You multiplied by the value of ReLU. Multiply by its slope, 0 or 1.",
        ),
        Mistake(
            lambda W, x: W.T * (x @ W >= 0)[:, None],
            "At exactly 0 the slope of ReLU counts as 0: the sign must be >, not ≥.",
            score=4,
        ),
        Mistake(
            lambda W, x: W.T * (x @ W > 0),
            "The slopes of the units run along the columns. Unit i belongs to row i: `on[:, None]`.",
        ),
        Mistake(
            lambda W, x: W.T * (x > 0),
            "You asked for the sign of x. ReLU sees xW: a unit is on where `x @ W > 0`.",
        ),
        Mistake(
            lambda W, x: _layer_jacobian(W, x) * x,
            "x does not belong into the table: the slope of Σ xⱼ Wⱼᵢ in xⱼ is Wⱼᵢ alone.",
        ),
        Mistake(lambda W, x: np.maximum(W.T, 0), "You applied ReLU to the weights. Its slope depends on xW."),
    ),
    hints=(
        "The Jacobian of xW is the transpose of W.",
        "Chain rule: the Jacobian of ReLU is diagonal, so row i of Wᵀ is multiplied by the slope of unit i.",
    ),
    references=("foundations.act.relu_grad", "pillars.relu.grad"),
)


def _gelu_slope(x):
    x = np.asarray(x, float)
    return 0.5 * (1 + ml.erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _share_below(x):
    return 0.5 * (1 + ml.erf(np.asarray(x, float) / math.sqrt(2)))


def _bell(x):
    return np.exp(-np.square(np.asarray(x, float)) / 2) / math.sqrt(2 * math.pi)


REPAIR_GELU = Item(
    id="08.gradients.repair_gelu",
    kind="repair",
    title="Mend it: half a product rule",
    difficulty=2,
    minutes=8,
    source="Foundations (001), section 4.2.1",
    answer="gelu_slope",
    masked=(*BY_MACHINE, "gelu"),
    task="""
GELU is $x\\,\\Phi(x)$, where $\\Phi(x) = \\tfrac12(1 + \\operatorname{erf}(x/\\sqrt2))$. Its slope was coded like this,
and the gradient check complained:

```python
def gelu_slope(x):
    return 0.5 * (1 + ml.erf(x / np.sqrt(2)))
```

Mend it. Arrays of any shape; values of ±100 must give numbers.
""",
    expected=_gelu_slope,
    checks=(
        values(3, normals(5, (2, 3)), public=[(np.array([-1.0, 0, 1, 2]),)], rtol=1e-7),
        values(1, public=[(np.array([-100.0, 100.0]),)], name="far out"),
    ),
    mistakes=(
        Mistake(_share_below, "Still as printed: both factors of xΦ(x) move. Add x times the slope of Φ.", score=1),
        Mistake(
            lambda x: _share_below(x) + _bell(x), "The slope of Φ must be multiplied by x: (xΦ)′ = Φ + xΦ′.", score=1
        ),
        Mistake(
            lambda x: _share_below(x) + np.asarray(x) * 2 / np.sqrt(np.pi) * np.exp(-np.square(x) / 2),
            "Φ contains ½ erf(x/√2): the factors ½ and 1/√2 join the slope of erf.",
            score=1,
        ),
        Mistake(
            lambda x: np.asarray(x) * _bell(x), "This is the other half: Φ(x) itself belongs to the slope.", score=0
        ),
        Mistake(lambda x: _share_below(x) - np.asarray(x) * _bell(x), "A sign: the two halves add up.", score=1),
        Mistake(
            lambda x: _share_below(x) + np.asarray(x) * np.exp(-np.square(x) / 2),
            "The bell curve has an area of 1: divide by √(2π).",
            score=1,
        ),
        Mistake(
            lambda x: _share_below(x) + np.asarray(x) * np.exp(-np.square(x) / 2) / np.sqrt(np.pi),
            "The inner slope is missing: in erf(x/√2) the factor 1/√2 comes out.",
            score=1,
        ),
        Mistake(
            lambda x: _share_below(x) + np.asarray(x) * np.exp(-np.square(np.asarray(x, float))) / np.sqrt(2 * np.pi),
            "In erf′(x/√2) the exponent is −(x/√2)², which is −x²/2.",
            score=1,
        ),
    ),
    hints=("(fg)′ = f′g + fg′ with f = x and g = Φ.", "Φ′(x) = e^(−x²/2)/√(2π), the bell curve."),
    references=("foundations.act.gelu",),
)


def _by_signs(numbers):
    """What the signs of these numbers say, where they are the right numbers."""
    if np.all(numbers > 1e-6):
        return "minimum"
    if np.all(numbers < -1e-6):
        return "maximum"
    return "saddle point" if np.any(numbers > 1e-6) and np.any(numbers < -1e-6) else "undecided"


def _kind(gradient, hessian):
    """The right answer."""
    level = np.abs(gradient).max() <= 1e-6
    return _by_signs(np.linalg.eigvalsh(hessian)) if level else "not a critical point"


def _if_level(rule):
    def function(gradient, hessian):
        return rule(hessian) if np.abs(gradient).max() <= 1e-6 else "not a critical point"

    return function


def _turned_kind(gradient, hessian):
    turned = {"minimum": "maximum", "maximum": "minimum"}
    kind = _kind(gradient, hessian)
    return turned.get(kind, kind)


def _pass_first(gradient, hessian):
    kind = _by_signs(np.linalg.eigvalsh(hessian))
    return kind if kind == "saddle point" else _kind(gradient, hessian)


def _exactly(gradient, hessian):
    """Kinds without any tolerance for eigenvalues."""
    curvatures = np.linalg.eigvalsh(hessian)
    up, down = np.any(curvatures > 0), np.any(curvatures < 0)
    if np.abs(gradient).max() > 1e-6:
        return "not a critical point"
    return "saddle point" if up and down else _kind(gradient, hessian)


def _hessian(rng, eigenvalues):
    directions = np.linalg.qr(rng.normal(size=(len(eigenvalues), len(eigenvalues))))[0]
    H = directions @ np.diag(eigenvalues) @ directions.T
    return (H + H.T) / 2


def _level_ground(rng):
    kinds = [(1.0, 2.0, 3.0), (-1.0, -0.5), (2.0, -1.0, 3.0), (0.1, 4.0), (3.0, 1.0, -0.1), (-1.0, -2.0, -3.0)]
    return [(np.zeros(len(k)), _hessian(rng, k)) for k in kinds]


def _slopes_too(rng):
    return [(rng.normal(size=len(k)), _hessian(rng, k)) for k in [(1.0, 2.0), (-1.0, -2.0, -3.0), (1.0, -1.0)]]


REPAIR_KIND = Item(
    id="08.gradients.repair_kind",
    kind="repair",
    title="Mend it: a minimum on every slope",
    difficulty=2,
    minutes=10,
    source="Foundations (001), section 3.1.1",
    answer="kind_of_place",
    masked=("classify_critical_point",),
    task="""
One source says that a positive definite Hessian implies a local minimum. Somebody coded that, with the entries on the
diagonal:

```python
def kind_of_place(gradient, hessian):
    curvatures = np.diag(hessian)
    if np.all(curvatures > 0):
        return "minimum"
    if np.all(curvatures < 0):
        return "maximum"
    return "saddle point"
```

So $e^x$ has a minimum everywhere, and $x^2 + 3xy + y^2$ has one at the origin. Mend it. It returns one of

- `"not a critical point"` if an entry of the gradient is larger than $10^{-6}$ in size;
- `"minimum"`, `"maximum"` or `"saddle point"` by the **eigenvalues** of the Hessian (`np.linalg.eigvalsh`);
- `"undecided"` if some eigenvalues are zero (below $10^{-6}$ in size) and the others, if any, have one sign.
""",
    expected=_kind,
    checks=(
        values(
            3,
            _level_ground,
            public=[
                (np.zeros(2), np.array([[2.0, 3.0], [3.0, 2.0]])),
                (np.array([1e-9, 0.0]), np.diag([1.0, 2.0])),  # zero, but for a rounding error
            ],
            name="level ground",
        ),
        values(
            1,
            _slopes_too,
            public=[
                (np.array([1.0]), np.array([[1.0]])),
                (np.array([0.0, 1.0]), np.diag([1.0, 2.0])),
                (np.array([1.0, 2.0]), np.diag([1.0, -2.0])),
                (np.array([-1.0, -2.0]), np.diag([1.0, 2.0])),
            ],
            name="not level",
        ),
        values(
            1,
            public=[
                (np.zeros(2), np.diag([2.0, 0.0])),
                (np.zeros(2), np.diag([0.0, -1.0])),
                (np.zeros(2), np.diag([2.0, -1e-9])),
                (np.zeros(1), np.zeros((1, 1))),
            ],
            name="a flat direction",
        ),
    ),
    mistakes=(
        Mistake(
            lambda gradient, hessian: _by_signs(np.linalg.eigvalsh(hessian)),
            "Where the gradient is not zero there is nothing to classify: test that first.",
            score=4,
        ),
        Mistake(
            _if_level(lambda H: _by_signs(np.diag(H))),
            "The diagonal tells the curvature along the axes only. A pass may run between them: use the eigenvalues.",
            score=2,
        ),
        Mistake(
            _if_level(lambda H: "minimum" if np.linalg.eigvalsh(H)[0] >= -1e-9 else _by_signs(np.linalg.eigvalsh(H))),
            "A direction without curvature decides nothing: x² as a function of x and y has a whole line of lowest "
            "points, and x² − y⁴ goes down there.",
            score=4,
        ),
        Mistake(
            _if_level(
                lambda H: "saddle point" if np.linalg.det(H) < 0 else "minimum" if np.trace(H) > 0 else "maximum"
            ),
            "The sign of the determinant decides for two variables only: look at each eigenvalue.",
            score=1,
        ),
        Mistake(
            lambda gradient, hessian: _if_level(lambda H: _by_signs(np.linalg.eigvalsh(H)))(
                np.where(gradient == 0, 0, 1), hessian
            ),
            "A measured gradient is hardly ever 0 to the last digit. Ask whether an entry is larger than 10⁻⁶ in size.",
            score=2,
        ),
        Mistake(
            lambda gradient, hessian: _kind(gradient if np.abs(gradient).min() > 1e-6 else 0 * gradient, hessian),
            "One entry that is not zero is enough: the ground is level only where all are.",
            score=4,
        ),
        Mistake(
            lambda gradient, hessian: _kind(np.maximum(gradient, 0), hessian),
            "Negative entries of the gradient are slopes, too: `np.abs(gradient)`.",
            score=4,
        ),
        Mistake(
            _exactly,
            "A computed eigenvalue of 0 comes out as ±10⁻¹⁶ or so, and its sign means nothing: below 10⁻⁶ it is 0.",
            score=4,
        ),
        Mistake(
            _if_level(lambda H: kind if (kind := _by_signs(np.linalg.eigvalsh(H))) != "undecided" else "saddle point"),
            "A saddle point needs both signs. With a zero among eigenvalues of one sign nothing is decided.",
            score=4,
        ),
        Mistake(
            _pass_first,
            "On a slope there is no saddle point either: test the gradient before the eigenvalues.",
            score=4,
        ),
        Mistake(_turned_kind, "Minimum and maximum are swapped: positive curvature bends up, like a valley.", score=2),
    ),
    hints=(
        "First: `np.abs(gradient).max() > 1e-6`.",
        "`np.linalg.eigvalsh(hessian)` gives the eigenvalues in order of size.",
        "Both signs: saddle point. All one sign: minimum or maximum. Else: undecided.",
    ),
)


def _pullback(gate, value, dy):
    s = ml.sigmoid(gate)
    return dy * value * (s + gate * s * (1 - s)), dy * gate * s


@each
def _gates(rng, shape, scale=1.0):
    return scale * rng.normal(size=shape), rng.normal(size=shape), rng.normal(size=shape)


def _naive_pullback(gate, value, dy):
    with np.errstate(over="ignore", invalid="ignore"):
        s = np.exp(gate) / (1 + np.exp(gate))
        return dy * value * (s + gate * s * (1 - s)), dy * gate * s


SWIGLU_PULLBACK = Item(
    id="08.gradients.swiglu_pullback",
    kind="gradient",
    title="Back through a gate",
    difficulty=2,
    minutes=12,
    source="Putting It Together (000), step 3; Foundations (001), section 4.2.1",
    answer="swiglu_pullback",
    masked=(*BY_MACHINE, "swiglu", "silu"),
    task="""
A gated layer computes $y = \\operatorname{silu}(g) \\odot v$, where $\\operatorname{silu}(g) = g\\,\\sigma(g)$. The
slopes `dy` of a loss with respect to $y$ arrive. Derive those with respect to $g$ and $v$, and write
`swiglu_pullback(g, v, dy)`, which returns the tuple `(dg, dv)`. All arrays have one shape. (`ml.sigmoid` may be used.)
""",
    expected=_pullback,
    checks=(
        gradient(3, ml.gradients.swiglu, _gates(4, (2, 3)), wrt=(0, 1)),
        values(1, public=[(np.array([1.0, 0.0]), np.array([2.0, 3.0]), np.array([1.0, 1.0]))], name="by hand"),
        values(
            1,
            _gates(3, scale=300.0),
            public=[(np.array([-1e4, 0.5, 1e4]), 2 * np.ones(3), 3 * np.ones(3))],
            name="wide gates",
        ),
    ),
    mistakes=(
        Mistake(lambda g, v, dy: _pullback(g, v, dy)[::-1], "The two are swapped: return (dg, dv).", score=0),
        Mistake(
            lambda g, v, dy: (dy * v * ml.sigmoid(g), dy * g * ml.sigmoid(g)),
            "Half of the product rule: in g σ(g) both factors move, so silu′ = σ + g σ(1 − σ).",
            score=0,
        ),
        Mistake(
            lambda g, v, dy: (_pullback(g, v, dy)[0] / np.where(v == 0, 1, v), _pullback(g, v, dy)[1]),
            "dg lacks the factor v: the gate's influence is as large as what it lets through.",
            score=0,
        ),
        Mistake(
            lambda g, v, dy: _pullback(g, v, np.ones_like(dy)),
            "The slopes dy that arrive are not used: multiply by them.",
            score=1,
        ),
        Mistake(
            lambda g, v, dy: (_pullback(g, v, dy)[0], dy * g),
            "dv lacks the sigmoid: what multiplies v is silu(g), not g.",
        ),
        Mistake(
            lambda g, v, dy: (_pullback(g, v, dy)[0], dy * v),
            "The slope of silu(g) ⊙ v in v is silu(g), not v.",
        ),
        Mistake(
            lambda g, v, dy: (dy * v * ml.sigmoid(g) * (1 - ml.sigmoid(g)), _pullback(g, v, dy)[1]),
            "σ(1 − σ) is the slope of the sigmoid. silu is g σ(g), a product: both factors move.",
        ),
        Mistake(
            _naive_pullback,
            "e^g overflows for wide gates. Take `ml.sigmoid`, or an exponential that is never above 1.",
            score=4,
        ),
    ),
    hints=(
        "y is a product: dv = dy ⊙ silu(g), and dg = dy ⊙ v ⊙ silu′(g).",
        "silu′(g) by the product rule; σ′ = σ(1 − σ) from chapter 6.",
    ),
    references=("foundations.act.swiglu",),
)

# Derivation ---------------------------------------------------------------------------------------------------------

STEEPEST_PROOF = Item(
    id="08.gradients.steepest_proof",
    kind="text",
    title="Why uphill is the gradient",
    difficulty=3,
    minutes=20,
    source="The primer (003), chapter VIII; Foundations (001), section 3.1",
    task="""
Let $f$ be smooth, with $\\nabla f \\ne 0$ at the place $x$, so that $f(x + u) - f(x) = \\nabla f\\cdot u$ plus
something of the order $\\lVert u\\rVert^2$. Prove:

1. Among all steps $u$ of one small length $\\lVert u\\rVert = r$, the one along $\\nabla f$ raises $f$ most, to first
   order by $r\\lVert\\nabla f\\rVert$.
2. The gradient is perpendicular to the contour line through $x$.
3. If $f$ has a minimum at $x$, then $\\nabla f = 0$ there. And: give a function with $\\nabla f = 0$ at a place that is
   neither minimum nor maximum.
4. For $\\mathcal{L} = f(g(h(w)))$ the slope $d\\mathcal{L}/dw$ is 0 as soon as *one* of the three local slopes is 0.
   Why? What does this say about a ReLU unit that is off for every example?
""",
    rubric=(
        (1, "1: ∇f·u = ‖∇f‖ r cos θ (or Cauchy–Schwarz), and cos θ is largest, 1, for u along ∇f."),
        (1, "2: along the contour line f does not change, so ∇f·u = 0 for u along it: a right angle."),
        (1, "3: otherwise a small step against ∇f would lower f (rises by −r‖∇f‖ to first order): contradiction."),
        (1, "3: an example such as x³, x² − y² or xy at the origin."),
        (1, "4: a product with a factor 0; the unit's weights get no gradient and stay: it is dead."),
    ),
    hints=(
        "Chapter 2: a·b = ‖a‖ ‖b‖ cos θ.",
        "For 3: suppose ∇f ≠ 0, and take a small step against it.",
    ),
)

# Project ------------------------------------------------------------------------------------------------------------


def _loss(W, x, y):
    return float(np.sum((ml.gelu(x @ W) - y) ** 2))


def _true_slopes(W, x, y):
    W = np.asarray(W, float)
    before = x @ W
    return x.T @ (2 * (ml.gelu(before) - y) * _gelu_slope(before))


def _suspects(W, x, y, claimed):
    right = _true_slopes(W, x, y)
    return np.abs(claimed - right) > 1e-3 * np.abs(right).max()


@each
def _claims(rng, shape, whole=False, height=1.0, down=False):
    batch, n, m = shape
    W, x, y = rng.normal(size=(n, m)), rng.normal(size=(batch, n)), height * rng.normal(size=(batch, m))
    if down:  # no slope is above zero
        W, x, y = np.abs(W), np.abs(x), height + np.abs(y)
    if whole:
        W = rng.integers(-2, 3, size=(n, m))
    x[:, 0] = 0.0  # a feature that never occurs: its true slopes are zero
    right = _true_slopes(W, x, y)
    size = np.abs(right).max()
    claimed = right + 1e-6 * size * rng.choice([-1, 1], size=(n, m))
    wrong = rng.permutation((n - 1) * m)[: 2 + (n - 1) * m // 3]  # one is far too large, the others are off both ways
    claimed[1:].flat[wrong] += size * np.array([100.0, *0.05 * (-1.0) ** np.arange(1, wrong.size)])
    return W, x, y, claimed


def _measured(W, x, y, h=1e-5, as_given=False):
    slopes = np.zeros(W.shape)
    for i in np.ndindex(W.shape):
        right, left = (W.copy() if as_given else W.astype(float) for _ in range(2))
        right[i] = right[i] + h
        left[i] = left[i] - h
        slopes[i] = (_loss(right, x, y) - _loss(left, x, y)) / (2 * h)
    return slopes


def _judged(measure, by_entry=False):
    def function(W, x, y, claimed):
        right = measure(W, x, y)
        size = np.abs(right) if by_entry else np.abs(right).max()
        return np.abs(claimed - right) > 1e-3 * size

    return function


def _moves_weights(W, x, y, claimed):
    verdict = _suspects(W, x, y, claimed)
    W[(0,) * W.ndim] += 1
    return verdict


SUSPECTS = Item(
    id="08.gradients.suspects",
    kind="function",
    title="Catch the wrong slopes",
    difficulty=3,
    minutes=30,
    source="ours; Foundations (001), section 4.4",
    answer="suspects",
    masked=BY_MACHINE,
    task="""
A colleague hands you a gradient and says that it is right. The loss is

$$\\mathcal{L}(W) = \\sum \\bigl(\\operatorname{gelu}(xW) - y\\bigr)^2 ,$$

summed over all entries, with `x` of shape `(B, n)`, `W` of shape `(n, m)` and `y` of shape `(B, m)`. Write
`suspects(W, x, y, claimed)`: a boolean array of the shape of `W`, `True` where the claimed slope differs from the right
one by more than a thousandth of the **largest** right slope (in size).

- Measure or derive, as you like; `ml.gelu` may be used.
- True slopes of exactly 0 occur; rounding errors of a millionth of the largest slope are no reason for suspicion.
- `W` may hold whole numbers, and must be left as it was.
""",
    expected=_suspects,
    checks=(
        values(2, _claims((4, 3, 2), (1, 2, 5), (6, 4, 4)), name="finds the wrong slopes, and no others"),
        values(
            1,
            lambda rng: [case for down in (False, True) for case in _claims((3, 4, 3), height=1e4, down=down)(rng)],
            name="steep ground",
        ),
        values(1, _claims((5, 3, 3), whole=True), name="weights that are whole numbers"),
        leaves_inputs(1, _claims((4, 4, 3))),
    ),
    mistakes=(
        Mistake(
            _judged(_measured, by_entry=True),
            "You compared each entry with its own size. A slope of 0 has no size: compare with the largest slope.",
        ),
        Mistake(
            _judged(lambda W, x, y: _measured(W, x, y, as_given=True)),
            "An array of whole numbers does not feel a small nudge: copy it as float64 first.",
            score=4,
        ),
        Mistake(_moves_weights, "The caller's weights were changed. Nudge a copy.", score=4),
        Mistake(
            lambda W, x, y, claimed: ~_suspects(W, x, y, claimed),
            "This marks the slopes that are right. Mark the wrong ones.",
        ),
        Mistake(
            lambda W, x, y, claimed: claimed - _true_slopes(W, x, y) > 1e-3 * np.abs(_true_slopes(W, x, y)).max(),
            "Slopes that are too small are not found: take the size of the difference, `np.abs`.",
        ),
        Mistake(
            lambda W, x, y, claimed: np.abs(claimed - _true_slopes(W, x, y)) > 1e-3 * np.abs(claimed).max(),
            "You compared with the largest claimed slope, which may be wrong. Compare with the largest right one.",
        ),
        Mistake(
            lambda W, x, y, claimed: ~np.isclose(claimed, _true_slopes(W, x, y)),
            "`np.isclose` has tolerances of its own, far below a thousandth of the largest slope.",
        ),
        Mistake(
            _judged(lambda W, x, y: _true_slopes(W, x, y) / 2),
            "Right slopes are marked, too: yours are off. A forgotten factor does that, such as the 2 of the square, "
            "and so does too large a step (take about 10⁻⁵, to both sides).",
        ),
        Mistake(
            lambda W, x, y, claimed: np.abs(claimed - _true_slopes(W, x, y)) > 1e-3 * _true_slopes(W, x, y).max(),
            "The largest slope in size may be a negative one: `np.abs(right).max()`.",
            score=4,
        ),
        Mistake(
            lambda W, x, y, claimed: np.abs(claimed - _true_slopes(W, x, y)) > 1e-3,
            "A thousandth is not the measure: slopes may be in the thousands. Compare with the largest of them.",
            score=4,
        ),
    ),
    hints=(
        "Copy W as float64, nudge one entry by ±10⁻⁵, take the central difference of the loss.",
        "Or derive: with a = xW, the slopes are xᵀ (2 (gelu(a) − y) ⊙ gelu′(a)).",
        "`np.abs(claimed - right) > 1e-3 * np.abs(right).max()`",
    ),
)

# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------


QUICK = [
    quick(
        "08.gradients.quick_example",
        "Two slopes",
        "The primer (003), chapter VIII, example 8",
        "What is the gradient of x² + 3xy at (2, 1)?",
        lambda: [7, 6],
        (
            Mistake(lambda: [4, 6], "Hold y still: the term 3xy has the slope 3y in x."),
            Mistake(lambda: [6, 7], "The slope in x comes first."),
            Mistake(lambda: [7, 3], "The slope of 3xy in y is 3x: x stays, and is 2 here."),
            Mistake(lambda: 10, "This is the value of the function. The gradient has two components."),
        ),
    ),
    quick(
        "08.gradients.quick_power",
        "A power",
        "after the primer (003), chapter VIII, exercise 17",
        "What is the slope of 5x⁴ at x = 1?",
        lambda: 20,
        (
            Mistake(lambda: 5, "This is the value. Bring the exponent down: 5 · 4 x³."),
            Mistake(lambda: 4, "The factor 5 stays in front."),
        ),
    ),
    quick(
        "08.gradients.quick_chain",
        "Two steps",
        "Foundations (001), section 3.1.2",
        "L = v² and v = 3w. What is dL/dw at w = 1?",
        lambda: 18,
        (
            Mistake(lambda: 6, "This is dL/dv = 2v. v moves three times as far as w."),
            Mistake(lambda: 9, "This is the value of L."),
            Mistake(lambda: 3, "This is dv/dw. Multiply by dL/dv = 2v."),
        ),
    ),
    quick(
        "08.gradients.quick_shape",
        "A table of slopes",
        "Foundations (001), section 3.1.1",
        "f takes 768 numbers and returns 3,072. What is the shape of its Jacobian?",
        lambda: (3072, 768),
        (
            Mistake(lambda: (768, 3072), "One row for each output, one column for each input."),
            Mistake(lambda: 3072 * 768, "So many entries it has. Its shape is a pair (rows, columns)."),
        ),
    ),
    quick(
        "08.gradients.quick_saddle",
        "Five and a little",
        "Foundations (001), section 3.1.1",
        "The gradient is 0, the eigenvalues of the Hessian are 5 and −0.1. What is the place?",
        lambda: "saddle point",
        (
            Mistake(lambda: "minimum", "Along the second eigenvector it goes down, if slowly."),
            Mistake(lambda: "maximum", "Along the first eigenvector it goes up."),
            Mistake(lambda: "saddle", 'The word is right; write "saddle point", as the package does.'),
        ),
    ),
]

ITEMS = [
    CUBE_SLOPE,
    GRADIENT_BY_HAND,
    OWN_GRADIENT,
    OWN_CHAIN,
    CENTRAL,
    LAYER_JACOBIAN,
    REPAIR_GELU,
    REPAIR_KIND,
    SWIGLU_PULLBACK,
    STEEPEST_PROOF,
    SUSPECTS,
    *QUICK,
]
