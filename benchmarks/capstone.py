"""The reference run of the capstone: tokenize, train, write, align, find a head and take it out. A few minutes.

PYTHONPATH=. OPENBLAS_NUM_THREADS=1 .venv/bin/python benchmarks/capstone.py
"""

import numpy as np

import mathllm as ml
from mathllm import data, fast
from mathllm.interpretability import previous_token_score, without_heads

VOCABULARY, CONTEXT, BATCH, STEPS = 512, 64, 16, 1500
ROUNDS, DRAWN, KEPT = 3, 512, 64  # of rejection sampling


def heading(text):
    print(f"\n{text}")


def main():
    plays = data.shakespeare()
    train_text, held_text = plays.train[:1_000_000], plays.validation[:50_000]

    heading("1. Tokenize")
    tokenizer = ml.training.train_tokenizer(train_text[:300_000], VOCABULARY)
    train, held = (np.array(tokenizer.encode(text)) for text in (train_text, held_text))
    print(f"{len(tokenizer)} tokens; {len(held_text) / len(held):.2f} characters per token on held-out text")

    def bits(log_q):
        """Bits per character, from the log-probabilities of all tokens but the first."""
        return -log_q.sum() / np.log(2) / len(held_text)

    for n in (1, 2, 3):
        counted = ml.train_ngram(train, n, len(tokenizer), "witten-bell")
        print(f"{n}-gram of tokens: {bits(counted.log_probabilities(held)[1:]):.3f} bits per character")

    heading("2. Train")
    config = ml.llama_config(
        vocabulary=len(tokenizer), context=CONTEXT, tied=True, width=96, layers=2, heads=4, hidden=256
    )
    model, rng = fast.Transformer(config), np.random.default_rng(0)

    def loss(params, batch):
        return model.next_token_loss(params, batch.inputs, batch.targets)

    def trained(params, tokens, steps, peak, seed):
        """The parameters after some steps on windows of these tokens."""
        state = ml.training_state(params, np.random.default_rng(seed))
        state, _ = fast.train(
            state, loss, lambda draw: ml.random_batch(tokens, BATCH, CONTEXT, draw), steps, max_norm=1.0,
            learning_rate=lambda t: ml.warmup_cosine(t, peak=peak, total=steps, warmup=20, floor=peak / 20),
            weight_decay=0.1,
        )  # fmt: skip
        return state.params

    def held_bits(params, tokens=held):
        """Bits per character of held-out text; windows overlap by half."""
        log_q = []
        for start in range(0, len(tokens) - 1, CONTEXT // 2):
            first = max(0, start - CONTEXT // 2)
            window = tokens[first : start + CONTEXT // 2 + 1]
            rows = ml.log_softmax(model(params, window[None, :-1])[0].astype(float))
            log_q.append(rows[np.arange(len(window) - 1), window[1:]][start - first :])
        return bits(np.concatenate(log_q))

    params = trained(model.init(rng, np.float32), train, STEPS, 5e-3, seed=0)
    print(f"{ml.count_parameters(params):,} parameters, {STEPS} steps: {held_bits(params):.3f} bits per character")

    heading("3. Write")
    line_break = tokenizer.encode("\n")

    def written(params, count, seed, length=24):
        """Texts after a line break, as tokens."""
        prompts = np.tile(line_break, (count, 1))
        return ml.generate(model, params, prompts, max_new_tokens=length, rng=np.random.default_rng(seed), top_p=0.95)

    for row in written(params, 3, seed=1):
        print(repr(tokenizer.decode(row)))

    heading("4. Align")

    def reward(row):
        """1 if the first line is 30 to 50 characters long and ends in a comma or a full stop, else 0."""
        line, end, _ = tokenizer.decode(row).lstrip("\n").partition("\n")
        return float(bool(end) and 30 <= len(line) <= 50 and line[-1:] in (",", "."))

    def mean_reward(params):
        rewards = np.array([reward(row) for row in written(params, 512, seed=2)])
        return f"{rewards.mean():.3f} ± {1.96 * rewards.std() / len(rewards) ** 0.5:.3f}"

    print(f"before: reward {mean_reward(params)}, {held_bits(params):.3f} bits per character")
    aligned = params
    for turn in range(ROUNDS):
        drawn = written(aligned, DRAWN, seed=10 + turn)
        good = [row for row in drawn if reward(row)][:KEPT]
        stream = np.concatenate(good)
        aligned = trained(aligned, stream, 30, 5e-4, seed=20 + turn)
        print(f"round {turn + 1}: {len(good)} good texts, reward {mean_reward(aligned)}, "
              f"{held_bits(aligned):.3f} bits per character")  # fmt: skip

    heading("5. Find a head, and 6. take it out")
    record = {}
    windows = held[: 32 * CONTEXT].reshape(32, CONTEXT)
    model(params, windows, tap=ml.record_to(record))
    scores = {}
    for layer in range(config.layers):
        found = previous_token_score(record[f"blocks.{layer}.attention.weights"])
        scores |= {(layer, head): float(score) for head, score in enumerate(np.atleast_1d(found))}
    whole = held_bits(params)
    for (layer, head), score in scores.items():
        rest = held_bits(without_heads(model, params, [(layer, head)]))
        print(f"layer {layer}, head {head}: weight on the token before {score:.2f}; "
              f"without it {rest - whole:+.3f} bits per character")  # fmt: skip


if __name__ == "__main__":
    main()
