"""Sparse autoencoders: a wide dictionary of directions, few of which are active at once, recovers features."""

from __future__ import annotations  # NumPy loads its random numbers when they are used

import numpy as np

from ..autodiff import Array, ArrayLike
from ..errors import within
from ..gradient_descent import adam_step
from ..gradients import relu
from ..shapes import Contract, contract
from ..similarity import cosine_similarity_matrix
from ..vectors import normalize
from .superposition import _trained


def sparse_autoencoder_init(d: int, size: int, rng: np.random.Generator | int) -> dict[str, np.ndarray]:
    """A dictionary of random directions; the encoder begins as its transpose.

    d: width of the activations   size: m, entries of the dictionary
    ->   {"encoder": (d, m), "encoder_bias": (m,), "decoder": (m, d), unit rows, "decoder_bias": (d,)}

    Raises: ValueError for sizes below 1.
    Source: Bricken et al. 2023.

    >>> params = sparse_autoencoder_init(4, 8, rng=0)
    >>> params["encoder"].shape, np.linalg.norm(params["decoder"], axis=1).round(6).max()
    ((4, 8), np.float64(1.0))
    """
    within("sparse_autoencoder_init", "whole [1, ∞)", d=d, size=size)
    decoder = normalize(np.random.default_rng(rng).normal(size=(size, d)))
    biases = {"encoder_bias": np.zeros(size), "decoder_bias": np.zeros(d)}
    return {"encoder": decoder.T.copy(), "decoder": decoder} | biases


@contract("_, ... d -> ... m")
def sparse_codes(params: dict, x: Array) -> np.ndarray:
    """The codes: which entries of the dictionary are active, and how strongly.

        g = relu((x − b_d) W_e + b_e)                                               (16.20)

    The codes are not negative.

    Raises: ShapeError if x is not as wide as the dictionary.
    Source: Bricken et al. 2023.

    >>> params = {"encoder": np.eye(2), "encoder_bias": np.zeros(2), "decoder": np.eye(2), "decoder_bias": np.zeros(2)}
    >>> sparse_codes(params, np.array([2.0, -3.0]))
    array([2., 0.])
    """
    Contract("... d, d m").check("sparse_codes", ["x", "encoder"], [x, params["encoder"]])
    return relu((x - params["decoder_bias"]) @ params["encoder"] + params["encoder_bias"])


@contract("_, n+ d")
def sparse_autoencoder_loss(params: dict, x: Array, penalty: float = 0.1) -> np.ndarray:
    """The squared error of the reconstruction, and a penalty on the sum of the codes, which makes most of them zero.

        x̂ = g W_d + b_d,      L = mean over examples of ‖x − x̂‖² + λ‖g‖₁            (16.21)

    penalty: λ   ->   one number

    The decoder's rows need length 1; otherwise smaller codes and longer rows would avoid the penalty.
    Raises: ShapeError if x is not as wide as the dictionary; ValueError for a negative penalty.
    Source: Bricken et al. 2023.

    >>> params = {"encoder": np.eye(2), "encoder_bias": np.zeros(2), "decoder": np.eye(2), "decoder_bias": np.zeros(2)}
    >>> float(sparse_autoencoder_loss(params, np.array([[2.0, -3.0]]), penalty=0.1))  # 3² + 0.1 · 2
    9.2
    """
    within("sparse_autoencoder_loss", "[0, ∞)", penalty=penalty)
    codes = sparse_codes(params, x)
    error = codes @ params["decoder"] + params["decoder_bias"] - x
    return ((error * error).sum(axis=-1) + codes.sum(axis=-1) * penalty).mean()  # codes are not negative


@contract("n+ d")
def train_sparse_autoencoder(
    activations: ArrayLike, size: int, rng: np.random.Generator | int, *, penalty: float = 0.2, steps: int = 1500
) -> dict[str, np.ndarray]:
    """Learn a dictionary of activations by Adam; after every step the decoder's rows are given length 1 again.

    size: m   penalty: λ   ->   parameters as of `sparse_autoencoder_init`

    Raises: ValueError for a size below 1 or a negative penalty.
    Source: Bricken et al. 2023.

    >>> from mathllm.interpretability import sparse_features
    >>> rng = np.random.default_rng(0)
    >>> params = train_sparse_autoencoder(sparse_features(500, 3, 0.2, rng), 6, rng, steps=500)
    >>> bool(recovery(np.eye(3), params["decoder"]).min() > 0.95)  # each axis is an entry of the dictionary
    True
    """

    def step(params, gradient, state, **options):
        params, state = adam_step(params, gradient, state, **options)
        return params | {"decoder": normalize(params["decoder"])}, state

    rng = np.random.default_rng(rng)
    start = sparse_autoencoder_init(activations.shape[1], size, rng)
    batches = ((activations[rng.integers(0, len(activations), 256)], penalty) for _ in range(steps))
    return _trained(sparse_autoencoder_loss, start, batches, steps, step)


@contract("N d, m+ d -> N")
def recovery(directions: ArrayLike, dictionary: ArrayLike) -> np.ndarray:
    """How well each true direction has been found: its cosine with the nearest entry of the dictionary.

        r_i = max_j cos(u_i, δ_j)                                                   (16.22)

    dictionary: such as the rows of the decoder   ->   1 for a direction that was found

    Raises: ValueError for a zero row.
    Source: Sharkey et al. 2022.

    >>> recovery(np.eye(2), [[0.0, 2.0], [0.0, -1.0]])
    array([0., 1.])
    """
    return cosine_similarity_matrix(directions, dictionary).max(axis=1)
