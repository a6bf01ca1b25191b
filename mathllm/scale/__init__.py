"""What changes when one machine is not enough to train a model?

A large run is planned before it begins: its parameters, bytes and operations are counted, and a scaling law divides the
budget between the size of the model and the amount of text. Numbers of 16 bits save memory and time, and many devices
divide the work.

    cost.py          parameters, bytes and operations of a run
    precision.py     16-bit numbers, loss scaling, master weights
    parallelism.py   data, tensor and pipeline parallelism, ZeRO
    scaling_laws.py  the loss as a function of size and text, and the best division of a budget
"""

# What the modules define, written by tools/build_exports.py
from .cost import TrainingMemory, approximate_parameters, training_flops, training_memory
from .parallelism import (
    Reduced, Task, data_parallel_gradient, pipeline_bubble, pipeline_gradient, pipeline_schedule, ring_all_reduce,
    tensor_parallel_network, zero_init, zero_memory, zero_step,
)  # fmt: skip
from .precision import (
    BFLOAT16, FLOAT16, FLOAT32, FloatFormat, LossScale, MixedGradient, mixed_precision_gradient, round_to,
    update_loss_scale,
)  # fmt: skip
from .scaling_laws import (
    Allocation, CHINCHILLA, ScalingLaw, compute_optimal, fit_scaling_law, optimal_exponents, scaling_loss,
)  # fmt: skip

__all__ = [
    "Allocation", "BFLOAT16", "CHINCHILLA", "FLOAT16", "FLOAT32", "FloatFormat", "LossScale", "MixedGradient",
    "Reduced", "ScalingLaw", "Task", "TrainingMemory", "approximate_parameters", "compute_optimal",
    "data_parallel_gradient", "fit_scaling_law", "mixed_precision_gradient", "optimal_exponents", "pipeline_bubble",
    "pipeline_gradient", "pipeline_schedule", "ring_all_reduce", "round_to", "scaling_loss", "tensor_parallel_network",
    "training_flops", "training_memory", "update_loss_scale", "zero_init", "zero_memory", "zero_step",
]  # fmt: skip
