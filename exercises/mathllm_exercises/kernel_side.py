"""What runs next to an answer: it calls the answer on given inputs and hands back plain data, no verdict.

In the learner's own session check() uses `observe` directly. When a submission is graded, `evaluate` runs in the
submission's kernel. That kernel is hostile ground, so nothing here knows an expected value, and nothing that comes
back is believed before `marking` has compared it elsewhere.
"""

import contextlib
import copy
import functools
import importlib
import io
import sys
import warnings

import numpy as np

from . import codec

__all__ = ["MIME", "NOT_DEFINED", "asking", "begin", "evaluate", "is_ours", "mask", "observe", "own_numbers"]

MIME = "application/vnd.mathllm.observations+json"
NOT_DEFINED = object()
MAX_MESSAGE = 300

own_numbers = {}  # the learner's own numbers by the exercise's id, while a submission is graded
_asked = set()  # names of mathllm that may not be called just now


def observe(answer, cases=None):
    """Call the answer on each case; or, with cases=None, look at it as a value. Returns JSON-able structures."""
    if answer is NOT_DEFINED:
        return [_error(NotImplementedError("the answer is not defined"))] * (1 if cases is None else len(cases))
    if cases is None:
        return [_observed(lambda: answer, ())]
    return [_observed(answer, case) for case in cases]


def _observed(function, case):
    """One call: its value or its error, and the inputs after the call. Warnings and printing cost nothing."""
    inputs = copy.deepcopy(tuple(case))
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    try:
        with quiet[0], quiet[1], warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = {"value": codec.encode(function(*inputs))}
        result["after"] = codec.encode(list(inputs))
    except (Exception, SystemExit) as error:
        return _error(error)
    return result


def _error(error):
    names = [kind.__name__ for kind in type(error).__mro__ if kind not in (object, BaseException)]
    try:
        message = str(error)
    except Exception:
        message = ""
    return {"error": names, "message": message[:MAX_MESSAGE]}


def begin(request):
    """Make the kernel ready for a submission: the learner's own numbers, and the names that may not be the answer.

    request: JSON text {"masked": names, "numbers": {exercise: encoded dict}}
    """
    data = codec.loads(request)
    own_numbers.update({id: codec.decode(numbers) for id, numbers in data["numbers"].items()})
    mask(data["masked"])


def is_ours(answer):
    """Whether an answer says that it comes from mathllm."""
    return str(getattr(answer, "__module__", "")).split(".")[0] == "mathllm"


def mask(names):
    """Replace these functions in all of mathllm by stand-ins that refuse to be the answer to their own exercise.

    A stand-in works as usual except while the exercise that asks for its name is evaluated. This keeps honest work
    honest; what keeps the score honest is that only values leave this process. mathllm is a book to learn from: who
    copies a function's source out of it, or loads a module a second time, has an answer like any other. What was
    replaced is returned: (module, name, original).
    """
    importlib.import_module("mathllm")  # with the modules of all chapters
    modules = [module for path, module in sys.modules.items() if path.split(".")[0] == "mathllm"]
    replaced = []
    for name in names:
        stand_ins = {}  # one for each function of this name: chapters, mathllm.fast and the exhibits may have their own
        for module in modules:
            original = vars(module).get(name)
            if not callable(original) or isinstance(original, type):
                continue
            stand_in = stand_ins.setdefault(id(original), _stand_in(name, original))
            setattr(module, name, stand_in)
            replaced.append((module, name, original))
    return replaced


@contextlib.contextmanager
def asking(names):
    """While an answer is tried in the learner's own session, mathllm's functions of these names refuse, too."""
    replaced = mask(names)
    _asked.update(names)
    try:
        yield
    finally:
        _asked.clear()
        for module, name, original in replaced:
            setattr(module, name, original)


def _stand_in(name, original):
    refuse = _not_to_be_handed_in(name)

    @functools.wraps(original)
    def stand_in(*args, **kwargs):
        return refuse() if name in _asked else original(*args, **kwargs)

    del stand_in.__wrapped__
    return stand_in


def _not_to_be_handed_in(name):
    def refuse(*args, **kwargs):
        raise RuntimeError(f"{name} of mathllm is what this exercise asks for; it cannot be the answer to it")

    return refuse


def evaluate(request):
    """Answer the grader's request: evaluate a name of the notebook on the cases sent, publish the observations.

    request: JSON text {"nonce", "answer", "masked", "cases": [encoded argument lists] or null}
    """
    from IPython import get_ipython
    from IPython.display import publish_display_data

    data = codec.loads(request)
    cases = None if data["cases"] is None else [tuple(codec.decode(case)) for case in data["cases"]]
    answer = get_ipython().user_ns.get(data["answer"], NOT_DEFINED)
    if data["masked"] and is_ours(answer):
        answer = _not_to_be_handed_in(data["answer"])
    _asked.update(data["masked"])
    try:
        observations = observe(answer, cases)
    finally:
        _asked.clear()
    try:
        text = codec.dumps({"nonce": data["nonce"], "observations": observations})
    except codec.CodecError as error:
        text = codec.dumps({"nonce": data["nonce"], "observations": [_error(error)] * len(observations)})
    publish_display_data({MIME: text})
