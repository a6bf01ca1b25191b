"""The theme's script of two thousand icons, cut down to those that the pages show: 1.5 MB become 0.1 MB."""

import re
from pathlib import Path

ICON = re.compile(r'"?([a-z0-9-]+)"?:\[\d+,\d+,(\[[^\]]*\]),"[0-9a-f]+",(?:"[^"]*"|\[[^\]]*\])\],?')
NAME = re.compile(r"\bfa-([a-z0-9-]+)")


def keep(script: str, used: set[str]) -> str:
    """The script with the icons that are used, by their name or another of their names.

    >>> keep('{sun:[5,5,[9728],"f185","M1"],house:[5,5,["home"],"f015","M2"]}', {"home"})
    '{house:[5,5,["home"],"f015","M2"]}'
    """
    return ICON.sub(lambda icon: icon[0] if used & {icon[1], *re.findall(r"[a-z][a-z0-9-]*", icon[2])} else "", script)


def cut_down(app, exception):
    """Cut the script down to the icons in the pages, and leave out what only helps to read the scripts."""
    scripts = Path(app.outdir) / "_static" / "scripts"
    if exception is None and scripts.is_dir():
        texts = [*Path(app.outdir).rglob("*.html"), *scripts.glob("*-theme.js")]
        used = {name for path in texts for name in NAME.findall(path.read_text(encoding="utf-8"))}
        path = scripts / "fontawesome.js"
        path.write_text(keep(path.read_text(encoding="utf-8"), used), encoding="utf-8")
        for path in scripts.glob("*.map"):
            path.unlink()


def setup(app):
    app.connect("build-finished", cut_down)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
