"""The calculator of chapter 12 counts as mathllm counts, and mathllm counts as a model is made."""

import numpy as np
import pytest
import traitlets
from test_widgets import run_js

import mathllm as ml
from mathllm.figures.widgets import ParameterCalculator


def _configs():
    """Random sizes, with every choice that the calculator knows."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        heads, kv_heads = [(4, 4), (4, 2), (4, 1)][rng.integers(3)]
        width = 4 * int(rng.integers(1, 40)) * 2
        yield ml.Config(
            vocabulary=int(rng.integers(10, 60_000)), width=width, layers=int(rng.integers(1, 40)), heads=heads,
            kv_heads=kv_heads, hidden=int(rng.integers(8, 4000)), context=int(rng.integers(1, 3000)),
            positions=str(rng.choice(["learned", "none"])), gated=bool(rng.integers(2)), tied=bool(rng.integers(2)),
            **({"norm": "layer", "bias": True} if rng.integers(2) else {"norm": "rms", "bias": False}),
        )  # fmt: skip


def _sizes(config):
    return {
        "vocabulary": config.vocabulary, "width": config.width, "layers": config.layers, "hidden": config.hidden,
        "context": config.context if config.positions == "learned" else 0,
        "key_width": config.kv_heads * config.head_width, "gated": config.gated, "bias": config.bias,
        "tied": config.tied,
    }  # fmt: skip


def test_every_part_is_counted_as_mathllm_counts_it():
    configs = list(_configs())
    counted = run_js("parameter_calculator.js", "parameterCount", [[_sizes(config)] for config in configs])
    for config, parts in zip(configs, counted, strict=True):
        ours = ml.parameter_count(config)
        assert parts == {name: ours[name] for name in parts}
        assert sum(parts.values()) == ours["total"]


def test_the_models_have_their_published_sizes():
    figure = ParameterCalculator()
    counts = run_js("parameter_calculator.js", "parameterCount", [[sizes] for sizes in figure.models.values()])
    totals = dict(zip(figure.models, [sum(parts.values()) for parts in counts], strict=True))
    llama, gpt3 = ml.llama_config(), ml.gpt2_config(width=12288, layers=96, heads=96, context=2048)
    assert totals["GPT-2"] == ml.parameter_count(ml.gpt2_config())["total"] == 124_439_808
    assert totals["GPT-3"] == ml.parameter_count(gpt3)["total"]
    assert totals["LLaMA-7B"] == ml.parameter_count(llama)["total"]
    assert totals["SmolLM2"] == 134_515_008  # the numbers in its file


def test_an_unknown_model_is_refused_by_name():
    with pytest.raises(traitlets.TraitError, match=r"'GPT-2', 'GPT-3', 'LLaMA-7B', 'SmolLM2'.*'GPT-9'"):
        ParameterCalculator(model="GPT-9")
