"""Chapter 11, backpropagation: a step of training by hand, two mended listings, two pullbacks, a tape of one's own."""

import ast
import math

import numpy as np

from mathllm.exhibits import backpropagation as exhibits

from ..cases import each
from ..expressions import parse, same
from . import checks, draws

STEP = exhibits.trace_network()  # the network of document 004


def _updated(rate):
    after = exhibits.trace_network(learning_rate=rate)
    return [*after.W2[0], after.b2[0], *after.W1.ravel(), *after.b1, after.prediction_after]


@draws("11.backpropagation.own_gradients")
def _own_network(rng):
    """One input, two hidden units of which exactly one is on, a truth of 0 or 1.

    No h and no v is 1, so that no factor can be left out unseen.
    """
    on, off = rng.integers(3, 7, size=2) / 2  # no weight is one of v's
    v = rng.choice([-1, 1], size=2) * rng.integers(1, 4, size=2) / 4
    return {"x": float(rng.choice([0.6, 1.5, 2.0])), "w": np.array([on, -off]), "v": v, "y": int(rng.integers(2))}


@draws("11.backpropagation.own_cost")
def _own_sizes(rng):
    return {"sizes": rng.choice([8, 16, 24, 32, 48, 64], size=4, replace=False).tolist()}


def _listing(rng, sizes=((3, 5, 4), (3, 5, 4, 2))):
    """Layers in the document's layout, (W (m, n), b (m, 1)), and inputs (n, B)."""
    drawn = []
    for size in sizes:
        layers, x, _ = exhibits.listing_problem(size, rng, batch_size=5)
        drawn.append((x, layers))
    return drawn


# three layers of one unit: of the two hidden units the second is off
OFF_ONCE = [(np.array([[w]]), np.array([[b]])) for w, b in ((2.0, 1.0), (-1.0, 0.0), (1.0, -1.0))]


@checks("11.backpropagation.repair_forward")
def _(c):
    c.values(2, _listing, public=[(np.ones((1, 1)), OFF_ONCE)], name="two and three layers")
    c.values(1, lambda rng: _listing(rng, [(3, 5)]), name="a single layer")
    c.values(
        1,
        public=[(np.ones((1, 1)), [(np.array([[-2.0]]), np.zeros((1, 1))), (np.ones((1, 1)), -np.ones((1, 1)))])],
        name="a unit that is off",
    )


def _passes(rng, sizes=((3, 5, 4), (2, 3, 3, 1), (3, 3, 3))):  # in the last one no shape gives a slip away
    """Slopes of the loss, activations, pre-activations and layers, as the backward pass gets them."""
    drawn = []
    for size in sizes:
        layers, x, target = exhibits.listing_problem(size, rng, batch_size=6)
        activations, pre_activations = exhibits.listing_forward_fixed(x, layers)
        drawn.append((activations[-1] - target, activations, pre_activations, layers))
    return drawn


@checks("11.backpropagation.repair_backward", expected=exhibits.listing_backward_fixed)
def _(c):
    c.values(1, lambda rng: _passes(rng, [(3, 4)]), name="a single layer")
    c.values(3, _passes, name="two and three layers")


def _two_layers(rng, sizes=((1, 2, 3, 1), (5, 4, 6, 3))):
    drawn = []
    for B, n, h, m in sizes:
        drawn.append(tuple(rng.normal(size=s) for s in [(B, n), (n, h), (h,), (h, m), (m,), (B, m)]))
    return drawn


@checks("11.backpropagation.two_layer_gradients")
def _(c):
    c.values(
        2,
        public=[
            (
                np.array([[1.0, 0.5]]),
                np.array([[0.15, 0.25], [0.20, 0.30]]),
                np.array([0.35, 0.35]),
                np.array([[0.40], [0.45]]),
                np.array([0.60]),
                np.array([[STEP.delta2]]),
            )
        ],
        name="the network of document 004",
    )
    c.values(3, lambda rng: _two_layers(rng, [(5, 4, 6, 3), (8, 3, 7, 2), (6, 4, 8, 3)]), name="batches")


@each
def _bowls(rng, n):
    return rng.normal(size=n), float(rng.uniform(0.05, 0.2)), 6


@checks("11.backpropagation.repair_zeroing")
def _(c):
    c.values(2, _bowls(1, 3), public=[(np.array([1.0]), 0.1, 4)], name="the path")


@each
def _norm_rows(rng, s):
    """x, gain, and slopes for a layer norm with epsilon 10⁻⁵."""
    return rng.normal(size=s) * 2, rng.normal(size=s[-1:]), rng.normal(size=s)


def _layer_norm(x, gain):
    s = 1 / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return gain * (x - x.mean(axis=-1, keepdims=True)) * s


@checks("11.backpropagation.layer_norm_pullback")
def _(c):
    x, dy = np.array([0.5, -1.2, 2.0, 0.3]), np.array([0.7, -0.3, 0.9, 0.4])
    small, gain = x / 100, np.array([1.5, 0.5, 1.0, 2.0])  # so small that 10⁻⁵ counts
    pair = np.array([small, small[::-1]]), gain, np.array([dy, dy])
    c.gradient(2, _layer_norm, _norm_rows((5,), (3,)), public=[(small, gain, dy)], name="one vector")
    c.gradient(2, _layer_norm, _norm_rows((3, 4), (2, 2, 3)), public=[pair], name="a stack of vectors")
    equal = np.full(4, 1.5)
    c.gradient(1, _layer_norm, public=[(x, equal, dy), (small, equal, dy)], name="a gain with equal entries")


OPERATIONS = {
    "add": (lambda a, b: a + b, lambda a, b: (1.0, 1.0)),
    "mul": (lambda a, b: a * b, lambda a, b: (b, a)),
    "relu": (lambda a: max(a, 0.0), lambda a: (float(a > 0),)),
    "exp": (math.exp, lambda a: (math.exp(a),)),
    "log": (math.log, lambda a: (1 / a,)),
    "tanh": (math.tanh, lambda a: (1 - math.tanh(a) ** 2,)),
}


def _random_tapes(rng):
    """Programs of random operations on inputs that keep exp and log in range."""
    drawn = []
    for length in (4, 8, 12):
        inputs = rng.uniform(0.5, 1.5, size=3)
        tape, numbers = [], list(inputs)
        while len(tape) < length:
            name = str(rng.choice(["add", "mul", "relu", "tanh", "exp", "log"]))
            places = [int(p) for p in rng.integers(len(numbers), size=2 if name in ("add", "mul") else 1)]
            if len(tape) >= length - 2:
                name, places = "add", [len(numbers) - 1, int(rng.integers(3))]  # the last ones use an input again
            result_of = [numbers[p] for p in places]
            if (name == "log" and not 0.1 < result_of[0] < 50) or (name == "exp" and abs(result_of[0]) > 3):
                continue
            result = OPERATIONS[name][0](*result_of)
            if abs(result) < 100:
                tape.append((name, *places))
                numbers.append(result)
        drawn.append((inputs, tape))
    return drawn


EVERY_OPERATION = [
    ("tanh", 0), ("exp", 1), ("log", 1), ("relu", 2), ("mul", 3, 4), ("add", 7, 5), ("mul", 8, 0), ("add", 9, 6),
    ("mul", 10, 2),
]  # fmt: skip


DOUBLINGS = [("add", n, n) for n in range(60)]
SCORE = [  # the network of document 004: inputs x1, x2, then wA1, wA2, bA, wB1, wB2, bB, vA, vB, c, and −1
    ("mul", 0, 2), ("mul", 1, 3), ("add", 12, 13), ("add", 14, 4), ("relu", 15),
    ("mul", 0, 5), ("mul", 1, 6), ("add", 17, 18), ("add", 19, 7), ("relu", 20),
    ("mul", 16, 8), ("mul", 21, 9), ("add", 22, 23), ("add", 24, 10), ("mul", 25, 11),
    ("exp", 26), ("exp", 11), ("mul", 27, 28),
]  # fmt: skip


NUMBERS = np.array([1.0, 0.5, 0.15, 0.20, 0.35, 0.25, 0.30, 0.35, 0.40, 0.45, 0.60, -1.0])


@checks("11.backpropagation.tape")
def _(c):
    c.values(
        2,
        public=[
            (np.array([2.0, 3.0]), [("mul", 0, 1)]),
            (np.array([0.3]), [("tanh", 0), ("exp", 1), ("log", 2)]),
            (np.array([0.5, 1e12]), [("tanh", 0), ("add", 1, 2)]),  # a difference rounds the small part away
        ],
        name="every number used once",
    )
    c.values(
        3,
        _random_tapes,
        public=[
            (np.array([2.0, 3.0]), [("mul", 0, 1), ("add", 2, 0)]),
            (np.array([3.0]), [("mul", 0, 0)]),
            (np.array([0.7, 1.3, -0.4]), EVERY_OPERATION),
            (  # again too large for a difference
                np.array([0.5, 1e12]),
                [("tanh", 0), ("relu", 2), ("mul", 3, 0), ("add", 4, 1)],
            ),
        ],
        name="numbers used again",
    )
    c.values(1, public=[(NUMBERS, SCORE)], name="the network of document 004")
    c.values(1, public=[(np.array([1.0]), DOUBLINGS)], name="sixty doublings")


SIZES = (8, 40, 3, 50, 4, 30, 6)


def _multiplications(order):
    """The cost of a product of J1 to J6 in this order; only names, @ and brackets are read."""

    def shape_and_cost(node):
        if isinstance(node, ast.Name) and node.id in jacobians:
            return jacobians[node.id], 0
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.MatMult):
            raise ValueError(f"`{ast.unparse(node)[:40]}` is no product of J1 to J6, written with @")
        (left, price), (right, more) = shape_and_cost(node.left), shape_and_cost(node.right)
        if left[1] != right[0]:
            raise ValueError(f"`{ast.unparse(node)[:60]}`: shapes {left} and {right} do not fit")
        return (left[0], right[1]), price + more + left[0] * left[1] * right[1]

    jacobians = {f"J{k}": (SIZES[k], SIZES[k - 1]) for k in range(1, 7)}
    if not isinstance(order, str):
        raise ValueError('the answer is a text, such as "(J6 @ J5) @ J4"')
    shape, cost = shape_and_cost(parse(order))
    if shape != (6, 8):
        raise ValueError(f"this product has the shape {shape}; the whole Jacobian has (6, 8)")
    return cost


IN_A_ROW = {
    "((((J6 @ J5) @ J4) @ J3) @ J2) @ J1": "This is the order of backpropagation, from the output to the input.",
    "J6 @ (J5 @ (J4 @ (J3 @ (J2 @ J1))))": "This is forward mode, from the input to the output.",
}


def _shorter(order):
    """What is said of the two orders that go through the layers in a row."""
    said = [sentence for known, sentence in IN_A_ROW.items() if same(parse(order), parse(known))]
    return [f"{sentence} Multiply pairs first, so that the wide sizes 40, 50 and 30 disappear." for sentence in said]


@checks("11.backpropagation.jacobian_order")
def _(c):
    c.scored("multiplications", _multiplications, {2496: 1, 2604: 2 / 3, 5460: 1 / 3}, _shorter)
