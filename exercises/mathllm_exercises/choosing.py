"""The kind `choice`: one or several options of a list, or a number on a scale, with a reply to each option.

    share of the points = max(0, 1 - (right options left out + wrong options taken) / number of right options)

A number on a scale lies in one of the scale's intervals, which are its options.
"""

from functools import partial

from .verdict import AssessedCheck, Verdict, letters, shown

__all__ = ["assess", "check", "on_a_scale", "right"]

NAME = "the choice"


def check(record) -> AssessedCheck:
    """The check of an exercise with this record of bank.json."""
    return AssessedCheck(NAME, record["points"], None, None, assess=partial(assess, record["options"]))


def on_a_scale(options) -> bool:
    """Whether the options are intervals of a scale."""
    return "low" in options[0]


def right(options):
    """A right answer: letters in a string, or a number in the middle of the right interval."""
    chosen = [option for option in options if option["right"]]
    if on_a_scale(options):
        return (chosen[0]["low"] + chosen[0]["high"]) / 2
    return shown(option["label"] for option in chosen)


def assess(options, value) -> Verdict:
    """The verdict on an answer, with the reply to each option that was taken.

    options: of bank.json: right, reply, and label, or low and high
    """
    return _on_the_scale(options, value) if on_a_scale(options) else _of_the_list(options, value)


def _of_the_list(options, value):
    known, answer = {option["label"]: option for option in options}, letters(value)
    wanted = [label for label, option in known.items() if option["right"]]
    if not answer:
        form = f'a letter in a string, such as "{options[0]["label"]}"'
        if len(wanted) > 1:
            form = f'all right letters in a string, such as "{shown(list(known)[:2])}"'
        return Verdict(0, f"the answer is {form}")
    if unknown := [label for label in answer if label not in known]:
        return Verdict(0, f"there is no option {unknown[0]}; the options are {shown(known)}")
    if len(wanted) == 1 and len(set(answer)) > 1:
        return Verdict(0, "exactly one option is right; give one letter")
    taken = dict.fromkeys(answer)
    wrong = [label for label in taken if label not in wanted]
    missing = [label for label in wanted if label not in taken]
    replies = tuple(known[label]["reply"] for label in wrong or taken)
    if len(replies) > 1:
        replies = tuple(f"{label}: {reply}" for label, reply in zip(wrong or taken, replies, strict=True))
    if not wrong and not missing:
        return Verdict(1.0, "", replies)
    reason = f"{shown(wrong)} is not right" if len(wrong) == 1 else f"{shown(wrong)} are not right"
    if not wrong:
        others = ", ".join(label for label in known if label not in taken)
        reason = f"{shown(taken)} {'is' if len(taken) == 1 else 'are'} right, but not all: test {others} again"
    return Verdict(max(0.0, 1 - (len(wrong) + len(missing)) / len(wanted)), reason, replies)


def _on_the_scale(options, value):
    low, high = options[0]["low"], options[-1]["high"]
    try:
        number = float(value)
    except (TypeError, ValueError):
        return Verdict(0, "the answer is one number")
    if not low <= number <= high:
        return Verdict(0, f"{number:g} is not on the scale from {low:g} to {high:g}")
    inside = [option for option in options if option["low"] <= number <= option["high"]]
    option = next((option for option in inside if option["right"]), inside[0])
    reason = "" if option["right"] else f"{number:g} is not the answer"
    return Verdict(float(option["right"]), reason, (option["reply"],))
