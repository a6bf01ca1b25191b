"""What is shown is what runs: a training step and a generated text execute the functions that the chapters list.

`mathllm.train`, `mathllm.generate` and `mathllm.Transformer` are traced. No type, dtype, batch size or recording of
intermediates makes them take another path; the faster path has a name of its own, `mathllm.fast`.
"""
# ruff: noqa: I001 (the names of the chapter are one paragraph)

import functools
import inspect
import sys

import numpy as np
import pytest

from mathllm.attention import (
    attention, attention_weights, causal_mask, merge_heads, multi_head_attention, rotary_angles, rotate, split_heads,
)  # fmt: skip
from mathllm.autodiff import backpropagate, value_and_grad
from mathllm.cross_entropy import cross_entropy
from mathllm.gradient_descent import adamw, adamw_step, clip_gradient
from mathllm.gradients import gelu_tanh, silu
from mathllm.inference import KVCache, apply_temperature, continuation, generate, keep_top_p, sample_token, sampler
from mathllm.matrices import linear
from mathllm.softmax import softmax, softmax_gradient, softmax_in_place
from mathllm.training import mean_loss, train, training_loop, training_state
from mathllm.transformer import Transformer, feed_forward, gpt2_config, layer_norm, llama_config, record_to, rms_norm
from mathllm.trees import tree_leaves
from mathllm.vectors import embedding

SIZES = {"vocabulary": 11, "width": 8, "layers": 2, "heads": 2, "hidden": 12, "context": 256}
CONFIGS = {"gpt2": gpt2_config(**SIZES), "llama": llama_config(**SIZES)}
FAMILIES = pytest.mark.parametrize("family", CONFIGS)

ATTENTION = [attention, attention_weights, softmax_in_place, multi_head_attention, split_heads, merge_heads]
PARTS = [Transformer.hidden, Transformer.embed, Transformer.block, Transformer.sublayer, Transformer.norm]
MODEL = [embedding, *PARTS, *ATTENTION, linear, feed_forward, Transformer.unembed]
OF_FAMILY = {"gpt2": [gelu_tanh, layer_norm], "llama": [silu, rms_norm, rotary_angles, rotate]}
TRAINING = [
    train, training_loop, mean_loss, value_and_grad, backpropagate, Transformer.next_token_loss,
    Transformer.__call__, causal_mask, softmax_gradient, cross_entropy, clip_gradient, adamw_step, adamw,
]  # fmt: skip
GENERATION = [generate, continuation, sampler, apply_temperature, keep_top_p, softmax, sample_token]
WITH_CACHE = [KVCache.advance, KVCache.layer]


def names(*functions):
    """The names by which `called_by` lists these functions."""
    return {f"{f.__module__}.{f.__code__.co_qualname}" for f in map(inspect.unwrap, functions)}


def called_by(work):
    """The names of the functions of mathllm that run during work()."""
    called = set()

    def note(frame, event, _):
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("mathllm."):
            called.add(f"{module}.{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return called


def formulas(called):
    """Those of these functions that compute the value: without the recording, the pullbacks, and what these use."""
    others = ("mathllm.autodiff.", "mathllm.shapes.", "mathllm.errors.", "mathllm.trees.")
    called = {name for name in called if "<locals>" not in name and not name.startswith(others)}
    return called - names(record_to, softmax_gradient)


@functools.cache
def model_of(family, dtype=np.float64):
    model = Transformer(CONFIGS[family])
    return model, model.init(np.random.default_rng(0), dtype)


def pairs(rng, batch=3, length=5):
    """Tokens and the tokens that follow them, (B, T) each."""
    tokens = rng.integers(0, SIZES["vocabulary"], size=(batch, length + 1))
    return tokens[:, :-1], tokens[:, 1:]


def trained(family, dtype=np.float64, batch=3, length=5):
    """One step with the default optimizer, clipping, and a loss on held-out text."""
    model, params = model_of(family, dtype)
    state = training_state(params, np.random.default_rng(1))
    loss = lambda params, batch: model.next_token_loss(params, *batch)  # noqa: E731
    held_out = [pairs(np.random.default_rng(2), batch, length)]
    options = {"learning_rate": 1e-3, "max_norm": 1e-3, "validation": held_out}
    return train(state, loss, lambda rng: pairs(rng, batch, length), 1, **options)


def generated(family, dtype=np.float64, batch=1, length=4, **options):
    prompt = np.random.default_rng(3).integers(0, SIZES["vocabulary"], size=(batch, length))
    rng = np.random.default_rng(4)
    return generate(*model_of(family, dtype), prompt, max_new_tokens=3, rng=rng, top_p=0.9, **options)


@FAMILIES
def test_a_training_step_runs_the_functions_of_the_chapters(family):
    called = called_by(lambda: trained(family))
    assert not names(*MODEL, *OF_FAMILY[family], *TRAINING) - called
    assert not [name for name in called if name.startswith("mathllm.fast")]


@FAMILIES
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("cached", [True, False])
def test_generating_runs_the_functions_of_the_chapters(family, batch, cached):
    called = called_by(lambda: generated(family, batch=batch, use_cache=cached))
    assert not names(*MODEL, *OF_FAMILY[family], *GENERATION) - called
    assert names(*WITH_CACHE) & called == (names(*WITH_CACHE) if cached else set())
    assert not [name for name in called if name.startswith("mathllm.fast")]


@FAMILIES
@pytest.mark.parametrize("work", [trained, generated])
def test_batch_size_length_and_dtype_change_no_function(family, work):
    sizes = [(1, 5), (3, 5), (40, 5), (3, 130)]  # B and T
    called = [
        called_by(lambda dtype=dtype, size=size: work(family, dtype, *size))
        for dtype in (np.float32, np.float64)
        for size in sizes
        if model_of(family, dtype)  # made beforehand, because `init` is no part of the work
    ]
    for each in called:
        assert each == called[0]


@FAMILIES
def test_recording_for_a_gradient_changes_no_function(family):
    model, params = model_of(family)
    loss = lambda params: model.next_token_loss(params, *pairs(np.random.default_rng(0)))  # noqa: E731
    assert formulas(called_by(lambda: loss(params))) == formulas(called_by(lambda: value_and_grad(loss)(params)))


@FAMILIES
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_tap_changes_no_bit_of_loss_and_gradient_and_no_function(family, dtype):
    model, params = model_of(family, dtype)
    tokens, targets = pairs(np.random.default_rng(0))
    results = []

    def differentiated(**options):
        loss = lambda params: model.next_token_loss(params, tokens, targets, **options)  # noqa: E731
        results.append(value_and_grad(loss)(params))

    without = called_by(differentiated)
    record = {}
    tapped = called_by(lambda: differentiated(tap=record_to(record)))
    assert formulas(tapped) == formulas(without)
    assert len(record) > 20
    first, second = ([leaf.tobytes() for leaf in tree_leaves(result)] for result in results)
    assert first == second
