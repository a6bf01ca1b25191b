"""Stands in for the package through which JupyterLite's kernel installs others: here no package can be fetched.

The kernel imports `piplite.piplite` and writes settings into it, and `%pip` calls `piplite.cli.get_transformed_code`.
"""

import sys

__path__ = []
piplite = cli = sys.modules[__name__]
sys.modules.update({"piplite.piplite": piplite, "piplite.cli": cli})


async def get_transformed_code(_):
    return "await __import__('piplite').install()\n"


async def install(*_, **__):
    raise ModuleNotFoundError("No package can be installed here. All that the book needs is there already.")
