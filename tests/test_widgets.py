"""The interactive figures compute in JavaScript what the chapters compute with mathllm, to the last digit but one."""

import json
import re
import shutil
import subprocess
from importlib import resources

import numpy as np
import pytest
import traitlets

import mathllm as ml
from mathllm import widgets
from mathllm.widgets.base import module, read

SAME = 1e-12  # two implementations of one float64 formula may round differently, in the last digits

# The module travels as a data URL: a file that ends in .js is a module for node only beside a package.json.
PROGRAM = """
const { module, name, args } = JSON.parse(require("fs").readFileSync(0, "utf8"));
import("data:text/javascript;charset=utf-8," + encodeURIComponent(module))
  .then((exports) => console.log(JSON.stringify(args.map((one) => exports[name](...one)))));
"""

WORDS = {"king": [3.0, 4.0], "queen": [3.0, 5.0], "car": [0.0, 1.0]}
FILES = sorted(file.name for file in resources.files(widgets).iterdir() if file.suffix == ".js")
FILES.remove("elements.js")
ARGUMENTS = {
    "RankSlider": ([[0.0, 1.0], [1.0, 0.0]],),
    "WordMap": (WORDS, {"royalty": ["king", "queen"], "vehicles": ["car"]}),
    "SamplingFilters": (["yes", "no"], [1.0, 0.0]),
}


def run_js(file, function, args):
    """What the function that the widget's ES module exports gives for each list of arguments in `args`."""
    if not (node := shutil.which("node")):
        pytest.skip("node is not installed: the JavaScript of the interactive figures is not compared with mathllm")
    message = json.dumps({"module": module(file), "name": function, "args": args})
    done = subprocess.run([node, "-e", PROGRAM], input=message, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.mark.parametrize("name", widgets.__all__)
def test_a_figure_says_in_words_what_it_shows(name):
    words = repr(getattr(widgets, name)(*ARGUMENTS.get(name, ())))
    assert words.startswith("Interactive figure: ")
    assert words.endswith(".")
    assert len(words) <= 110  # anywidget cuts off the rest


@pytest.mark.parametrize("name", widgets.__all__)
def test_a_figure_asks_nothing_of_the_network(name):
    figure = getattr(widgets, name)(*ARGUMENTS.get(name, ()))
    addresses = set(re.findall(r"https?://[\w./-]+", figure._esm + figure._css))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, never fetched
    assert "@import" not in figure._css


def test_numbers_are_shown_with_a_true_minus_sign_and_zero_without():
    assert run_js(FILES[0], "fixed", [[-6e-17, 3], [-0.004, 2], [-1.5, 2], [2, 0]]) == ["0.000", "0.00", "−1.50", "2"]
    assert run_js(FILES[0], "short", [[-6e-17, 3], [-3.5, 2], [4, 4], [0.12345, 4]]) == ["0", "−3.5", "4", "0.1235"]


def test_sizes_are_read_with_three_digits():
    words = run_js(FILES[0], "inWords", [[7.02e9], [1e12], [124439808], [9500], [12], [0.031]])
    assert words == ["7.02 billion", "1 trillion", "124 million", "9.5 thousand", "12", "0.031"]


@pytest.mark.parametrize("temperature", [0.1, 1.0, 10.0])
def test_bars_and_weights_are_the_softmax_of_mathllm(rng, temperature):
    logits = np.vstack([rng.uniform(-5, 10, size=(50, 4)), [[-5, -5, -5, -5], [10, -5, -5, 10]]])
    shown = run_js(FILES[0], "softmax", [[row, temperature] for row in logits.tolist()])
    np.testing.assert_allclose(shown, ml.softmax(logits, temperature=temperature), rtol=0, atol=SAME)


def test_the_length_in_the_figure_is_the_norm(rng):
    vectors = rng.normal(size=(100, 5)).tolist()
    np.testing.assert_allclose(run_js("vector_length.js", "norm", [[v] for v in vectors]), ml.norm(vectors), rtol=SAME)


def test_the_working_under_the_figure_shows_the_squares_and_their_sum():
    shown = run_js("vector_length.js", "formula", [[[3, 4]], [[-3, 4]], [[0.5, 0]]])
    assert shown == ["√(3² + 4²) = √25", "√((−3)² + 4²) = √25", "√(0.5² + 0²) = √0.25"]


def test_a_dragged_arrow_lands_on_halves_and_stays_on_the_plane(rng):
    points = rng.uniform(-12, 12, size=(100, 2))
    expected = np.clip(np.round(points * 2) / 2, -8, 8)
    np.testing.assert_allclose(run_js("vector_length.js", "snap", [[p] for p in points.tolist()]), expected, atol=0)


@pytest.mark.parametrize("components", [[9, 0], [1, 2, 3], [1], ["a", 0]])
def test_the_length_figure_refuses_what_is_not_on_its_plane(components):
    with pytest.raises(traitlets.TraitError):
        widgets.VectorLength(components=components)


def test_the_distances_on_the_map_are_distances(rng):
    points = rng.normal(size=(20, 6))
    shown = run_js("word_map.js", "distances", [[points.tolist(), i] for i in range(20)])
    np.testing.assert_allclose(shown, ml.distance(points[:, None], points), rtol=SAME)


def test_the_map_lists_the_other_words_nearest_first(rng):
    points = rng.normal(size=(20, 6))
    expected = np.argsort(ml.distance(points[:, None], points), axis=1)[:, 1:]
    shown = run_js("word_map.js", "neighbours", [[points.tolist(), i] for i in range(20)])
    np.testing.assert_array_equal(shown, expected)


@pytest.mark.parametrize(
    ("vectors", "groups", "landmarks", "reason"),
    [
        (WORDS | {"car": [1.0]}, {"all": ["king", "car"]}, None, "vectors of one size"),
        (WORDS, {"all": ["king"]}, None, "at least two words"),
        (WORDS, {"all": ["king", "car"]}, ["king", "queen"], "no landmark 'queen'"),
    ],
)
def test_the_map_says_why_it_cannot_be_drawn(vectors, groups, landmarks, reason):
    with pytest.raises(ValueError, match=reason):
        widgets.WordMap(vectors, groups, landmarks)


def test_the_style_sheet_touches_nothing_but_the_figures():
    selectors = re.findall(r"([^{}]+)\{", re.sub(r"/\*.*?\*/", "", read("widgets.css"), flags=re.DOTALL))
    rules = [one for group in selectors for one in group.split(",") if not one.strip().startswith("@media")]
    assert rules
    assert [rule for rule in rules if ".mathllm-" not in rule] == []
    classes = {name for rule in rules for name in re.findall(r"\.([a-zA-Z][\w-]*)", rule)}
    assert [name for name in classes if not name.startswith("mathllm-")] == []


FRAME = """
const attributes = {}, listeners = {};
globalThis.document = { createElement: () => ({
  setAttribute: (name, value) => { attributes[name] = value; },
  addEventListener: (type, listener) => { listeners[type] = listener; },
}) };
const elements = require("fs").readFileSync(0, "utf8");
import("data:text/javascript;charset=utf-8," + encodeURIComponent(elements)).then(({ frame }) => {
  frame("mathllm-a", { append() {} });
  let stopped = false;
  listeners.keydown({ stopPropagation() { stopped = true; } });
  console.log(stopped, attributes["data-lm-suppress-shortcuts"]);
});
"""


def test_keys_pressed_in_a_figure_stay_there_and_move_no_cells():
    if not (node := shutil.which("node")):
        pytest.skip("node is not installed: the keys of the interactive figures are not tried")
    elements = read("elements.js")
    done = subprocess.run([node, "-e", FRAME], input=elements, capture_output=True, text=True, timeout=600)
    assert done.stdout.split() == ["true", "true"], done.stderr
    assert "this.root = frame(" in elements


@pytest.mark.parametrize("file", FILES)
def test_a_figure_is_built_from_what_all_figures_share(file):
    text = read(file)
    assert "new Figure(" in text
    assert "return figure.follow(" in text
    assert 'addEventListener("input"' not in text  # sliders come from Figure: labelled, and heard by screen readers
