"""The interactive figures: what they say, what they refuse, and what becomes of each control that is moved."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
import traitlets

from mathllm.figures import widgets
from mathllm.figures.widgets import module, read

# The module travels as a data URL: a file that ends in .js is a module for node only beside a package.json.
PROGRAM = """
const { module, name, args } = JSON.parse(require("fs").readFileSync(0, "utf8"));
import("data:text/javascript;charset=utf-8," + encodeURIComponent(module))
  .then((exports) => console.log(JSON.stringify(args.map((one) => exports[name](...one)))));
"""

NAMES = [cls.__name__ for cls in widgets.Figure.__subclasses__()]
WORDS = {"king": [3.0, 4.0], "queen": [3.0, 5.0], "car": [0.0, 1.0]}
SHORT = {"name": "short", "tokens": ["a", "b"], "query": [[1.0]], "key": [[1.0], [2.0]], "value": []}
ARGUMENTS = {
    "RankSlider": ([[0.0, 1.0], [1.0, 0.0]],),
    "WordMap": (WORDS, {"royalty": ["king", "queen"], "vehicles": ["car"]}),
    "SamplingFilters": (["yes", "no"], [1.0, 0.0]),
}


def run_js(file, function, args):
    """What the function that the widget's ES module exports gives for each list of arguments in `args`."""
    if not (node := shutil.which("node")):
        pytest.skip("node is not installed: the JavaScript of the interactive figures is not compared with mathllm")
    message = json.dumps(
        {"module": module(file), "name": function, "args": list(args)}, default=lambda array: array.tolist()
    )
    done = subprocess.run([node, "-e", PROGRAM], input=message, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def figure(name):
    return getattr(widgets, name)(*ARGUMENTS.get(name, ()))


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_says_in_words_what_it_shows_and_fetches_nothing(name):
    words, cls = repr(figure(name)), getattr(widgets, name)
    assert re.fullmatch(r"Interactive figure: .*\.", words)
    assert len(words) <= 110  # anywidget cuts off the rest
    addresses = set(re.findall(r"https?://[\w./-]+", cls._esm + cls._css))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, never fetched
    assert not re.search(r"@import|^import ", cls._esm + cls._css, re.MULTILINE)


OUTSIDE = {
    "AngleCosine": [{"angle": 181}, {"angle": -1}, {"length_a": 0}, {"length_b": 4.5}],
    "BackpropStepper": [{"inputs": [1.0, 0.5, 0.0]}],
    "BetaPosterior": [{"prior_a": 0}, {"prior_b": 51}, {"heads": -1}, {"tails": 51}],
    "DescentSurface": [{"log_rate": 1.0}, {"beta": 1.0}, {"steps": -1}, {"method": "magic"}],
    "FeaturePlane": [{"features": 1}, {"features": 9}, {"bias": 0.5}],
    "GridDeformation": [{"w11": 2.5}, {"w22": -3}, {"amount": 1.5}, {"amount": -0.1}],
    "KLPenalty": [{"beta": 0.0}],
    "LogProduct": [{"probability": 0.0}, {"probability": 1.0}, {"factors": 0}, {"factors": 1001}],
    "MergeStepper": [{"ties": "by chance"}],
    "ParameterCalculator": [{"model": "GPT-9"}],
    "SamplingFilters": [{"top_p": 0.0}],
    "SecantTangent": [{"x": 2.0}, {"h": -1.5}, {"curve": "circle"}],
    "SoftmaxBars": [{"temperature": 0.0}, {"logits": [11.0, 0.0, 0.0]}],
    "TrainingBudget": [{"zero": 4}, {"parameters": 13.0}, {"microbatches": 0}],
    "TwoDistributions": [{"q": [-1, 1, 1]}, {"unit": "dits"}],
    "VectorLength": [{"components": wrong} for wrong in ([9, 0], [1, 2, 3], [1], ["a", 0])],
}


@pytest.mark.parametrize(("name", "outside"), [(name, one) for name, cases in OUTSIDE.items() for one in cases])
def test_a_figure_refuses_settings_off_its_controls(name, outside):
    with pytest.raises(traitlets.TraitError):
        getattr(widgets, name)(*ARGUMENTS.get(name, ()), **outside)


@pytest.mark.parametrize(
    ("name", "arguments", "settings", "reason"),
    [
        ("AttentionStepper", (), {"examples": [SHORT]}, "one row per token"),
        ("AttentionStepper", (), {"row": 3}, "no row 3"),
        ("FeaturePlane", (), {"features": 3, "active": [4]}, r"from 1 to 3, got \[4\]"),
        ("KLPenalty", (), {"answers": ["a", "b"]}, "answers 2, reference 4"),
        ("KLPenalty", (), {"reference": [0.5, 0.3, 0.2, 0.1]}, "distribution"),
        ("KLPenalty", (), {"reference": [0.5, 0.3, 0.2, 0.0]}, "without zeros"),
        ("MergeStepper", (), {"words": {}}, "MergeStepper needs words"),
        ("RankSlider", ([[2.0, 2.0]],), {}, r"RankSlider(\(\))? needs"),
        ("RankSlider", ([[np.nan]],), {}, r"RankSlider(\(\))? needs"),
        ("RankSlider", (np.ones(4),), {}, r"RankSlider(\(\))? needs"),
        ("RankSlider", (np.ones((65, 2)),), {}, r"RankSlider(\(\))? needs"),
        ("RankSlider", (np.eye(3),), {"rank": 4}, r"rank in \[0, 3\], got 4"),
        ("RotaryPair", (), {"query_position": 31}, "query_position"),
        ("SamplingFilters", (["a"], [1.0, 0.0]), {}, "got tokens 1, logits 2"),
        ("SamplingFilters", (["a", "b"], [0.0, 1.0]), {}, "falling"),
        ("SoftmaxBars", (), {"labels": ["alone"]}, "got labels 1, logits 3"),
        ("TwoDistributions", (), {"p": [1, 2]}, "got .*p 2"),
        ("TwoDistributions", (), {"q": [0, 0, 0]}, "TwoDistributions needs"),
        ("WordMap", (WORDS | {"car": [1.0]}, {"all": ["king", "car"]}), {}, "vectors of one size"),
        ("WordMap", (WORDS, {"all": ["king"]}), {}, "at least two words"),
        ("WordMap", (WORDS, {"all": ["king", "car"]}, ["king", "queen"]), {}, "no landmark 'queen'"),
    ],
)
def test_a_figure_says_why_it_cannot_be_drawn(name, arguments, settings, reason):
    with pytest.raises((ValueError, traitlets.TraitError), match=reason):
        getattr(widgets, name)(*arguments, **settings)


def test_the_style_sheet_touches_nothing_but_the_figures():
    selectors = re.findall(r"([^{}]+)\{", re.sub(r"/\*.*?\*/", "", read("widgets.css"), flags=re.DOTALL))
    rules = [one for group in selectors for one in group.split(",") if not one.strip().startswith("@media")]
    assert rules
    assert [rule for rule in rules if ".mathllm-" not in rule] == []
    classes = {name for rule in rules for name in re.findall(r"\.([a-zA-Z][\w-]*)", rule)}
    assert [name for name in classes if not name.startswith("mathllm-")] == []


# A reader who moves every control of a figure.
READER = """async ({ joined, elements, file, state }) => {
  class Model {
    constructor() { Object.assign(this, { state: structuredClone(state), listeners: [], saved: 0 }); }
    get(trait) { return this.state[trait]; }
    set(trait, value) {
      this.state[trait] = value;
      this.listeners.filter(([event]) => event === `change:${trait}`).forEach(([, listener]) => listener());
    }
    save_changes() { this.saved += 1; }
    on(event, f) { this.listeners.push([event, f]); }
    off(event, f) { this.listeners = this.listeners.filter((one) => one[1] !== f); }
  }
  const wordsOf = (node) => {
    const own = [...node.childNodes].map((child) => (child.nodeType === 3 ? child.data : wordsOf(child)));
    const told = ["aria-label", "aria-valuetext", "points"].map((name) => node.getAttribute(name));
    return [...told, ...own].filter(Boolean).join("\\n");
  };
  async function play(source) {
    const { default: { render } } = await import(source);
    const [el, model, seen] = [document.createElement("div"), new Model(), []];
    const stop = render({ model, el });
    const [root] = el.children;
    const look = (what) => seen.push([what, model.saved, wordsOf(root)]);
    look("start");
    const controls = [["input", "input"], ["select", "change"], ["button", "click"]].flatMap(([tag, event]) =>
      [...root.querySelectorAll(tag)].map((node) => {
        const name = node.closest("label")?.children[0].textContent || node.ariaLabel || node.textContent;
        return { node, event, name };
      }));
    for (const { node, event, name } of controls) {
      if (event === "input") node.value = node.value === node.max ? node.min : node.max;
      if (event === "change") node.selectedIndex = node.children.length - 1;
      node.dispatchEvent(new Event(event));
      look(name);
    }
    let stopped = true;
    el.addEventListener("keydown", () => { stopped = false; });
    root.dispatchEvent(new KeyboardEvent("keydown", { bubbles: true }));
    const plots = [...root.children].filter((node) => node.tagName === "svg");
    const said = plots.every((node) => node.ariaLabel || node.ariaHidden);
    stop();
    return { seen, stopped, said, shortcuts: root.dataset.lmSuppressShortcuts, left: model.listeners.length };
  }
  const url = (text) => "data:text/javascript;charset=utf-8," + encodeURIComponent(text);
  const alone = file.replace('"./elements.js"', JSON.stringify(url(elements)));
  return [await play(url(joined)), await play(url(alone))];
}"""


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page()
    yield page
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_control_of_a_figure_has_a_name_and_changes_what_it_shows(page, name):
    file = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower() + ".js"
    shown, own = figure(name), getattr(widgets, name).class_own_traits()
    state = {trait: value for trait, value in shown.get_state().items() if trait in own}
    message = {"joined": shown._esm, "elements": read("elements.js"), "file": read(file), "state": state}
    ours, alone = page.evaluate(READER, message)
    assert ours == alone  # with the file's own import, all that it uses is imported
    assert len(ours["seen"]) > 1
    for number, (control, saved, words) in enumerate(ours["seen"]):
        assert control
        assert saved == number  # the kernel is informed once for each change
        assert not re.search(r"undefined|NaN|\[object", words), words
    assert len({words for _, _, words in ours["seen"]}) > len(ours["seen"]) / 2  # some buttons change nothing at first
    assert ours["said"], "a picture without words"
    assert ours["stopped"]  # keys move no cells of JupyterLab
    assert ours["shortcuts"] == "true"
    assert ours["left"] == 0  # nothing is drawn after the figure is gone
