"""What PyTorch has for each primitive of mathllm, and how far apart the two are."""

import numpy as np
import torch
import torch.nn.functional as F
from primitive_cases import MASK, angles, fixed, signs

import mathllm as ml


def math_kernel():
    """PyTorch's readable implementation: its fused ones want equal widths of keys and values."""
    return torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)


def twin_of_attention(weights_only=False, causal=False):
    """PyTorch's attention for the arguments of a case: its mask and its tiles are those of primitive_cases."""

    def theirs(query, key, value=None):
        mask = torch.tensor(ml.causal_mask(3, 4) if causal else MASK)
        if weights_only:
            scores = (query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
            return F.softmax(scores, dim=-1)
        with math_kernel():
            return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    return theirs


def turned(x):
    """Rotary positions as multiplication of complex numbers, pairs half a width apart."""
    first, second = x.chunk(2, dim=-1)
    theta = torch.tensor(angles(x), dtype=x.dtype)
    z = torch.complex(first, second) * torch.polar(torch.ones_like(theta), theta)
    return torch.cat([z.real, z.imag], dim=-1)


def dropped(x):
    """The draw of the case, its rule by PyTorch."""
    kept = torch.tensor(np.random.default_rng(0).random(x.shape, dtype=np.float32) >= 0.3)
    return x * kept / 0.7


def matrix(x, *shape):
    return torch.tensor(fixed(*shape), dtype=x.dtype)


def clipped(ratio):
    advantage = torch.tensor(signs(ratio.shape), dtype=ratio.dtype)
    return torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)


def bernoulli(p):
    return -10 * F.binary_cross_entropy(p, torch.full_like(p, 0.3), reduction="none")


def negative_sampling(v, u, n):
    return -(F.logsigmoid((v * u).sum(-1)) + F.logsigmoid(-torch.einsum("bkd,bd->bk", n, v)).sum(-1)).mean()


def variance(x, z):
    p = F.softmax(z, dim=-1)
    return (p * (x - (p * x).sum(-1, keepdim=True)) ** 2).sum(-1)


def expected(x, z):
    return (x * F.softmax(z, dim=-1)).sum(-1)


def mutual_information(z):
    log_p = F.log_softmax(z.reshape(-1), dim=0).reshape(z.shape)
    log_ratio = log_p - log_p.logsumexp(1, keepdim=True) - log_p.logsumexp(0, keepdim=True)
    return (log_p.exp() * log_ratio).sum()


def scattered(x):
    return x.new_zeros(2 * len(x), x.shape[1]).index_copy(0, torch.arange(len(x)).flip(0) * 2, x)


# What PyTorch has for each primitive, for the arguments of its case: a function, or its own operations put together.
TWINS = {
    "_add": torch.add,
    "_subtract": torch.sub,
    "_multiply": torch.mul,
    "_divide": torch.div,
    "_power": lambda x: x**3,
    "_matmul": torch.matmul,
    "_sum": lambda x: x.sum(-1),
    "_reshape": lambda x: x.reshape(x.shape[1], x.shape[0]),
    "_transpose": lambda x: x.T,
    "_getitem": lambda x: x[:, [0, 0, -1]],
    "norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "distance": lambda a, b: F.pairwise_distance(a, b, eps=0),
    "frobenius_norm": lambda W: torch.linalg.matrix_norm(W, "fro"),
    "embedding": lambda table, ids: F.embedding(ids, table),
    "dot": lambda a, b: torch.linalg.vecdot(a, b),
    "cosine_similarity": lambda a, b: F.cosine_similarity(a, b, dim=-1),
    "mean_pool": lambda x: x[:, [0, 2]].mean(1),
    "matrix_vector_product": lambda W, x: (W @ x[..., None])[..., 0],
    "linear": lambda x, W, b: F.linear(x, W.T, b),
    "singular_values": torch.linalg.svdvals,
    "lora_linear": lambda x, A, B: x @ matrix(x, x.shape[-1], 4) + 2.0 * (x @ A) @ B,
    "lora_merge": lambda W, A, B: W + 2.0 * A @ B,
    "exp": torch.exp,
    "log": torch.log,
    "log_product": lambda p: p.log().sum(-1),
    "log_sum_exp": lambda z: torch.logsumexp(z, dim=-1),
    "log_add_exp": torch.logaddexp,
    "log1m_exp": lambda x: torch.log(-torch.expm1(x)),
    "softplus": lambda x: F.softplus(x, threshold=40),  # not cut off at e^−20
    "log_sigmoid": F.logsigmoid,
    "sigmoid": torch.sigmoid,
    "bernoulli_log_likelihood": bernoulli,
    "expectation": expected,
    "variance": variance,
    "normal_log_density": lambda x, mean, sd: torch.distributions.Normal(mean, sd).log_prob(x),
    "softmax": lambda z: F.softmax(z, dim=-1),
    "log_softmax": lambda z: F.log_softmax(z, dim=-1),
    "tanh": torch.tanh,
    "surprise": lambda p: -torch.log(p),
    "entropy": lambda z: torch.special.entr(F.softmax(z, dim=-1)).sum(-1),
    "cross_entropy_between": lambda z, w: F.cross_entropy(w, F.softmax(z, dim=-1), reduction="none"),
    "kl_divergence": lambda z, w: F.kl_div(
        F.log_softmax(w, dim=-1), F.log_softmax(z, dim=-1), reduction="none", log_target=True
    ).sum(-1),
    "mutual_information": mutual_information,
    "cross_entropy": F.cross_entropy,
    "relu": F.relu,
    "erf": torch.erf,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "swiglu": lambda g, v: F.silu(g) * v,
    "dropout": dropped,
    "negative_sampling_loss": negative_sampling,
    "attention_weights": twin_of_attention(weights_only=True),
    "attention": twin_of_attention(),
    "flash_attention": twin_of_attention(causal=True),
    "positive_features": lambda x: F.elu(x) + 1,
    "rotate": turned,
    "binary_cross_entropy": lambda z, y: F.binary_cross_entropy_with_logits(z, y.to(z.dtype)),
    "layer_norm": lambda x, g, b: F.layer_norm(x, x.shape[-1:], g, b),
    "rms_norm": lambda x, g: F.rms_norm(x, x.shape[-1:], g, 1e-5),
    "batch_norm": lambda x, g, b: F.batch_norm(x, None, None, g, b, training=True),
    "scatter": scattered,
    "clipped_surrogate": clipped,
    "kl_estimate": lambda p, q: torch.expm1(q - p) - (q - p),
}
MISSING = {"round_to": "PyTorch rounds by a cast; the straight line through the steps is our own rule"}


def both_ways(ours, theirs, arrays, rng):
    """Value and gradients of both at the same place with the same cotangent: (ours, theirs), (ours, theirs), …"""
    tensors = [torch.from_numpy(x.copy()) for x in arrays]
    trained = [t.requires_grad_() for t in tensors if t.is_floating_point()]
    their_value = theirs(*tensors)
    cotangent = np.asarray(rng.normal(size=tuple(their_value.shape)), arrays[0].dtype)
    their_value.backward(torch.from_numpy(cotangent))
    our_value, pullback = ml.vjp(ours, *arrays)
    slopes = [slope for slope, x in zip(pullback(cotangent), arrays, strict=True) if x.dtype.kind == "f"]
    return [(our_value, their_value), *zip(slopes, [tensor.grad for tensor in trained], strict=True)]
