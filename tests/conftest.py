"""What all tests share: real data that may be absent, and then says so."""

import re

import pytest

from mathllm import data
from mathllm.errors import MissingDataError


def absence(name):
    """Why the data package cannot be used, or None."""
    try:
        data.path(name)
    except MissingDataError as error:
        return str(error)
    return None


@pytest.fixture
def needs():
    """`needs("glove")` gives the folder of that data package, or skips the test and says how to get it."""

    def need(name):
        if reason := absence(name):
            pytest.skip(f"real data: {reason}")
        return data.path(name)

    return need


def pytest_report_header():
    missing = [name for name in data.packages() if absence(name)]
    return f"real data: {'absent: ' + ', '.join(missing) if missing else 'all here'} (in {data.folder()})"


def pytest_collection_modifyitems(items):
    """An example in a docstring that asks `available("glove")` prints something else where GloVe is absent."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            asked = re.findall(r"""available\(["']([\w-]+)["']\)""", "".join(e.source for e in item.dtest.examples))
            for name in {*asked} & {*data.packages()}:
                if reason := absence(name):
                    item.add_marker(pytest.mark.skip(reason=f"real data: {reason}"))
