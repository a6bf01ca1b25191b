"""The folded answer of a question: one full stop between the answer and its reason."""

import IPython.display
import pytest

from mathllm.figures import plots, questions


@pytest.mark.parametrize(
    ("option", "between"), [("It may", "It may**. Why"), ("It may.", "It may.** Why"), ("May it?", "May it?** Why")]
)
def test_an_option_that_ends_in_a_stop_gets_no_second_one(monkeypatch, capsys, option, between):
    shown = []
    monkeypatch.setattr(IPython.display, "display", lambda data, **_: shown.append(data))
    questions.answer(2, "Why.", options=["No", option])
    assert capsys.readouterr().out == f"Answer: (2) {between.replace('**', '')}.\n"
    monkeypatch.setattr(plots, "_in_a_notebook", lambda: True)
    questions.answer(2, "Why.", options=["No", option])
    assert f"\n\n**(2) {between}.\n\n" in shown[0]["text/markdown"]
    assert shown[0]["text/plain"] == f"Answer: (2) {between.replace('**', '')}.".strip()
