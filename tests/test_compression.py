"""A language model is a compressor: the arithmetic coder with SmolLM2. (test_cross_entropy.py has models of tables.)"""

import numpy as np
import pytest

import mathllm as ml
from mathllm.fast import Transformer
from mathllm.inference import KVCache
from mathllm.pretrained import smollm2

TEXT = (
    "Seven umbrellas debated the tax on moonlight while a tin kettle recited its alphabet backwards to the beetles. "
    "Nobody had asked the harbour for a second opinion, yet it froze on Tuesdays, politely, between two ferries, and "
    "the ferrymen sold the silence by the yard. My aunt bought nine yards, a pewter spoon and the rumour of a goat; "
    "she paid in buttons, as people did before the lighthouse learned to whistle. By noon the goat owed everyone an "
    "apology, the spoon had joined a choir of hinges, and seven wet umbrellas voted, without conviction, for rhubarb."
)


@pytest.mark.nightly
def test_smollm2_compresses_to_its_cross_entropy_and_gives_the_text_back(needs):
    needs("smollm2")
    model, params, tokenizer = smollm2.load()
    unseen, surprises = tokenizer.encode(TEXT), []

    def next_probabilities():
        """A model with an empty cache that reads token after token: the coder asks in the order of the text."""
        reader, cache = Transformer(model.config), KVCache(model.config, capacity=len(unseen) + 1, dtype=np.float32)

        def after(seen):
            token = seen[-1] if len(seen) else 0  # 0 begins a text
            p = ml.softmax(reader.last_logits(params, [[token]], cache=cache)[0, 0].astype(float))
            surprises.append(-np.log2(p[unseen[len(seen)]]))
            return p

        return after

    code = ml.arithmetic_encode(unseen, next_probabilities())
    bits = sum(surprises)
    assert ml.arithmetic_decode(code, next_probabilities(), len(unseen)).tolist() == list(unseen)
    assert abs(8 * len(code) - bits) < 0.01 * bits
    assert len(code) < 0.3 * len(TEXT)
