"""The reference run of the capstone (exercises/assignments/18_capstone.md): three minutes.

PYTHONPATH=. OPENBLAS_NUM_THREADS=1 .venv/bin/python benchmarks/capstone.py

Tokenize, train, write, align, find a head and take it out. Each step prints what the report asks for.
"""

import re

import numpy as np

import mathllm as ml
from mathllm import data, fast
from mathllm.interpretability import previous_token_score, without_heads

VOCABULARY, CONTEXT, BATCH, STEPS = 512, 64, 16, 1500
ROUNDS, DRAWN, KEPT = 3, 512, 64  # of rejection sampling


def heading(text):
    print(f"\n{text}")


def words(text):
    return re.findall("[a-z']+", text.lower())


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
        """The parameters after some steps on windows of these tokens, and the losses."""
        state = ml.training_state(params, np.random.default_rng(seed))
        state, history = fast.train(
            state, loss, lambda draw: ml.random_batch(tokens, BATCH, CONTEXT, draw), steps, max_norm=1.0,
            learning_rate=lambda t: ml.warmup_cosine(t, peak=peak, total=steps, warmup=20, floor=peak / 20),
            weight_decay=0.1,
        )  # fmt: skip
        return state.params, [entry.loss for entry in history]

    def held_out(params, tokens=held):
        """The log-probabilities of the held-out tokens but the first; windows overlap by half."""
        log_q = []
        for start in range(0, len(tokens) - 1, CONTEXT // 2):
            first = max(0, start - CONTEXT // 2)
            window = tokens[first : start + CONTEXT // 2 + 1]
            rows = ml.log_softmax(model(params, window[None, :-1])[0].astype(float))
            log_q.append(rows[np.arange(len(window) - 1), window[1:]][start - first :])
        return np.concatenate(log_q)

    first = model.init(rng, np.float32)
    for steps in (STEPS // 2, STEPS * 2, STEPS):
        params, losses = trained(first, train, steps, 5e-3, seed=0)
        found = bits(held_out(params)), bits(held_out(params, train[: len(held)]))
        print(f"{steps} steps: first loss {losses[0]:.2f} (ln V = {np.log(VOCABULARY):.2f}), "
              f"bits per character {found[0]:.3f}, of the training text {found[1]:.3f}")  # fmt: skip
    print(f"{ml.count_parameters(params):,} parameters")

    heading("3. Write")
    line_break, known = tokenizer.encode("\n"), set(words(train_text))

    beginnings = held[: 10 * 1000].reshape(10, 1000)[:, :16]
    for name, choice in [("greedy", {}), ("T = 1", {"rng": rng}), ("top-p 0.9", {"rng": rng, "top_p": 0.9})]:
        rows = ml.generate(model, params, beginnings, max_new_tokens=48, **choice)
        found = [word for row in rows for word in words(tokenizer.decode(row))[:-1]]  # the last one may be cut
        real = sum(word in known for word in found) / len(found)
        print(
            f"{name}: {len(found)} words, {len(set(found))} different, {real:.0%} known; {tokenizer.decode(rows[0])!r}"
        )

    def written(params, count, seed):
        """Texts after a line break, as tokens."""
        prompts, draw = np.tile(line_break, (count, 1)), np.random.default_rng(seed)
        return ml.generate(model, params, prompts, max_new_tokens=24, rng=draw, top_p=0.95)

    heading("4. Align")

    def reward(row):
        """1 if the first line is 30 to 50 characters long and ends in a comma or a full stop, else 0."""
        line, end, _ = tokenizer.decode(row).lstrip("\n").partition("\n")
        return float(bool(end) and 30 <= len(line) <= 50 and line[-1:] in (",", "."))

    def mean_reward(params):
        rewards = np.array([reward(row) for row in written(params, 512, seed=2)])
        return f"{rewards.mean():.3f} ± {1.96 * rewards.std() / len(rewards) ** 0.5:.3f}"

    print(f"before: reward {mean_reward(params)}, {bits(held_out(params)):.3f} bits per character")
    for name, chosen in [("the best", True), ("control, any", False)]:
        aligned = params
        for turn in range(ROUNDS):
            drawn = written(aligned, DRAWN, seed=10 + turn)
            kept = [row for row in drawn if reward(row) or not chosen][:KEPT]
            aligned, _ = trained(aligned, np.concatenate(kept), 30, 5e-4, seed=20 + turn)
        print(f"{name} {len(kept)} of {DRAWN} texts, {ROUNDS} rounds: reward {mean_reward(aligned)}, "
              f"{bits(held_out(aligned)):.3f} bits per character")  # fmt: skip

    heading("5. Find a head and take it out")
    record = {}
    model(params, held[: 32 * CONTEXT].reshape(32, CONTEXT), tap=ml.record_to(record))
    whole = held_out(params)
    for layer in range(config.layers):
        scores = np.atleast_1d(previous_token_score(record[f"blocks.{layer}.attention.weights"]))
        for head, score in enumerate(scores):
            lost = (whole - held_out(without_heads(model, params, [(layer, head)]))) / np.log(2)  # bits of each token
            blocks = lost[: len(lost) // 500 * 500].reshape(-1, 500).mean(axis=-1)
            error = 1.96 * blocks.std(ddof=1) / len(blocks) ** 0.5
            print(f"layer {layer}, head {head}: weight on the token before {score:.2f}; "
                  f"without it {lost.mean():+.3f} ± {error:.3f} bits per token")  # fmt: skip


if __name__ == "__main__":
    main()
