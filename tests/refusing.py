"""One test for a table of calls that cannot be right, each with the error that refuses it and words of its message."""

from collections.abc import Callable

import pytest


def refusing(*rows: tuple[Callable, type[Exception], str]) -> Callable:
    """A test of these rows: the call, the error that it raises, and a pattern in the message.

    >>> refusing((lambda: int("one"), ValueError, "invalid literal"))(lambda: int("one"), ValueError, "one")
    """

    @pytest.mark.parametrize(("call", "error", "words"), rows)
    def test(call, error, words):
        with pytest.raises(error, match=words):
            call()

    return test
