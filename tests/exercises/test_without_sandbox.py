"""What is said and done where there is no sandbox, and what takes the place of the item bank inside one."""

import os

import pytest
from mathllm_exercises import kernel_side
from mathllm_grading import in_sandbox, sandbox


@pytest.fixture
def fresh(monkeypatch):
    """Whether the sandbox works is asked once in a process: here, before and after each test."""
    sandbox.problem.cache_clear()
    yield monkeypatch
    sandbox.problem.cache_clear()


def test_without_bubblewrap_the_problem_is_a_sentence_that_names_the_remedy_and_the_way_out(fresh):
    fresh.setenv("PATH", "/nowhere")
    problem = sandbox.problem()
    for words in ("no program is called bwrap", "apt install bubblewrap", "MATHLLM_UNSANDBOXED=yes"):
        assert words in problem
    assert "\n" not in problem


def test_a_bubblewrap_that_cannot_make_namespaces_is_quoted(fresh, tmp_path):
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    fresh.setattr(os, "geteuid", lambda: 4711)  # for root, other programs come first, and may fail first
    fresh.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert "here it cannot: bwrap: setting up uid map: Permission denied." in sandbox.problem()


def test_the_way_out_is_one_exact_word_and_passes_no_secret_on(fresh):
    for value in ("1", "true", "YES", ""):
        fresh.setenv("MATHLLM_UNSANDBOXED", value)
        assert sandbox.required()
    fresh.setenv("MATHLLM_UNSANDBOXED", "yes")
    fresh.setenv("MATHLLM_COURSE_KEY", "k" * 32)
    assert "MATHLLM_COURSE_KEY" not in sandbox.environment(sandboxed=False)


def test_the_package_in_the_sandbox_gives_numbers_and_no_verdict(monkeypatch):
    monkeypatch.setenv("MATHLLM_LEARNER", "ada")
    monkeypatch.setattr(kernel_side, "own_numbers", {"01.vectors.own_length": {"v": [1, 2]}})
    assert in_sandbox.learner() == "ada"
    assert in_sandbox.numbers("01.vectors.own_length").v == [1, 2]
    report = in_sandbox.check("01.vectors.norm", "wrong")
    assert report.passed
    assert report.score() == 0.0
    assert "being graded" in str(report)
    with pytest.raises(ValueError, match="numbers of your own"):
        in_sandbox.numbers("01.vectors.norm")
    for look in (in_sandbox.items, lambda: in_sandbox.item("01.vectors.norm")):
        with pytest.raises(RuntimeError, match="cannot be looked up"):
            look()
