"""Numbers about questions: how many solved an item, what it tells apart, and which mistakes were made."""

import csv
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
import nbformat
import numpy as np
from mathllm_exercises.registry import items

__all__ = ["Question", "discrimination", "questions", "read_text", "write_csv", "write_page"]

CHECK = re.compile(r"  ([✓✗–]) (.+?)(?: \([\d.e+-]+ of [\d.e+-]+\))?(?:: not judged yet.*)?")


@dataclass
class Question:
    """What a class did with one item. `points` has a number for each learner who is graded."""

    assignment: str
    name: str
    title: str
    possible: float
    points: np.ndarray
    discrimination: float | None
    checks: dict = field(default_factory=dict)  # {name of a check: share of learners who passed it}
    mistakes: list = field(default_factory=list)  # (sentence of a known mistake, learners)
    others: list = field(default_factory=list)  # (a wrong result that no known mistake explains, learners)

    @property
    def mean(self):
        """Mean share of the points."""
        return float(np.mean(self.points)) / self.possible if self.possible else 0.0

    @property
    def full(self):
        """Share of the learners with all points."""
        return float(np.mean(self.points >= self.possible))


def discrimination(item, rest):
    """Correlation of the points of an item with those of all other items; None if one of them does not vary.

    item, rest: (learners,)   Near 1: learners who do well elsewhere solve it. Near 0 or below: look at it again.
    """
    if len(item) < 3 or np.ptp(item) == 0 or np.ptp(rest) == 0:
        return None
    return float(np.corrcoef(item, rest)[0, 1])


def read_text(text, known):
    """What a verdict says: ({check: passed}, sentences of known mistakes, other wrong results)."""
    checks, mistakes, others = {}, [], []
    for line in text.splitlines():
        if found := CHECK.fullmatch(line):
            checks[found[2]] = found[1] == "✓"
        elif line.startswith("  → ") and line[4:] in known:
            mistakes.append(line[4:])
        elif ", got " in line and not others:
            others.append("got " + line.partition(", got ")[2].strip())
    return checks, mistakes, [] if mistakes else others


def questions(assignment, points, folder):
    """The questions of an assignment, in the order of their names.

    points: {learner: {grade id: points}}, without texts that nobody has read yet
    folder: folder/<learner>/<assignment> holds what was graded, with its verdicts
    """
    learners = sorted(points)
    texts = {learner: _texts(Path(folder, learner, assignment)) for learner in learners}
    totals = {learner: sum(points[learner].values()) for learner in learners}
    found = []
    for item in items():
        judged = [learner for learner in learners if item.grade_id in points[learner]]
        if not judged:
            continue
        mine = np.array([points[learner][item.grade_id] for learner in judged], dtype=float)
        rest = np.array([totals[learner] for learner in judged]) - mine
        known = {mistake.sentence for mistake in item.mistakes}
        read = [read_text(texts[learner].get(item.grade_id, ""), known) for learner in judged]
        passed = {
            check.name: [checks[check.name] for checks, _, _ in read if check.name in checks] for check in item.checks
        }
        shares = {name: np.mean(seen) for name, seen in passed.items() if seen}
        mistakes = Counter(sentence for _, sentences, _ in read for sentence in sentences).most_common()
        others = Counter(other for _, _, others in read for other in others).most_common(5)
        about = assignment, item.grade_id, item.title, item.points, mine
        found.append(Question(*about, discrimination(mine, rest), shares, mistakes, others))
    return found


def _texts(folder):
    """{grade id: what was said of it} of a learner's graded notebooks."""
    found = {}
    for path in folder.glob("*.ipynb"):
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade"):
                said = [output.text for output in cell.outputs if output.output_type == "stream"]
                found[cell.metadata.nbgrader.grade_id] = "".join(said)
    return found


def write_csv(found, path):
    """A line for each item."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["assignment", "item", "title", "possible", "learners", "mean_share", "full_marks", "discrimination"]
        )
        for question in found:
            correlation = "" if question.discrimination is None else f"{question.discrimination:.3f}"
            writer.writerow([
                question.assignment, question.name, question.title, f"{question.possible:g}", len(question.points),
                f"{question.mean:.3f}", f"{question.full:.3f}", correlation,
            ])  # fmt: skip


def write_page(found, handed_in, path):
    """A page that needs no other file; what learners wrote is text on it, and nothing on it can run.

    handed_in: {assignment: {day: learners}}
    """
    template = Path(__file__).with_name("report.html.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(template).render(questions=found, handed_in=handed_in)
    Path(path).write_text(page, encoding="utf-8")
