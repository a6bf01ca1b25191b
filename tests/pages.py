"""Pages in a real browser, and a server for them; the tests of the site, of JupyterLab and of figures share them."""

import contextlib
import functools
import http.server
import threading

PATIENCE = 300_000  # milliseconds: a busy machine may need many for what takes one or two seconds


@contextlib.contextmanager
def window(browser, address, width=1280, height=900):
    """A window for pages of one server, and a function that notes what is wrong with them.

    At the end, nothing has been noted: no page has asked another server, and no script has failed.
    """
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="light")
    context.set_default_timeout(PATIENCE)
    complaints = []

    def complain(about):
        complaints.append(f"{[page.url for page in context.pages][-1:]}: {about}")

    def asked(request):
        if not request.url.startswith((address, address.replace("http", "ws", 1), "data:", "blob:")):
            complain(f"asked {request.url}")

    context.on("request", asked)
    context.on("weberror", lambda failure: complain(f"error: {failure.error}"))
    try:
        yield context, complain
    finally:
        context.close()
    assert complaints == []


@contextlib.contextmanager
def served(folder, newer=None):
    """A server for the files of a folder; what lies in the folder `newer` at the same place comes first."""

    class Files(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path):
            first = newer and newer / path.split("?")[0].lstrip("/")
            return str(first) if first and first.is_file() else super().translate_path(path)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
