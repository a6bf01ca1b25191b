"""The real models: SmolLM2 and MiniLM, read by us and, from the same files, by transformers."""

import functools
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from tokenizers import pre_tokenizers

import mathllm as ml
from mathllm.pretrained import minilm, smollm2

TEXTS = [
    "The capital of France is",
    "It's 2026, isn't it?  We'll see: naïve café, 3.14159 — 中文字 и русский; x² ≤ ½!\n\n\tdef f(x):\n",
    "<|im_start|>user\nName three primes above 10.<|im_end|>\n<|im_start|>assistant\n",
]
SENTENCES = [
    "The cat sleeps.",
    "A kitten is napping on the naïve café's sofa, 1,234 times!",
    "Interest rates rose; 利率 unaffordability…",
    "x",
    "word " * 300,  # longer than what is read
]


@pytest.fixture
def peer(needs):
    """SmolLM2 and its tokenizer as transformers reads them, from the file of five-bit weights."""
    return read_by_transformers(needs("smollm2"))


@functools.cache
def read_by_transformers(folder):
    file = next(folder.glob("*.gguf")).name
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=file)
    # transformers passes over the file's tokenizer.ggml.pre, "smollm": every digit stands apart, before GPT-2's pattern
    apart = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(apart)
    return model.eval(), tokenizer


@pytest.mark.parametrize("text", TEXTS, ids=["prose", "mixed", "chat"])
def test_smollm2_gives_the_same_logits_and_the_same_twenty_tokens(agree, peer, text):
    model, params, tokenizer = smollm2.load()
    tokens = np.array([tokenizer.encode(text)])
    assert tokens.tolist() == [peer[1](text).input_ids]
    with torch.no_grad():
        theirs = peer[0](torch.tensor(tokens)).logits
    ours = model(params, tokens)
    assert np.abs(ours - theirs.numpy()).max() < 2e-4  # float32 through 30 layers
    agree("SmolLM2", "logits", ours, theirs, within=1e-5)
    answer = peer[0].generate(
        torch.tensor(tokens), attention_mask=torch.ones_like(torch.tensor(tokens)), max_new_tokens=20, do_sample=False
    )
    end = tokenizer.special_tokens["<|im_end|>"]
    ours = ml.generate(model, params, tokens, max_new_tokens=20, eos_token_id=end)
    assert ours.tolist() == answer.tolist()


def test_the_book_quotes_the_logits_that_transformers_gives(peer):
    text = " ".join((Path(__file__).parents[2] / "book" / "12_transformer.md").read_text(encoding="utf-8").split())
    quoted = re.search(r"with the logits ([\d.]+), ([\d.]+), ([\d.]+) and ([\d.]+)\.", text).groups()
    with torch.no_grad():
        logits = peer[0](torch.tensor([smollm2.load().tokenizer.encode(TEXTS[0])])).logits[0, -1]
    assert [f"{logit:.2f}" for logit in logits.topk(4).values.tolist()] == list(quoted)


def test_minilm_embeds_sentences_as_transformers_does(needs, agree):
    folder = needs("minilm") / "model"
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(SENTENCES, padding=True, truncation=True, max_length=minilm.LONGEST, return_tensors="pt")
    for row, mask, sentence in zip(inputs["input_ids"], inputs["attention_mask"], SENTENCES, strict=True):
        assert minilm.load().tokenizer.encode(sentence, longest=minilm.LONGEST) == row[mask == 1].tolist()
    with torch.no_grad():
        states = model(**inputs).last_hidden_state
    marks = inputs["attention_mask"][..., None]
    theirs = F.normalize((states * marks).sum(1) / marks.sum(1), dim=-1)  # the recipe in the model's own README
    agree("MiniLM", "sentence vectors", minilm.embed(SENTENCES), theirs, within=1e-5)
