"""The blocks of the kinds `order`, `lines` and `choice` in the text of an assignment, and the cells they stand for.

    :::{order}
    1. $\\mathrm{KL}(p\\Vert q) = \\sum_i p_i \\ln(p_i/q_i)$
    2. $= \\sum_i p_i \\ln p_i - \\sum_i p_i \\ln q_i$
    3. (after 1) a line that needs line 1 only; `(first)` needs none; others need the line before
    - $= \\sum_i p_i \\ln p_i / \\sum_i p_i \\ln q_i$
      This line does not belong to the derivation; here stands why.
    :::

    :::{lines}
    - p: (n,) distribution
    - d: = p - 1
    - through: `np.log(p)`
    - between: 2
    ```
    the model solution, one expression a line; the first and the last are given to the learner
    ```
    :::

    :::{choice}                              :::{choice}
    - [ ] an option                          - 0 to 20
      the reply to those who take it           too low, because …
    - [x] a right option                     - [x] 20 to 30
      why it is right                          why it is right
    :::                                      :::

The letters of an order's lines, the name of the answer and its cell are made here.
"""

import hashlib
import itertools
import re
from dataclasses import dataclass, field

import numpy as np
from mathllm_exercises import choosing, derivation, ordering
from mathllm_exercises.expressions import ExpressionError, compute, parse
from mathllm_exercises.verdict import shown
from mathllm_grading.formulas import FORMULA, mathml

KINDS = ("order", "lines", "choice")
_ENTRY = re.compile(r"(?:(\d+)\.|-) +(.*)")
_NEEDS = re.compile(r"\((first|after ((?:\d+(?:, | and )?)+))\) (.*)")
_ARRAY = re.compile(r"([A-Za-z]\w*): (?:\(((?:\w, ?)*(?:\w,?)?)\)|number)? ?(?:([a-z-]+)|= (.+))?")
_SCALE = re.compile(r"([-\d.]+) to ([-\d.]+)")
_EVERYBODY = "ABCDEFGHJKLMNPQRSTUVWXYZ"  # I and O look like digits


@dataclass
class Puzzle:
    """What a block says: its part of the record, the source of the answer's cell, words for card and solution."""

    kind: str
    part: dict
    right: str  # the right answer, as Python
    stub: str = "..."
    before: str = ""  # a line above the answer
    listing: str = ""
    solution: str = ""
    mistakes: list = field(default_factory=list)


def puzzle(kind, id, points, lines, error) -> Puzzle:
    """Read a block. lines: (number, text) of each; error(line number, message) makes a SourceError."""
    return {"order": _order, "lines": _lines, "choice": _choice}[kind](id, points, lines, error)


def cell_source(name, made: Puzzle) -> str:
    """The learner's cell, with its solution."""
    above = [made.before] if made.before else []
    begin, end = "### BEGIN SOLUTION", "### END SOLUTION"
    return "\n".join([*above, f"{name} = {made.stub}", begin, f"{name} = {made.right}", end])


def _entries(lines, error):
    """The entries of a block: (line number, number of the entry or None, first line, the lines below it)."""
    entries = []
    for n, text in lines:
        if match := _ENTRY.fullmatch(text):
            entries.append((n, match[1] and int(match[1]), match[2], []))
        elif text.startswith("  ") and entries:
            entries[-1][3].append(text.strip())
        elif text.strip():
            raise error(n, f"this is no entry of the block: {text.strip()!r}")
    return [(n, number, first, " ".join(below)) for n, number, first, below in entries]


def _order(id, points, lines, error):
    entries = _entries(lines, error)
    places = [number for _, number, _, _ in entries if number]
    if places != list(range(1, len(places) + 1)) or len(places) < 3:
        raise error(lines[0][0], "an order has three or more lines, numbered 1., 2., 3., …")
    rows = [_order_line(*entry, error) for entry in entries]
    _letter(id, rows)
    letter = {row["place"]: row["label"] for row in rows if row["place"]}
    for row in rows:
        row["needs"] = [letter[place] for place in row["needs"]]
    rows.sort(key=lambda row: row["label"])
    answer = ordering.right_order(rows)
    by_label = {row["label"]: row for row in rows}
    example = shown(_EVERYBODY[n] for n in (1, 0, 2))
    listing = "\n".join(f"- **{row['label']}** {row['text']}" for row in rows)
    extra = sum(not row["place"] for row in rows)
    rest = {0: "All lines belong to the derivation.", 1: "One line does not belong to it."}
    asked = f'Give their letters from top to bottom in a string, such as `"{example}"`. '
    listing = asked + rest.get(extra, f"{extra} lines do not belong to it.") + f"\n\n{listing}"
    solution = "\n".join(f"{n}. **{label}** {by_label[label]['text']}" for n, label in enumerate(answer, 1))
    solution += f'\n\n`"{shown(answer)}"`, or another order in which every line stands below the lines that it needs.'
    share = 1 - 1 / len(places)
    mistakes = [
        {"sentence": row["sentence"], "points": round(points * share, 2), "value": repr(shown([*answer, row["label"]]))}
        for row in rows
        if not row["place"]
    ]
    made = Puzzle("order", {"lines": rows}, f'"{shown(answer)}"', listing=listing, solution=solution, mistakes=mistakes)
    made.before = f'arrange("{id}")'
    return made


def _order_line(n, number, text, below, error):
    needs = [number - 1] if number and number > 1 else []
    if number and (match := _NEEDS.fullmatch(text)):
        needs, text = [int(place) for place in re.findall(r"\d+", match[2] or "")], match[3]
    if any(not 1 <= need < number for need in needs):
        raise error(n, f"line {number} can need only lines above it")
    if bool(number) == bool(below):
        raise error(n, "a numbered line has no text below it; a line that does not belong says below it why")
    return {"label": "", "place": number or 0, "needs": needs, "text": text, "shown": _html(text, n, error),
            "sentence": below}  # fmt: skip


def _letter(id, rows):
    """Letters for the lines, in an order drawn from the id, two moves or more from a right one."""
    needed = ordering.above([row | {"label": row["place"]} for row in rows])
    digest = hashlib.sha256(id.encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "big"))
    order = list(range(len(rows)))
    for _ in range(100):
        order = rng.permutation(len(rows))
        places = [rows[i]["place"] for i in order]
        moves = ordering.fewest_moves([place for place in places if place], needed)
        if moves > 1 and all(b != a + 1 for a, b in itertools.pairwise(places)):
            break
    for label, i in zip(_EVERYBODY, order, strict=False):
        rows[i]["label"] = label


def _html(text, n, error):
    """A line of Markdown with formulas as HTML with MathML, for the buttons: code, emphasis and formulas only."""
    parts, end = [], 0
    for match in FORMULA.finditer(text):
        formula = mathml(match["inline"] or match["display"] or "")
        if formula.startswith("<code>"):
            raise error(n, f"this formula cannot be shown as MathML: {match[0]}")
        parts += [_prose(text[end : match.start()]), formula]
        end = match.end()
    return "".join([*parts, _prose(text[end:])])


def _prose(text):
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"\*+([^*]+)\*+", r"<em>\1</em>", text)


def _lines(id, points, lines, error):
    fences = [i for i, (_, text) in enumerate(lines) if text.startswith("```")]
    if len(fences) != 2 or fences[1] - fences[0] < 4:
        raise error(lines[0][0], "the block `lines` ends with the solution in a fence: three expressions or more")
    solution = [text.strip() for _, text in lines[fences[0] + 1 : fences[1]]]
    part = {"arrays": {}, "first": solution[0], "last": solution[-1], "through": [], "between": 1}
    for n, _, text, below in _entries(lines[: fences[0]], error):
        _lines_entry(part, n, f"{text} {below}".strip(), error)
    for (n, _), expression in zip(lines[fences[0] + 1 : fences[1]], solution, strict=True):
        _computable(part, n, expression, error)
    inputs = derivation.draw(part["arrays"], np.random.default_rng(0))
    for expression in part["through"]:
        if derivation.contains(compute(parse(part["first"]), inputs), compute(parse(expression), inputs).value):
            raise error(lines[0][0], f"the first line already contains `{expression}`")
    listing = [f"- `{name}`: {_what(*array)}" for name, array in part["arrays"].items()]
    between = {1: "one line", 2: "two lines", 3: "three lines"}.get(part["between"], f"{part['between']} lines")
    words = (
        "Write one NumPy expression on each line of the text, each equal to the line above it for all values of\n\n"
        + "\n".join(listing)
        + f"\n\nBegin with `{part['first']}`, end with `{part['last']}`, and write at least {between} between them."
    )
    inner = "\n".join(solution)
    stub = f'"""\n{part["first"]}\n...\n{part["last"]}\n"""'
    return Puzzle("lines", {"derivation": part}, f'"""\n{inner}\n"""', stub=stub, listing=words,
                  solution=f"```python\n{inner}\n```")  # fmt: skip


def _lines_entry(part, n, text, error):
    if text.startswith("through: "):
        expression = text.removeprefix("through: ").strip("`")
        _computable(part, n, expression, error)
        part["through"].append(expression)
    elif text.startswith("between: "):
        part["between"] = int(text.removeprefix("between: "))
    elif (match := _ARRAY.fullmatch(text)) and (match[3] or "real") in derivation.KINDS:
        shape = re.findall(r"\w", match[2] or "")
        part["arrays"][match[1]] = [shape, match[4].strip("`") if match[4] else match[3] or "real"]
        if match[4]:
            _computable(part, n, match[4].strip("`"), error)
    else:
        kinds = ", ".join(derivation.KINDS)
        raise error(n, f"an array is written `- x: (n,) distribution` or `- x: = expression`; the kinds are {kinds}")


def _computable(part, n, expression, error):
    try:
        compute(parse(expression), derivation.draw(part["arrays"], np.random.default_rng(0)))
    except ExpressionError as problem:
        raise error(n, f"`{expression}` {problem}") from None


def _what(shape, kind):
    size = f"shape ({', '.join(shape)}{',' * (len(shape) == 1)})" if shape else "a number"
    words = {
        "real": "", "positive": ", positive", "distribution": ", probabilities that add up to 1 along the last axis",
        "unit": ", of length 1", "orthogonal": ", an orthogonal matrix", "one-hot": ", one-hot",
        "index": ", an index", "whole": ", a whole number", "probability": ", between 0 and 1",
    }  # fmt: skip
    return f"{size}{words[kind]}" if kind in words else f"short for `{kind}`"


def _choice(id, points, lines, error):
    entries = _entries(lines, error)
    options = []
    for (n, number, text, below), label in zip(entries, _EVERYBODY, strict=False):
        marked = text.startswith("[x] ")
        text = re.sub(r"^\[[ x]\] ", "", text)
        if number or not below:
            raise error(n, "an option is `- [ ] text` or, if it is right, `- [x] text`, and below it stands the reply")
        if scale := _SCALE.fullmatch(text):
            options.append({"low": float(scale[1]), "high": float(scale[2]), "right": marked, "reply": below})
        else:
            options.append({"label": label, "text": text, "right": marked, "reply": below})
    right = [option for option in options if option["right"]]
    if len(options) < 2 or not right or len({"low" in option for option in options}) > 1:
        raise error(lines[0][0], "a choice has two options or more, one of them right, all of a list or all of a scale")
    if choosing.on_a_scale(options):
        if len(right) > 1 or any(a["high"] != b["low"] for a, b in itertools.pairwise(options)):
            raise error(lines[0][0], "the intervals of a scale follow each other, and one of them is right")
        return _scale(options, points)
    return _list(options, right, points)


def _list(options, right, points):
    answer, one = choosing.right(options), len(right) == 1
    listing = "\n".join(f"- **{option['label']}** {option['text']}" for option in options)
    form = f'Give its letter in a string, such as `"{options[0]["label"]}"`.' if one else (
        'Several may be right. Give the letters of all right ones in a string, such as `"A B"`.')  # fmt: skip
    solution = "\n".join(f"- **{option['label']}** {option['text']} — {option['reply']}" for option in right)
    mistakes = []
    for option in options:
        value = option["label"] if one else shown([answer, option["label"]])
        if not option["right"]:
            share = choosing.assess(options, value).share
            mistakes.append({"sentence": option["reply"], "points": round(points * share, 2), "value": repr(value)})
    return Puzzle("choice", {"options": options}, f'"{answer}"', listing=f"{listing}\n\n{form}", solution=solution,
                  mistakes=mistakes)  # fmt: skip


def _scale(options, points):
    (right,) = (option for option in options if option["right"])
    low, high = options[0]["low"], options[-1]["high"]
    mistakes = [
        {"sentence": option["reply"], "points": 0.0, "value": repr((option["low"] + option["high"]) / 2)}
        for option in options
        if not option["right"]
    ]
    return Puzzle("choice", {"options": options}, f"{choosing.right(options):g}", mistakes=mistakes,
                  listing=f"Give one number from {low:g} to {high:g}.",
                  solution=f"From {right['low']:g} to {right['high']:g}. {right['reply']}")  # fmt: skip
