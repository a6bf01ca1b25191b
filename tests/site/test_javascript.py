"""A linter finds nothing in the scripts of the figures, the pages and the tools."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINTER = ROOT / ".cache" / "vendor" / "lint" / "node_modules" / "oxlint" / "bin" / "oxlint"

pytestmark = pytest.mark.slow


@pytest.fixture
def lint(site):
    """Runs the linter, which came with the site, on these files or folders."""

    def run(*paths):
        command = ["node", LINTER, "--deny-warnings", *paths]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    return run


def test_the_linter_finds_nothing_in_our_scripts(lint):
    done = lint("mathllm/figures", "book/_static", "book/lite", "tools")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_linter_finds_a_name_that_is_never_used(lint, tmp_path):
    (tmp_path / "wrong.js").write_text('import { sum } from "./elements.js";\n')
    assert lint(tmp_path).returncode == 1
