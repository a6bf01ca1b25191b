"""Models by name: a folder or file, a model of the Hugging Face hub, or one of the book's data packages.

A name is looked up in three places, in this order:

    1. paths: a folder with config.json, model.safetensors and the files of a tokenizer, or a .gguf file
    2. the cache of the Hugging Face hub, if `huggingface_hub` is installed
    3. the data packages "smollm2" and "minilm"

Only `locate` with `download=True` fetches a model from the hub, if its name is in none of them, and HF_HUB_OFFLINE=1
forbids that. The cache stores each file under its checksum, so `verify` can tell years later whether a model is still
what was fetched.
"""

import contextlib
import hashlib
import re
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from .. import data
from ..errors import MissingDataError, suggest
from ..training import Tokenizer
from ..transformer import Transformer
from .files import read_json
from .gguf import GGUF
from .gguf_model import gguf_ends, load_gguf
from .huggingface import load_pretrained, weight_files
from .wordpiece import WordPiece

HUB_NAME = r"[\w-][\w.-]*/[\w.-]+"
"""The names of models on the Hugging Face hub, such as openai-community/gpt2, as a pattern."""

_PACKAGES = ("smollm2", "minilm")


class LoadedModel(NamedTuple):
    """A model, its parameters, its tokenizer (None if there is none), and the ids that end a text."""

    model: Transformer
    params: dict
    tokenizer: Any  # a Tokenizer, a WordPiece or None
    ends: tuple[int, ...]


def locate(name_or_path: str | PathLike, *, download: bool = False) -> Path:
    """The folder or the GGUF file of a model.

    name_or_path: "runs/hamlet", "openai-community/gpt2", "smollm2"   download: whether to fetch it from the hub if it
    is in no other place

    Raises: MissingDataError for a model that is not on this machine, with the way to get it; ValueError for a name that
    no model can have, or a folder that holds none.

    >>> locate("smolm2")
    Traceback (most recent call last):
    ValueError: no model is called 'smolm2'; did you mean smollm2?
    """
    name = str(name_or_path)
    path = Path(name).expanduser()
    if path.is_dir():
        if missing := _missing(path):
            raise ValueError(f"{path} holds no model: {missing} is missing")
        return path
    if path.is_file() and path.suffix == ".gguf":
        return path
    if found := _cached(name):
        return found
    if name in _PACKAGES:
        return next(data.path(name).glob("*.gguf"), data.path(name) / "model")
    if re.fullmatch(HUB_NAME, name):
        return _from_hub(name, download)
    known = f"; it is no folder, no .gguf file, no name such as org/model, and none of {', '.join(_PACKAGES)}"
    raise ValueError(f"no model is called {name!r}{suggest(name, _PACKAGES) or known}")


def load(name_or_path: str | PathLike) -> LoadedModel:
    """Model, parameters and tokenizer from where `locate` finds them.

    Read are checkpoints of the types gpt2, llama, mixtral, bert and t5, and GGUF files of the architecture llama.

    Raises: as `locate`; ValueError for a checkpoint that our model cannot express.

    >>> if data.available("smollm2"):
    ...     model, params, tokenizer, ends = load("smollm2")
    ...     tokenizer.decode(ends)
    '<|im_end|><|endoftext|>'
    """
    place = locate(name_or_path)
    if place.is_file():
        file = GGUF(place)
        loaded = load_gguf(file)
        return LoadedModel(*loaded, gguf_ends(file, loaded.tokenizer))
    config, params = load_pretrained(place)
    return LoadedModel(Transformer(config), params, _tokenizer(place), _ends(place))


def verify(name_or_path: str | PathLike) -> int:
    """The number of files whose checksum was compared with the known one: 0 for a folder of your own.

    The cache of the hub names the content of a file by its sha256 (large files) or its sha1 in git (small ones).

    Raises: MissingDataError if a file is not what was fetched; as `locate`.

    >>> if data.available("minilm"):
    ...     verify("minilm")
    3
    """
    name = str(name_or_path)
    if name in _PACKAGES and not Path(name).is_dir() and not _cached(name):
        data.path(name, full=True)
        return len(data.packages()[name].files)
    links = [file for file in sorted(locate(name).rglob("*")) if file.is_symlink()]
    known = {file: file.resolve().name for file in links if re.fullmatch("[0-9a-f]{40,64}", file.resolve().name)}
    for file, checksum in known.items():
        if _checksum(file, sha256=len(checksum) == 64) != checksum:
            raise MissingDataError(f"{name} is damaged: {file.name} does not have the checksum {checksum[:12]}…")
    return len(known)


def cached_models() -> dict[str, Path]:
    """The complete models in the cache of the Hugging Face hub, by name; none without `huggingface_hub`.

    >>> all("/" in name or path.is_dir() for name, path in cached_models().items())
    True
    """
    if not (library := _library()):
        return {}
    try:
        repositories = library.scan_cache_dir(library.constants.HF_HUB_CACHE).repos
    except library.errors.CacheNotFound:
        return {}
    names = sorted(repository.repo_id for repository in repositories if repository.repo_type == "model")
    return {name: path for name in names if (path := _cached(name))}


def _library():
    """The package huggingface_hub, or None where it is not installed."""
    with contextlib.suppress(ModuleNotFoundError):
        import huggingface_hub.constants
        import huggingface_hub.errors

        return huggingface_hub
    return None


def _cached(name):
    """The folder of a model in the cache of the hub, if it is complete, or None."""
    if not (library := _library()):
        return None
    try:
        config = library.try_to_load_from_cache(name, "config.json")
    except library.errors.HFValidationError:  # a path, not a name
        return None
    place = Path(config).parent if isinstance(config, str) else None
    return place if place and not _missing(place) else None


def _from_hub(name, download):
    library = _library()
    if not library or not download:
        fetch = "" if library else "pip install 'mathllm[cli,hub]', then "
        fetch += f"`mathllm models install {name}`"
        raise MissingDataError(f"{name} is no folder and not in the cache of the hub; to fetch it: {fetch}")
    wanted = ["*.json", "*.safetensors", "vocab.txt", "merges.txt"]  # nothing that could be executed
    try:
        place = Path(library.snapshot_download(name, allow_patterns=wanted))
    except library.errors.GatedRepoError:
        problem = f"{name} needs your consent: give it on the page of the model, and log in"
    except library.errors.RepositoryNotFoundError:
        problem = f"the Hugging Face hub has no model {name}"
    except OSError as error:
        offline = library.constants.is_offline_mode()
        reason = "HF_HUB_OFFLINE is set" if offline else f"the hub cannot be reached ({type(error).__name__})"
        problem = f"{name} is not in the cache, and {reason}"
    else:
        if not (missing := _missing(place)):
            return place
        problem = f"{name} cannot be read: its repository has no {missing}"
    raise MissingDataError(problem)


def _missing(place):
    """The first file that a folder lacks to be a model, or None."""
    return next((name for name in ("config.json", *weight_files(place)) if not (place / name).is_file()), None)


def _tokenizer(place):
    if (place / "vocab.txt").is_file():
        return WordPiece.load(place / "vocab.txt")
    if (place / "tokenizer.json").is_file():
        return Tokenizer.load(place / "tokenizer.json")
    if (place / "vocab.json").is_file() and (place / "merges.txt").is_file():
        return Tokenizer.from_gpt2(read_json(place / "vocab.json"), (place / "merges.txt").read_text(encoding="utf-8"))
    return None


def _ends(place):
    """The ids that end a text, from generation_config.json or config.json, which may name one, several or none."""
    for name in ("generation_config.json", "config.json"):
        ids = read_json(place / name).get("eos_token_id") if (place / name).is_file() else None
        if ids is not None:
            return (ids,) if isinstance(ids, int) else tuple(ids)
    return ()


def _checksum(file, *, sha256):
    """The sha256 of the content, or its sha1 in git: that of a short header and the content."""
    start = hashlib.sha256() if sha256 else hashlib.sha1(f"blob {file.stat().st_size}\0".encode())
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: start).hexdigest()
