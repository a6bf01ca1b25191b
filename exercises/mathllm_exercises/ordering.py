"""The kind `order`: the lines of a derivation, among lines that do not belong to it, are put in order.

Which line needs which is a graph, so every order that the graph allows is right. Partial credit counts the fewest moves
to a right order; a move inserts a missing line, deletes a line that does not belong, or puts a line elsewhere:

    share of the points = max(0, 1 - moves / number of lines of the derivation)
"""

from functools import partial

from .verdict import AssessedCheck, Verdict, letters, shown

__all__ = ["above", "assess", "check", "fewest_moves", "right_order"]

NAME = "the lines in order"


def check(record) -> AssessedCheck:
    """The check of an exercise with this record of bank.json."""
    return AssessedCheck(NAME, record["points"], None, None, assess=partial(assess, record["lines"]))


def right_order(lines) -> list[str]:
    """The labels of the derivation's lines, in the order in which its author wrote them."""
    return [line["label"] for line in sorted(lines, key=lambda line: line["place"]) if line["place"]]


def above(lines) -> dict[str, set[str]]:
    """For each line of the derivation all lines that must stand above it, those that it needs indirectly included."""
    found = {}
    needs = {line["label"]: line["needs"] for line in lines}
    for label in right_order(lines):  # what a line needs has a smaller place
        found[label] = set(needs[label]).union(*(found[need] for need in needs[label]))
    return found


def fewest_moves(answer, needed) -> int:
    """The fewest insertions, deletions and moves that make a right order of an answer.

    answer: labels   needed: for each line all lines that must stand above it

    The lines that need not move are the largest set without a conflict. Two places conflict if the later line must
    stand above the earlier one, or is the same line. Conflicts are transitive, so the largest set without one has as
    many members as there are places, less the largest matching along conflicts (theorems of Dilworth and König).

    >>> needed = {"A": set(), "B": {"A"}, "C": {"A", "B"}}
    >>> [fewest_moves(answer, needed) for answer in ("ABC", "BAC", "CBA", "AC", "ABXC", "")]
    [0, 1, 2, 1, 1, 3]
    """
    places = [label for label in answer if label in needed]
    later = [
        [j for j in range(i + 1, len(places)) if places[j] in needed[places[i]] or places[j] == places[i]]
        for i in range(len(places))
    ]
    kept = len(places) - _largest_matching(later)
    return (len(needed) - kept) + (len(answer) - len(set(places)))


def _largest_matching(edges):
    """The number of edges (i, j), j in edges[i], of which no two share i or j: the method of alternating paths."""
    partner = {}

    def matched(i, tried):
        for j in edges[i]:
            if j not in tried:
                tried.add(j)
                if j not in partner or matched(partner[j], tried):
                    partner[j] = i
                    return True
        return False

    return sum(matched(i, set()) for i in range(len(edges)))


def assess(lines, value) -> Verdict:
    """The verdict on an answer.

    lines: of bank.json: label, place (from 1; 0 for a line that does not belong), needs (labels), sentence
    """
    answer, known = letters(value), {line["label"]: line for line in lines}
    example = shown(list(known)[:3])
    if answer is None or not answer:
        return Verdict(0, f'the answer is a list of letters in a string, such as "{example}"')
    if unknown := [label for label in answer if label not in known]:
        return Verdict(0, f"there is no line {unknown[0]}; the lines are {shown(known)}")
    if len(answer) > 2 * len(lines):
        return Verdict(0, f"there are {len(lines)} lines, and your answer has {len(answer)}")
    needed = above(lines)
    moves = fewest_moves(answer, needed)
    if not moves:
        return Verdict(1.0)
    wrong = dict.fromkeys(label for label in answer if not known[label]["place"])
    replies = tuple(known[label]["sentence"] for label in wrong)
    away = f"{moves} move{'s' if moves > 1 else ''} from a right order"
    return Verdict(max(0.0, 1 - moves / len(needed)), f"{_first(answer, known, needed)} ({away})", replies)


def _first(answer, known, needed):
    """What is wrong first, in words that do not give the order away."""
    for n, label in enumerate(answer):
        if not known[label]["place"]:
            return f"line {label} does not belong to the derivation"
        if label in answer[:n]:
            return f"line {label} stands in your answer twice"
        late = [need for need in known[label]["needs"] if need not in answer[:n]]
        if late and late[0] in answer:
            return f"line {label} stands too early: it needs a line that you put below it"
    return "a line of the derivation is missing"
