"""One GGUF file is a whole model: it says what the same model says from a folder, and tells what it cannot do."""

import numpy as np
import pytest
from test_cli import run
from test_pretrained_gguf import build
from test_pretrained_huggingface import as_gguf

from mathllm.pretrained import hub
from mathllm.pretrained.gguf import GGUF
from mathllm.pretrained.gguf_model import gguf_ends, gguf_tokenizer, load_gguf
from mathllm.pretrained.huggingface import save_pretrained
from mathllm.training import train_tokenizer
from mathllm.training.tokenizer import _show
from mathllm.transformer import Transformer, llama_config

TEXT = "the cat sat on the mat in 1999; the dog sat on the cat. " * 60


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXT, 290, special_tokens=["<|endoftext|>", "<|stop|>"])


@pytest.fixture(scope="module")
def model(tokenizer):
    config = llama_config(
        vocabulary=len(tokenizer), width=16, layers=2, heads=4, kv_heads=2, hidden=24, context=64, norm_epsilon=1e-5
    )
    rng = np.random.default_rng(0)
    params = Transformer(config).init(rng, np.float32)
    params["embedding"] = rng.normal(size=params["embedding"].shape).astype(np.float32)
    return config, params


def vocabulary(tokenizer):
    """What llama.cpp stores of a byte-level BPE."""
    tokens = {i: (_show(token), 1) for token, i in tokenizer.vocabulary.items()}
    tokens |= {i: (token, 3) for token, i in tokenizer.special_tokens.items()}
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": [tokens[i][0] for i in range(len(tokens))],
        "tokenizer.ggml.token_type": [tokens[i][1] for i in range(len(tokens))],
        "tokenizer.ggml.merges": [f"{_show(left)} {_show(right)}" for left, right in tokenizer.merges],
        "tokenizer.ggml.eos_token_id": tokenizer.special_tokens["<|stop|>"],
    }


@pytest.fixture
def write(model, tokenizer, tmp_path):
    def write(**changes):
        stored = as_gguf(*model)
        changes = {name.replace("__", "."): value for name, value in changes.items()}
        metadata = {**stored.metadata, **vocabulary(tokenizer), **changes}
        tensors = [(name, x.shape, 0, np.ascontiguousarray(x, "<f4").tobytes()) for name, x in stored.items()]
        path = tmp_path / "tiny.gguf"
        path.write_bytes(build({name: value for name, value in metadata.items() if value is not None}, tensors))
        return path

    return write


def test_the_file_alone_says_what_the_folder_says(write, model, tokenizer, tmp_path):
    save_pretrained(tmp_path / "folder", *model, tokenizer)
    options = ["the dog sat in 1999", "--max-new-tokens", 20, "--seed", 3]
    assert run("generate", write(), *options).output == run("generate", tmp_path / "folder", *options).output
    shown = run("models", "verify", write()).output
    assert shown == f"{write()}: no checksums are known for it, in {write()}\n"


def test_model_tokenizer_and_ends_come_from_the_file(write, model, tokenizer):
    loaded = hub.load(write())
    assert loaded.model.config == model[0]
    assert loaded.ends == (tokenizer.special_tokens["<|stop|>"], tokenizer.special_tokens["<|endoftext|>"])
    assert loaded.tokenizer.encode(TEXT + "<|stop|>") == tokenizer.encode(TEXT + "<|stop|>")
    with pytest.raises(ValueError, match="read-only"):
        loaded.params["blocks"][0]["attention"]["query"][0, 0] = 1


def test_digits_stand_alone_where_the_file_cuts_as_smollm_does(write):
    tokens = gguf_tokenizer(GGUF(write(tokenizer__ggml__pre="smollm"))).tokens("in 1999")
    assert tokens[-4:] == ["1", "9", "9", "9"]
    assert gguf_tokenizer(GGUF(write())).tokens("in 1999")[-4:] != tokens[-4:]


def test_a_file_without_ends_has_none_but_the_usual_one(write, tokenizer):
    file = GGUF(write(tokenizer__ggml__eos_token_id=None))
    assert gguf_ends(file, gguf_tokenizer(file)) == (tokenizer.special_tokens["<|endoftext|>"],)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer__ggml__model": "llama"}, "tokenizer 'llama', splitting as"),
        ({"tokenizer__ggml__pre": "llama-bpe"}, "splitting as 'llama-bpe'; read are gpt2, as gpt-2 or smollm"),
        ({"tokenizer__ggml__merges": None}, r"has no tokenizer\.ggml\.merges"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(write, changes, message):
    with pytest.raises(ValueError, match=message):
        load_gguf(write(**changes))
    assert "Invalid value for MODEL" in run("generate", write(**changes), "the cat", code=2).output


def test_a_file_that_is_no_gguf_is_refused_in_words(tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF")
    assert "is not a whole GGUF file" in run("generate", path, "the cat", code=2).output
    assert "no .gguf file" in run("generate", tmp_path / "absent.gguf", "the cat", code=2).output
