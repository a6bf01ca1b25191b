"""The command line trains, writes, talks, finds models, and refuses in words what it cannot do."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import huggingface_hub.constants
import numpy as np
import pytest
from click.testing import CliRunner

from mathllm import data
from mathllm.cli import generate as generate_module
from mathllm.cli import main
from mathllm.cli import models as models_module
from mathllm.cli.commands import _mathllm
from mathllm.errors import MissingDataError
from mathllm.fast import train
from mathllm.inference import generate
from mathllm.pretrained import hub
from mathllm.pretrained.huggingface import load_pretrained, save_pretrained
from mathllm.training import Tokenizer, TrainingState, load_checkpoint, train_tokenizer
from mathllm.transformer import Transformer, bert_config, gpt2_config, llama_config

TEXT = "the cat sat on the mat; the dog sat on the cat. " * 60
SMALL = ["--width", 16, "--layers", 1, "--heads", 2, "--context", 16, "--batch", 4, "--warmup", 5]
REPOSITORY = "someone/tiny-llama"


def run(*arguments, code=0, **options):
    """What a command prints, after checking how it ended; an unexpected error shows its traceback."""
    result = CliRunner().invoke(_mathllm, [str(a) for a in arguments], catch_exceptions=False, **options)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "cat.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A folder with a model of random weights, large enough that two tokens are never equally probable."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save_model(folder, llama_config)
    return folder


def save_model(folder, make, **sizes):
    tokenizer = train_tokenizer(TEXT, 280)
    sizes = {"vocabulary": len(tokenizer), "width": 16, "layers": 2, "heads": 2, "hidden": 24, "context": 64} | sizes
    config = make(**sizes)
    rng = np.random.default_rng(0)
    params = Transformer(config).init(rng, np.float32)
    params["embedding"] = rng.normal(size=params["embedding"].shape).astype(np.float32)
    save_pretrained(folder, config, params, tokenizer)


# The command as a whole


def test_every_command_and_every_option_says_what_it_does():
    shown = run("--help").output
    for name, command in _mathllm.commands.items():
        assert re.search(rf"^  {name} +{command.help.splitlines()[0]}$", shown, re.MULTILINE), name
        assert run(name, "--help").output.startswith(f"Usage: mathllm {name}")
    for command in [*_mathllm.commands.values(), *_mathllm.commands["models"].commands.values()]:
        for parameter in command.params:
            assert getattr(parameter, "help", None) or parameter.param_type_name == "argument", parameter.name


def test_without_click_one_line_says_how_to_get_it():
    forget = "import sys; sys.modules['click'] = None; from mathllm.cli import main; sys.exit(main(['doctor']))"
    done = subprocess.run([sys.executable, "-c", forget], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "the command line of mathllm needs click: pip install 'mathllm[cli]'\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("tran", "No such command 'tran'"),
        ("generate", "Missing argument 'MODEL'"),
        ("generate smolm2 hello", "no model is called 'smolm2'; did you mean smollm2?"),
        ("generate TINY hello --top-p 1.5", "1.5 is not in the range 0<x<=1"),
        ("generate TINY hello --temperature 0", "0.0 is not in the range x>0"),
        ("generate TINY hello --num-beams 2 --seed 1", "beam search does not sample"),
        ("generate FOLDER hello", "holds no model: config.json is missing"),
        ("generate CUT hello", "is not a whole safetensors file"),
        ("chat TINY", "was not made for conversations"),
        ("train -o FOLDER/out", "no text to train on"),
        ("train shakespear -o FOLDER/out", "there is no file 'shakespear'; did you mean shakespeare?"),
        ("train CAT -o FOLDER/out --width 10 --heads 3", "--width 10 cannot be divided among --heads 3"),
        ("train CAT -o FOLDER/out --context 5000", "--context 5000 needs 5001 tokens"),
        ("train CAT -o FOLDER/out --steps many", "'many' is not a valid integer"),
        ("train BYTES -o FOLDER/out", "is not text in UTF-8"),
        ("train EMPTY -o FOLDER/out", "too little text"),
        ("train --resume -o FOLDER/out", "there is no run to continue"),
        ("models install smollm", "no model or data package is called 'smollm'; did you mean smollm2?"),
    ],
)
def test_a_mistake_of_usage_is_named_ends_with_2_and_leaves_nothing(tiny, text, tmp_path, arguments, message):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty").touch()
    weights = shutil.copytree(tiny, tmp_path / "cut") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5])
    places = {"TINY": tiny, "CAT": text, "BYTES": tmp_path / "bytes", "EMPTY": tmp_path / "empty", "FOLDER": folder}
    places["CUT"] = tmp_path / "cut"
    words = [re.sub("|".join(places), lambda word: str(places[word[0]]), word) for word in arguments.split()]
    assert message in " ".join(run(*words, code=2).output.split())
    assert not list(folder.iterdir())


def test_main_gives_the_exit_code(capsys):
    assert (main(["--version"]), main(["nothing"]), main(["models", "verify", "no/such-model"])) == (0, 2, 1)
    assert "Traceback" not in capsys.readouterr().err


# train


@pytest.mark.parametrize(("kind", "model_type"), [("char", "gpt2"), ("bpe", "llama")])
def test_training_learns_and_what_it_saves_is_a_checkpoint_of_the_hub(text, tmp_path, kind, model_type):
    out = tmp_path / "out"
    options = ["--tokenizer", kind, "--vocabulary-size", 270, "--model-type", model_type, "--learning-rate", 0.01]
    shown = run("train", text, "-o", out, *SMALL, *options, "--steps", 120, "--validate-every", 40).output
    losses = [float(loss) for loss in re.findall(r"^step \d+ of 120, loss [\d.]+, validation ([\d.]+),", shown, re.M)]
    assert len(losses) == 3
    tokenizer = Tokenizer.load(out / "tokenizer.json")
    assert losses[-1] < losses[0] < np.log(len(tokenizer))
    assert f"120 steps, validation loss {losses[-1]:.4f}" in shown

    config, params = load_pretrained(out)
    assert (config.vocabulary, config.width, config.layers, config.context) == (len(tokenizer), 16, 1, 16)
    assert len(tokenizer) == (len(set(TEXT)) + 1 if kind == "char" else 270)
    table = json.loads((out / "config.json").read_text(encoding="utf-8"))
    assert table["model_type"] == model_type
    assert table["eos_token_id"] == tokenizer.special_tokens["<|endoftext|>"]
    state = load_checkpoint(out / "checkpoint.npz", TrainingState)
    assert state.step == 120
    assert np.array_equal(params["embedding"], state.params["embedding"])
    names = {"run.json", "tokenizer.json", "tokenizer_config.json", "config.json", "model.safetensors"}
    assert {path.name for path in out.iterdir()} == names | {"checkpoint.npz"}  # and nothing half-written


def test_a_run_that_ctrl_c_interrupts_goes_on_to_the_same_weights(text, tmp_path, monkeypatch):
    def interrupted(state, loss, draw, steps, **options):
        train(state, loss, draw, 3, **options)
        raise KeyboardInterrupt

    options = ["train", text, *SMALL, "--tokenizer", "char", "--steps", 6]
    whole, out = tmp_path / "whole", tmp_path / "interrupted"
    run(*options, "-o", whole)
    with monkeypatch.context() as patch:
        patch.setattr("mathllm.cli.train.train", interrupted)
        shown = run(*options, "-o", out, code=130).output
    assert f"mathllm train --resume --output {out} continues the run" in shown
    assert not (out / "config.json").exists()
    assert "3 of 6 steps done" in run("train", "--resume", "-o", out).output
    assert (out / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert "6 of 6 steps done" in run("train", "--resume", "-o", out).output


def test_a_run_is_neither_overwritten_nor_gone_on_with_differently(text, tmp_path):
    out = tmp_path / "out"
    start = ["train", text, "-o", out, *SMALL, "--tokenizer", "char", "--steps", 2, "--workers", 2]
    run(*start)
    before = (out / "model.safetensors").read_bytes()
    assert "--resume continues it" in run(*start, code=2).output
    shown = run("train", "--resume", "-o", out, "--width", 32, code=2).output
    assert "began with width 16, not 32" in shown
    run("train", "--resume", text, "-o", out, "--width", 16)
    text.write_text(TEXT + "!", encoding="utf-8")
    assert "has changed since the run began" in run("train", "--resume", "-o", out, code=2).output
    assert (out / "model.safetensors").read_bytes() == before


def test_a_loss_that_is_no_number_ends_in_words(text, tmp_path):
    options = [*SMALL, "--tokenizer", "char", "--learning-rate", 1e30, "--warmup", 0]
    shown = run("train", text, "-o", tmp_path / "out", *options, code=1).output
    assert "last good checkpoint" in shown


def test_names_are_held_out_from_a_to_z(needs, tmp_path):
    needs("names")
    run("train", "names", "-o", tmp_path / "out", *SMALL, "--tokenizer", "char", "--steps", 1)
    from mathllm.cli.train import _split

    train, held_out = (part.split() for part in _split("names", 0))
    assert sorted(train + held_out) == data.names()
    assert len(held_out) == 516
    assert {name[0] for name in held_out} >= set("abcdefgjklmrst")


# generate


def expected(folder, prompt, **options):
    model, params, tokenizer, ends = hub.load(folder)
    ids = tokenizer.encode(prompt)
    tokens = generate(model, params, [ids], eos_token_id=ends, **options)[0]
    return tokenizer.decode([i for i in tokens.tolist() if i not in ends])


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("", {}),
        ("--repetition-penalty 1.5", {"repetition_penalty": 1.5}),
        ("--num-beams 3", {"num_beams": 3}),
        ("--seed 7", {"rng": 7}),
        ("--temperature 0.7 --top-k 20 --seed 3", {"temperature": 0.7, "top_k": 20, "rng": 3}),
        ("--top-p 0.9 --min-p 0.01 --seed 3", {"top_p": 0.9, "min_p": 0.01, "rng": 3}),
    ],
)
def test_generate_says_what_the_function_says(tiny, words, options):
    if "rng" in options:
        options = options | {"rng": np.random.default_rng(options["rng"])}
    shown = run("generate", tiny, "the cat", "--max-new-tokens", 12, *words.split()).output
    assert shown == expected(tiny, "the cat", max_new_tokens=12, **options) + "\n"
    assert len(shown) > len("the cat\n")


def test_generate_reads_the_standard_input_and_of_no_text_begins_where_a_text_begins(tiny):
    command = ["generate", tiny, "--max-new-tokens", 5]
    assert run(*command, input="the dog\n").output == run(*command, "the dog").output
    model, params, tokenizer, ends = hub.load(tiny)
    tokens = generate(model, params, [ends], max_new_tokens=5, eos_token_id=ends)[0, 1:]
    assert run(*command, "").output == tokenizer.decode(tokens) + "\n"


def test_text_is_shown_token_by_token_and_characters_whole(tiny, monkeypatch):
    model, params, tokenizer, ends = hub.load(tiny)
    ids = tokenizer.encode("é→")  # five tokens, two characters
    assert len(ids) == 5

    def speaks(*_, **__):
        for token in ids:
            yield np.array([token])

    shown = []
    monkeypatch.setattr(generate_module, "continuation", speaks)
    monkeypatch.setattr(generate_module.click, "echo", lambda text="", **_: shown.append(text))
    loaded = hub.LoadedModel(model, params, tokenizer, ends)
    assert generate_module._answer(loaded, [0], None, max_new_tokens=9) == "é→"
    assert shown == ["", "é", "", "", "→", ""]


def test_a_prompt_longer_than_the_context_and_an_encoder_are_refused_in_words(tmp_path):
    save_model(tmp_path, gpt2_config)
    shown = run("generate", tmp_path, "the cat", "--max-new-tokens", 100, code=1).output
    assert "the context is 64 tokens, but a prompt and max_new_tokens need 101" in shown
    save_model(tmp_path, bert_config)
    assert "fills in masked words" in run("generate", tmp_path, "the cat", code=2).output


def test_a_reader_that_stops_early_sees_no_traceback(tiny):
    command = f"'{sys.executable}' -m mathllm generate '{tiny}' 'the cat' --max-new-tokens 50 | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("t", "")


# chat


@pytest.mark.slow
def test_a_chat_remembers_and_ends_with_the_input(needs):
    needs("smollm2")
    asked = "What is the capital of France?\nAnd of Italy?\n"
    shown = run("chat", "--max-new-tokens", 12, input=asked).output
    assert "Paris" in shown.splitlines()[0]
    assert "Rome" in shown.splitlines()[1]


@pytest.fixture
def chatty(tmp_path, monkeypatch):
    """A model for conversations whose answers a test gives, and the prompts it got."""
    tokenizer = train_tokenizer(TEXT, 280, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    config = llama_config(vocabulary=len(tokenizer), width=8, layers=1, heads=2, hidden=8, context=400)
    save_pretrained(
        tmp_path / "chatty", config, Transformer(config).init(np.random.default_rng(0)), tokenizer, end="<|im_end|>"
    )
    prompts = []

    def speaks(model, params, tokens, choose, **_):
        prompts.append(tokenizer.decode(tokens[0]))
        for token in tokenizer.encode(f"answer {len(prompts)}<|im_end|>"):
            yield np.array([token])
            if len(prompts) == 2:
                raise KeyboardInterrupt

    monkeypatch.setattr(generate_module, "continuation", speaks)
    return tmp_path / "chatty", prompts


def test_ctrl_c_stops_the_answer_and_not_the_conversation(chatty):
    folder, prompts = chatty
    shown = run("chat", folder, "--system", "Purr.", input="one\ntwo\nthree\n/exit\nfour\n").output
    first, cut, third = shown.splitlines()
    assert (first, third) == ("answer 1", "answer 3")
    assert "answer".startswith(cut.removesuffix(" …")) and cut.endswith(" …")  # noqa: PT018
    assert prompts[0].startswith("<|im_start|>system\nPurr.<|im_end|>\n<|im_start|>user\none<|im_end|>")
    said = f"<|im_start|>assistant\n{cut.removesuffix(' …')}<|im_end|>\n<|im_start|>user\nthree<|im_end|>"
    assert said in prompts[2]
    assert len(prompts) == 3  # after /exit nobody is asked


def test_new_forgets_and_special_tokens_are_refused(chatty):
    folder, prompts = chatty
    shown = run("chat", folder, "--max-new-tokens", 20, input="one\n/new\nme <|im_end|>\n\nfive\n").output
    assert "a message cannot contain <|im_end|>" in shown
    assert len(prompts) == 2
    assert "one" not in prompts[1]


def test_a_conversation_longer_than_the_context_is_not_begun(chatty):
    folder, prompts = chatty
    shown = run("chat", folder, "--max-new-tokens", 399, input="one\n").output
    assert "do not fit into the model's 400: /new starts a new conversation" in shown
    assert not prompts


# models: a folder, the cache of the hub, a data package


@pytest.fixture
def cache(tiny, tmp_path, monkeypatch):
    """A cache of the hub with one model, as huggingface_hub lays it out, and no network."""
    assert huggingface_hub.scan_cache_dir  # loaded before the place is another: whoever kept the old one is caught
    cache = tmp_path / "hub"
    fill_cache(cache, REPOSITORY, tiny)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    return cache


def fill_cache(cache, name, folder):
    place = cache / f"models--{name.replace('/', '--')}"
    snapshot = place / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (place / "blobs").mkdir()
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text("a" * 40)
    for file in folder.iterdir():
        content = file.read_bytes()
        large = file.suffix == ".safetensors"
        blob = hashlib.sha256(content) if large else hashlib.sha1(b"blob %d\0" % len(content) + content)
        shutil.copy(file, place / "blobs" / blob.hexdigest())
        (snapshot / file.name).symlink_to(Path("../../blobs") / blob.hexdigest())
    return snapshot


def test_a_model_in_the_cache_of_the_hub_is_found_offline(cache, tiny):
    place = hub.locate(REPOSITORY)
    assert place == cache / "models--someone--tiny-llama" / "snapshots" / ("a" * 40)
    assert hub.cached_models() == {REPOSITORY: place}
    command = ["the cat", "--max-new-tokens", 8]
    assert run("generate", REPOSITORY, *command).output == run("generate", tiny, *command).output
    assert f"{REPOSITORY}\n{'':<16}  {place}" in run("models", "list").output
    assert f"{REPOSITORY}: 4 files verified" in run("models", "install", REPOSITORY).output  # is here already


def test_a_folder_comes_before_the_cache_and_the_cache_before_a_data_package(cache, tiny, tmp_path, monkeypatch):
    snapshot = fill_cache(cache, "minilm", tiny)
    assert hub.locate("minilm") == snapshot
    assert hub.load("minilm").model.config.width == 16
    monkeypatch.chdir(tmp_path)
    save_model(Path("minilm"), gpt2_config)
    assert hub.locate("minilm") == Path("minilm")
    assert hub.load("minilm").model.config.positions == "learned"


def test_a_data_package_is_found_by_its_name(needs, cache):
    folder = needs("minilm")
    assert hub.locate("minilm") == folder / "model"
    assert hub.load("minilm").model.config.width == 384
    assert hub.verify("minilm") == 3


@pytest.mark.parametrize(
    ("offline", "reason"),
    [(True, "HF_HUB_OFFLINE is set"), (False, "the hub cannot be reached (LocalEntryNotFoundError)")],
)
def test_a_hub_out_of_reach_is_said_in_a_line(cache, monkeypatch, offline, reason):
    def unreachable(*_, **__):
        raise huggingface_hub.errors.LocalEntryNotFoundError("no network")

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", offline)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    shown = run("models", "install", "someone/else", code=1).output
    assert shown == f"Error: someone/else is not in the cache, and {reason}\n"


def test_a_snapshot_that_is_not_whole_is_not_taken(cache):
    (cache / "models--someone--tiny-llama" / "snapshots" / ("a" * 40) / "model.safetensors").unlink()
    assert hub.cached_models() == {}
    with pytest.raises(MissingDataError, match="not in the cache"):
        hub.locate(REPOSITORY)


def test_verify_finds_one_changed_byte_in_large_and_in_small_files(cache):
    assert f"{REPOSITORY}: 4 files verified" in run("models", "verify", REPOSITORY).output
    snapshot = hub.locate(REPOSITORY)
    for name in ("model.safetensors", "tokenizer.json"):
        content = (snapshot / name).read_bytes()
        (snapshot / name).write_bytes(content[:-2] + b"?" + content[-1:])  # through the link, into the blob
        shown = run("models", "verify", REPOSITORY, code=1).output
        assert f"{REPOSITORY} is damaged: {name} does not have the checksum" in shown
        assert f"not verified: {REPOSITORY}" in shown
        (snapshot / name).write_bytes(content)
    assert hub.verify(REPOSITORY) == 4


def test_without_huggingface_hub_folders_and_packages_are_found(cache, tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert hub.locate(tiny) == tiny
    assert hub.cached_models() == {}
    with pytest.raises(MissingDataError, match=r"to fetch it: pip install 'mathllm\[cli,hub\]', then `mathllm "):
        hub.locate(REPOSITORY, download=True)


def test_the_older_files_of_a_tokenizer_are_read_too(needs, tiny, tmp_path):
    place = needs("gpt2-tokenizer") / "data"
    shutil.copy(tiny / "config.json", tmp_path)
    shutil.copy(tiny / "model.safetensors", tmp_path)
    shutil.copy(place / "encoder.json", tmp_path / "vocab.json")
    shutil.copy(place / "vocab.bpe", tmp_path / "merges.txt")
    assert hub.load(tmp_path).tokenizer.tokens("unprecedented") == ["un", "pre", "cedented"]


@pytest.mark.parametrize("content", ["{", "[]"])
def test_a_damaged_file_of_settings_is_named(tiny, text, tmp_path, content):
    shutil.copytree(tiny, tmp_path / "model")
    (tmp_path / "model" / "config.json").write_text(content)
    shown = run("generate", tmp_path / "model", "a", code=2).output
    assert "model/config.json is damaged: " in " ".join(shown.split())
    run("train", text, "-o", tmp_path / "out", *SMALL, "--tokenizer", "char", "--steps", 1)
    (tmp_path / "out" / "run.json").write_text(content)
    shown = run("train", "--resume", "-o", tmp_path / "out", code=1).output
    assert "out/run.json is damaged: " in shown


def test_absent_data_is_said_with_the_way_to_get_it(tmp_path, monkeypatch, cache):
    monkeypatch.setenv("MATHLLM_DATA", str(tmp_path / "nowhere"))
    assert "smollm2 is not here" in run("generate", "smollm2", "hello", code=1).output
    listed = run("models", "list").output
    assert listed.count("absent, ") == len(data.packages())
    assert run("models", "verify").output.startswith(f"{REPOSITORY}: 4 files verified")  # all that is here


def test_without_a_checkout_pip_installs_a_data_package_with_its_checksum(tmp_path, monkeypatch):
    asked = {}

    def installer(command, **_):
        asked[tuple(command[:4])] = Path(command[-1]).read_text(encoding="utf-8")

    monkeypatch.setenv("MATHLLM_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr(models_module, "__file__", str(tmp_path / "mathllm" / "cli" / "models.py"))
    monkeypatch.setattr(subprocess, "run", installer)
    assert "names is not here" in run("models", "install", "names", code=1).output
    package = data.packages()["names"]
    wanted = f"names=={package.version} --hash=sha256:{package.sha256}\n"
    assert asked == {(sys.executable, "-m", "pip", "install"): wanted}


# doctor


def test_install_verifies_what_is_here_and_doctor_names_versions_threads_cores_and_data(needs):
    place = needs("names")
    assert run("models", "install", "names").output.endswith(f"names: 2 files verified, in {place}\n")  # nothing to do
    shown = run("doctor").output
    for name, version in {"NumPy": np.__version__, "Python": sys.version.split()[0]}.items():
        assert re.search(rf"^{name} +{re.escape(version)}", shown, re.MULTILINE)
    assert re.search(r"^BLAS +\S.*  threads: \d+$", shown, re.MULTILINE)
    assert re.search(rf"^cores +{len(os.sched_getaffinity(0))} ", shown, re.MULTILINE)
    assert re.search(rf"^names +verified +{re.escape(str(place))}$", shown, re.MULTILINE)


def test_doctor_finds_damaged_data_and_ends_with_1_but_absent_data_is_well(needs, tmp_path, monkeypatch):
    place = needs("names")
    monkeypatch.setenv("MATHLLM_DATA", str(tmp_path))
    shown = run("doctor").output
    assert shown.endswith("OK: everything required is installed\n")
    assert re.search(r"^names +absent ", shown, re.MULTILINE)
    copy = tmp_path / "names" / place.name
    shutil.copytree(place, copy)
    content = (copy / "dist.male.first").read_bytes()
    (copy / "dist.male.first").write_bytes(content[:-1] + b"?")
    shown = run("doctor", code=1).output
    assert re.search(r"^names +damaged ", shown, re.MULTILINE)
    assert "does not have the sha256 of the original" in shown
