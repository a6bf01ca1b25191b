"""A linter finds nothing in the scripts of the figures, the pages and the tools."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINTER = ROOT / ".cache" / "vendor" / "lint" / "node_modules" / "oxlint" / "bin" / "oxlint"

pytestmark = pytest.mark.slow


def test_the_linter_finds_a_name_that_is_never_used_but_nothing_in_our_scripts(site, tmp_path):
    """The linter came with the site."""
    (tmp_path / "wrong.js").write_text('import { sum } from "./elements.js";\n')
    for paths, code in [([tmp_path], 1), (["mathllm/figures", "book/_static", "book/lite", "tools"], 0)]:
        done = subprocess.run(["node", LINTER, "--deny-warnings", *paths], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
