"""Formulas in the pages that graders and learners read: MathML, which browsers show by themselves.

nbgrader's pages load MathJax from another server; templates/ takes that out. Here each formula becomes MathML when the
page is written, so that feedback is complete in one file, without a script and without a network.
"""

import html
import re

from docutils.utils.math.latex2mathml import tex2mathml
from jinja2 import pass_context

from . import inert

__all__ = ["markdown2html", "mathml"]

MAX_LENGTH = 2_000  # characters of one formula
KEPT = re.compile(r"(<pre\b.*?</pre>|<code\b.*?</code>|<[^>]*>)", re.DOTALL)  # tags, and what holds code
FORMULA = re.compile(
    r"\$\$(?P<display>.+?)\$\$|\$(?P<inline>[^\s$]|[^\s$][^$]*[^\s$])\$(?!\d)"  # $3 or $4 is none
    r"|(?P<environment>\\begin\{([a-z]+\*?)\}.{0,2000}?\\end\{\4\})",
    re.DOTALL,
)
SPELLINGS = (  # what TeX takes as well, in the spelling that docutils knows
    (re.compile(r"\\dots(?![a-z])"), r"\\ldots"),
    (re.compile(r"(\\[td]?frac)\s*(\d)\s*(\d|\\[a-z]+)"), r"\1{\2}{\3}"),
    (re.compile(r"\\(begin|end)\{(align|eqnarray|gather|multline)\*?\}"), r"\\\1{aligned}"),
    (re.compile(r"\\(begin|end)\{equation\*?\}"), ""),
    (re.compile(r"\\(text|display)style(?![a-z])"), ""),
)


@pass_context
def markdown2html(context, source):
    """nbconvert's filter of this name: clean as `inert` makes it, the formulas as MathML."""
    parts = KEPT.split(inert.markdown2html(context, source))
    parts[::2] = [FORMULA.sub(_formula, text) for text in parts[::2]]
    return "".join(parts)


def _formula(match):
    tex = html.unescape(match["display"] or match["inline"] or match["environment"])
    return mathml(tex, display=match["inline"] is None)


def mathml(tex, display=False):
    """TeX as MathML; as it was written, in <code>, if it is no TeX that docutils knows.

    >>> "<msup>" in mathml("x^2"), mathml(r"\\nothing")
    (True, '<code>\\\\nothing</code>')
    """
    known = tex[:MAX_LENGTH]
    for pattern, spelling in SPELLINGS:
        known = pattern.sub(spelling, known)
    try:
        # docutils indents: a nested formula would take 450 times its length
        return re.sub(r">\s+<", "><", tex2mathml(known.strip(), as_block=display))
    except Exception:  # a formula is a learner's text: whatever is wrong with it, the page is shown
        return f"<code>{html.escape(tex)}</code>"
