"""Real data that is not here: what a test, an example or a notebook then says when it is skipped."""

import re

from mathllm import data
from mathllm.errors import MissingDataError


def absence(name: str) -> str | None:
    """Why the data package of this name cannot be used, or None."""
    try:
        data.path(name)
    except MissingDataError as error:
        return f"real data: {error}"
    return None


def absence_for(code: str) -> str | None:
    """The same for code that shows something else where a package is absent, because it asks `available("glove")`."""
    asked = re.findall(r"""available\(["']([\w-]+)["']\)""", code)
    return next(filter(None, map(absence, sorted({*asked} & {*data.packages()}))), None)
