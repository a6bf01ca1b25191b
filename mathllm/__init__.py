"""The mathematics of large language models in NumPy: every formula of the book, once, with its gradient beside it.

>>> import mathllm as ml
>>> float(ml.norm([3, 4]))
5.0
"""

from . import (
    alignment,
    autodiff,
    backpropagation,
    gradient_descent,
    gradients,
    inference,
    interpretability,
    matrices,
    probability,
    similarity,
    training,
    transformer,
)
from . import attention as _attention  # the name without _ is the function
from . import cross_entropy as _cross_entropy
from .alignment import *  # noqa: F403
from .attention import *  # noqa: F403
from .autodiff import *  # noqa: F403
from .backpropagation import *  # noqa: F403
from .cross_entropy import *  # noqa: F403
from .errors import MissingDataError, ShapeError, UnknownReferenceError, UnknownWordError, suggest
from .exponentials import (
    ExponentRange,
    exp,
    exponent_range,
    log,
    log1m_exp,
    log_add_exp,
    log_product,
    log_sigmoid,
    log_sum_exp,
    sigmoid,
    softplus,
    subtract_maximum,
)  # fmt: skip
from .gradient_descent import *  # noqa: F403
from .gradients import *  # noqa: F403
from .inference import *  # noqa: F403
from .interpretability import *  # noqa: F403
from .matrices import *  # noqa: F403
from .probability import *  # noqa: F403
from .similarity import *  # noqa: F403
from .softmax import (
    log_softmax,
    shifted_logits,
    softmax,
    softmax_gradient,
    softmax_in_place,
    softmax_jacobian,
    tanh,
)  # fmt: skip
from .training import *  # noqa: F403
from .transformer import *  # noqa: F403
from .trees import flatten, tree_leaves, tree_map, walk
from .vectors import distance, embedding, frobenius_norm, norm, normalize, one_hot, token_ids, vector

__version__ = "0.1.0"
__all__ = [  # in reading order
    "MissingDataError", "ShapeError", "UnknownReferenceError", "UnknownWordError", "suggest",
    "flatten", "tree_leaves", "tree_map", "walk",
    *autodiff.__all__,
    "distance", "embedding", "frobenius_norm", "norm", "normalize", "one_hot", "token_ids", "vector",
    *similarity.__all__,
    *matrices.__all__,
    "ExponentRange", "exp", "exponent_range", "log", "log1m_exp", "log_add_exp", "log_product", "log_sigmoid",
    "log_sum_exp", "sigmoid", "softplus", "subtract_maximum",
    *probability.__all__,
    "log_softmax", "shifted_logits", "softmax", "softmax_gradient", "softmax_in_place", "softmax_jacobian", "tanh",
    *_cross_entropy.__all__,
    *gradients.__all__,
    *gradient_descent.__all__,
    *_attention.__all__,
    *backpropagation.__all__,
    *transformer.__all__,
    *training.__all__,
    *inference.__all__,
    *alignment.__all__,
    *interpretability.__all__,
]
