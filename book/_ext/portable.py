"""The notebooks carry numbers that any reader of notebooks can show; for the site they become labels of Sphinx again.

In a notebook, a labelled equation is an anchor and a formula with a \\tag, a figure's caption follows an anchor, and a
reference is a link with the number as its words (tools/labels.py writes them).
"""

import json
import re

FORMS = [
    (r'<a id="([\w-]+)"></a>\n\n\$\$\n((?:(?!\$\$).)*?)\n\\tag\{[\d.]+\}\n\$\$', r"$$\n\2\n$$ (\1)"),
    (r"\[\([\d.]+\)\]\((?:\d\d_\w+\.ipynb)?#([\w-]+)\)", r"{eq}`\1`"),
    (r'\A<a id="(fig-[\w-]+)"></a>\n\n(.*)\Z', r"(\1)=\n:::{container} book-caption\n\2\n:::"),
    (r"\[(Figure [\d.]+)\]\((?:\d\d_\w+\.ipynb)?#(fig-[\w-]+)\)", r"{ref}`\1 <\2>`"),
]


def for_sphinx(text: str) -> str:
    """The Markdown of a cell, with the labels and roles of MyST."""
    for form, replacement in FORMS:
        text = re.sub(form, replacement, text, flags=re.DOTALL)
    return text


def read_notebook(app, docname, source):
    """Sphinx calls this for each page; of a notebook, the Markdown cells and the answers to questions are changed."""
    if docname.startswith("notebooks/"):
        notebook = json.loads(source[0])
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = for_sphinx("".join(cell["source"]))
            for output in cell.get("outputs", []):
                if "text/markdown" in output.get("data", {}):
                    output["data"]["text/markdown"] = for_sphinx("".join(output["data"]["text/markdown"]))
        source[0] = json.dumps(notebook, ensure_ascii=False)
