"""The search finds the right chapter first, by its usual words, its abbreviations and its signs."""

import re

import pytest

pytestmark = pytest.mark.slow

QUERIES = {
    "RoPE": "10", "KL": "07", "top-p": "14", "LoRA": "15", "√d": "10", "softmax": "06", "cross-entropy": "07",
    "perplexity": "07", "BPE": "13", "KV cache": "14", "AdamW": "09", "GRPO": "15", "DPO": "15", "logit lens": "16",
    "induction head": "16", "layer norm": "12", "bigram": "05", "temperature": "06", "backpropagation": "11",
    "cosine similarity": "02", "embedding": "01", "attention": "10", "quantisation": "14", "speculative decoding": "14",
    "watermark": "14", "scaling law": "13|17", "mixture of experts": "12", "gradient descent": "09",
    "eigenvector": "03", "entropy": "07", "why divide by sqrt(d)": "10", "layer normalization": "12",
    "cross entropy": "07", "nucleus sampling": "14", "flash attention": "14", "quantization": "14",
}  # fmt: skip

FIRST = """(query) => {
  globalThis.search ??= bookSearch.index(bookSections);
  return bookSearch.find(search, bookSections, query)[0];
}"""


def test_thirty_queries_and_more_find_the_right_chapter_first(open_page):
    page = open_page("search.html")
    wrong = {}
    for query, chapter in QUERIES.items():
        first = page.evaluate(FIRST, query)
        if not (first and re.match(rf"notebooks/({chapter})_", first["at"])):
            wrong[query] = first and first["at"]
    assert wrong == {}


def test_a_result_names_its_section_and_chapter_and_shows_the_words_around_what_was_found(open_page):
    page = open_page("search.html?q=cosine+similarity")
    first = page.locator("#search-results li").first
    assert "Cosine similarity" in first.locator("a").inner_text()
    assert re.match(r"notebooks/02_similarity\.html#", first.locator("a").get_attribute("href"))
    assert first.locator(".book-where").inner_text().strip() != ""
    assert "cosine" in first.locator("mark").first.inner_text().lower()
    assert re.match(r"\d+ sections found", page.locator("#search-results [role=status]").inner_text())
    query, status = page.locator(".bd-search-container input[name=q]"), page.locator("#search-results [role=status]")
    query.fill("zzzzqqqq")
    assert status.inner_text() == "Nothing found for “zzzzqqqq”."
    query.fill("softmax")
    assert re.fullmatch(r"\d{2,3} sections found for “softmax”. These are the first 30.", status.inner_text())
    assert page.locator("#search-results li").count() == 30
