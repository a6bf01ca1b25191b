"""Photograph the first page of the built site: three widths, both themes  ->  _site/screenshots.

    python tools/take_screenshots.py [SITE] [FOLDER]

Needs Chromium (Debian: apt install chromium). The page is opened as a file, without a server.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
WIDTHS, THEMES = (360, 768, 1280), ("light", "dark")


def photograph(site: Path, folder: Path) -> None:
    """One picture of the whole page for each width and theme."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
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
        browser.close()


if __name__ == "__main__":
    site = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "_site"
    photograph(site, Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "_site" / "screenshots")
