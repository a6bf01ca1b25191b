"""Interactive figures: predict, then move.

Each figure is a short Python class that holds data and an ES module beside it that does everything else, arithmetic
included. So a figure works in JupyterLab, in the browser edition, and on a static page where no kernel answers. The
functions that compute are exported by the module, and a test runs them in node against `mathllm`.

anywidget is imported at first use: `import mathllm` needs NumPy alone.
"""

import importlib

__all__ = [
    "AngleCosine",
    "AttentionStepper",
    "BackpropStepper",
    "BetaBelief",
    "DescentSurface",
    "FeaturePlane",
    "GridDeformation",
    "KLLeash",
    "LogProduct",
    "MergeStepper",
    "ParameterCalculator",
    "RankSlider",
    "RotaryPair",
    "SamplingFilters",
    "SecantTangent",
    "SoftmaxBars",
    "TrainingBudget",
    "TwoDistributions",
    "VectorLength",
    "WordMap",
]

_MODULES = {
    "AngleCosine": "angle_cosine",
    "AttentionStepper": "attention_stepper",
    "BackpropStepper": "backprop_stepper",
    "BetaBelief": "beta_belief",
    "DescentSurface": "descent_surface",
    "FeaturePlane": "feature_plane",
    "GridDeformation": "grid_deformation",
    "KLLeash": "kl_leash",
    "LogProduct": "log_product",
    "MergeStepper": "merge_stepper",
    "ParameterCalculator": "parameter_calculator",
    "RankSlider": "rank_slider",
    "RotaryPair": "rotary_pair",
    "SamplingFilters": "sampling_filters",
    "SecantTangent": "secant_tangent",
    "SoftmaxBars": "softmax_bars",
    "TrainingBudget": "training_budget",
    "TwoDistributions": "two_distributions",
    "VectorLength": "vector_length",
    "WordMap": "word_map",
}


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)


def __dir__():
    return sorted([*globals(), *_MODULES])
