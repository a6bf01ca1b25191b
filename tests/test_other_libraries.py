"""The page "From this book to PyTorch …": it names functions and tests that exist."""

import re
import tomllib
from operator import attrgetter

import pytest
from package import ROOT

import mathllm.pretrained.huggingface

TABLES = tomllib.loads((ROOT / "book" / "other_libraries.toml").read_text(encoding="utf-8"))
ROWS = [row for rows in TABLES.values() for row in rows]
NAME = re.compile(r"\b(?:ml|mathllm)\.([\w.]+)")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["ours"])
def test_every_function_of_ours_in_a_row_exists(row):
    names = NAME.findall(row["ours"])
    assert names or row["ours"].startswith("model(")
    for name in names:
        assert callable(attrgetter(name)(mathllm)), name


@pytest.mark.parametrize("row", TABLES["part"], ids=lambda row: row["ours"])
def test_the_test_that_a_row_names_exists(row):
    file, name = row["test"].split("::")
    assert f"def {name}(" in (ROOT / "tests" / "parity" / file).read_text(encoding="utf-8")


def test_rows_follow_the_order_of_the_chapters():
    for rows in TABLES.values():
        for library in {row.get("library") for row in rows}:
            chapters = [row["chapter"] for row in rows if row.get("library") == library]
            assert chapters == sorted(chapters)
