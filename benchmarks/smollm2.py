"""SmolLM2 writes: tokens per second in float32, beside its peers and the speed of memory; and what saves time.

    python benchmarks/smollm2.py                          (where transformers is installed: .venv-parity/bin/python)
    python benchmarks/smollm2.py --parts plain            (or lookup, answers; may be repeated)
    python benchmarks/smollm2.py --llama /path/to/python  (a Python that has llama-cpp-python: see README.md)

    plain     fast.generate, transformers and llama.cpp continue one prompt greedily with a cache, with as many threads
              as there are cores. The bound: every token needs every weight once, from memory. "reading alone" reads
              them, each thread its own share; "products alone" multiplies the same matrices with vectors. llama.cpp
              reads the weights as the file keeps them, in fewer bytes.
    lookup    speculative_generate with PromptLookup beside generate, greedily, for prompts that ask for a copy and for
              prompts that ask for prose; the texts are the same
    answers   eight sampled answers to one prompt, which is read once, beside one answer

The sides take turns. (On a busy machine two threads of a BLAS wait for one another: run this alone.)
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(os.cpu_count())  # before NumPy is imported
os.environ["TQDM_DISABLE"] = "1"  # before transformers is imported

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import mathllm as ml
from mathllm import data, fast
from mathllm.pretrained import smollm2
from mathllm.pretrained.gguf import GGUF

THREADS = os.cpu_count()
PROMPT = "Once upon a time, in a village by the sea,"
END = 2  # <|im_end|>

# ------------------------------------------------------------------------------------------------------ plain decoding


def ours(tokens, count):
    model, params, _ = smollm2.load()
    return lambda: fast.generate(model, params, tokens, max_new_tokens=count)


def by_transformers(tokens, count):
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(THREADS)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        data.path("smollm2"), gguf_file=gguf_file().name, dtype=torch.float32
    ).eval()
    model.generation_config.eos_token_id = None  # go on to the last token, as ours does
    tokens = torch.tensor(tokens)
    mask = torch.ones_like(tokens)
    options = {"max_new_tokens": count, "do_sample": False, "use_cache": True}
    return lambda: model.generate(tokens, attention_mask=mask, **options).numpy()


LLAMA = """
import itertools, json, sys
import llama_cpp
file, threads = sys.argv[1:]
model = llama_cpp.Llama(file, n_ctx=8192, n_threads=int(threads), n_threads_batch=int(threads), verbose=False)
print(json.dumps(llama_cpp.__version__), flush=True)
for line in sys.stdin:
    tokens, count = json.loads(line)
    model.reset()  # forgets the text before
    new = model.generate(tokens, top_k=1, temp=0.0, repeat_penalty=1.0)
    print(json.dumps(tokens + list(itertools.islice(new, count))), flush=True)
"""


class LlamaCpp:
    """llama.cpp in a process of its own, with the same file."""

    def __init__(self, python):
        command = [python, "-c", LLAMA, str(gguf_file()), str(THREADS)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = json.loads(self.process.stdout.readline())

    def __call__(self, tokens, count):
        def generate():
            print(json.dumps([tokens[0].tolist(), count]), file=self.process.stdin, flush=True)
            return np.array([json.loads(self.process.stdout.readline())])

        return generate

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def llama_cpp(python):
    """The side of llama.cpp if that Python can import it, else None."""
    test = subprocess.run([python, "-c", "import llama_cpp"], capture_output=True, text=True)
    if test.returncode:
        print("llama-cpp-python is not installed: without llama.cpp (benchmarks/README.md says how to add it)")
        return None
    return LlamaCpp(python)


def products(tokens, count):
    """The vector-matrix products of `count` tokens, each over all weights."""
    pairs = [(np.ones(len(matrix), np.float32), matrix) for matrix in matrices()]

    def multiply():
        for _ in range(count):
            for vector, matrix in pairs:
                vector.dot(matrix)

    return multiply


def reading(tokens, count):
    """All weights, read as often as `count` tokens need them: every thread sums the squares of a share of its own."""
    vectors = [(matrix if matrix.flags.c_contiguous else matrix.T).reshape(-1) for matrix in matrices()]
    pieces = [piece for vector in vectors for piece in np.array_split(vector, vector.nbytes // 2**22 + 1)]  # ≤ 4 MB

    def read(thread):
        for piece in pieces[thread::THREADS]:
            piece.dot(piece)

    def read_all():
        with ThreadPoolExecutor(THREADS) as pool:
            for _ in range(count):
                list(pool.map(read, range(THREADS)))

    return read_all


def matrices():
    """Those that a token is multiplied by, each (in, out)."""
    _, params, _ = smollm2.load()
    parts = [block[part] for block in params["blocks"] for part in ("attention", "feed_forward")]
    return [matrix for part in parts for matrix in part.values()] + [params["embedding"].T]


def gguf_file():
    return next(data.path("smollm2").glob("*.gguf"))


def plain(options):
    tokens = encoded(PROMPT)
    makers, llama = {"mathllm.fast": ours, "products alone": products, "reading alone": reading}, None
    try:
        import transformers

        makers[f"transformers {transformers.__version__}"] = by_transformers
    except ImportError:
        print("transformers is not installed: without it")
    if llama := llama_cpp(options.llama):
        makers[f"llama.cpp ({llama.version})"] = llama
    sides = {name: make(tokens, options.tokens) for name, make in makers.items()}
    seconds, texts = take_turns(sides, options.turns)
    if llama:
        llama.close()
    sizes = dict.fromkeys(sides, sum(matrix.nbytes for matrix in matrices()))
    if llama:
        sizes[f"llama.cpp ({llama.version})"] = sum(info.bytes for info in GGUF(gguf_file()).tensors.values())
    work = f"reads {tokens.shape[1]} tokens and writes {options.tokens}"
    print(f"\nplain: one prompt, greedy, {work}, median of {options.turns} turns")
    print(f"  {'':24}{'tokens/s':>9}{'fast / this':>13}{'MB per token':>14}{'GB/s':>7}")
    rates = {name: options.tokens / statistics.median(took) for name, took in seconds.items()}
    for name, rate in rates.items():
        ratio = rates["mathllm.fast"] / rate
        print(f"  {name:24}{rate:9.1f}{ratio:13.2f}{sizes[name] / 1e6:14.0f}{rate * sizes[name] / 1e9:7.1f}")
    weights = sum(matrix.size for matrix in matrices())
    print(f"  of the speed that memory allows for float32: {rates['mathllm.fast'] / rates['reading alone']:.0%}")
    for name, text in texts.items():
        if text is not None and name != "mathllm.fast":
            same = int(np.argmin(np.append(text[0] == texts["mathllm.fast"][0], False)))
            print(f"  the same text as {name}: the first {same - tokens.shape[1]} of {options.tokens} new tokens")
    if llama:
        bits = 8 * sizes[f"llama.cpp ({llama.version})"] / weights
        print(f"  the file keeps {bits:.2f} bits per weight, float32 has 32: {32 / bits:.1f} times as many bytes")


# ------------------------------------------------------------------------------------------------------- prompt lookup

TEXTS = {
    "lighthouse": "The lighthouse stood at the end of the long pier, where the water was deep and the wind never "
    "rested. Every evening the keeper climbed two hundred steps, lit the lamp, and wrote the weather into a thick grey "
    "book. On clear nights he could see the lights of three villages, and sometimes a ferry on its way to the islands.",
    "minutes": "The meeting began at nine. Anna presented the budget for the coming year, which grows by four percent. "
    "Boris asked whether the new office could be opened in March instead of May, and Clara agreed to ask the owner. "
    "The next meeting is on Tuesday, 14 June, at ten o'clock in the large room on the second floor.",
    "code": "def mean(values):\n    total = 0.0\n    for value in values:\n        total += value\n"
    "    return total / len(values)\n\n\ndef variance(values):\n    center = mean(values)\n"
    "    return sum((value - center) ** 2 for value in values) / len(values)\n",
    "recipe": "Boil the potatoes for twenty minutes and let them cool. Cut the onions into small pieces and fry them "
    "in butter until they are golden. Mix both with two eggs, salt, pepper and a little nutmeg, form flat cakes, and "
    "fry them on each side for four minutes. Serve them with apple sauce and a green salad.",
}
PROSE = {
    "story": "Once upon a time, in a village by the sea,",
    "sky": "Why is the sky blue? Explain it to a child.",
    "letter": "Write a short letter to a friend about a rainy day in autumn.",
    "essay": "The history of the printing press begins",
    "advice": "How can I learn to play the piano as an adult?",
}


def prompts():
    """(kind, name, text): for a copy or for prose, as a chat or as a text to continue."""
    for name, text in TEXTS.items():
        yield "copy", name, f"Text:\n{text}\n\nThe same text, repeated word for word:\n"
        message = {"role": "user", "content": f"Repeat the following text word for word:\n\n{text}"}
        yield "copy", f"{name}, chat", smollm2.chat_prompt([message])
    for name, text in PROSE.items():
        chat = text.endswith((".", "?"))
        yield "prose", name, smollm2.chat_prompt([{"role": "user", "content": text}]) if chat else text


def lookup(options):
    model, params, _ = smollm2.load()
    model, draft, ratios = (
        fast.Transformer(model.config),
        ml.inference.PromptLookup(options.match),
        {"copy": [], "prose": []},
    )
    fast.generate(model, params, encoded(PROMPT), max_new_tokens=2)  # warms up
    print(f"\nlookup: PromptLookup({options.match}), up to {options.drafts} drafts; the prompt is read on both sides")
    print(f"  {'':25}{'read':>6}{'written':>9}{'tokens/s':>10}{'with it':>9}{'ratio':>7}{'accepted':>14}{'same':>6}")
    for kind, name, text in prompts():
        tokens = encoded(text)
        limits = {"max_new_tokens": options.lookup_tokens, "eos_token_id": END}
        sides = {
            "plain": lambda tokens=tokens, limits=limits: fast.generate(model, params, tokens, **limits),
            "lookup": lambda tokens=tokens, limits=limits: ml.inference.speculative_generate(
                model, params, tokens, draft, num_drafts=options.drafts, **limits
            ),
        }
        seconds, found = take_turns(sides, options.lookup_turns, warm=True)
        middle = {name: statistics.median(took) for name, took in seconds.items()}
        written, result = found["plain"].shape[1] - tokens.shape[1], found["lookup"]
        ratios[kind].append(middle["plain"] / middle["lookup"])
        accepted, same = f"{result.accepted} of {result.drafted}", np.array_equal(result.tokens, found["plain"])
        rates = "".join(f"{written / took:{width}.1f}" for took, width in zip(middle.values(), (10, 9), strict=True))
        print(f"  {kind + ': ' + name:25}{tokens.shape[1]:6}{written:9}{rates}{ratios[kind][-1]:7.2f}{accepted:>14}"
              f"{'yes' if same else 'no':>6}", flush=True)  # fmt: skip
    for kind, found in ratios.items():
        print(f"  {kind}: {statistics.geometric_mean(found):.2f} times as fast on average, "
              f"from {min(found):.2f} to {max(found):.2f}")  # fmt: skip


# --------------------------------------------------------------------------------------------------------- more answers


def answers(options):
    model, params, _ = smollm2.load()
    model = fast.Transformer(model.config)
    texts = "\n\n".join(TEXTS.values())
    question = f"Here are four texts:\n\n{texts}\n\nWho could have written them? Answer in two sentences."
    tokens = encoded(smollm2.chat_prompt([{"role": "user", "content": question}]))

    def side(copies, count):
        return lambda: fast.generate(
            model, params, tokens, max_new_tokens=count, num_return_sequences=copies, rng=np.random.default_rng(0)
        )

    sides = {"prompt": side(1, 1), "one": side(1, options.tokens), "eight": side(8, options.tokens)}
    seconds, _ = take_turns(sides, options.turns)
    middle = {name: statistics.median(took) for name, took in seconds.items()}
    print(f"\nanswers: a prompt of {tokens.shape[1]} tokens, answers of {options.tokens}, sampled")
    step = {name: 1e3 * (middle[name] - middle["prompt"]) / (options.tokens - 1) for name in ("one", "eight")}
    print(f"  the prompt and one token {middle['prompt']:6.2f} s")
    for name, milliseconds in step.items():
        print(f"  {name:5} answer{'' if name == 'one' else 's'}            {middle[name]:6.2f} s   "
              f"{milliseconds:6.1f} ms for each further token")  # fmt: skip
    print(f"  eight / one              {middle['eight'] / middle['one']:6.2f}     {step['eight'] / step['one']:6.2f}")


# ------------------------------------------------------------------------------------------------------------------


def take_turns(sides, turns, warm=False):
    """Seconds of each side in each turn, after one that warms up if they are not warm; and what each returned last."""
    seconds, results = {name: [] for name in sides}, {}
    for turn in range(1 if warm else 0, turns + 1):
        for name, side in sides.items():
            start = time.perf_counter()
            results[name] = side()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds, results


def encoded(text):
    return np.array([smollm2.load().tokenizer.encode(text)])


def main():
    parts = {"plain": plain, "lookup": lookup, "answers": answers}
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", action="append", choices=list(parts), help="default: all")
    parser.add_argument("--tokens", type=int, default=32, help="how many each turn of plain and answers generates")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--lookup-tokens", type=int, default=128, help="the most that each turn of lookup generates")
    parser.add_argument("--lookup-turns", type=int, default=2)
    parser.add_argument("--match", type=int, default=8, help="n of PromptLookup")
    parser.add_argument("--drafts", type=int, default=16)
    python = os.environ.get("LLAMA_PYTHON", sys.executable)
    parser.add_argument("--llama", default=python, help="a Python that has llama-cpp-python")
    options = parser.parse_args()
    if not data.available("smollm2"):
        return print("SmolLM2 is not here: `make data` fetches it")
    machine = f"{platform.machine()}, {THREADS} cores, Python {platform.python_version()}, NumPy {np.__version__}"
    print(f"SmolLM2-135M; {machine}", flush=True)
    for name in options.parts or parts:
        parts[name](options)


if __name__ == "__main__":
    main()
