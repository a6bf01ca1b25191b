"""Features hidden in superposition can be found again: learn a wide dictionary of which few entries are ever used."""

from __future__ import annotations  # numpy.random is loaded when it is used

import numpy as np

from ..autodiff import value_and_grad
from ..errors import ShapeError
from ..gradient_descent import adam_init, adam_step
from ..gradients import relu
from ..similarity import cosine_similarity_matrix
from ..vectors import normalize


def sparse_autoencoder_init(rng: np.random.Generator, d: int, size: int) -> dict[str, np.ndarray]:
    """A dictionary of random directions; the encoder begins as its transpose.

    d: width of the activations   size: m, entries of the dictionary
    ->   {"encoder": (d, m), "encoder_bias": (m,), "decoder": (m, d), unit rows, "decoder_bias": (d,)}

    Raises: ValueError for sizes below 1.
    Source: Bricken et al. 2023.

    >>> params = sparse_autoencoder_init(np.random.default_rng(0), 4, 8)
    >>> params["encoder"].shape, np.linalg.norm(params["decoder"], axis=1).round(6).max()
    ((4, 8), np.float64(1.0))
    """
    if d < 1 or size < 1:
        raise ValueError(f"sparse_autoencoder_init() needs sizes of at least 1, got {d} and {size}")
    decoder = normalize(rng.normal(size=(size, d)))
    return {
        "encoder": decoder.T.copy(), "encoder_bias": np.zeros(size), "decoder": decoder, "decoder_bias": np.zeros(d),
    }  # fmt: skip


def sparse_codes(params, x):
    """Which entries of the dictionary are active, and how strongly.

        f = relu((x − b_d) W_e + b_e)                                               (16.20)

    x: (..., d)   ->   f: (..., m), none negative

    Raises: ShapeError if x is not as wide as the dictionary.
    Source: 004, sparse autoencoders; Bricken et al. 2023.

    >>> params = {"encoder": np.eye(2), "encoder_bias": np.zeros(2), "decoder": np.eye(2), "decoder_bias": np.zeros(2)}
    >>> sparse_codes(params, np.array([2.0, -3.0]))
    array([2., 0.])
    """
    width = params["encoder"].shape[0]
    if not x.ndim or x.shape[-1] != width:
        raise ShapeError(f"sparse_codes() needs vectors of {width} components, got shape {x.shape}")
    return relu((x - params["decoder_bias"]) @ params["encoder"] + params["encoder_bias"])


def sparse_autoencoder_loss(params, x, penalty: float = 0.1):
    """Rebuild each activation from few directions: an error, and a price for every code that is not zero.

        x̂ = f W_d + b_d,      L = mean over examples of ‖x − x̂‖² + λ‖f‖₁            (16.21)

    x: (n, d)   penalty: λ   ->   one number

    With decoder rows of length 1 the price cannot be dodged by small codes and long rows.
    Raises: ShapeError if x is not as wide as the dictionary; ValueError for a negative penalty.
    Source: 004, sparse autoencoders; Bricken et al. 2023.

    >>> params = {"encoder": np.eye(2), "encoder_bias": np.zeros(2), "decoder": np.eye(2), "decoder_bias": np.zeros(2)}
    >>> float(sparse_autoencoder_loss(params, np.array([[2.0, -3.0]]), penalty=0.1))  # 3² + 0.1 · 2
    9.2
    """
    if not penalty >= 0:
        raise ValueError(f"sparse_autoencoder_loss() needs a penalty of at least 0, got {penalty}")
    codes = sparse_codes(params, x)
    error = codes @ params["decoder"] + params["decoder_bias"] - x
    return ((error * error).sum(axis=-1) + codes.sum(axis=-1) * penalty).mean()  # codes are not negative


def train_sparse_autoencoder(
    activations, size: int, rng: np.random.Generator, *,
    penalty: float = 0.2, steps: int = 1500, batch: int = 256, learning_rate: float = 0.02,
):  # fmt: skip
    """Learn a dictionary of activations; after every step the decoder's rows are given length 1 again.

    activations: (n, d)   size: m   penalty: λ   ->   parameters as of `sparse_autoencoder_init`

    Raises: ShapeError for activations that are not (n, d).
    Source: 004, sparse autoencoders; Bricken et al. 2023.

    >>> from mathllm.interpretability import sparse_features
    >>> rng = np.random.default_rng(0)
    >>> params = train_sparse_autoencoder(sparse_features(500, 3, 0.2, rng), 6, rng, steps=500)
    >>> bool(recovery(np.eye(3), params["decoder"]).min() > 0.95)  # each axis is an entry of the dictionary
    True
    """
    activations = np.asarray(activations)
    if activations.ndim != 2 or not len(activations):
        raise ShapeError(f"train_sparse_autoencoder() needs activations (n, d), got shape {activations.shape}")
    params = sparse_autoencoder_init(rng, activations.shape[1], size)
    state = adam_init(params)
    for step in range(steps):
        x = activations[rng.integers(0, len(activations), batch)]
        _, gradient = value_and_grad(sparse_autoencoder_loss)(params, x, penalty)
        params, state = adam_step(params, gradient, state, learning_rate=learning_rate * (1 - step / steps))
        params = params | {"decoder": normalize(params["decoder"])}
    return params


def recovery(directions, dictionary) -> np.ndarray:
    """How well each true direction has been found: its cosine with the nearest entry of the dictionary.

        r_i = max_j cos(u_i, w_j)                                                   (16.22)

    directions: (N, d)   dictionary: (m, d), such as the decoder   ->   (N,), 1 for a direction that was found

    Raises: ShapeError if the widths differ; ValueError for a zero row.
    Source: Sharkey et al. 2022.

    >>> recovery(np.eye(2), [[0.0, 2.0], [0.0, -1.0]])
    array([0., 1.])
    """
    return cosine_similarity_matrix(directions, dictionary).max(axis=1)
