"""Python in the browser: Stop reaches it, the page hears of exercises, and data are fetched when a cell asks for them.
A flood of output is sent in pieces and cut.

The page draws every message anew together with all before it, so that ten thousand lines, sent one by one, stop it for
more than a minute. IPython loads this file when it starts (ipython_config.py).
"""

import importlib
import importlib.machinery
import io
import json
import sys
import time
import zipfile
from pathlib import Path

import js
import pyodide_js
from pyodide.ffi import JsException, to_js
from pyodide_kernel.display import LiteDisplayHook, LiteDisplayPublisher, LiteStream

AT_ONCE = 50  # messages of a cell that are sent as they come; later ones wait for the next
PAUSE = 0.2  # seconds between two of these later messages
MOST = 100_000  # characters that a cell shows
CUT = (
    f"\n[Cut here: a cell shows {MOST:,} characters at most, and this one printed more. It may still be running: "
    "Stop ends it. Print less, for instance every hundredth line.]\n"
)


class Output:
    """What the running cell has printed: how much of it was sent, and what still waits."""

    def __init__(self):
        self.running = False
        self.begin()

    def begin(self, *_):
        self.messages, self.shown, self.last, self.waiting = 0, 0, 0.0, {}

    def write(self, stream, text):
        if self.shown > MOST:
            return
        room = MOST - self.shown
        self.shown += len(text)
        self.waiting.setdefault(stream, []).append(text if len(text) <= room else text[:room] + CUT)
        if not self.running or self.messages < AT_ONCE or time.monotonic() - self.last > PAUSE:
            self.send()

    def send(self, *_):
        waiting, self.waiting, self.last = self.waiting, {}, time.monotonic()
        for stream, texts in waiting.items():
            self.messages += 1
            if stream.publish_stream_callback:
                stream.publish_stream_callback(stream.name, "".join(texts))


class Data:
    """Finds the packages of data, each of which is fetched when `mathllm.data` looks for it."""

    def __init__(self):
        names = json.loads(Path(__file__).with_name("mathllm_lite.json").read_text(encoding="utf-8"))
        self.wheels = {name.split("-")[0]: name for name in names}  # by the module in each

    def find_spec(self, name, path=None, target=None):
        if name not in self.wheels:
            return None
        request = js.XMLHttpRequest.new()
        request.open("GET", js.bookFolder + self.wheels[name], False)  # the cell waits
        request.responseType = "arraybuffer"
        try:
            request.send()
        except JsException:
            return None  # no network: mathllm.data says that the data are not here
        if request.status != 200:
            return None
        with zipfile.ZipFile(io.BytesIO(request.response.to_bytes())) as wheel:
            wheel.extractall(Path(__file__).parent)
        importlib.invalidate_caches()
        return importlib.machinery.PathFinder.find_spec(name)


def load_ipython_extension(shell):
    """IPython calls this with its shell."""
    sys.meta_path.append(Data())
    sys.path = [place for place in sys.path if place] + [""]  # the folder of the notebook last
    shell.Completer.use_jedi = False  # it is not here: names are completed from what exists
    output = Output()
    LiteStream.write = lambda stream, text: output.write(stream, text)
    for owner, name in ((LiteDisplayPublisher, "publish"), (LiteDisplayHook, "finish_displayhook")):
        setattr(owner, name, _after(output.send, getattr(owner, name)))
    LiteDisplayPublisher.clear_output = _after(output.begin, LiteDisplayPublisher.clear_output)

    signal = js.Uint8Array.new(js.SharedArrayBuffer.new(1)) if getattr(js, "crossOriginIsolated", False) else None
    if signal is not None:  # one byte: the page writes it at Stop (page.js), and Python reads it while it computes
        pyodide_js.setInterruptBuffer(signal)
        js.postMessage(signal)

    def start(_):
        if signal is not None:
            signal[0] = 0  # a Stop that came too late for the cell before
        output.running = True
        output.begin()
        tell_of_exercises()

    def end(_):
        output.send()
        output.running = False
        output.begin()

    shell.events.register("pre_run_cell", start)
    shell.events.register("post_run_cell", end)


def tell_of_exercises():
    """Once exercises are imported: a report that is shown also tells the page whether the answer is right (page.js)."""
    report = sys.modules.get("mathllm_exercises.report")
    if report is None or hasattr(report.Report, "show"):
        return

    def show(self):
        if self.marks.answered:
            told = {"exercise": self.marks.item.id, "right": self.passed}
            js.postMessage(to_js(told, dict_converter=js.Object.fromEntries))
        return shown(self)

    shown, report.Report.show, report.Report._repr_html_ = report.Report._repr_html_, show, show


def _after(first, method):
    """The method, before which `first` is called."""

    def both(*arguments, **options):
        first()
        return method(*arguments, **options)

    return both
