"""A run of about ten minutes: DPO with LoRA on SmolLM2-135M-Instruct, where short answers are preferred.

The pairs: asked for the capital of a country, "Paris." is preferred to "The capital of France is Paris." Twenty
countries are trained on, twenty are not. DPO trains low-rank adapters of the queries and values. What is printed is
measured on the other twenty countries, and on twenty questions of another kind, before and after.

    PYTHONPATH=. OPENBLAS_NUM_THREADS=2 .venv/bin/python benchmarks/align_smollm2.py FOLDER
"""

import argparse
import json
from pathlib import Path

import numpy as np

import mathllm as ml
from mathllm import alignment, fast
from mathllm.inference import left_pad
from mathllm.pretrained import smollm2

BETA, RANK, STEPS, PAIRS, RATE = 0.1, 4, 40, 4, 5e-4
LIMIT, EVERY = 40, 10  # tokens of a generated answer; steps between two rows of the log

CAPITALS = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo", "Egypt": "Cairo", "Canada": "Ottawa",
    "Poland": "Warsaw", "Norway": "Oslo", "Greece": "Athens", "India": "New Delhi", "Portugal": "Lisbon",
    "Sweden": "Stockholm", "Austria": "Vienna", "Cuba": "Havana", "Kenya": "Nairobi", "Peru": "Lima",
    "Ireland": "Dublin", "Finland": "Helsinki", "Hungary": "Budapest", "Denmark": "Copenhagen", "Germany": "Berlin",
    "Russia": "Moscow", "China": "Beijing", "Turkey": "Ankara", "Iran": "Tehran", "Iraq": "Baghdad",
    "Thailand": "Bangkok", "Vietnam": "Hanoi", "Chile": "Santiago", "Argentina": "Buenos Aires", "Colombia": "Bogota",
    "Belgium": "Brussels", "Romania": "Bucharest", "Bulgaria": "Sofia", "Iceland": "Reykjavik", "Jamaica": "Kingston",
    "Australia": "Canberra", "South Korea": "Seoul", "Mexico": "Mexico City", "the United Kingdom": "London",
}  # fmt: skip
THINGS = ["a rainbow", "a volcano", "a bicycle", "a violin", "a library", "a comet", "a whale", "a bakery", "a bridge",
          "a desert", "a mirror", "a clock", "a forest", "a battery", "an island", "a poem", "a magnet", "a cactus",
          "a glacier", "a telescope"]  # fmt: skip


class Run:
    """The frozen model, its questions, and the loss of its adapters."""

    def __init__(self):
        self.model, self.params, self.tokenizer = smollm2.load()
        self.end = self.tokenizer.special_tokens["<|im_end|>"]

    def prompt(self, question):
        return self.tokenizer.encode(smollm2.chat_prompt([{"role": "user", "content": question}]))

    def pairs(self, countries):
        """(prompt, chosen, rejected) for each country, as lists of tokens."""
        found = []
        for country in countries:
            city = CAPITALS[country]
            two = [f"{city}.", f"The capital of {country} is {city}."]
            found.append((capital_prompt(self, country), *[[*self.tokenizer.encode(text), self.end] for text in two]))
        return found

    def batch(self, pairs):
        """Tokens and labels of the chosen, then the rejected answers, padded on the right: (2n, T) each."""
        starts = [len(prompt) for prompt, _, _ in pairs] * 2
        rows = [prompt + chosen for prompt, chosen, _ in pairs] + [prompt + rejected for prompt, _, rejected in pairs]
        longest = max(map(len, rows))
        tokens = np.array([row + [self.end] * (longest - len(row)) for row in rows])
        labels = alignment.completion_labels(tokens, starts)
        for row, label in zip(rows, labels, strict=True):
            label[len(row) :] = -100  # padding is not part of the answer
        return tokens, labels

    def log_p(self, params, tokens, labels):
        """ln π of each row's answer: (2n,)."""
        return alignment.completion_log_probabilities(self.model(params, tokens), labels)

    def changes(self, params, pairs):
        """ln π − ln π_ref of the chosen and of the rejected answers: (2, pairs)."""
        found = []
        for start in range(0, len(pairs), PAIRS):
            tokens, labels = self.batch(pairs[start : start + PAIRS])
            change = self.log_p(params, tokens, labels) - self.log_p(self.params, tokens, labels)
            found.append(change.astype(float).reshape(2, -1))
        return np.concatenate(found, axis=1)

    def answers(self, params, questions, rng=None):
        """Greedy answers, or drawn ones with `rng`: a list of token lists."""
        prompts, mask = left_pad([self.prompt(question) for question in questions])
        out = fast.generate(
            self.model, params, prompts, attention_mask=mask, max_new_tokens=LIMIT, eos_token_id=self.end, rng=rng
        )
        rows = [row[prompts.shape[1] :].tolist() for row in out]
        return [row[: row.index(self.end) + 1] if self.end in row else row for row in rows]


def capital_prompt(run, country):
    return run.prompt(f"What is the capital of {country}?")


def trained(run, pairs, unseen, log):
    """The parameters after the run; `log` gets a row every few steps."""
    rng = np.random.default_rng(0)
    adapters = alignment.lora_adapters(run.params, ["query", "value"], RANK, rng)
    adapters = ml.tree_map(lambda factor: factor.astype(np.float32), adapters)
    log({"trained": ml.count_parameters(adapters), "of": ml.count_parameters(run.params)})

    def loss(adapters, tokens, labels, reference):
        policy = run.log_p(alignment.with_adapters(run.params, adapters), tokens, labels)
        n = len(tokens) // 2
        return alignment.dpo_loss(policy[:n], policy[n:], reference[:n], reference[n:], beta=BETA)

    state = ml.adam_init(adapters)
    for step in range(STEPS + 1):
        if step % EVERY == 0:
            chosen, rejected = run.changes(alignment.with_adapters(run.params, adapters), unseen)
            margins = chosen - rejected
            log({"step": step, "loss": float(-ml.log_sigmoid(BETA * margins).mean()), "h": float(margins.mean()),
                 "from": float(margins.min()), "to": float(margins.max()), "chosen": float(chosen.mean()),
                 "rejected": float(rejected.mean())})  # fmt: skip
        if step < STEPS:
            batch = run.batch([pairs[i] for i in rng.choice(len(pairs), PAIRS, replace=False)])
            gradient = ml.grad(loss)(adapters, *batch, run.log_p(run.params, *batch))
            adapters, state = ml.adam_step(adapters, gradient, state, learning_rate=RATE * (1 - step / STEPS))
    return alignment.with_adapters(run.params, adapters)


def report(run, params, name, countries, log):
    """Greedy answers to questions that were not trained on: their lengths, and how many capitals are right."""
    asked = {"capitals": [f"What is the capital of {country}?" for country in countries],
             "things": [f"What is {thing}?" for thing in THINGS]}  # fmt: skip
    for kind, questions in asked.items():
        rows = run.answers(params, questions)
        texts = [run.tokenizer.decode(row).replace("<|im_end|>", "") for row in rows]
        lengths = np.array([len(row) for row in rows])
        entry = {"policy": name, "kind": kind, "tokens": float(lengths.mean()), "from": int(lengths.min()),
                 "to": int(lengths.max()), "unfinished": sum(row[-1] != run.end for row in rows)}  # fmt: skip
        if kind == "capitals":
            entry["right"] = sum(CAPITALS[country] in text for country, text in zip(countries, texts, strict=True))
        log(entry)
        for question, text in list(zip(questions, texts, strict=True))[:4]:
            log({"policy": name, "question": question, "answer": text})
        drawn = run.answers(params, questions, np.random.default_rng(0))
        triples = [(run.prompt(question), row, row) for question, row in zip(questions, drawn, strict=True)]
        astray = run.changes(params, triples)[0]
        log({"policy": name, "kind": kind, "KL": float(astray.mean()), "SE": float(astray.std() / len(astray) ** 0.5)})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the log is written")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)

    def log(entry):
        print(entry, flush=True)
        with (folder / "log.jsonl").open("a") as file:
            file.write(json.dumps(entry) + "\n")

    run, countries = Run(), list(CAPITALS)
    pairs, unseen = run.pairs(countries[:20]), run.pairs(countries[20:])
    report(run, run.params, "reference", countries[20:], log)
    policy = trained(run, pairs, unseen, log)
    report(run, policy, "policy", countries[20:], log)


if __name__ == "__main__":
    main()
