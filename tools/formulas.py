"""Formulas as MathML and in words, made by the site's own MathJax in a browser without a window."""

import contextlib
import re
import shutil
from pathlib import Path

VENDOR = Path(__file__).resolve().parent.parent / ".cache" / "vendor"
HOST = "http://book"  # no server: what a page asks for there is read from a folder
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run"]
BLANK = "<!doctype html><html lang='en'><head><title>-</title></head><body></body></html>"
SETTINGS = "window.MathJax = {loader: {load: ['a11y/sre']}, startup: {typeset: false}}"
READING = "{locale: 'en', domain: 'clearspeak', style: 'Log_LnAsNaturalLog:MultsymbolDot_Dot'}"
SPEECH = "MathJax._.a11y.sre.Sre"
CONVERT = f"""(formulas) => Promise.all(formulas.map(async ([tex, display]) => {{
    const mathml = await MathJax.tex2mmlPromise(tex, {{display}});
    return [mathml, {SPEECH}.toSpeech(mathml)];
}}))"""
WORDS = {  # how this book reads a sign for which the rules of speech have another name
    r"raised to the down tack power": "transpose",
    r"\bthe metric of\b": "the norm of",
    r"\bpartial differential\b": "partial",
    r"\bdivides\b": "given",
    r"\bcircled dot\b": "times, entry by entry,",
    r"\bdouble struck E\b": "the expectation",
    r"\bleft arrow\b": "becomes",
    r"\bright arrow\b": "goes to",
    r"\b(softmax|exp|log|sigmoid|max|min|sign|tanh|cos) times open paren\b": r"\1 of open paren",
}


class FormulaError(Exception):
    """A formula that MathJax cannot read."""


@contextlib.contextmanager
def browser():
    """Chromium. Raises: FileNotFoundError where none is installed."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise FileNotFoundError("this needs Chromium (Debian: apt install chromium)")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium, args=FLAGS, timeout=600_000)


def open_page(browser, folder=VENDOR, **options):
    """An empty page that finds the files of `folder`, and those of the vendor folder below vendor/."""
    page = browser.new_page(**options)
    page.set_default_timeout(600_000)

    def answer(route):
        name = route.request.url.removeprefix(f"{HOST}/").split("#")[0].split("?")[0]
        inside = re.split(r"(?:^|/)vendor/", name)
        path = VENDOR / inside[-1] if len(inside) > 1 else folder / name
        if name == "blank.html":
            route.fulfill(body=BLANK, content_type="text/html")
        elif route.request.url.startswith(HOST) and path.is_file():
            route.fulfill(path=path)
        else:
            route.abort()

    page.route("**/*", answer)
    page.goto(f"{HOST}/blank.html")
    return page


def converted(page, formulas):
    """MathML and words of each formula (TeX, whether displayed). Raises: FormulaError."""
    if not page.evaluate("Boolean(window.MathJax)"):
        page.evaluate(SETTINGS)
        page.add_script_tag(url=f"{HOST}/vendor/mathjax/tex-chtml.js")
        page.evaluate("MathJax.startup.promise")
        page.evaluate(f"{SPEECH}.setupEngine({READING})")
        page.evaluate(f"{SPEECH}.sreReady()")
    pairs = page.evaluate(CONVERT, formulas)
    wrong = [tex for (tex, _), (mathml, _) in zip(formulas, pairs, strict=True) if "<merror" in mathml]
    if wrong:
        raise FormulaError(f"no formula: {wrong[0]}")
    return [(mathml, in_the_books_words(words)) for mathml, words in pairs]


def in_the_books_words(words):
    """Speech with the book's own names of signs.

    >>> in_the_books_words("W raised to the down tack power x")
    'W transpose x'
    """
    for pattern, replacement in WORDS.items():
        words = re.sub(pattern, replacement, words)
    return words
