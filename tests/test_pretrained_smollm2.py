"""SmolLM2 speaks as it does under transformers, its tokenizer cuts as published, and loading it is cheap."""

import subprocess
import sys
import textwrap

import jinja2
import pytest

from mathllm import data
from mathllm.errors import MissingDataError
from mathllm.pretrained import smollm2
from mathllm.pretrained.gguf import GGUF


def test_loading_twice_gives_the_same_weights_which_cannot_be_written(needs):
    needs("smollm2")
    assert smollm2.load() is smollm2.load()
    with pytest.raises(ValueError, match="read-only"):
        smollm2.load().params["blocks"][3]["attention"]["query"][0, 0] = 1


# The tokenizer


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("5\n\n6", [37, 1116, 38]),  # digits stand apart before spaces are counted
        ("a ½ cup", [81, 216, 16738, 7118]),
        ("1/3 of 12345", [33, 31, 35, 282, 216, 33, 34, 35, 36, 37]),
    ],
)
def test_a_text_is_cut_as_published(needs, text, ids):
    needs("smollm2")
    tokenizer = smollm2.load().tokenizer
    assert tokenizer.encode(text) == ids
    assert tokenizer.decode(ids) == text


# Chats

SYSTEM = {"role": "system", "content": "Answer in verse.\n"}
USER = {"role": "user", "content": "What is 2 + 2?"}
REPLY = {"role": "assistant", "content": "4"}


@pytest.mark.parametrize("messages", [[], [USER], [SYSTEM, USER], [USER, REPLY, USER], [USER, SYSTEM]])
@pytest.mark.parametrize("answer", [True, False])
def test_a_chat_reads_as_the_template_of_the_file_says(needs, messages, answer):
    file = GGUF(next(needs("smollm2").glob("*.gguf")))
    template = jinja2.Environment().from_string(file.metadata["tokenizer.chat_template"])
    expected = template.render(messages=messages, add_generation_prompt=answer)
    before = [dict(message) for message in messages]
    assert smollm2.chat_prompt(messages, answer=answer) == expected
    assert messages == before


def test_a_message_without_content_is_refused():
    with pytest.raises(ValueError, match=r"role and a content, got \{'role': 'user'\}"):
        smollm2.chat_prompt([{"role": "user"}])


# The file


@pytest.mark.slow
@pytest.mark.nightly  # by day one of its tensors is read with little beside it, in test_pretrained_gguf.py
def test_loading_needs_less_than_1_gb(needs):
    needs("smollm2")
    program = textwrap.dedent("""
        import tracemalloc
        from mathllm.pretrained import smollm2
        tracemalloc.start()
        smollm2.load()
        print(tracemalloc.get_traced_memory()[1])
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 4 * 134_515_008 < int(done.stdout) < 1e9 - 98_362_432  # the mapped file counts, too


def test_a_damaged_file_is_a_clear_error(monkeypatch, tmp_path):
    (tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(data, "path", lambda name: tmp_path)
    with pytest.raises(MissingDataError, match=r"smollm2 is damaged: .*its header ends"):
        smollm2.load()
