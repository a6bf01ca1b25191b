"""The exercises as exercises/assignments/NN_slug.md has them: card, model solution and known mistakes, block by block.

    :::{exercise} 06.softmax.softmax
    ### Softmax that survives any score
    ★★☆ · 10 min · The primer, chapter VI

    Write `softmax(z)` along the **last** axis: …
    - hint: Subtract the maximum, exponentiate, divide by the sum along the last axis.
    - masked: softmax log_softmax
    - references: primer.ch06.ex6.softmax
    ```{code-cell} python
    def softmax(z):
        …
    ```
    - (2) `axis=-1` -> `axis=0`: You normalised along axis 0. The candidates stand along the last axis: `axis=-1`.
    - (0) `np.exp(z)`: These are exponentials, but they do not add up to one: divide by their sum.
    :::

A mistake is an edit of the solution, `old` -> `new`, made wherever `old` occurs (several are joined by `; `, ⏎ is a
line break, `nothing` deletes); or an expression alone, which is returned in place of what the solution returns (the
value itself, where the answer is a value); or another program, in a fence below the word `instead:`; or for a repair
the function `as printed`. `EPSILON` in it stands for every number of `mathllm_exercises.bank.SMALL`. The sentence
follows the colon. The points in front are computed
(`build_exercises.py --update`); a value has none.

Points follow from stars and minutes (`mathllm_exercises.bank.effort`). A value's facts hold its precision:
`★☆☆ · 3 min · 3 decimals · Primer, chapter 2`. A text has `- rubric 1: criterion` for each criterion, with its weight,
and its model answer between `:::{answer}` and `:::`.

The learner gets a function without what follows its docstring; a repair as its card prints it; a value as `name = ...`,
below what stands above the cell's first blank line. Where something else is to be left out, it stands between the lines
`### BEGIN SOLUTION` and `### END SOLUTION`.

A block `:::{order}`, `:::{lines}` or `:::{choice}` in place of the solution's cell makes an exercise of that kind: see
`exercise_puzzles`. A code cell between the exercise and its choice draws the figure that the choice is about.

A line `{{how_to_work}}` stands for what every assignment says of itself, and for its first code cell.

The section `## Check yourself`, the last one, holds the questions that are asked in the chapter: `:::{quick} ID` with
the right value in `- answer:` and the mistakes below it. The notebooks of the assignment leave it out.
"""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

from exercise_puzzles import KINDS, cell_source, puzzle
from mathllm_exercises.bank import effort
from notebook_text import Cell, SourceError, name_parts, read_cells, read_lines

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
QUICK = "## Check yourself"
_OPEN = re.compile(r":::\{(\w+)\}\s*(.*)")
_FIELD = re.compile(r"- ([a-z]+)(?: (\d+(?:\.\d+)?))?: (.*)")
_FACTS = {
    "minutes": re.compile(r"(\d+) min"),
    "decimals": re.compile(r"(\d+) decimals?"),
    "rtol": re.compile(r"to a relative ([\d.e-]+)"),
}
_POINTS = re.compile(r"- (?:\((\d+(?:\.\d+)?)\) )?")
_SPAN = r"(`+)(.+?)(?<!`)\{}(?!`)"
_CHANGE = re.compile(rf"{_SPAN.format(1)}(?: -> (?:(nothing)|{_SPAN.format(4)}))?(; |: |:$)")

HOW_TO_WORK = """\
**How to work.** Each exercise has a card that says what is wanted, a cell for your answer, and a cell that calls
`check`. Replace the `...` or the line `# your code here` by your answer (where a function is to be fixed, change it),
run your cell, then run the check. It tries your answer on the documents' own numbers and on fresh random ones, and
tells you what holds and what does not. It recognises common mistakes. If inputs are too long to be shown, they are in
`check.case`. You may run the check as often as you like: it keeps no score. To begin an answer
anew, write `start_again("...")` into its cell, with the name that stands in its check, and run the cell: it is then as
it was at the beginning. (The browser edition prints the text of that cell.)

**What counts.** Points belong to the named checks, so a partly right function earns part of them. When your work is
graded the inputs are new. Every function returns its result (printing it is not enough) and leaves its inputs as they
were, whether its card says so or not. In one answer do not call your answer to another exercise: use the function of
`mathllm`, so that a mistake there costs you nothing here.

**What you may use.** NumPy, and all of `mathllm` except what a card lists as *Not in this exercise*: these functions
refuse to work while that answer is checked.

**Your own numbers.** Some exercises give everybody different numbers, drawn from the name under which you hand in.
The first cell below shows the name it goes by. If it is not yours, set the environment variable `MATHLLM_LEARNER` to
the right one before you start JupyterLab.

**How to hand in.** Run all cells from top to bottom once more (*Kernel → Restart Kernel and Run All Cells…*), save, and
submit the notebook under its own name. Leave the cells with the checks as they are."""
SETUP = """\
import numpy as np
import mathllm as ml
from mathllm_exercises import arrange, check, learner, numbers, start_again

print("your numbers are drawn for:", learner())"""


@dataclass
class Exercise:
    """One exercise of a text: its record, as it goes into bank.json, and where its parts stand."""

    id: str
    line: int
    record: dict = field(default_factory=dict)
    cell: Cell | None = None  # the solution
    mistakes: list = field(default_factory=list)  # (line, lines of the list's entry)
    mistake_lines: list = field(default_factory=list)  # for each mistake of the record
    puzzle: object = None  # what the block of an order, of lines or of a choice says


@dataclass
class Assignment:
    """The cells of an assignment, the solutions among them with the option `item`, and its exercises."""

    cells: list
    exercises: dict


def read(path: Path) -> Assignment:
    """Read an assignment.

    Raises: SourceError with file and line for whatever cannot be right.
    """
    reader = _Reader(path)
    cells = read_cells(path, {"item", "label", "tags"}, reader.without_blocks())
    for cell in cells:
        if cell.kind == "cards":
            raise SourceError(path, cell.line, "an assignment has its cards: {{exercise_cards}} is for chapters")
    cells = _opened(cells, [entry.record["minutes"] for entry in reader.exercises.values() if entry.record["graded"]])
    reader.assign(cells)
    for exercise in reader.exercises.values():
        reader.complete(exercise)
    return Assignment(cells, reader.exercises)


def _opened(cells, minutes):
    """The cells with what every assignment says of itself, and its first code cell, in place of {{how_to_work}}."""
    first, *others = cells
    before, found, after = first.source.partition("{{how_to_work}}")
    if not found:
        return cells
    setup = Cell("code", SETUP, first.line + before.count("\n"))
    rest = [Cell("markdown", after.strip("\n"), setup.line + 2)] if after.strip() else []
    long = f"**How long.** {len(minutes)} exercises, about {round(sum(minutes) / 30) / 2:g} hours.\n\n"
    return [Cell("markdown", before + long + HOW_TO_WORK, first.line), setup, *rest, *others]


class _Reader:
    """Takes the blocks out of a text and reads them."""

    def __init__(self, path):
        self.path, self.exercises = path, {}
        self.lines = read_lines(path)
        self.solution_lines, self.figure_lines = {}, {}

    def error(self, line, message):
        return SourceError(self.path, line, message)

    def without_blocks(self):
        """The lines with a blank one for each line of a block but its code; `:::{answer}` gets the exercise's id."""
        kept, current, n = list(self.lines), None, 0
        while n < len(self.lines):
            match = _OPEN.fullmatch(self.lines[n].rstrip())
            if not match:
                n += 1
                continue
            kind, id = match.groups()
            end = self._end(n)
            if kind in ("exercise", "quick"):
                start, stop = self._fence(n, end)
                current = self._open(id, n + 1, kind, self.lines[n + 1 : start])
                current.mistakes += self._entries(stop, self.lines[stop:end])
                if start < end:
                    self.solution_lines[id] = start + 1
                kept[n:start] = [""] * (start - n)
                kept[stop : end + 1] = [""] * (end + 1 - stop)
            elif kind not in ("answer", *KINDS) or current is None or id:
                known = ", ".join(f"{{{name}}}" for name in ("answer", *KINDS))
                wanted = f"{{exercise}} or {{quick}} with its id, or below an exercise {known}"
                raise self.error(n + 1, f"a block is {wanted}")
            elif kind in KINDS:
                self._puzzle(current, kind, n, end)
                kept[n : end + 1] = ["```{code-cell} python", "...", "```", *[""] * (end - n - 2)]
            else:
                self.solution_lines.setdefault(current.id, n + 1)
                kept[n] += f" {current.id}"
            n = end + 1
        return kept[: kept.index(QUICK)] if QUICK in kept else kept

    def _fence(self, start, end):
        """Where a block's code cell begins and where it has ended; the block's own end if it has none."""
        for n in range(start, end):
            if self.lines[n].startswith("```{code-cell}"):
                closing = (m for m in range(n + 1, end) if self.lines[m].rstrip() == "```")
                return n, next(closing, end - 1) + 1
        return end, end

    def _puzzle(self, exercise, kind, start, end):
        """Read the block of an order, of lines or of a choice; a code cell of the exercise is its figure."""
        if exercise.puzzle or end - start < 3:
            raise self.error(start + 1, f"an exercise has one block {{{kind}}}, of two lines or more")
        if exercise.id in self.solution_lines:
            self.figure_lines[exercise.id] = self.solution_lines[exercise.id]
        self.solution_lines[exercise.id] = start + 1
        record = exercise.record
        record["points"] = effort(record["difficulty"], record["minutes"])
        fences = [n for n in range(start, end) if self.lines[n] == "```"]
        stop = fences[-1] + 1 if fences else end  # the known mistakes of lines follow their program
        exercise.mistakes += self._entries(stop, self.lines[stop:end])
        lines = [(n + 1, self.lines[n]) for n in range(start + 1, stop)]
        exercise.puzzle = puzzle(kind, exercise.id, record["points"], lines, self.error)

    def _end(self, start):
        for n in range(start + 1, len(self.lines)):
            if self.lines[n].rstrip() == ":::":
                return n
            if _OPEN.fullmatch(self.lines[n].rstrip()):
                break
        raise self.error(start + 1, f"the directive {self.lines[start].strip()!r} is not closed")

    def _open(self, id, line, kind, lines):
        number, slug = name_parts(self.path)
        if not re.fullmatch(rf"{number}\.{slug}\.[a-z][a-z0-9_]*", id):
            raise self.error(line, f"an exercise of this chapter is called {number}.{slug}.name, not {id!r}")
        if id in self.exercises:
            raise self.error(line, f"the exercise {id!r} stands here twice, first in line {self.exercises[id].line}")
        exercise = self.exercises[id] = Exercise(id, line)
        if len(lines) < 3 or not lines[0].startswith("### ") or lines[2].strip():
            raise self.error(line, "an exercise begins with its title (### …), its facts and a blank line")
        start = next((n for n, text in enumerate(lines) if n > 2 and _FIELD.fullmatch(text)), len(lines))
        exercise.record = {"id": id, "kind": "", "title": lines[0][4:].strip(), **self._facts(lines[1], line + 2)}
        exercise.record |= {"task": "\n".join(lines[3:start]).strip(), "graded": kind == "exercise"}
        exercise.record |= {"hints": [], "masked": None, "references": [], "rubric": [], "answer": "", "solution": ""}
        for at, entry in self._entries(line + start, lines[start:]):
            if match := _FIELD.fullmatch(_joined(entry)):
                self._field(exercise, at, *match.groups())
            else:
                exercise.mistakes.append((at, entry))
        return exercise

    def _facts(self, text, line):
        first, *facts = text.split(" · ")
        stars = first.count("★")
        if not re.fullmatch(r"★+☆*", first):
            facts, stars = [first, *facts], 1
        elif len(first) != 3:
            raise self.error(line, "the difficulty is three stars, such as ★★☆")
        found = {"difficulty": stars, "minutes": 1, "precision": {}}
        while facts:
            known = {name: match[1] for name, pattern in _FACTS.items() if (match := pattern.fullmatch(facts[0]))}
            if re.fullmatch(r"[\d.]+ points?", facts[0]):
                raise self.error(line, "points follow from the stars and the minutes; none are written")
            if not known:
                break
            (name, number), *_ = known.items()
            value = float(number) if name == "rtol" else int(number)
            (found["precision"] if name in ("decimals", "rtol") else found)[name] = value
            facts.pop(0)
        if not facts:
            raise self.error(line, "the facts end with the source of the exercise")
        return found | {"source": " · ".join(facts)}

    def _entries(self, line, lines):
        """The entries of a list: (line, their lines)."""
        entries = []
        for n, text in enumerate(lines, line + 1):
            if text.startswith("- "):
                entries.append((n, [text]))
            elif text.strip() and not (entries and text.startswith("  ")):
                raise self.error(n, f"this is no entry of the list: {text.strip()!r}")
            elif entries:
                entries[-1][1].append(text)
        return entries

    def _field(self, exercise, line, name, number, text):
        record = exercise.record
        if (number is None) == (name == "rubric"):
            raise self.error(line, f"the field {name!r} is written `- {name}{' 1' * (name == 'rubric')}: …`")
        if name == "hint":
            record["hints"].append(text)
        elif name == "rubric":
            record["rubric"].append([float(number), text])
        elif name in ("masked", "references"):
            record[name] = [] if text == "none" else text.split()
        elif name == "answer":
            record["expected"] = text.strip("`")
        else:
            raise self.error(line, f"unknown field {name!r}; known are hint, rubric, masked, references, answer")

    def assign(self, cells):
        """Give each solution's cell to its exercise."""
        for id, line in self.solution_lines.items():
            cell = next((cell for cell in cells if cell.line >= line and cell.kind in ("code", "markdown")), None)
            if cell is not None:
                cell.options["item"] = id
                self.exercises[id].cell = cell
                if cell.kind == "code" and not self.exercises[id].puzzle:
                    cell.source = self._marked(cell, self.exercises[id].record)
        for id, line in self.figure_lines.items():
            cell = next(cell for cell in cells if cell.line >= line and cell.kind == "code")
            cell.options["figure"] = id
        for exercise in self.exercises.values():
            if exercise.puzzle and exercise.cell:
                exercise.cell.source = cell_source(exercise.id.split(".")[-1], exercise.puzzle)
                exercise.cell.options["shown"] = exercise.puzzle.solution
            if exercise.cell is None and exercise.record["graded"]:
                raise self.error(exercise.line, f"no answer for the exercise {exercise.id!r}")

    def _marked(self, cell, record):
        """An answer with the marks of nbgrader around its solution."""
        lines = cell.source.splitlines()
        try:
            last = ast.parse(cell.source).body[-1]
        except (SyntaxError, IndexError):
            raise self.error(cell.line, "the answer is not Python") from None
        if BEGIN in cell.source:
            return cell.source
        if not isinstance(last, ast.FunctionDef):
            given = lines[: lines.index("")] if "" in lines else []
            name = ast.unparse(last.targets[0]) if isinstance(last, ast.Assign) else "an answer"
            return "\n".join([*given, f"{name} = ...", BEGIN, *lines[len(given) + bool(given) :], END])
        record["broken"] = printed(record["task"], last.name)
        if record["broken"]:
            return "\n".join([record["broken"], "", "", BEGIN, *lines, END])
        if ast.get_docstring(last) is None:
            raise self.error(cell.line, "a function keeps its docstring; the solution follows it")
        start = last.body[0].end_lineno
        return "\n".join([*lines[:start], f"    {BEGIN}", *lines[start:], f"    {END}"])

    def complete(self, exercise):
        """Kind, answer, solution and mistakes of an exercise."""
        record, cell, made = exercise.record, exercise.cell, exercise.puzzle
        if cell is not None and cell.kind == "code":
            record["answer"], record["solution"] = self._solution(cell)
        elif cell is None:
            record["answer"] = "answer"
        if "expected" in record:
            record["expected"] = f"{record['answer']} = {record['expected']}"
        record["kind"] = made.kind if made else _kind(record)
        if made:
            record |= made.part | {"task": f"{record['task']}\n\n{made.listing}"}
            record["solution"] = f"{record['answer']} = {made.right}"
        if made and exercise.mistakes and made.kind != "lines":
            raise self.error(exercise.line, f"the known mistakes of this kind stand in its block {{{made.kind}}}")
        if (record["kind"] == "text") != (cell is not None and cell.kind == "markdown"):
            raise self.error(exercise.line, "an exercise with a rubric has an :::{answer}, another a code cell")
        if not record["graded"] and "expected" not in record:
            raise self.error(exercise.line, "a question of the chapter has its right value in the field `- answer:`")
        if record["kind"] != "value":
            del record["precision"]
        read = [_Mistake(self, record, line, entry).record() for line, entry in exercise.mistakes]
        record["mistakes"] = read + (made.mistakes if made else [])
        exercise.mistake_lines = [line for line, _ in exercise.mistakes]

    def _solution(self, cell):
        markers = re.findall(f"^ *({BEGIN}|{END})$", cell.source, re.MULTILINE)
        if markers != [BEGIN, END]:
            raise self.error(cell.line, f"an answer cell has one region from {BEGIN!r} to {END!r}")
        names = None
        for what, source in (("the answer", cell.source), ("what the learner gets", released(cell.source))):
            try:
                defined = _defined(ast.parse(source))
            except SyntaxError as error:
                raise self.error(cell.line, f"{what} is not Python: {error.msg} (line {error.lineno} of the cell; "
                                            "a function keeps its docstring)") from None  # fmt: skip
            names = defined if names is None else [name for name in defined if name in names]
        if not names:
            raise self.error(cell.line, "the cell defines no name outside its solution: `name = ...` or `def name(…)`")
        return names[-1], solution(cell.source)


def printed(task, name) -> str:
    """The program of a card that defines this function, which is to be fixed; "" if there is none."""
    fences = re.findall(r"^```python\n(.*?)\n```$", task, re.DOTALL | re.MULTILINE)
    return next((code for code in fences if f"def {name}(" in code), "")


def _kind(record):
    if record["rubric"]:
        return "text"
    if not re.search(rf"^def {record['answer']}\(", record["solution"], re.MULTILINE):
        return "value"
    return "repair" if record.get("broken") else "function"


def _joined(lines):
    return " ".join(line.strip() for line in lines if line.strip())


class _Mistake:
    """One entry of a list of mistakes."""

    def __init__(self, reader, record, line, lines):
        self.reader, self.of, self.line, self.lines = reader, record, line, lines

    def error(self, message):
        return self.reader.error(self.line, message)

    def record(self):
        points = _POINTS.match(self.lines[0])
        rest = [self.lines[0][points.end() :], *self.lines[1:]]
        if rest[0].startswith("as printed: "):
            made, sentence = {"code": self.of.get("broken") or ""}, _joined(rest).removeprefix("as printed: ")
        elif rest[0].strip() == "instead:":
            made, sentence = self._program(rest)
        else:
            made, sentence = self._changes(_joined(rest))
        if not sentence:
            raise self.error("a mistake is a change, a colon, and the sentence that names it")
        return {"sentence": sentence, "points": float(points[1] or 0), **made}

    def _program(self, lines):
        fences = [n for n, line in enumerate(lines) if line.strip().startswith("```")]
        if len(fences) != 2:
            raise self.error("`instead:` is followed by a program in a fence, and that by the sentence")
        code = "\n".join(line[2:] for line in lines[fences[0] + 1 : fences[1]])
        self._parses(code)
        return {"code": code}, _joined(lines[fences[1] + 1 :])

    def _changes(self, text):
        edits, at, source = [], 0, self.of["solution"]
        while match := _CHANGE.match(text, at):
            _, old, deleted, _, new, end = match.groups()
            old, new = old.replace("⏎", "\n"), "" if deleted else (new or "").replace("⏎", "\n")
            if match.end(2) + len(match[1]) == match.start(6):  # an expression alone
                return self._alone(old), text[match.end() :]
            if old not in source:
                raise self.error(f"the solution does not contain `{match[2]}`")
            source = source.replace(old, new)
            edits.append([old, new])
            at = match.end()
            if end != "; ":
                self._parses(source)
                return {"edits": edits}, text[at:]
        return {}, ""

    def _alone(self, expression):
        if self.of["kind"] == "value":
            self._parses(expression)
            return {"value": expression}
        if self.of["kind"] == "lines":
            derivation = self.of["derivation"]
            return {"value": repr("\n".join([derivation["first"], expression, derivation["last"]]))}
        source = self.of["solution"]
        function = [node for node in ast.parse(source).body if getattr(node, "name", None) == self.of["answer"]][-1]
        last = function.body[-1]
        if not isinstance(last, ast.Return):
            raise self.error("an expression alone needs a solution that ends with `return`")
        old = ast.get_source_segment(source, last)
        if source.count(old) != 1:
            raise self.error(f"the solution has {old!r} twice; write an edit")
        self._parses(source.replace(old, f"return {expression}"))
        return {"edits": [[old, f"return {expression}"]]}

    def _parses(self, code):
        try:
            ast.parse(code)
        except SyntaxError as error:
            raise self.error(f"what this makes of the solution is not Python: {error.msg}") from None


def _defined(tree):
    """The names a cell defines, in their order."""
    names = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return names


STUB = "# your code here"  # what a learner finds in place of a solution


def released(source) -> str:
    """An answer as the learner finds it: the solution replaced by one comment, as nbgrader does it."""
    return re.sub(f"^( *){BEGIN}$.*?^ *{END}$", rf"\1{STUB}", source, flags=re.DOTALL | re.MULTILINE)


def solution(source) -> str:
    """An answer as a reader wants to see it: without the marks, `name = ...`, and a repair's printed function."""
    given, mark, rest = source.partition(f"\n{BEGIN}\n")
    if mark and re.match(r"(def |import |[A-Z_]+ = )", given) and rest.startswith("def "):
        source = rest
    drop = (BEGIN, END)
    return "\n".join(s for s in source.splitlines() if s.strip() not in drop and not re.fullmatch(r"\w+ = \.\.\.", s))
