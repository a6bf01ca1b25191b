"""A language model is a compressor: the arithmetic coder with networks that were trained here, and with SmolLM2."""

import numpy as np
import pytest

import mathllm as ml
from mathllm.fast import Transformer
from mathllm.inference import KVCache
from mathllm.pretrained import smollm2

VOCABULARY, WINDOW = 6, 16


def text_of_a_source(rng):
    """A text in which each token depends on the one before."""
    source = rng.dirichlet(np.full(VOCABULARY, 0.2), size=VOCABULARY)
    return ml.sample_markov_chain(source, 4000, rng)


def compressed(unseen, model):
    """The bits of the code and those of the model's cross-entropy, once the text has come back from the code."""
    surprises, predict = [], model()

    def noted(seen):
        p = predict(seen)
        surprises.append(-np.log2(p[unseen[len(seen)]]))
        return p

    code = ml.arithmetic_encode(unseen, noted)
    assert ml.arithmetic_decode(code, model(), len(unseen)).tolist() == list(unseen)
    return 8 * len(code), sum(surprises)


def trained_on_a_source():
    """A tiny transformer, trained on such a text."""
    rng = np.random.default_rng(0)
    text = text_of_a_source(rng)
    config = ml.llama_config(vocabulary=VOCABULARY, width=16, layers=1, heads=2, hidden=24, context=WINDOW)
    model = ml.Transformer(config)
    params = model.init(rng)
    state = ml.training_state(params, rng, ml.adam_init)
    state, _ = ml.train(
        state, lambda p, tokens: model.loss(p, tokens, tokens),
        lambda rng: np.stack([text[i : i + WINDOW] for i in rng.integers(0, 3000 - WINDOW, 32)]),
        150, learning_rate=0.02, step=ml.adam_step, count=np.size,
    )  # fmt: skip
    return model, state.params, text[3000:]


@pytest.mark.nightly
def test_a_transformer_compresses_to_its_cross_entropy_and_gives_the_text_back():
    model, params, unseen = trained_on_a_source()

    def next_probabilities(seen):
        if not len(seen):
            return np.full(VOCABULARY, 1 / VOCABULARY)
        return ml.softmax(model(params, [seen[-WINDOW:]])[0, -1])

    length, bits = compressed(unseen, lambda: next_probabilities)
    assert abs(length - bits) < 0.01 * bits
    assert bits < 0.75 * np.log2(VOCABULARY) * len(unseen)  # the model has learned something


def test_a_network_that_sees_three_tokens_compresses_to_its_cross_entropy_and_gives_the_text_back():
    rng = np.random.default_rng(1)
    text = text_of_a_source(rng)
    windows = np.lib.stride_tricks.sliding_window_view(text[:3000], 4)
    params = {
        "table": rng.normal(size=(VOCABULARY, 4)),
        "layers": ml.backpropagation.mlp_init(rng, [12, 24, VOCABULARY]),
    }

    def logits(params, tokens):
        return ml.backpropagation.mlp_forward(
            ml.embedding(params["table"], tokens).reshape(len(tokens), 12), params["layers"]
        )

    state = ml.adam_init(params)
    for _ in range(200):
        batch = windows[rng.integers(0, len(windows), 64)]
        slopes = ml.grad(lambda p, batch=batch: ml.cross_entropy(logits(p, batch[:, :3]), batch[:, 3]))(params)
        params, state = ml.adam_step(params, slopes, state, learning_rate=0.02)

    def next_probabilities(seen):
        last = np.concatenate([np.zeros(3, int), seen])[-3:]
        return ml.softmax(logits(params, last[None])[0])

    unseen = text[3000:]
    length, bits = compressed(unseen, lambda: next_probabilities)
    assert abs(length - bits) < 0.01 * bits
    assert bits < 0.75 * np.log2(VOCABULARY) * len(unseen)


@pytest.mark.nightly
def test_smollm2_compresses_to_its_cross_entropy_and_gives_the_text_back(needs):
    needs("smollm2")
    model, params, tokenizer = smollm2.load()
    text = (
        "Seven umbrellas debated the tax on moonlight while a tin kettle recited its alphabet backwards to the "
        "beetles. Nobody had asked the harbour for a second opinion, yet it froze on Tuesdays, politely, between two "
        "ferries, and the ferrymen sold the silence by the yard. My aunt bought nine yards, a pewter spoon and the "
        "rumour of a goat; she paid in buttons, as people did before the lighthouse learned to whistle. By noon the "
        "goat owed everyone an apology, the spoon had joined a choir of hinges, and seven wet umbrellas voted, without "
        "conviction, for rhubarb."
    )
    unseen = tokenizer.encode(text)

    def next_probabilities():
        """A model with an empty cache that reads token after token: the coder asks in the order of the text."""
        reader, cache = Transformer(model.config), KVCache(model.config, capacity=len(unseen) + 1, dtype=np.float32)

        def after(seen):
            token = seen[-1] if len(seen) else 0  # 0 begins a text
            return ml.softmax(reader.last_logits(params, [[token]], cache=cache)[0, 0].astype(float))

        return after

    length, bits = compressed(unseen, next_probabilities)
    assert abs(length - bits) < 0.01 * bits
    assert length < 0.3 * 8 * len(text)
