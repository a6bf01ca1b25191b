"""Every primitive that PyTorch has, too: the same value and the same gradients, in float64 and float32.

The pullbacks of mathllm are derived by hand; PyTorch's come from its own kernels. Both get the same random cotangent.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from primitive_cases import ALL, arguments
from twins import MISSING, TWINS, both_ways

import mathllm as ml

WITHIN = {"float64": 1e-12, "float32": 1e-5}


def compared(agree, name, ours, theirs, arrays, rng):
    """Value and gradients of one function at the same place with the same cotangent."""
    dtype = arrays[0].dtype.name
    value, *gradients = both_ways(ours, theirs, arrays, rng)
    agree(name, f"value, {dtype}", *value, within=WITHIN[dtype])
    for gradient in gradients:
        agree(name, f"gradients, {dtype}", *gradient, within=WITHIN[dtype])


def test_every_primitive_has_its_twin_or_a_reason():
    assert TWINS.keys() | MISSING.keys() == {case.name for case in ALL}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", [case for case in ALL if case.name in TWINS], ids=lambda case: case.name)
def test_value_and_gradients_are_those_of_pytorch(agree, case, dtype):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        compared(agree, case.name, case.call, TWINS[case.name], arguments(case, dtype, n=12, d=7, seed=seed), rng)


# Attention


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention_agrees_with_the_kernels_of_pytorch(agree, causal, dtype):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(2, 4, 70, 8)).astype(dtype) for _ in range(3)]
    compared(
        agree, f"flash_attention{', causal' if causal else ''}",
        lambda q, k, v: ml.flash_attention(q, k, v, causal=causal, block_size=16),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), arrays, rng,
    )  # fmt: skip


def test_multi_head_attention_is_that_of_the_pytorch_module(agree):
    rng = np.random.default_rng(0)
    module = torch.nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    parts = ("query", "key", "value")
    weights, biases = module.in_proj_weight.detach().numpy(), rng.normal(size=36)
    output = module.out_proj
    with torch.no_grad():
        module.in_proj_bias.copy_(torch.tensor(biases))
        output.bias.copy_(torch.tensor(rng.normal(size=12)))
    params = {part: w.T for part, w in zip(parts, np.split(weights, 3), strict=True)}
    params |= {f"{part}_bias": b for part, b in zip(parts, np.split(biases, 3), strict=True)}
    params |= {"output": output.weight.detach().numpy().T, "output_bias": output.bias.detach().numpy()}
    marks = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    compared(
        agree, "multi_head_attention, module",
        lambda x: ml.multi_head_attention(x, params, heads=3, mask=ml.padding_mask(marks)),
        lambda x: module(x, x, x, key_padding_mask=torch.tensor(marks == 0), need_weights=False)[0],
        [rng.normal(size=(2, 4, 12))], rng,
    )  # fmt: skip


# Dropout: both draw their own masks, so the rule is compared, not the draw


def test_dropout_scales_what_it_keeps_as_pytorch_does():
    rng = np.random.default_rng(0)
    x = np.full(20_000, 1.7)
    tensor = torch.tensor(x, requires_grad=True)
    theirs = F.dropout(tensor, 0.3)
    theirs.sum().backward()
    ours, pullback = ml.vjp(lambda x: ml.gradient_descent.dropout(x, rate=0.3, rng=rng), x)
    (slopes,) = pullback(np.ones_like(x))
    theirs, their_slopes = theirs.detach().numpy(), tensor.grad.numpy()
    np.testing.assert_allclose(np.unique(ours), np.unique(theirs), rtol=1e-14)  # 0 and 1.7/0.7
    np.testing.assert_allclose(np.unique(slopes), np.unique(their_slopes), rtol=1e-14)
    assert abs(np.mean(ours == 0) - np.mean(theirs == 0)) < 0.02  # five standard errors of the difference
    np.testing.assert_array_equal(slopes == 0, ours == 0)
