"""SmolLM2-135M-Instruct: a language model that answers, small enough for any machine.

Its file holds rounded weights: 5 bits (Q4_1) in the blocks, 8.5 bits (Q8_0) in the embedding table, 5.74 on average.
They become 538 MB of float32 in about a second. The architecture is that of LLaMA: 30 layers of width 576, 9 query
heads that share 3 key and value heads, and one table for embedding and unembedding.
"""

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path

from .. import data
from .gguf_model import load_gguf
from .huggingface import Pretrained

_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def load() -> Pretrained:
    """SmolLM2-135M-Instruct: `model, params, tokenizer = load()`. A second call returns the same objects.

    Raises: MissingDataError if the package is absent or damaged.
    Source: Ben Allal et al. 2025, SmolLM2.

    >>> if data.available("smollm2"):
    ...     load().model.config.kv_heads
    3
    """
    return _load(data.path("smollm2"))


def chat_prompt(messages: Iterable[Mapping[str, str]], *, answer: bool = True) -> str:
    r"""A chat as one text, in the form of its template: each message between <|im_start|> and <|im_end|>.

    messages: each {"role": "system", "user" or "assistant", "content": text}   answer: whether the text ends with the
    start of an answer. A chat that does not begin with a system message gets the model's own.

    Raises: ValueError for a message without role or content.
    Source: the chat template in the model's file.

    >>> print(chat_prompt([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello!"}]))
    <|im_start|>system
    Be brief.<|im_end|>
    <|im_start|>user
    Hello!<|im_end|>
    <|im_start|>assistant
    <BLANKLINE>
    """
    messages = list(messages)
    if wrong := [message for message in messages if not {"role", "content"} <= set(message)]:
        raise ValueError(f"chat_prompt() needs messages with a role and a content, got {wrong[0]!r}")
    if messages and messages[0]["role"] != "system":
        messages.insert(0, {"role": "system", "content": _SYSTEM})
    text = "".join([f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages])
    return text + "<|im_start|>assistant\n" * answer


@functools.cache
def _load(place: Path) -> Pretrained:
    with data.reading("smollm2"):
        return load_gguf(place / _FILE)
