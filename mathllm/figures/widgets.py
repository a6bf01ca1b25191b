"""Interactive figures: the reader predicts what a change does, and then makes it.

Each figure is a class that holds its settings, and an ES module (`VectorLength`, vector_length.js) that does everything
else, arithmetic included. So a figure works in JupyterLab, in the browser edition, and on a static page without a
kernel. The modules export the functions that compute, and tests compare them in node with `mathllm`.

This module needs anywidget: `pip install mathllm[book]`.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import anywidget
import numpy as np
import traitlets

from ..autodiff import ArrayLike
from ..errors import ShapeError, all_within, within
from ..matrices import svd

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./elements\.js";\n', re.MULTILINE)


def read(name: str) -> str:
    """A file beside this module: an ES module or the style sheet.

    >>> "export default" in read("vector_length.js")
    True
    """
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def module(name: str) -> str:
    """The ES module of a figure, with elements.js in place of its import, because a static page cannot import files.

    >>> module("vector_length.js").count("function svg(")
    1
    """
    return read("elements.js") + "\n" + _IMPORT.sub("", read(name))


class Figure(anywidget.AnyWidget):
    """An interactive figure. A subclass has traits, and a module of its name: that of VectorLength is vector_length.js.

    The first line of its docstring describes the figure to readers wherever it cannot be shown.
    Raises: ValueError for lists of different lengths among the traits `_of_one_length`, and for what `_problem` says.
    """

    _css = read("widgets.css")
    _of_one_length = ()

    def __init_subclass__(cls, **options: Any):
        if "_esm" not in vars(cls):  # each object has a class of its own, which anywidget derives with its module
            words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]+", cls.__name__)
            cls._esm = module("_".join(words).lower() + ".js")
        super().__init_subclass__(**options)

    def __init__(self, **traits: Any):
        super().__init__(**traits)
        lengths = {name: len(getattr(self, name)) for name in self._of_one_length}
        problem = self._problem()
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name} {length}" for name, length in lengths.items())
            problem = f"needs lists of one length, got {found}"
        if problem:
            raise ValueError(f"{type(self).__name__} {problem}")

    def __repr__(self) -> str:
        return f"Interactive figure: {inspect.getdoc(type(self)).splitlines()[0]}"

    def _problem(self):
        """Why these traits cannot be shown, to follow the name of the figure in a message, or None."""


def _number(default, low, high):
    return traitlets.Float(default, min=low, max=high).tag(sync=True)


def _whole(default, low, high=None):
    return traitlets.Int(default, min=low, max=high).tag(sync=True)


def _choice(*values):
    return traitlets.Enum(values, values[0]).tag(sync=True)


def _words(default=()):
    return traitlets.List(traitlets.Unicode(), list(default), minlen=1).tag(sync=True)


def _numbers(default=(), low=-np.inf, high=np.inf, length=None):
    each = traitlets.Float(min=low, max=high)
    return traitlets.List(each, list(default), minlen=length or 0, maxlen=length or 10**6).tag(sync=True)


class AngleCosine(Figure):
    """Sliders for the angle and the lengths of two arrows; their cosine and dot product.

    angle: degrees from 0 to 180   length_a, length_b: from 0.5 to 4

    >>> AngleCosine(angle=60).angle
    60.0
    """

    angle = _number(35.0, 0, 180)
    length_a = _number(3.0, 0.5, 4)
    length_b = _number(2.0, 0.5, 4)


class AttentionStepper(Figure):
    """Attention step by step: scores, scaling, mask, softmax and output, with every number.

    examples: dictionaries with name, tokens, query, key and value (a list of rows each; value may be empty)
    example, step, row: what is shown at first   mask: "none", "causal" or "window"   scaled: whether to divide by √d_k

    Raises: ValueError for matrices without one row per token, or an example or row that does not exist.

    >>> AttentionStepper(step=4).examples[1]["name"]
    'The cat sat'
    """

    _EXAMPLES = (
        {"name": "three tokens", "tokens": ["1", "2", "3"], "query": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]],
         "key": [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], "value": [[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]]},
        {"name": "The cat sat", "tokens": ["The", "cat", "sat"], "query": [[1.0, 0.5], [0.3, 0.8], [0.1, 0.9]],
         "key": [[0.9, 0.2], [0.4, 0.7], [0.2, 0.8]], "value": []},  # this example ends with the weights
    )  # fmt: skip
    examples = traitlets.List(traitlets.Dict(), list(_EXAMPLES), minlen=1).tag(sync=True)
    example = _whole(0, 0)
    step = _whole(1, 1, 5)
    row = _whole(0, 0)
    mask = _choice("none", "causal", "window")
    scaled = traitlets.Bool(True).tag(sync=True)

    def _problem(self):
        for example in self.examples:
            lengths = [len(example[name]) for name in ("tokens", "query", "key", "value") if len(example[name])]
            if len(set(lengths)) != 1 or len(lengths) < 3:
                return f"needs one row per token, got {lengths} in {example['name']!r}"
        if self.example >= len(self.examples) or self.row >= len(self.examples[self.example]["tokens"]):
            return f"has no row {self.row} in an example {self.example}"


class BackpropStepper(Figure):
    """Backpropagation step by step: value and gradient in every node of a 2-2-1 network.

    inputs: two numbers from −2 to 2   target: 0 or 1   step: 1 to 8

    >>> BackpropStepper().inputs
    [1.0, 0.5]
    """

    inputs = _numbers([1.0, 0.5], -2, 2, length=2)
    target = _choice(1, 0)
    step = _whole(1, 1, 8)


class BetaPosterior(Figure):
    """Sliders for a Beta prior and throws of a coin; curves of prior and posterior.

    prior_a, prior_b: parameters of the prior, from 1 to 50   heads, tails: how often each was thrown, from 0 to 50

    >>> BetaPosterior(heads=7, tails=3).heads
    7
    """

    prior_a = _whole(1, 1, 50)
    prior_b = _whole(1, 1, 50)
    heads = _whole(7, 0, 50)
    tails = _whole(3, 0, 50)


class DescentSurface(Figure):
    """A contour map, and the path that gradient descent, momentum or Adam takes on it.

    surface: "narrow valley", ½(x² + 20y²); "saddle point", ½(x² − y²) + ¼y⁴; "two minima", ½(x² − 1)² + 0.3x + y²
    method: "gradient descent", "momentum" (heavy ball) or "Adam"   log_rate: the logarithm to base 10 of the learning
    rate η, from −3 to 0   beta: β of momentum, β₁ of Adam   steps: from 0 to 100

    >>> DescentSurface(surface="saddle point", method="Adam").steps
    20
    """

    surface = _choice("narrow valley", "saddle point", "two minima")
    method = _choice("gradient descent", "momentum", "Adam")
    log_rate = _number(-1.3, -3, 0)
    beta = _number(0.9, 0, 0.99)
    steps = _whole(20, 0, 100)


class FeaturePlane(Figure):
    """Features share a plane: switch some on, and see which outputs are not zero.

    features: 2 to 8 directions, evenly spread   active: those that are on, counted from 1   bias: from −1 to 0

    Raises: ValueError for an active feature that does not exist.

    >>> FeaturePlane(features=3, active=[2]).bias
    0.0
    """

    features = _whole(5, 2, 8)
    active = traitlets.List(traitlets.Int(), [1]).tag(sync=True)
    bias = _number(0.0, -1, 0)

    def _problem(self):
        if not set(self.active) <= set(range(1, self.features + 1)):
            return f"needs active features from 1 to {self.features}, got {self.active}"


class GridDeformation(Figure):
    """Sliders for a 2 × 2 matrix; the grid of the plane and a circle after the matrix.

    w11, w12, w21, w22: the entries, from −2 to 2   amount: from 0 (the identity) to 1 (the matrix)

    >>> GridDeformation(w12=1.0).w12
    1.0
    """

    w11 = _number(1.0, -2, 2)
    w12 = _number(0.0, -2, 2)
    w21 = _number(0.0, -2, 2)
    w22 = _number(1.0, -2, 2)
    amount = _number(1.0, 0, 1)


class KLPenalty(Figure):
    """A slider for β; bars of the policy with the largest reward minus β times KL.

    answers: their names   reference: π_ref, a distribution   reward: what is maximised   true_reward: what was meant,
    both one number for each answer   beta: from 0.1 to 10

    Raises: ValueError where the numbers of entries differ, or the reference does not sum to 1 or has a zero.

    >>> KLPenalty().beta
    10.0
    """

    answers = _words(["plain", "rude", "friendly", "☺☺☺☺"])
    reference = _numbers([0.5, 0.3, 0.199, 0.001])
    reward = _numbers([1.0, 0.0, 2.0, 4.0])
    true_reward = _numbers([1.0, 0.0, 2.0, -2.0])
    beta = _number(10.0, 0.1, 10)
    _of_one_length = ("answers", "reference", "reward", "true_reward")

    def _problem(self):
        if not all(p > 0 for p in self.reference) or not np.isclose(sum(self.reference), 1, rtol=0, atol=1e-6):
            return f"needs a distribution without zeros as reference, got {self.reference}"


class LogProduct(Figure):
    """A product of equal probabilities in three number types, and the sum of their logarithms.

    probability: of each factor, from 0.01 to 0.99   factors: how many, from 1 to 1000

    >>> LogProduct(factors=30).factors
    30
    """

    probability = _number(0.5, 0.01, 0.99)
    factors = _whole(20, 1, 1000)


class MergeStepper(Figure):
    """Byte-pair encoding merge by merge: words as symbols, and their most frequent pairs.

    words: {word: how often it occurs}, shown first, before three small corpora   ties: "first appearance" or
    "lexicographic"   step: merges done at the start

    Raises: ValueError for no words.

    >>> MergeStepper(words={"aab": 2}).corpora["words from the text"]
    {'aab': 2}
    """

    _CORPORA = {  # noqa: RUF012 - read-only
        "twelve words": {"low": 5, "lowest": 2, "newer": 3, "wider": 2},
        "repeated letters": {"banana": 3, "bandana": 2, "ananas": 2, "cabana": 1},
        "verbs": {"walk": 4, "walked": 3, "walking": 3, "talk": 2, "talked": 4, "talking": 2},
    }
    corpora = traitlets.Dict(_CORPORA).tag(sync=True)
    corpus = traitlets.Unicode("").tag(sync=True)
    ties = _choice("first appearance", "lexicographic")
    step = _whole(0, 0)

    def __init__(self, words: Mapping[str, int] | None = None, **traits: Any):
        if words is not None:
            traits["corpora"] = {"words from the text": dict(words)} | self._CORPORA
        super().__init__(**traits)
        self.corpus = self.corpus or next(iter(self.corpora))

    def _problem(self):
        if not self.corpora or not all(self.corpora.values()):
            return "needs words, got none"


class ParameterCalculator(Figure):
    """Sliders for the sizes of a transformer; bars of the parameters of each part.

    model: the model shown at first, "GPT-2", "GPT-3", "LLaMA-7B" or "SmolLM2"

    >>> ParameterCalculator(model="GPT-3").model
    'GPT-3'
    """

    _MODELS = {  # noqa: RUF012 - read-only
        "GPT-2": {"vocabulary": 50257, "width": 768, "layers": 12, "hidden": 3072, "context": 1024},
        "GPT-3": {"vocabulary": 50257, "width": 12288, "layers": 96, "hidden": 49152, "context": 2048},
        "LLaMA-7B": {"vocabulary": 32000, "width": 4096, "layers": 32, "hidden": 11008, "context": 0,
                     "gated": True, "bias": False, "tied": False},
        "SmolLM2": {"vocabulary": 49152, "width": 576, "layers": 30, "hidden": 1536, "context": 0,
                    "gated": True, "bias": False, "key_width": 192},
    }  # fmt: skip
    models = traitlets.Dict(_MODELS).tag(sync=True)
    model = _choice(*_MODELS)


class RankSlider(Figure):
    """A picture rebuilt from its largest singular values; a slider sets how many.

    picture: a matrix (m, n) of numbers from 0 (white) to 1 (black), at most 64 on each side   rank: how many

    Raises: ValueError for numbers outside of 0 to 1, a picture of another size, or a rank that it cannot have.

    >>> RankSlider([[0.0, 1.0], [1.0, 0.0]], rank=2).sizes
    [1.0, 1.0]
    """

    columns = traitlets.List().tag(sync=True)  # u_i, one list for each singular value
    sizes = traitlets.List().tag(sync=True)  # σ_i, the largest first
    rows = traitlets.List().tag(sync=True)  # v_i
    rank = _whole(1, 0)

    def __init__(self, picture: ArrayLike, **traits: Any):
        picture = np.asarray(picture, dtype=float)
        if picture.ndim != 2 or not 1 <= min(picture.shape) <= max(picture.shape) <= 64:
            raise ValueError(f"RankSlider needs a matrix of at most 64 × 64 entries, got shape {picture.shape}")
        all_within("RankSlider", "[0, 1]", picture=picture)  # from white to black
        U, sizes, Vt = (factor.round(5) for factor in svd(picture))  # five decimals: the page stays small
        super().__init__(columns=U.T.tolist(), sizes=sizes.tolist(), rows=Vt.tolist(), **traits)
        within("RankSlider", f"[0, {len(sizes)}]", rank=self.rank)


class RotaryPair(Figure):
    """A query and a key, rotated by their positions: the score depends on the distance alone.

    query_position, key_position: from 0 to 30   query_angle, key_angle: directions before the rotation, in degrees
    rate: radians per position, from 0.01 to 1

    >>> RotaryPair(query_position=7).key_position
    3
    """

    query_position = _whole(5, 0, 30)
    key_position = _whole(3, 0, 30)
    query_angle = traitlets.Float(20.0).tag(sync=True)
    key_angle = traitlets.Float(80.0).tag(sync=True)
    rate = _number(0.3, 0.01, 1.0)


class SamplingFilters(Figure):
    """Bars for the probabilities of tokens; sliders for temperature, top-k and top-p.

    tokens: their texts   logits: one for each, in falling order   temperature: from 0.1 to 3   top_k: from 1 to all
    top_p: from 0.05 to 1

    Raises: ValueError where the numbers of tokens and logits differ, or the logits rise.

    >>> SamplingFilters(tokens=["yes", "no"], logits=[1.0, 0.0]).top_k
    2
    """

    tokens = _words()
    logits = _numbers()
    temperature = _number(1.0, 0.1, 3)
    top_k = _whole(1, 1)
    top_p = _number(1.0, 0.05, 1)
    _of_one_length = ("tokens", "logits")

    def __init__(self, tokens: Sequence[str], logits: Sequence[float], **traits: Any):
        super().__init__(tokens=tokens, logits=logits, **{"top_k": len(logits)} | traits)

    def _problem(self):
        if sorted(self.logits, reverse=True) != self.logits:
            return "needs logits in falling order"


class SecantTangent(Figure):
    """A curve, two of its points, and the line through them: a secant that becomes a tangent.

    curve: "square", "cube", "exponential" or "kink" (max(0, x))   x: from −1.5 to 1.5   h: from −1 to 1, the distance
    to the second point

    >>> SecantTangent(curve="cube", x=1.0).h
    1.0
    """

    curve = _choice("square", "cube", "exponential", "kink")
    x = _number(0.5, -1.5, 1.5)
    h = _number(1.0, -1, 1)


class SoftmaxBars(Figure):
    """Sliders for some logits and a temperature; bars of their softmax.

    labels: the names of the candidates   logits: one each, from −5 to 10   temperature: from 0.1 to 10

    Raises: ValueError where the numbers of labels and logits differ.

    >>> SoftmaxBars(labels=["yes", "no"], logits=[1.0, 0.0]).temperature
    1.0
    """

    labels = _words(["a", "b", "c"])
    logits = _numbers([2.0, 1.0, 0.5], -5, 10)
    temperature = _number(1.0, 0.1, 10)
    _of_one_length = ("labels", "logits")


class TrainingBudget(Figure):
    """Sliders for a training run; bars of the memory on each device, operations and days.

    parameters, tokens: logarithms to base 10, 7 to 12 and 9 to 14   devices: a logarithm to base 2, 0 to 13
    zero: stage of ZeRO   stages, microbatches: of the pipeline

    >>> TrainingBudget(parameters=9.0).zero
    0
    """

    parameters = _number(9.8451, 7, 12)
    tokens = _number(12.3, 9, 14)
    devices = _whole(3, 0, 13)
    zero = _whole(0, 0, 3)
    stages = _whole(1, 1, 32)
    microbatches = _whole(8, 1, 128)


class TwoDistributions(Figure):
    """Sliders for a true and a predicted distribution; bars for entropy, cross-entropy and KL.

    labels: three words   p, q: one weight each, from 0 to 10, divided by their sum   unit: "nats" or "bits"

    Raises: ValueError for another number of weights than labels, or for weights that are all zero.

    >>> TwoDistributions(unit="bits").unit
    'bits'
    """

    labels = _words(["the", "a", "an"])
    p = _numbers([6.0, 3.0, 1.0], 0, 10)
    q = _numbers([7.0, 2.0, 1.0], 0, 10)
    unit = _choice("nats", "bits")
    _of_one_length = ("labels", "p", "q")

    def _problem(self):
        if not (sum(self.p) > 0 and sum(self.q) > 0):
            return "needs a weight that is not zero in p and in q"


class VectorLength(Figure):
    """A vector as an arrow: two components are the sides of a triangle, its length the third.

    components: two numbers from −8 to 8

    >>> VectorLength(components=[6, 8]).components
    [6.0, 8.0]
    """

    components = _numbers([2.0, 2.0], -8, 8, length=2)


class WordMap(Figure):
    """Words placed by their distances from two landmark words, which the reader chooses.

    vectors: {word: its d numbers}   groups: {name: words}, each in a colour and shape of its own
    landmarks: two of the words (default: the first of the first and of the last group, or the first two of one group)

    Raises: ShapeError if the vectors differ in size; ValueError for fewer than two words, or an unknown landmark.

    >>> WordMap({"king": [3, 4], "car": [0, 0]}, {"royalty": ["king"], "vehicles": ["car"]}).landmarks
    ['king', 'car']
    """

    words = _words()
    groups = _words()  # the group of each word
    vectors = traitlets.List(traitlets.List(traitlets.Float())).tag(sync=True)
    landmarks = traitlets.List(traitlets.Unicode(), minlen=2, maxlen=2).tag(sync=True)

    def __init__(
        self, vectors: Mapping[str, Sequence[float]], groups: Mapping[str, Sequence[str]],
        landmarks: Sequence[str] | None = None,
    ):  # fmt: skip
        words = [word for group in groups.values() for word in group]
        if len(words) < 2:
            raise ValueError(f"WordMap needs at least two words, got {len(words)}")
        sizes = {np.size(vectors[word]) for word in words}
        if len(sizes) > 1:
            raise ShapeError(f"WordMap needs vectors of one size, got sizes {sorted(sizes)}")
        if landmarks is None:
            landmarks = [words[0], list(groups.values())[-1][0] if len(groups) > 1 else words[1]]
        rounded = [np.asarray(vectors[word], np.float64).round(5).tolist() for word in words]
        names = [name for name, group in groups.items() for _ in group]
        super().__init__(words=words, groups=names, vectors=rounded, landmarks=list(landmarks))

    def _problem(self):
        if unknown := [word for word in self.landmarks if word not in self.words]:
            return f"has no landmark {unknown[0]!r}; its words are {', '.join(self.words)}"
