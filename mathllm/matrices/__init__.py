"""What does a layer do to a vector?

It multiplies the vector by a matrix. This chapter explains that one operation: what it computes and costs, when it is
defined, what two products in a row compute, which directions a matrix only scales, and how well a matrix of low rank
can replace it.

    products.py            matrix times vector, matrix times matrix, shapes, cost, transpose, composition
    eigen.py               eigenvalues and power iteration
    attention_matrices.py  rows that sum to one: stationary distribution, spectral gap, focus
    svd.py                 singular values and the best approximation of low rank
    lora.py                a low-rank update of a frozen matrix
"""

# What the modules define, written by tools/build_exports.py
from .attention_matrices import attention_focus, is_row_stochastic, spectral_gap, stationary_distribution
from .eigen import eigenvalues, power_iteration
from .lora import lora_init, lora_linear, lora_merge
from .products import (
    linear, matrix_product, matrix_product_by_hand, matrix_vector_product, multiply_adds, product_shape, transpose,
)  # fmt: skip
from .svd import SVD, low_rank_approximation, low_rank_error, singular_values, svd

__all__ = [
    "SVD", "attention_focus", "eigenvalues", "is_row_stochastic", "linear", "lora_init", "lora_linear", "lora_merge",
    "low_rank_approximation", "low_rank_error", "matrix_product", "matrix_product_by_hand", "matrix_vector_product",
    "multiply_adds", "power_iteration", "product_shape", "singular_values", "spectral_gap", "stationary_distribution",
    "svd", "transpose",
]  # fmt: skip
