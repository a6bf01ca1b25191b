"""Every optimiser step for step with PyTorch's own, and what goes with them: schedules, clipping, decay."""

import numpy as np
import pytest
import torch

import mathllm as ml
from mathllm import gradient_descent
from mathllm.gradient_descent import momentum_init, momentum_step, rmsprop_init, rmsprop_step, sgd_init, sgd_step
from mathllm.trees import tree_leaves, tree_map

SHAPES = {"weight": (4, 3), "bias": (3,), "gain": (5,)}
STEPS = 20

# name, PyTorch's optimiser, our init, our step with its options
OPTIMIZERS = [
    ("sgd, decay", lambda p: torch.optim.SGD(p, lr=0.01, weight_decay=0.2), sgd_init, sgd_step,
     {"learning_rate": 0.01, "weight_decay": 0.2}),
    ("momentum, decay", lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.8, weight_decay=0.2), momentum_init,
     momentum_step, {"learning_rate": 0.01, "beta": 0.8, "weight_decay": 0.2}),
    ("rmsprop", lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.9), rmsprop_init, rmsprop_step,
     {"learning_rate": 0.01, "beta": 0.9}),
    ("adam", lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.95)), ml.adam_init, ml.adam_step,
     {"learning_rate": 0.01, "beta1": 0.8, "beta2": 0.95}),
    ("adam, l2", lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.2), ml.adam_init, ml.adam_step,
     {"learning_rate": 0.01, "l2": 0.2}),
    ("adamw", lambda p: torch.optim.AdamW(p, lr=0.01, betas=(0.9, 0.95), weight_decay=0.2), ml.adamw_init,
     ml.adamw_step, {"learning_rate": 0.01, "beta2": 0.95, "weight_decay": 0.2}),
]  # fmt: skip


def loss(params):
    """A bent valley, built from what the tensors of both can do."""
    weight, bias, gain = params["weight"], params["bias"], params["gain"]
    y = weight @ weight.T
    return (y * y).sum() + ((weight + bias) ** 2).sum() * 0.5 + (gain * gain * gain * gain).sum() + bias.sum() * 3


def start(dtype):
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in SHAPES.items()}


def as_tensors(params):
    return {name: torch.tensor(value, requires_grad=True) for name, value in params.items()}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "optimizer", "init", "step", "options"), OPTIMIZERS, ids=[o[0] for o in OPTIMIZERS])
def test_twenty_steps_are_those_of_pytorch(agree, name, optimizer, init, step, options, dtype):
    params = start(dtype)
    tensors, state = as_tensors(params), init(params)
    theirs = optimizer(tensors.values())
    for _ in range(STEPS):
        theirs.zero_grad()
        loss(tensors).backward()
        slopes = {key: tensor.grad.numpy().copy() for key, tensor in tensors.items()}
        theirs.step()
        params, state = step(params, slopes, state, **options)  # both take the same slopes, of PyTorch's path
        for key, tensor in tensors.items():
            agree(name, f"value, {dtype}", params[key], tensor, within={"float64": 1e-12, "float32": 1e-5}[dtype])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("limit", [1e-3, 1.0, 1e6])
def test_clipping_shortens_gradients_as_pytorch_does(agree, limit, dtype):
    gradient = start(dtype)
    tensors = as_tensors(tree_map(np.zeros_like, gradient))
    for key, tensor in tensors.items():
        tensor.grad = torch.tensor(gradient[key])
    their_length = torch.nn.utils.clip_grad_norm_(tensors.values(), limit)
    clipped, length = ml.clip_gradient(gradient, limit)
    agree("clip_gradient, length", f"value, {dtype}", np.asarray(length, dtype), their_length, within=1e-6)
    # PyTorch divides by the length + 10⁻⁶
    for ours, tensor in zip(tree_leaves(clipped), tensors.values(), strict=True):
        agree("clip_gradient", f"value, {dtype}", ours, tensor.grad, within=1e-6)


# Schedules


def rates(schedule, steps, lr=0.3):
    """The learning rates of a PyTorch scheduler at t = 0, 1, …"""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    scheduler, found = schedule(optimizer), []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return np.array(found)


SCHEDULES = [
    ("cosine", lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=20, eta_min=0.05),
     lambda t: ml.warmup_cosine(t, peak=0.3, total=20, floor=0.05), 21),
    ("cosine with restarts", lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=7, eta_min=0.05),
     lambda t: gradient_descent.cosine_restarts(t, peak=0.3, period=7, floor=0.05), 30),
    ("cosine with longer restarts", lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2),
     lambda t: gradient_descent.cosine_restarts(t, peak=0.3, period=3, growth=2), 30),
    ("polynomial decay", lambda o: torch.optim.lr_scheduler.PolynomialLR(o, total_iters=20, power=2.0),
     lambda t: gradient_descent.polynomial_decay(t, peak=0.3, total=20, power=2.0), 25),
]  # fmt: skip


@pytest.mark.parametrize(("name", "theirs", "ours", "steps"), SCHEDULES, ids=[case[0] for case in SCHEDULES])
def test_learning_rates_are_those_of_pytorch_at_every_step(agree, name, theirs, ours, steps):
    expected = rates(theirs, steps)
    agree(f"schedule: {name}", "value, float64", [ours(t) for t in range(steps)], expected, within=1e-11)


def test_the_cosine_after_a_warmup_is_that_of_transformers_at_every_step(agree):
    from transformers import optimization as theirs

    # Up to the end: beyond, the cosine of transformers climbs again, and ours stays at its floor
    cosine = rates(lambda o: theirs.get_cosine_schedule_with_warmup(o, 5, 20), 21)
    ours = [ml.warmup_cosine(t, peak=0.3, total=20, warmup=5) for t in range(21)]
    agree("schedule: transformers' cosine", "value, float64", ours, cosine, within=1e-12)
