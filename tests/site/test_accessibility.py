"""Every page, light and dark, keeps the rules of WCAG 2.2 AA that axe-core can test."""

import pytest
from test_site import PAGES, VENDOR

EVERY_DAY = ("index.html", "answers.html", "notebooks/02_similarity.html")  # of each kind one; at night, all
SHARE = [name if name in EVERY_DAY else pytest.param(name, marks=pytest.mark.nightly) for name in PAGES]

pytestmark = pytest.mark.slow

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
BROKEN = """async (rules) => {
  const {violations} = await axe.run(document, {runOnly: rules, resultTypes: ["violations"]});
  return violations.flatMap(({id, nodes}) => nodes.map((node) => `${id}: ${node.target} ${node.html.slice(0, 120)}`));
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", SHARE)
def test_a_page_breaks_no_rule_of_accessibility(visit, name, theme):
    page = visit(name, theme)
    page.evaluate((VENDOR / "axe.js").read_text(encoding="utf-8"))
    assert page.evaluate(BROKEN, RULES) == []
