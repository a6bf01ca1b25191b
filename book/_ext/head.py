"""What machines read: the description of a page, the map of the site, a list of the pages for language models.

Links between pages are relative. What needs the address of the site (canonical links, sitemap.xml) is made when the
environment names it: MATHLLM_SITE=https://… ; and MATHLLM_REPOSITORY=https://… gives each page a link to its source,
and each notebook one to Binder, which opens repositories of GitHub.
"""

import re
from html import escape
from pathlib import Path
from xml.sax.saxutils import escape as escape_xml

import search
from docutils import nodes

GITHUB, BINDER = "https://github.com/", "https://mybinder.org/v2/gh"
LONGEST = 200  # characters of a description
SITEMAP = """<?xml version="1.0" encoding="utf-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">"""
MISSING = """<h1>Page not found</h1>
<p>There is no page at this address. <a href="{root}index.html">All chapters</a> are on the first page, and the
<a href="{root}search.html">search</a> finds a word.</p>"""


def description(doctree: nodes.document) -> str:
    """The first paragraph of a page, cut at the end of a sentence or a word."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(search.words(paragraph).split())
        if len(text) > 40:
            return shortened(text)
    return ""


def shortened(text: str, most: int = LONGEST) -> str:
    """The whole sentences that fit, or else the words.

    >>> shortened("One. Two three.", 10), shortened("One two three", 10)
    ('One.', 'One two …')
    """
    if len(text) <= most:
        return text
    cut = text[:most]
    return cut[: cut.rindex(". ") + 1] if ". " in cut else cut[: cut.rindex(" ")] + " …"


def describe(app, pagename, templatename, context, doctree):
    """Add the description and what a link to the page shows elsewhere."""
    if doctree is None:
        return
    title, text, base = re.sub("<[^>]*>", "", context["title"]), description(doctree), app.config.html_baseurl
    app.book_pages[pagename] = (title, text)
    tags = {"og:title": title, "og:description": text, "og:site_name": app.config.project,
            "og:type": "article" if pagename.startswith("notebooks/") else "website"}  # fmt: skip
    if base:
        tags |= {"og:url": f"{base}{pagename}.html", "og:image": f"{base}_static/readme.png"}
    lines = [f'<meta name="description" content="{escape(text)}" />']
    lines += [f'<meta property="{name}" content="{escape(value)}" />' for name, value in tags.items()]
    context["metatags"] = context.get("metatags", "") + "\n".join(lines)


def button(name, icon, url, tooltip):
    return {"type": "link", "label": f"{name}-button", "icon": icon, "url": url, "tooltip": tooltip}


def offer_source(app, pagename, templatename, context, doctree):
    """Where the address of the project is known, buttons lead to the text of a page and to its notebook on Binder."""
    repository = app.config.book_repository
    if repository and doctree is not None:
        url = f"{repository}/edit/main/book/{Path(pagename).name}.md"
        context["header_buttons"].append(button("edit", "fas fa-pencil-alt", url, "Suggest a change of this page"))
    if repository.startswith(GITHUB) and pagename.startswith("notebooks/"):
        url = f"{BINDER}/{repository.removeprefix(GITHUB)}/main?urlpath=lab/tree/{pagename}.ipynb"
        context["header_buttons"].append(button("binder", "fas fa-rocket", url, "Open this chapter on Binder"))


def missing_page(app):
    if app.builder.format == "html":
        base = app.config.html_baseurl
        head = f'<base href="{base}" />' if base else ""  # the server shows this page at addresses of any depth
        body = MISSING.format(root=base)
        yield "404", {"title": "Page not found", "body": body, "metatags": head}, "page.html"


def write(app, exception):
    """Write llms.txt and, where the address of the site is known, sitemap.xml."""
    if exception is not None or app.builder.format != "html":
        return
    base, out = app.config.html_baseurl, Path(app.outdir)
    lines = [f"# {app.config.project}", "", f"> {app.book_pages.get('index', ('', ''))[1]}", "", "## Pages", ""]
    lines += [f"- [{title}]({base}{name}.html): {text}" for name, (title, text) in sorted(app.book_pages.items())]
    (out / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if base:
        places = [f"<url><loc>{escape_xml(base + name)}.html</loc></url>" for name in sorted(app.book_pages)]
        (out / "sitemap.xml").write_text("\n".join([SITEMAP, *places, "</urlset>"]) + "\n", encoding="utf-8")


def start(app):
    app.book_pages = {}


def setup(app):
    app.add_config_value("book_repository", "", "html")
    app.connect("builder-inited", start)
    app.connect("html-page-context", describe)
    app.connect("html-page-context", offer_source, priority=502)  # when the theme has made its own buttons
    app.connect("html-collect-pages", missing_page)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
