"""A language model is a compressor: the arithmetic coder with a transformer that was trained here."""

import numpy as np

import mathllm as ml

VOCABULARY, WINDOW = 6, 16


def trained_on_a_source():
    """A tiny transformer, trained on a source in which each token depends on the one before."""
    rng = np.random.default_rng(0)
    source = rng.dirichlet(np.full(VOCABULARY, 0.2), size=VOCABULARY)
    text = ml.sample_markov_chain(source, 4000, rng)
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


def test_a_transformer_compresses_to_its_cross_entropy_and_gives_the_text_back():
    model, params, unseen = trained_on_a_source()

    def next_probabilities(seen):
        if not len(seen):
            return np.full(VOCABULARY, 1 / VOCABULARY)
        return ml.softmax(model(params, [seen[-WINDOW:]])[0, -1])

    code = ml.arithmetic_encode(unseen, next_probabilities)
    bits = sum(-np.log2(next_probabilities(unseen[:t])[token]) for t, token in enumerate(unseen))
    assert abs(8 * len(code) - bits) < 0.01 * bits
    assert bits < 0.75 * np.log2(VOCABULARY) * len(unseen)  # the model has learned something
    assert ml.arithmetic_decode(code, next_probabilities, len(unseen)).tolist() == unseen.tolist()
