"""Photograph the first page of the built site: three widths, both themes  ->  _site/screenshots.

    python tools/take_screenshots.py

Needs Chromium (Debian: apt install chromium). The page is opened as a file, without a server.
"""

from pathlib import Path

import formulas

SITE = Path(__file__).resolve().parent.parent / "_site"
WIDTHS, THEMES = (360, 768, 1280), ("light", "dark")


def photograph(site: Path, folder: Path) -> None:
    """One picture of the whole page for each width and theme."""
    folder.mkdir(parents=True, exist_ok=True)
    with formulas.browser() as browser:
        for width in WIDTHS:
            for theme in THEMES:
                page = browser.new_page(
                    viewport={"width": width, "height": 800}, color_scheme=theme, reduced_motion="reduce"
                )
                page.goto((site / "index.html").resolve().as_uri())
                page.locator(".mathllm-numbers td").first.wait_for()
                page.wait_for_timeout(500)  # milliseconds: the side columns slide into place
                page.screenshot(path=folder / f"{width}_{theme}.png", full_page=True)
                page.close()


if __name__ == "__main__":
    photograph(SITE, SITE / "screenshots")
