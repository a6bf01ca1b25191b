"""What runs next to an answer: it calls the answer on given inputs and hands back plain data, no verdict.

In the learner's own session check() uses `observe` directly. When a submission is graded, `evaluate` runs in the
submission's kernel. That kernel is hostile ground, so nothing here knows an expected value, and nothing that comes
back is believed before `marking` has compared it elsewhere.
"""

import contextlib
import copy
import dis
import functools
import importlib
import io
import linecache
import signal
import sys
import threading
import time
import traceback
import warnings

import numpy as np

from . import codec

__all__ = ["MIME", "NOT_DEFINED", "asking", "begin", "evaluate", "is_ours", "mask", "observe", "own_numbers"]

MIME = "application/vnd.mathllm.observations+json"
NOT_DEFINED = object()
MAX_MESSAGE = 300
SECONDS = 10  # for one call of an answer

own_numbers = {}  # the learner's own numbers by the exercise's id, while a submission is graded
_asked = set()  # names of mathllm that may not be called just now


class TooLong(BaseException):
    """A call took longer than it may; not an Exception, which an answer might catch."""


def observe(answer, cases=None, limit=True):
    """Call the answer on each case; or, with cases=None, look at it as a value. Returns JSON-able structures.

    After a call that takes too long the others are not made; with limit=False a call may take its time.
    """
    if answer is NOT_DEFINED:
        return [_error(NotImplementedError("the answer is not defined"))] * (1 if cases is None else len(cases))
    if cases is None:
        return [_observed(lambda: answer, ())]
    observations = []
    for case in cases:
        stopped = observations and observations[-1].get("error") == ["TooLong"]
        observations.append(observations[-1] if stopped else _observed(answer, case, limit))
    return observations


def _observed(function, case, limit=False):
    """One call: its value or its error, what it printed, and the inputs after the call. Warnings cost nothing."""
    inputs, printed = copy.deepcopy(tuple(case)), io.StringIO()
    quiet = contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO())
    clock = _limited(SECONDS) if limit else contextlib.nullcontext()
    try:
        with quiet[0], quiet[1], warnings.catch_warnings(), np.errstate(all="ignore"), clock:
            warnings.simplefilter("ignore")
            value = function(*inputs)
        result = {"value": codec.encode(value), "after": codec.encode(list(inputs))}
    except codec.CodecError as error:
        result = {"error": ["Unreadable"], "message": str(error)[:MAX_MESSAGE]}
    except TooLong as error:
        message = f"was stopped after {SECONDS} seconds (does a loop never end?)"
        result = {"error": ["TooLong"], "message": message, "line": _line(error, function)}
    except (Exception, SystemExit) as error:
        result = _error(error) | {"line": _line(error, function), "own": _own(error)}
    return result | {"printed": printed.getvalue()[:MAX_MESSAGE], "calls": _calls(function)}


@contextlib.contextmanager
def _limited(seconds):
    """Raise TooLong inside the block when it has run for so many seconds."""
    alarms = hasattr(signal, "setitimer") and sys.platform != "emscripten"
    with _alarm(seconds) if alarms and threading.current_thread() is threading.main_thread() else _watch(seconds):
        yield


@contextlib.contextmanager
def _alarm(seconds):
    def ring(*_):
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)  # and each second again, if the answer catches it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _watch(seconds):
    """Without alarms, as in the browser and on Windows: look at the clock at each line of the learner's code."""
    end = time.monotonic() + seconds

    def look(frame, event, _):
        if time.monotonic() > end:
            raise TooLong
        return None if frame.f_globals.get("__name__", "").startswith(("numpy", "mathllm")) else look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(before)


def _line(error, function):
    """The line of the learner's own code, the innermost one, at which an error was raised, or ""."""
    if str(getattr(function, "__module__", "")).startswith(__package__):  # it stands in for an answer
        return ""
    home, found = getattr(function, "__globals__", {}).get("__name__", "__main__"), ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") == home:
            code = linecache.getline(frame.f_code.co_filename, number, frame.f_globals).strip()
            found = f"line {number}: `{code}`" if code else f"line {number} of its cell"
    return found[:MAX_MESSAGE]


def _own(error):
    """Whether a `raise` in the learner's code raised the error, and not Python, NumPy or the package."""
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    code, home = trace.tb_frame.f_code.co_code, trace.tb_frame.f_globals.get("__name__", "")
    return dis.opname[code[trace.tb_lasti]] == "RAISE_VARARGS" and home.split(".")[0] not in ("mathllm", "numpy")


def _calls(function):
    """The names of the notebook's own functions that the answer calls."""
    code, home = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    if code is None:
        return []
    functions = [name for name in code.co_names if hasattr(home.get(name), "__code__")]
    return [name for name in functions if home[name].__globals__ is home and home[name] is not function][:20]


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
    honest; what keeps the score honest is that only values leave this process. mathllm is a book to learn from: an
    answer that is copied from its source, or taken from a module that was loaded a second time, counts like any other.
    What was replaced is returned: (module, name, original).
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
        raise RuntimeError(f"mathllm's {name} may not be used in this exercise; its card names what may not")

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
