"""The table of reference values: every row is well formed, and a check can fail."""

import numpy as np
import pytest
from refusing import refusing

from mathllm import reference

COMPUTABLE = [row for row in reference.rows() if row.kind != "text"]


def test_there_are_464_rows_with_unique_ids_in_seventeen_chapters():
    assert len({row.id for row in reference.rows()}) == 464
    assert {row.chapter for row in reference.rows()} == {f"{n:02}" for n in range(1, 18)}


@pytest.mark.parametrize("row", COMPUTABLE, ids=lambda row: row.id)
def test_any_other_value_is_refused(row):
    def spoil(value):
        if isinstance(value, bool):
            return not value
        if isinstance(value, str):
            return value + "!"
        if isinstance(value, dict):
            return {key: spoil(item) for key, item in value.items()}
        if isinstance(value, list):
            return [spoil(item) for item in value]
        return value * 1.3 + 1e13

    with pytest.raises(reference.ReferenceMismatchError, match=row.id.replace(".", r"\.")):
        reference.check(row.id, spoil(row.computed))


def test_agreement_is_at_the_printed_precision(capsys):
    reference.check("primer.ch02.ex2.cosine", 0.94949)  # rounds to 0.949
    assert "✓" in capsys.readouterr().out


RAGGED = [[1], [2, 3]]
NO_AGREEMENT = {
    "primer.ch02.ex2.cosine": [0.94951, np.nan, np.inf, None, "0.949", [0.949], RAGGED, 1j],
    "primer.ch06.ex6.total": [True, np.True_],  # a comparison is no number
    "primer.ch07.table.loss1": [RAGGED],
    "part2.bpe.merge1": [RAGGED, np.array(1)],
}


@pytest.mark.parametrize(("id", "value"), [(id, value) for id, values in NO_AGREEMENT.items() for value in values])
def test_nonsense_and_another_rounding_are_no_agreement(id, value):
    with pytest.raises(reference.ReferenceMismatchError):
        reference.check(id, value)


COPIED = ("primer.ch02.table.classify_kingqueen", "Strongly related")  # as the document prints it, wrongly

test_a_copied_mistake_and_a_wrong_id_are_refused_in_words = refusing(
    (lambda: reference.check(*COPIED), reference.ReferenceMismatchError, "Near-identical"),
    (lambda: reference.row("primer.ch02.ex2.cosin"), KeyError, r"did you mean primer\.ch02\.ex2\.cosine"),
    (lambda: reference.rows("18"), KeyError, "chapter '18'"),
)
