"""Chapter 11, backpropagation: a step of training by hand, two mended listings, two pullbacks, a tape of one's own."""

import math
from itertools import pairwise

import numpy as np

import mathllm as ml
from mathllm.exhibits import backpropagation as exhibits

from ..cases import each, tells_apart
from ..item import Item, Mistake, gradient, leaves_inputs, quick, values

STEP = exhibits.trace_network()  # the network of document 004
TRACE = "Part II (004), backpropagation trace"
NETWORK = """
Two inputs $x = (1,\\ 0.5)$, hidden ReLU units A and B, one sigmoid output, the truth $y = 1$:

| unit | weights | bias |
|---|---|---|
| A | 0.15 of $x_1$, 0.20 of $x_2$ | 0.35 |
| B | 0.25 of $x_1$, 0.30 of $x_2$ | 0.35 |
| output | 0.40 of A, 0.45 of B | 0.60 |
"""


# Warm-up: the trace, step by step ------------------------------------------------------------------------------------


def _forward(x2=0.5, b=0.35):
    """The six numbers of the forward pass, with another input or hidden bias."""
    a_A, a_B = 0.15 + 0.20 * x2 + b, 0.25 + 0.30 * x2 + b
    z = 0.40 * a_A + 0.45 * a_B + 0.60
    return [a_A, a_B, z, math.exp(-z), 1 / (1 + math.exp(-z)), math.log1p(math.exp(-z))]


FORWARD = Item(
    id="11.backpropagation.trace_forward",
    kind="value",
    title="Steps 1 to 3: forwards",
    difficulty=1,
    minutes=8,
    source=f"{TRACE}, steps 1 to 3",
    answer="forward",
    task=f"""{NETWORK}
Give six numbers in a list, `forward`: $a_A$, $a_B$, the score $z$, $e^{{-z}}$, the prediction $\\hat y$ and the
loss, right to four decimals. (Three of the document's own numbers are not.)
""",
    expected=lambda: [*STEP.a1, STEP.z2, STEP.exp_neg_z2, STEP.prediction, STEP.loss],
    checks=(values(2, decimals=4),),
    mistakes=(
        Mistake(
            lambda: [0.6, 0.75, 1.1775, 0.3083, 0.7644, 0.2686],
            "These are the printed values, with the slip in the exponential: e^−1.1775 = 0.30805.",
        ),
        Mistake(
            lambda: [0.6, 0.75, 0.5775, math.exp(-0.5775), 1 / (1 + math.exp(-0.5775)), math.log1p(math.exp(-0.5775))],
            "The output unit has a bias, too: add 0.60.",
        ),
        Mistake(
            lambda: [0.6, 0.75, 1.1775, math.exp(1.1775), 1 / (1 + math.exp(1.1775)), math.log1p(math.exp(1.1775))],
            "The sign in the exponent is lost: σ(z) = 1/(1 + e^−z), above ½ for a positive z.",
        ),
        Mistake(
            lambda: [*STEP.a1, STEP.z2, STEP.exp_neg_z2, STEP.prediction, -math.log(1 - STEP.prediction)],
            "This is the loss if the truth were 0. For y = 1 it is −ln ŷ.",
        ),
        Mistake(lambda: _forward(b=0.0), "The hidden units have a bias, too: add 0.35 to each sum."),
        Mistake(lambda: _forward(x2=1.0), "x₂ is 0.5: A's sum is 0.15 · 1 + 0.20 · 0.5 + 0.35."),
        Mistake(
            lambda: [*_forward()[:5], -math.log2(STEP.prediction)], "The logarithm of the loss is the natural one."
        ),
        Mistake(
            lambda: [*_forward()[:5], 1 - STEP.prediction],
            "The last number is 1 − ŷ. The loss is the surprise, −ln ŷ.",
        ),
        Mistake(
            lambda: [*_forward()[:5], math.log(STEP.prediction)], "The loss is −ln ŷ: a surprise is never negative."
        ),
    ),
    hints=("Each unit: weights times inputs, added up, plus bias.", "0.40 · 0.60 + 0.45 · 0.75 + 0.60 = 1.1775."),
    references=("part2.bp.a1", "part2.bp.z2", "part2.bp.exp_neg_z2", "part2.bp.yhat", "part2.bp.loss"),
)


def _output_step(delta):
    return [delta, delta * STEP.a1[0], delta * STEP.a1[1], delta]


OUTPUT = Item(
    id="11.backpropagation.trace_output",
    kind="value",
    title="Steps 4 and 5: the output unit",
    difficulty=1,
    minutes=5,
    source=f"{TRACE}, steps 4 and 5",
    answer="output_step",
    task="""
The same network predicts $\\hat y = 0.764498$, and the truth is 1. Give four numbers in a list, `output_step`: the
error $\\delta$ of the output unit, then the gradients of its weights of A and of B, then that of its bias, right
to four decimals. ($a_A = 0.60$, $a_B = 0.75$.)
""",
    expected=lambda: _output_step(STEP.delta2),
    checks=(values(2, decimals=4),),
    mistakes=(
        Mistake(
            lambda: [-0.2356, -0.1414, -0.1767, -0.2356],
            "These are the printed values, which inherit the slip e^−1.1775 = 0.3083.",
        ),
        Mistake(lambda: _output_step(-STEP.delta2), "Prediction minus truth, not truth minus prediction."),
        Mistake(
            lambda: _output_step(STEP.delta2 * STEP.prediction * (1 - STEP.prediction)),
            "The slope of the sigmoid is in ŷ − y already: it cancelled against that of the logarithm.",
        ),
        Mistake(
            lambda: [STEP.delta2, 0.40 * STEP.delta2, 0.45 * STEP.delta2, STEP.delta2],
            "A weight's gradient is the error times what came in through it, not times the weight.",
        ),
        Mistake(
            lambda: [*_output_step(STEP.delta2)[:3], 0.60 * STEP.delta2],
            "The bias is not multiplied by anything in z: its gradient is δ itself, not δ times the bias.",
        ),
        Mistake(
            lambda: [*_output_step(STEP.delta2)[:3], 1.0],
            "∂z/∂c is 1; the slope of the *loss* is δ times that.",
        ),
        Mistake(
            lambda: [_output_step(STEP.delta2)[i] for i in (0, 2, 1, 3)], "The weight of A comes before that of B."
        ),
        Mistake(
            lambda: [_output_step(-STEP.delta2 / STEP.prediction)[i] for i in range(4)],
            "This is (1 − ŷ)/ŷ. The error is ∂L/∂z = ŷ − y, with the slope of the sigmoid in it.",
        ),
        Mistake(
            lambda: _output_step(-1 / STEP.prediction),
            "This is ∂L/∂ŷ = −1/ŷ. The error is the slope with respect to z: times ŷ(1 − ŷ).",
        ),
    ),
    hints=("δ = ŷ − y.", "Error times input: δ · 0.60 and δ · 0.75. A bias has the input 1."),
    references=("part2.bp.delta2", "part2.bp.dW2_1", "part2.bp.dW2_2", "part2.bp.db2"),
)

HIDDEN = Item(
    id="11.backpropagation.trace_hidden",
    kind="value",
    title="Steps 6 and 7: the hidden units",
    difficulty=1,
    minutes=8,
    source=f"{TRACE}, steps 6 and 7",
    answer="hidden_step",
    task="""
The output unit's error is $\\delta = -0.235502$; its weights are 0.40 for A and 0.45 for B; both units are on. Give six
numbers in a list, `hidden_step`: the errors of A and of B; the gradients of A's weights of $x_1 = 1$ and of
$x_2 = 0.5$; the same two of B. Right to four decimals.
""",
    expected=lambda: [*STEP.delta1, *STEP.dW1[0], *STEP.dW1[1]],
    checks=(values(2, decimals=4),),
    mistakes=(
        Mistake(
            lambda: [-0.0943, -0.1060, -0.0943, -0.0471, -0.1060, -0.0530],
            "These are the printed values; even from the printed 0.2356 one gets 0.0942 for A.",
        ),
        Mistake(
            lambda: [*STEP.delta1, STEP.dW1[0, 0], STEP.dW1[1, 0], STEP.dW1[0, 1], STEP.dW1[1, 1]],
            "The four gradients are in the wrong order: first both of A, then both of B.",
        ),
        Mistake(
            lambda: [*(STEP.delta2 * STEP.a1), *np.outer(STEP.delta2 * STEP.a1, [1, 0.5]).ravel()],
            "The error travels back through the weights 0.40 and 0.45, not through the activations.",
        ),
        Mistake(
            lambda: [*(STEP.da1 * STEP.a1), *np.outer(STEP.da1 * STEP.a1, [1, 0.5]).ravel()],
            "The slope of a ReLU that is on is 1, not its value.",
        ),
        Mistake(
            lambda: [*STEP.delta1, *np.repeat(STEP.delta1, 2)],
            "These would be gradients of biases. The weight of x₂ is multiplied by x₂ = 0.5.",
        ),
        Mistake(
            lambda: [*-STEP.delta1, *-STEP.dW1.ravel()],
            "The sign got lost: δ is negative and the output weights are positive.",
        ),
        Mistake(
            lambda: [*STEP.delta1, *(STEP.delta2 * np.array([1.0, 0.5, 1.0, 0.5]))],
            "The hidden weights' gradients are made of the hidden errors, δ_A and δ_B, not of the output's.",
        ),
        Mistake(
            lambda: [*STEP.delta1[::-1], *STEP.dW1[::-1].ravel()], "A and B are exchanged: A's output weight is 0.40."
        ),
    ),
    hints=("Error of A: weight of A times δ times the slope 1.", "Then error times input: 1 and 0.5."),
    references=("part2.bp.delta1_1", "part2.bp.delta1_2", "part2.bp.dW1_11", "part2.bp.dW1_12", "part2.bp.dW1_22"),
)


def _updated_with_new_weights():
    """The hidden errors go back through output weights that were changed already."""
    delta_A, delta_B = STEP.W2[0] * STEP.delta2
    A, B = [0.15 - 0.5 * delta_A, 0.20 - 0.25 * delta_A], [0.25 - 0.5 * delta_B, 0.30 - 0.25 * delta_B]
    b = [0.35 - 0.5 * delta_A, 0.35 - 0.5 * delta_B]
    z = STEP.W2[0] @ [A[0] + 0.5 * A[1] + b[0], B[0] + 0.5 * B[1] + b[1]] + STEP.b2[0]
    return [*STEP.W2[0], STEP.b2[0], *A, *B, *b, 1 / (1 + math.exp(-z))]


def _updated_without_biases():
    w, (v_A, v_B) = STEP.W1, STEP.W2[0]
    z = v_A * (w[0] @ [1, 0.5] + 0.35) + v_B * (w[1] @ [1, 0.5] + 0.35) + 0.60
    return [v_A, v_B, 0.60, *w.ravel(), 0.35, 0.35, 1 / (1 + math.exp(-z))]


def _updated(rate):
    after = exhibits.trace_network(learning_rate=rate)
    return [*after.W2[0], after.b2[0], *after.W1.ravel(), *after.b1, after.prediction_after]


UPDATE = Item(
    id="11.backpropagation.trace_update",
    kind="value",
    title="Step 8: nine new numbers",
    difficulty=2,
    minutes=10,
    source=f"{TRACE}, step 8",
    answer="updated",
    task=f"""{NETWORK}
One step of gradient descent with learning rate 0.5. Give ten numbers in a list, `updated`: the new output weights
(of A, of B) and output bias; the new hidden weights, A's two and then B's two; the new biases of A and B; and the
prediction $\\hat y$ after the step. Right to four decimals: compute with more digits than four, or use `ml.grad`.
""",
    expected=lambda: _updated(0.5),
    checks=(values(2, decimals=4),),
    mistakes=(
        Mistake(lambda: _updated(-0.5), "You went uphill: subtract the gradient."),
        Mistake(lambda: _updated(1.0), "The learning rate is missing: half of each gradient."),
        Mistake(
            lambda: [*_updated(0.5)[:-1], STEP.prediction],
            "The last number is the old prediction. Run the network forwards with the new numbers.",
        ),
        Mistake(
            lambda: [0.4707, 0.5384, 0.7178, 0.1971, 0.2236, 0.3030, 0.3265, 0.3971, 0.4030, 0.8202],
            "The new weight of B is 0.53831; the printed 0.5384 is a rounded gradient, halved and rounded again.",
        ),
        Mistake(
            _updated_with_new_weights,
            "The hidden errors went back through the *new* output weights. First all gradients, then all steps.",
        ),
        Mistake(_updated_without_biases, "The biases have gradients, too: the errors of their units."),
        Mistake(
            lambda: [_updated(0.5)[i] for i in (0, 1, 2, 3, 5, 4, 6, 7, 8, 9)],
            "The hidden weights are in another order: A's two, of x₁ and of x₂, and then B's two.",
        ),
        Mistake(lambda: _updated(0.5)[:9], "The nine are right. The prediction with them comes last."),
    ),
    hints=(
        "New = old − 0.5 · gradient. All gradients are negative, so everything grows.",
        "A bias's gradient is its unit's error.",
        "For ŷ: forwards again, with the new numbers.",
    ),
    references=("part2.bp.upd_W2_2", "part2.bp.upd_W1_all", "part2.bp.upd_b1_all", "part2.bp.yhat_after"),
)


# Core ---------------------------------------------------------------------------------------------------------------


def _own_network(rng):
    """One input, two hidden units of which exactly one is on, a truth of 0 or 1; no slip goes unnoticed."""
    while True:
        on, off = rng.integers(3, 7, size=2) / 2  # no weight is one of v's
        own = {
            "x": float(rng.choice([0.5, 1.5, 2.0])),
            "w": [float(on), float(-off)],
            "v": (rng.choice([-1, 1], size=2) * rng.integers(1, 5, size=2) / 4).tolist(),
            "y": int(rng.integers(2)),
        }
        if tells_apart(OWN_GRADIENTS, own, 0.002):
            return own


def _own_gradients(x, w, v, y, prime=True, flip=1, slope=None):
    w, v = np.array(w), np.array(v)
    z = w * x
    a = np.maximum(z, 0)
    score = float(v @ a)
    delta = flip * (float(ml.sigmoid(score)) - y)
    bend = (z > 0) if prime else np.ones(2)
    return [delta, *(delta * a), *(delta * v * bend * (x if slope is None else slope))]


def _own_output_weights_by_inputs(x, w, v, y):
    delta, *_, dw1, dw2 = _own_gradients(x, w, v, y)
    return [delta, delta * x, delta * x, dw1, dw2]


def _own_linear(x, w, v, y):
    a = np.array(w) * x
    delta = float(ml.sigmoid(float(np.dot(v, a)))) - y
    return [delta, *(delta * a), *(delta * np.array(v) * x)]


def _own_squared_error(x, w, v, y):
    right = np.array(_own_gradients(x, w, v, y))
    prediction = right[0] + y
    return (right * prediction * (1 - prediction)).tolist()


OWN_GRADIENTS = Item(
    id="11.backpropagation.own_gradients",
    kind="value",
    title="A unit that is off",
    difficulty=2,
    minutes=10,
    source=f"after {TRACE}",
    answer="own_gradients",
    task="""
A smaller network with your own numbers: one input `mine.x`, two hidden ReLU units with weights `mine.w`, one
sigmoid output with weights `mine.v`, no biases, truth `mine.y`; the loss is binary cross-entropy. Give five
numbers in a list, `own_gradients`: the error $\\delta$ of the output, the gradients of the two output weights, the
gradients of the two hidden weights. Right to four decimals.
""",
    numbers=_own_network,
    expected=_own_gradients,
    checks=(values(2, decimals=4),),
    mistakes=(
        Mistake(
            lambda **n: _own_gradients(**n, prime=False),
            "One of the units is off: its slope is 0, so its weight gets no gradient.",
        ),
        Mistake(lambda **n: _own_gradients(**n, flip=-1), "Prediction minus truth, not truth minus prediction."),
        Mistake(
            lambda x, w, v, y: [
                *_own_gradients(x, w, v, y)[:3],
                *(np.array(_own_gradients(x, w, v, y)[0]) * np.array(w) * (np.array(w) * x > 0) * x).tolist(),
            ],
            "The error travels back through the output weights v, not through the hidden weights w.",
        ),
        Mistake(
            lambda x, w, v, y: _own_gradients(x, w, v, y, slope=1.0),
            "The last two lack the input: dw = δ · v · x where the unit is on.",
        ),
        Mistake(
            _own_output_weights_by_inputs,
            "An output weight is multiplied by the hidden value a, so its gradient is δ · a, and 0 where a is 0.",
        ),
        Mistake(_own_linear, "The hidden units bend: a negative sum gives a = 0, and passes nothing on."),
        Mistake(
            _own_squared_error,
            "The slope of the sigmoid is in ŷ − y already: it cancelled against that of the logarithm.",
        ),
    ),
    hints=("Which of the two sums w·x is negative?", "dv = δ·a, dw = δ·v·x if the unit is on, else 0."),
)


def _own_sizes(rng):
    return {"sizes": rng.choice([8, 16, 24, 32, 48, 64], size=4, replace=False).tolist()}


def _own_cost(sizes):
    cost = ml.backpropagation.gradient_cost(sizes)
    return [cost.parameters, cost.forward, cost.reverse_mode, cost.central_differences]


def _weights(sizes):
    return sum(n * m for n, m in pairwise(sizes))


OWN_COST = Item(
    id="11.backpropagation.own_cost",
    kind="value",
    title="The price of a gradient",
    difficulty=2,
    minutes=6,
    source="Foundations (001), section 4.4; the primer (003), chapter IX",
    answer="own_cost",
    task="""
`mine.sizes` holds the widths of a network: input, two hidden layers, output; every layer has weights and biases.
For **one** example give four whole numbers in a list, `own_cost`: the number of parameters; the multiplications of
all matrix products of one forward pass; those of a whole gradient by reverse mode (forward and backward, every
layer's $dX$ and $dW$ counted); and those of a gradient by central differences.
""",
    numbers=_own_sizes,
    expected=_own_cost,
    checks=(values(2),),
    mistakes=(
        Mistake(
            lambda sizes: [
                _weights(sizes),
                _weights(sizes),
                3 * _weights(sizes),
                2 * _weights(sizes) * _weights(sizes),
            ],
            "You left out the biases: they are parameters and have to be nudged, too.",
        ),
        Mistake(
            lambda sizes: [*_own_cost(sizes)[:2], 2 * _weights(sizes), _own_cost(sizes)[3]],
            "Reverse mode is one pass forwards and one back, and the one back costs two: three in all.",
        ),
        Mistake(
            lambda sizes: [*_own_cost(sizes)[:3], (_own_cost(sizes)[0] + 1) * _weights(sizes)],
            "n + 1 passes are for one-sided differences. Central ones take two passes per parameter.",
        ),
        Mistake(
            lambda sizes: [*_own_cost(sizes)[:3], 2 * _own_cost(sizes)[0]],
            "The last number counts passes. Each of them takes all the multiplications of a forward pass.",
        ),
        Mistake(
            lambda sizes: [_own_cost(sizes)[0]] * 2 + [3 * _own_cost(sizes)[0], 2 * _own_cost(sizes)[0] ** 2],
            "A bias is added, not multiplied: a pass takes one multiplication for each *weight*.",
        ),
        Mistake(
            lambda sizes: [*_own_cost(sizes)[:2], 3 * _weights(sizes) - sizes[0] * sizes[1], _own_cost(sizes)[3]],
            "You left out dX of the first layer. It is not needed, true; but this count takes every layer's in.",
        ),
        Mistake(
            lambda sizes: [*_own_cost(sizes)[:3], _own_cost(sizes)[0] * _weights(sizes)],
            "Central differences take *two* passes for each parameter.",
        ),
    ),
    hints=("A layer from n to m has nm weights and m biases, and takes nm multiplications per example.",),
    references=("primer.ch09.text.bwd_fwd_ratio",),
)


def _listing(rng, count=2, batch=5):
    """Layers in the document's layout, (W (m, n), b (m, 1)), and inputs (n, B)."""
    drawn = []
    for _ in range(count):
        layers, x, _ = exhibits.listing_problem(rng, (3, 5, 4), batch)
        drawn.append((x, layers))
    return drawn


def _outputs(x, layers):
    return exhibits.listing_forward_fixed(x, layers)[0]


def _no_bend(x, layers):
    h = [x]
    for W, b in layers:
        h.append(W @ h[-1] + b)
    return h


REPAIR_FORWARD = Item(
    id="11.backpropagation.repair_forward",
    kind="repair",
    title="Mend it: the bend too many",
    difficulty=2,
    minutes=8,
    source="Foundations (001), section 4.4",
    answer="forward_activations",
    masked=("listing_forward_fixed", "listing_forward_as_printed"),
    task="""
The listing of document 001 (columns are examples; `layers` is a list of pairs `W` (m, n) and `b` (m, 1)). Its
backward pass starts from the slopes of the loss with respect to the **score** of the last layer:

```python
def forward_activations(x, layers):
    activations = [x]
    for W, b in layers:
        z = W @ activations[-1] + b
        activations.append(np.maximum(z, 0))
    return activations
```

Mend it so that the two belong together. Return the list $h_0, \\dots, h_{L-1}, z_L$: every hidden layer bends, the
last one does not.
""",
    expected=_outputs,
    checks=(
        values(2, _listing, name="two layers"),
        values(
            1,
            lambda rng: [(x, layers[:1]) for x, layers in _listing(rng, 1)],
            name="a single layer",
        ),
        values(
            1,
            public=[(np.ones((1, 1)), [(np.array([[-2.0]]), np.zeros((1, 1))), (np.ones((1, 1)), -np.ones((1, 1)))])],
            name="a unit that is off",
        ),
    ),
    mistakes=(
        Mistake(
            lambda x, layers: exhibits.listing_forward_as_printed(x, layers)[0],
            "Still as printed: the last layer bends as well, and cuts off negative scores.",
        ),
        Mistake(_no_bend, "Now no layer bends at all. Only the last one must not.", score=1),
        Mistake(
            lambda x, layers: _outputs(x, layers)[1:],
            "The input h₀ is missing from the list: the backward pass needs it for the first layer's weights.",
        ),
        Mistake(lambda x, layers: _outputs(x, layers)[-1], "Return all activations, not the last alone."),
        Mistake(
            lambda x, layers: [x, *exhibits.listing_forward_fixed(x, layers)[1]],
            "The list holds the sums z. For the hidden layers it should hold h = max(0, z).",
            score=1,
        ),
        Mistake(
            lambda x, layers: [*_outputs(x, layers)[:-1], np.asarray(ml.sigmoid(_outputs(x, layers)[-1]))],
            "A sigmoid on the last layer belongs to the loss: the list ends with the bare scores.",
        ),
    ),
    hints=("Which layer is the last? `enumerate(layers, 1)` counts them.", "Bend only if there is a layer after it."),
    references=("foundations.backprop.code_as_printed", "foundations.backprop.code_linear_output"),
)


def _passes(rng, sizes=((3, 5, 4), (2, 3, 3, 1))):
    """Slopes of the loss, activations, pre-activations and layers, as the backward pass gets them."""
    drawn = []
    for size in sizes:
        layers, x, target = exhibits.listing_problem(rng, size, batch=6)
        activations, pre_activations = exhibits.listing_forward_fixed(x, layers)
        drawn.append((activations[-1] - target, activations, pre_activations, layers))
    return drawn


def _on(z):
    return z > 0


def _bend_of_the_layer_above(loss_grad, activations, pre_activations, layers):
    return _backward(loss_grad, activations, pre_activations[1:], layers)


def _backward(loss_grad, activations, pre_activations, layers, keepdims=True, bend=True, slope=_on):
    delta, grads = loss_grad, []
    for l in reversed(range(len(layers))):
        W, _ = layers[l]
        grads.insert(0, (delta @ activations[l].T, delta.sum(axis=1, keepdims=keepdims)))
        if l > 0:
            delta = W.T @ delta
            if bend:
                delta = delta * slope(pre_activations[l - 1])
    return grads


REPAIR_BACKWARD = Item(
    id="11.backpropagation.repair_backward",
    kind="repair",
    title="Mend it: the axis that got lost",
    difficulty=2,
    minutes=8,
    source="Foundations (001), section 4.4",
    answer="backward",
    masked=("listing_backward_fixed", "listing_backward_as_printed", "backward_pass"),
    task="""
The other half of the listing, with a second bug added by us:

```python
def backward(loss_grad, activations, pre_acts, layers):
    delta = loss_grad
    grads = []
    for l in reversed(range(len(layers))):
        W, b = layers[l]
        dW = delta @ activations[l].T
        db = delta.sum(axis=1)
        grads.insert(0, (dW, db))
        if l > 0:
            delta = W.T @ delta
    return grads
```

`loss_grad` (m, B) is the slope of the loss with respect to the last layer's scores; `activations` are
$h_0, \\dots, h_{L-1}, z_L$, and `pre_acts` are $z_1, \\dots, z_L$. Mend both: a bias of shape (m, 1) has a gradient of
shape (m, 1), and the error has to pass the bend.
""",
    expected=_backward,
    checks=(
        values(1, lambda rng: _passes(rng, [(3, 4)]), name="a single layer"),
        values(3, _passes, name="two and three layers"),
        leaves_inputs(1, lambda rng: _passes(rng, [(2, 3, 2)])),
    ),
    mistakes=(
        Mistake(
            lambda *args: _backward(*args, keepdims=False),
            "The sum over the batch loses an axis: db is (m,) where b is (m, 1). `keepdims=True`.",
        ),
        Mistake(
            lambda *args: _backward(*args, bend=False),
            "The error must pass the bend: times 1 where z of that layer is positive, else 0.",
            score=1,
        ),
        Mistake(
            lambda *args: [(dW / args[0].shape[1], db / args[0].shape[1]) for dW, db in _backward(*args)],
            "You took a mean over the batch. If the loss is a mean, that is part of `loss_grad` already.",
        ),
        Mistake(
            lambda *args: _backward(*args)[::-1],
            "The gradients come last layer first. `insert(0, …)` puts each in front.",
            score=1,
        ),
        Mistake(
            _bend_of_the_layer_above,
            "The shapes do not fit: the error goes back through `W.T`, then through the bend of the layer *below*, "
            "`pre_acts[l - 1]`.",
            score=1,
        ),
        Mistake(
            lambda loss_grad, activations, pre_acts, layers: _backward(
                loss_grad * (pre_acts[-1] > 0), activations, pre_acts, layers
            ),
            "The last layer does not bend: `loss_grad` is the slope with respect to its scores already.",
        ),
        Mistake(
            lambda *args: _backward(*args, slope=lambda z: np.maximum(z, 0)),
            "The slope of the ReLU is 1 where it is on, not its value.",
            score=1,
        ),
        Mistake(
            lambda *args: [(dW, db / args[0].shape[1]) for dW, db in _backward(*args)],
            "The gradients of the biases are sums over the batch, not means.",
        ),
        Mistake(
            lambda *args: [(dW, db.T) for dW, db in _backward(*args)],
            "db lies on its side, (1, m): sum along axis 1 and keep it, `keepdims=True`.",
        ),
    ),
    hints=(
        "`delta.sum(axis=1, keepdims=True)`.",
        "The bend of layer l − 1 was at pre_acts[l − 1]: multiply by (pre_acts[l − 1] > 0).",
    ),
    references=("foundations.backprop.db_shape",),
)


def _two_layers(rng, sizes=((1, 2, 3, 1), (5, 4, 6, 3))):
    drawn = []
    for B, n, h, m in sizes:
        drawn.append(tuple(rng.normal(size=s) for s in [(B, n), (n, h), (h,), (h, m), (m,), (B, m)]))
    return drawn


def _two_layer_gradients(x, W1, b1, W2, b2, dlogits):
    z1 = x @ W1 + b1
    a1 = np.maximum(z1, 0)
    dz1 = (dlogits @ W2.T) * (z1 > 0)
    return x.T @ dz1, dz1.sum(axis=0), a1.T @ dlogits, dlogits.sum(axis=0)


def _slopes_of_values(x, W1, b1, W2, b2, dlogits):
    z1 = x @ W1 + b1
    a1 = np.maximum(z1, 0)
    dz1 = (dlogits @ W2.T) * a1
    return x.T @ dz1, dz1.sum(axis=0), a1.T @ dlogits, dlogits.sum(axis=0)


def _without_bend(x, W1, b1, W2, b2, dlogits):
    right = _two_layer_gradients(x, W1, b1, W2, b2, dlogits)
    dz1 = dlogits @ W2.T
    return x.T @ dz1, dz1.sum(axis=0), right[2], right[3]


def _mean_biases(*args):
    dW1, db1, dW2, db2 = _two_layer_gradients(*args)
    return dW1, db1 / len(args[0]), dW2, db2 / len(args[0])


def _kept_bias_axes(*args):
    dW1, db1, dW2, db2 = _two_layer_gradients(*args)
    return dW1, db1[None], dW2, db2[None]


def _unbent_input(x, W1, b1, W2, b2, dlogits):
    dW1, db1, _, db2 = _two_layer_gradients(x, W1, b1, W2, b2, dlogits)
    return dW1, db1, (x @ W1 + b1).T @ dlogits, db2


TWO_LAYERS = Item(
    id="11.backpropagation.two_layer_gradients",
    kind="function",
    title="All gradients of two layers",
    difficulty=2,
    minutes=15,
    source="Foundations (001), section 4.4; Part II (004), recipe",
    answer="two_layer_gradients",
    masked=("backward_pass", "grad", "value_and_grad", "vjp", "numerical_gradient", "perturbation_gradient"),
    task="""
Rows are examples: $z_1 = xW_1 + b_1$, $a_1 = \\max(0, z_1)$, $z_2 = a_1 W_2 + b_2$. Write
`two_layer_gradients(x, W1, b1, W2, b2, dlogits)`, where `dlogits` (B, m) holds the slopes of the loss with respect
to $z_2$. Return the tuple `(dW1, db1, dW2, db2)`, each in the shape of its parameter: x (B, n), W1 (n, h), b1
(h,), W2 (h, m), b2 (m,).
""",
    expected=_two_layer_gradients,
    checks=(
        values(
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
        ),
        values(3, lambda rng: _two_layers(rng, [(5, 4, 6, 3), (8, 3, 7, 2), (6, 4, 8, 3)]), name="batches"),
        leaves_inputs(1, lambda rng: _two_layers(rng, [(4, 2, 3, 2)])),
    ),
    mistakes=(
        Mistake(_without_bend, "A unit that was off passes nothing on: times (z₁ > 0).", score=2),
        Mistake(_slopes_of_values, "The slope of the ReLU is 1 where it is on, not its value a₁."),
        Mistake(
            _mean_biases,
            "You averaged the bias gradients over the batch. They add up, like those of the weights.",
            score=2,
        ),
        Mistake(
            _unbent_input,
            "The second layer's input is a₁, after the bend: dW₂ = a₁ᵀ δ₂.",
            score=2,
        ),
        Mistake(
            lambda *args: tuple(part / len(args[0]) for part in _two_layer_gradients(*args)),
            "You divided by the batch. If the loss is a mean, that is part of `dlogits` already.",
            score=2,
        ),
        Mistake(
            lambda *args: [_two_layer_gradients(*args)[i] for i in (2, 3, 0, 1)],
            "The order is dW1, db1, dW2, db2: the first layer comes first.",
        ),
        Mistake(
            _kept_bias_axes,
            "The biases are (h,) and (m,), without an axis for the batch: sum with axis=0 and without keepdims.",
        ),
    ),
    hints=(
        "Input transposed times error: dW2 = a1.T @ dlogits.",
        "The error of the first layer: (dlogits @ W2.T) * (z1 > 0).",
    ),
    references=("part2.bp.dW1_11", "part2.bp.dW2_1"),
)


@each
def _bowls(rng, n):
    return rng.normal(size=n), float(rng.uniform(0.05, 0.2)), 6


def _descent(w, rate, steps):
    path = [w.copy()]
    for _ in range(steps):
        w = w - rate * 2 * w
        path.append(w.copy())
    return np.array(path)


def _descent_that_remembers(w, rate, steps):
    path, store = [w.copy()], np.zeros_like(w)
    for _ in range(steps):
        store = store + 2 * w
        w = w - rate * store
        path.append(w.copy())
    return np.array(path)


def _descent_aliased(w, rate, steps):
    w = _descent(w, rate, steps)[-1]
    return np.array([w] * (steps + 1))


def _descent_in_place(w, rate, steps):
    path = [w]
    for _ in range(steps):
        w -= rate * 2 * w
        path.append(w)
    return np.array(path)


def _descent_of_the_caller(w, rate, steps):
    path = _descent(w, rate, steps)
    w[:] = path[-1]
    return path


REPAIR_ZEROING = Item(
    id="11.backpropagation.repair_zeroing",
    kind="repair",
    title="Mend it: the loss that comes back",
    difficulty=1,
    minutes=6,
    source="Part II (004), common bugs",
    answer="descent",
    masked=("descent_with_zeroing", "descent_without_zeroing", "sgd_step", "descend", "minimize", "descent_path"),
    task="""
Gradient descent on the bowl $\\sum_i w_i^2$, whose gradient is $2w$. It is to return the whole path, `steps + 1`
places:

```python
def descent(w, rate, steps):
    path, gradient = [w], np.zeros_like(w)
    for _ in range(steps):
        gradient += 2 * w
        w -= rate * gradient
        path.append(w)
    return np.array(path)
```

Two things are wrong: the gradient of the last step is still there when the next one comes, and all places of the
path are the same array (the caller's own). Mend both.
""",
    expected=_descent,
    checks=(
        values(2, _bowls(1, 3), public=[(np.array([1.0]), 0.1, 4)], name="the path"),
        leaves_inputs(1, _bowls(2)),
    ),
    mistakes=(
        Mistake(
            _descent_that_remembers,
            "Old gradients still add up: each step must follow its own gradient alone.",
        ),
        Mistake(
            _descent_aliased,
            "All places of the path are the last one: `w -= …` changes the array in place. Write `w = w - …`.",
        ),
        Mistake(
            lambda w, rate, steps: _descent(w, rate, steps)[1:],
            "The start is missing: steps + 1 places, the first of which is w itself.",
        ),
        Mistake(lambda w, rate, steps: _descent(w, -rate, steps), "You went uphill: subtract the gradient."),
        Mistake(
            _descent_in_place,
            "The gradient is mended; but `w -= …` still changes the caller's array in place: all places are alike.",
        ),
        Mistake(
            _descent_of_the_caller,
            "The path is right; but `w -= …` walks with the caller's own array. Write `w = w - …`.",
            score=2,
        ),
        Mistake(
            lambda w, rate, steps: _descent(w, rate, steps - 1), "One step is missing: steps + 1 places, steps steps."
        ),
        Mistake(lambda w, rate, steps: _descent(w, rate, steps)[-1], "The whole path was asked for, not its end."),
    ),
    hints=("`gradient = 2 * w`, without the plus.", "`w = w - rate * gradient` makes a new array."),
)


# Derivation and proof -----------------------------------------------------------------------------------------------


@each
def _norm_rows(rng, s):
    """x, gain, and slopes for a layer norm with epsilon 10⁻⁵."""
    return rng.normal(size=s) * 2, rng.normal(size=s[-1:]), rng.normal(size=s)


def _layer_norm(x, gain):
    s = 1 / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return gain * (x - x.mean(axis=-1, keepdims=True)) * s


def _mean(v):
    return v.mean(axis=-1, keepdims=True)


def _layer_norm_pullback(x, gain, dy, average=_mean, ddof=0, hat=True, sign=1):
    s = 1 / np.sqrt(x.var(axis=-1, keepdims=True, ddof=ddof) + 1e-5)
    x_hat, g = (x - _mean(x)) * (s if hat else 1.0), gain * dy
    return s * (g - average(g) - sign * x_hat * average(g * x_hat))


def _gain_outside(x, gain, dy):
    return gain * _layer_norm_pullback(x, np.ones_like(gain), dy)


def _statistics_frozen(x, gain, dy):
    return gain * dy / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def _scale_frozen(x, gain, dy):
    g = gain * dy
    return (g - _mean(g)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def _over_the_batch(x, gain, dy):
    s = 1 / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    x_hat, g = (x - _mean(x)) * s, gain * dy
    return s * (g - g.mean() - x_hat * (g * x_hat).mean())


LAYER_NORM = Item(
    id="11.backpropagation.layer_norm_pullback",
    kind="gradient",
    title="Back through a layer norm",
    difficulty=3,
    minutes=20,
    source="Pillars (002), gradient of layer normalization",
    answer="layer_norm_pullback",
    masked=("layer_norm", "layer_norm_gradient_as_printed", "grad", "value_and_grad", "vjp", "numerical_gradient"),
    task="""
$y = \\gamma \\odot \\hat x + \\beta$ with $\\hat x = (x - \\mu)/\\sqrt{\\sigma^2 + 10^{-5}}$; mean and variance
run over the last axis. Write `layer_norm_pullback(x, gain, dy)`: from the slopes `dy` with respect to $y$, those
with respect to `x`.

- `x` and `dy` have shape (..., D); `gain` has shape (D,), and its entries differ.
- Document 002 prints a formula for this. It is right only if all entries of the gain are equal.
""",
    expected=_layer_norm_pullback,
    checks=(
        gradient(2, _layer_norm, _norm_rows((5,), (3,)), name="one vector"),
        gradient(2, _layer_norm, _norm_rows((3, 4), (2, 2, 3)), name="a stack of vectors"),
        gradient(
            1,
            _layer_norm,
            public=[(np.array([0.5, -1.2, 2.0, 0.3]), np.full(4, 1.5), np.array([0.7, -0.3, 0.9, 0.4]))],
            name="a gain with equal entries",
        ),
    ),
    mistakes=(
        Mistake(
            _gain_outside,
            "This is the printed formula: the gain stands outside the means, but its entries differ.",
            score=1,
        ),
        Mistake(_statistics_frozen, "Mean and variance move with x, too: two terms are missing."),
        Mistake(_scale_frozen, "The variance moves with x, too: the term with x̂ is missing."),
        Mistake(
            _over_the_batch,
            "The means ran over the whole stack. Every vector is normalised by itself: axis −1.",
            score=3,
        ),
        Mistake(
            lambda x, gain, dy: _layer_norm_pullback(x, np.ones_like(gain), dy),
            "The gain is missing: what gets through it is g = γ ⊙ dy.",
        ),
        Mistake(
            lambda x, gain, dy: _layer_norm_pullback(x, gain, dy) * np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5),
            "The factor s = 1/√(σ² + 10⁻⁵) in front is missing.",
        ),
        Mistake(
            lambda *args: _layer_norm_pullback(*args, average=lambda v: v.mean(axis=0, keepdims=True)),
            "The means ran over the vectors of the stack. They run over the components of each vector: axis −1.",
            score=3,
        ),
        Mistake(
            lambda *args: _layer_norm_pullback(*args, sign=-1),
            "The sign of the last term: it is subtracted, for a larger deviation enlarges σ.",
        ),
        Mistake(
            lambda *args: _layer_norm_pullback(*args, average=lambda v: v.sum(axis=-1, keepdims=True)),
            "The bars are means over the D components, not sums.",
        ),
        Mistake(
            lambda *args: _layer_norm_pullback(*args, ddof=1),
            "The variance divides by D, not by D − 1: leave `ddof` at 0.",
        ),
        Mistake(
            lambda *args: _layer_norm_pullback(*args, hat=False),
            "The last term is made of x̂, the *normalised* deviations (x − μ)·s, not of x − μ.",
        ),
    ),
    hints=(
        "With g = γ ⊙ dy: ∂x̂ᵢ/∂xⱼ = s(δᵢⱼ − 1/D − x̂ᵢx̂ⱼ/D).",
        "dx = s · (g − mean(g) − x̂ · mean(g ⊙ x̂)), s = 1/√(σ² + 10⁻⁵).",
    ),
    references=("pillars.lngrad.corrected",),
)

DELTA_PROOF = Item(
    id="11.backpropagation.delta_proof",
    kind="text",
    title="Prediction minus truth",
    difficulty=2,
    minutes=20,
    source=f"{TRACE}, step 4; Foundations (001), section 4.5",
    task="""
1. Let $\\hat y = \\sigma(z)$ and $\\mathcal L = -[y\\ln\\hat y + (1-y)\\ln(1-\\hat y)]$. Prove that
   $\\partial\\mathcal L/\\partial z = \\hat y - y$, with a reason for each step.
2. Somebody uses the squared error $\\tfrac12(\\hat y - y)^2$ instead. Derive $\\partial\\mathcal L/\\partial z$.
   What happens to an output that is sure and wrong ($\\hat y \\approx 0$, $y = 1$), and why does it not happen with
   the loss of part 1?
3. A network has ten sigmoid layers of one unit each, with weights of 1. Show that the slope at the input of the
   first is at most $4^{-10}$ times the slope that arrives at the output of the last. What would a weight of 4 change,
   and would that be a cure?
""",
    rubric=(
        (1, "1: ∂L/∂ŷ = −y/ŷ + (1−y)/(1−ŷ), from the slope of the logarithm."),
        (1, "1: σ′ = ŷ(1−ŷ); the chain rule multiplies; the fractions cancel to ŷ − y."),
        (1, "2: (ŷ − y) ŷ(1−ŷ)."),
        (1, "2: Sure and wrong: ŷ(1−ŷ) ≈ 0, so hardly any gradient; in part 1 the logarithm's slope cancels it."),
        (1, "3: Each unit multiplies by w σ′(z) ≤ 1 · ¼, by the chain rule; ten factors."),
        (1, "3: With w = 4 the bound is 1, but reached only at z = 0 in every layer; elsewhere it still shrinks."),
    ),
    hints=(
        "Two factors, by the chain rule. What cancels?",
        "For 3: σ′(z) = ŷ(1 − ŷ) ≤ ¼, with equality only at z = 0.",
    ),
    references=("part2.bp.sigmoid_bce_identity", "foundations.act.vanish10"),
)


# Project ------------------------------------------------------------------------------------------------------------

OPERATIONS = {
    "add": (lambda a, b: a + b, lambda a, b: (1.0, 1.0)),
    "mul": (lambda a, b: a * b, lambda a, b: (b, a)),
    "relu": (lambda a: max(a, 0.0), lambda a: (float(a > 0),)),
    "exp": (math.exp, lambda a: (math.exp(a),)),
    "log": (math.log, lambda a: (1 / a,)),
    "tanh": (math.tanh, lambda a: (1 - math.tanh(a) ** 2,)),
}


def _run(inputs, tape):
    numbers = [float(x) for x in inputs]
    for name, *places in tape:
        numbers.append(OPERATIONS[name][0](*(numbers[p] for p in places)))
    return numbers


def _tape_gradient(inputs, tape, backwards=True, add=True, slopes_of=None):
    numbers = _run(inputs, tape)
    grads = [0.0] * len(numbers)
    grads[-1] = 1.0
    for i in reversed(range(len(tape))) if backwards else range(len(tape)):
        name, *places = tape[i]
        rule = (slopes_of or {}).get(name, OPERATIONS[name][1])
        for place, slope in zip(places, rule(*(numbers[p] for p in places)), strict=True):
            grads[place] = add * grads[place] + grads[len(inputs) + i] * slope
    return np.array([numbers[-1], *grads[: len(inputs)]])


def _with_slope(**rules):
    """A tape on which one operation has a wrong slope."""
    return lambda inputs, tape: _tape_gradient(inputs, tape, slopes_of=rules)


def _tape_by_nudges(inputs, tape):
    here = _run(inputs, tape)[-1]
    moved = [_run([x + 1e-4 * (i == j) for j, x in enumerate(inputs)], tape)[-1] for i in range(len(inputs))]
    return np.array([here, *((m - here) / 1e-4 for m in moved)])


def _tape_every_path(inputs, tape):
    """Right, and exponential in the depth: it walks every path."""
    if len(tape) > 40:
        raise TimeoutError("two to the power of the depth")
    return _tape_gradient(inputs, tape)


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

TAPE = Item(
    id="11.backpropagation.tape",
    kind="function",
    title="Autodiff in fifty lines",
    difficulty=3,
    minutes=45,
    source="ours; Foundations (001), section 4.4",
    answer="value_and_slopes",
    masked=("Value", "grad", "value_and_grad", "vjp", "Tensor", "numerical_gradient", "perturbation_gradient"),
    task="""
Any computation can be written down as a list, a **tape**. The numbers have places 0, 1, 2, …: first the inputs,
then the result of each line. A line names an operation and the places it works on:

| line | computes | | line | computes |
|---|---|---|---|---|
| `("add", i, j)` | sum | | `("exp", i)` | exponential |
| `("mul", i, j)` | product | | `("log", i)` | natural logarithm |
| `("relu", i)` | max(0, ·) | | `("tanh", i)` | hyperbolic tangent |

With inputs `[2.0, 3.0]`, the tape `[("mul", 0, 1), ("add", 2, 0)]` computes $ab + a = 8$. Write
`value_and_slopes(inputs, tape)`: an array with the last result, followed by its slope with respect to each input: here
`[8, 4, 2]`.

- A place may be used several times, even twice in one line: what comes back adds up.
- A tape of 60 doublings has $2^{60}$ paths and 60 lines. Visit each line once.
- Measured slopes are not accurate enough.
""",
    expected=_tape_gradient,
    checks=(
        values(
            2,
            public=[(np.array([2.0, 3.0]), [("mul", 0, 1)]), (np.array([0.3]), [("tanh", 0), ("exp", 1), ("log", 2)])],
            name="every number used once",
        ),
        values(
            3,
            _random_tapes,
            public=[
                (np.array([2.0, 3.0]), [("mul", 0, 1), ("add", 2, 0)]),
                (np.array([3.0]), [("mul", 0, 0)]),
                (np.array([0.7, 1.3, -0.4]), EVERY_OPERATION),
            ],
            name="numbers used again",
        ),
        values(1, public=[(NUMBERS, SCORE)], name="the network of document 004"),
        values(1, public=[(np.array([1.0]), DOUBLINGS)], name="sixty doublings"),
        leaves_inputs(1, public=[(np.array([2.0, -1.0]), [("relu", 1), ("add", 0, 2), ("mul", 3, 0)])]),
    ),
    mistakes=(
        Mistake(
            lambda inputs, tape: _tape_gradient(inputs, tape, add=False),
            "A number used twice gets two shares, and the second overwrites the first. Add them: `+=`.",
            score=2,
        ),
        Mistake(
            lambda inputs, tape: _tape_gradient(inputs, tape, backwards=False),
            "You walk forwards: a line hands on before its own slope has arrived. Go from the last to the first.",
        ),
        Mistake(
            _tape_by_nudges,
            "These slopes are measured: four digits at best. Use the slope of every operation.",
            score=1,
        ),
        Mistake(
            _tape_every_path,
            "You follow every path: two to the power of the depth. Collect all shares of a line, then go on once.",
            score=7,
        ),
        Mistake(
            lambda inputs, tape: _tape_gradient(inputs, tape)[1:],
            "The slopes are right. The value of the last line comes first.",
        ),
        Mistake(
            lambda inputs, tape: np.roll(_tape_gradient(inputs, tape), -1),
            "The value comes first, then the slopes.",
            score=1,
        ),
        Mistake(
            _with_slope(mul=lambda a, b: (a, b)),
            "In a product a is multiplied by b: the slope towards a is b, and the other way round.",
            score=2,
        ),
        Mistake(
            _with_slope(tanh=lambda a: (1 - a * a,)),
            "The slope of tanh is 1 − tanh², with the line's *result*; you took what came in.",
            score=3,
        ),
        Mistake(
            _with_slope(exp=lambda a: (1.0,)),
            "The slope of exp is exp itself, not 1.",
            score=2,
        ),
        Mistake(
            _with_slope(log=lambda a: (1 / math.log(a) if a != 1 else 0.0,)),
            "The slope of log is 1/a, with what came in, not with the line's result.",
            score=3,
        ),
        Mistake(
            _with_slope(relu=lambda a: (1.0,)),
            "A ReLU passes nothing on where its input is negative.",
            score=4,
        ),
    ),
    hints=(
        "Forwards: a list of numbers that grows by one per line.",
        "Backwards: a list of slopes, 0 everywhere but 1 at the end; lines from last to first.",
        "For a product at places i, j with slope s: slopes[i] += s · numbers[j], and the other way round.",
    ),
)


# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------


QUICK = [
    quick(
        "11.backpropagation.quick_delta",
        "How wrong",
        f"{TRACE}, step 4",
        "A sigmoid output says 0.3, the truth is 1. What is its error δ?",
        lambda: 0.3 - 1,
        (
            Mistake(lambda: 0.7, "Prediction minus truth: 0.3 − 1."),
            Mistake(lambda: -0.147, "The slope of the sigmoid is in ŷ − y already."),
        ),
    ),
    quick(
        "11.backpropagation.quick_dead",
        "Switched off",
        "Foundations (001), section 4.2.1",
        "A ReLU unit has z = −0.2; the slope arriving at its output is 5. What is its error?",
        lambda: 5 * 0,
        (
            Mistake(lambda: 5, "The unit is off: below 0 the slope of the ReLU is 0."),
            Mistake(lambda: -1, "Not times z, but times the slope at z, which is 0."),
        ),
    ),
    quick(
        "11.backpropagation.quick_ways",
        "All the ways",
        "Foundations (001), section 4.4",
        "What is the slope of L = x·x + 3x at x = 2?",
        lambda: 2 + 2 + 3,
        (
            Mistake(lambda: 5, "x is used twice in the product: two ways, each with slope 2."),
            Mistake(lambda: 10, "This is the value of L at 2."),
        ),
    ),
    quick(
        "11.backpropagation.quick_passes",
        "The price of trying",
        "Foundations (001), section 4.4",
        "A network has 10,000 parameters. How many forward passes does the gradient take with central differences?",
        lambda: 2 * 10_000,
        (
            Mistake(lambda: 10_001, "This is for one-sided differences. Central ones nudge both ways."),
            Mistake(lambda: 10_000, "Two passes per parameter: one nudge up, one down."),
            Mistake(lambda: 20_001, "The loss without a nudge is not needed: both sides are."),
        ),
    ),
    quick(
        "11.backpropagation.quick_he",
        "Where to begin",
        "Foundations (001), section 4.5",
        "Which standard deviation does He's rule give for a unit with 8 inputs?",
        lambda: ml.backpropagation.he_scale(8),
        (
            Mistake(lambda: 0.25, "This is the variance 2/n. The standard deviation is its root."),
            Mistake(lambda: 8**-0.5, "He's rule has a 2: the ReLU cuts off half."),
        ),
    ),
]

ITEMS = [
    FORWARD,
    OUTPUT,
    HIDDEN,
    UPDATE,
    OWN_GRADIENTS,
    OWN_COST,
    REPAIR_FORWARD,
    REPAIR_BACKWARD,
    TWO_LAYERS,
    REPAIR_ZEROING,
    LAYER_NORM,
    DELTA_PROOF,
    TAPE,
    *QUICK,
]
