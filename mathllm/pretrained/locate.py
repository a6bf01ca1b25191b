"""Where is the model that somebody names? Looked for in three places, the nearest first.

    1. a path: a folder with config.json, model.safetensors and the tokenizer's files, or a .gguf file
    2. the cache of the Hugging Face hub, and then the hub itself, where `huggingface_hub` is installed
    3. the book's own data packages: "smollm2", "minilm"

What has been in the cache once is found there without a network; HF_HUB_OFFLINE=1 asks for nothing else. Files of the
hub carry their checksum in the cache, so `verify` can tell years later whether a model is still what was fetched.
"""

import hashlib
import importlib.util
import json
import re
from pathlib import Path
from typing import NamedTuple

from .. import data
from ..errors import MissingDataError, suggest
from ..training import Tokenizer
from ..transformer import Transformer
from . import minilm, smollm2
from .gguf import GGUF
from .gguf_model import gguf_ends, load_gguf
from .huggingface import load_pretrained
from .wordpiece import WordPiece

__all__ = ["LoadedModel", "cached_models", "load", "locate", "verify"]

_PACKAGES = {"smollm2": smollm2, "minilm": minilm}
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_WANTED = ["*.json", "*.safetensors", "vocab.txt", "merges.txt"]


class LoadedModel(NamedTuple):
    """A model, its parameters, its tokenizer (None where there is none), and the ids that end a text."""

    model: Transformer
    params: dict
    tokenizer: Tokenizer | WordPiece | None
    ends: tuple[int, ...]


def locate(name_or_path, *, download: bool = False) -> Path:
    """The folder or file of a model: a path, the name of a model on the Hugging Face hub, or that of a data package.

    name_or_path: "runs/hamlet", "openai-community/gpt2", "smollm2"   download: whether the hub may be asked for what is
    in no other place   ->   the folder with its files, or the GGUF file

    Raises: MissingDataError for a model that is known and not here, with the way to get it; ValueError for a name that
    can be no model, or a folder that holds none.

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
        return data.path(name)
    if re.fullmatch(r"[\w.-]+/[\w.-]+", name) and not name.startswith("."):
        return _from_hub(name) if download else _not_here(name)
    if "/" in name or path.exists():
        raise ValueError(f"{name} is no folder with a model, no .gguf file, and no name such as org/model")
    places = f"{', '.join(_PACKAGES)}, folders, .gguf files, and names such as org/model"
    hint = suggest(name, _PACKAGES) or f"; there are {places}"
    raise ValueError(f"no model is called {name!r}{hint}")


def load(name_or_path) -> LoadedModel:
    """Model, parameters and tokenizer of whatever `locate` finds: types gpt2, llama, mixtral and bert, llama in GGUF.

    Raises: as `locate`; ValueError for a checkpoint that our model cannot express.

    >>> if data.available("smollm2"):
    ...     model, params, tokenizer, ends = load("smollm2")
    ...     tokenizer.decode(ends)
    '<|im_end|><|endoftext|>'
    """
    place = locate(name_or_path)
    name = str(name_or_path)
    if place.is_file():
        file = GGUF(place)
        model, params, tokenizer = load_gguf(file)
        return LoadedModel(model, params, tokenizer, gguf_ends(file, tokenizer))
    if name in _PACKAGES and place == _package_path(name):
        model, params, tokenizer = _PACKAGES[name].load()
        special = getattr(tokenizer, "special_tokens", {})
        ends = tuple(special[text] for text in ("<|im_end|>", "<|endoftext|>") if text in special)
        return LoadedModel(model, params, tokenizer, ends)
    _table(place / "config.json")
    config, params = load_pretrained(place)
    return LoadedModel(Transformer(config), params, _tokenizer(place), _ends(place))


def verify(name_or_path) -> int:
    """Hash every file of a model whose checksum is known: how many there are (none in a folder of one's own).

    In the hub's cache the name of a file's content is its sha256 (large files) or git's sha1 (small ones).

    Raises: MissingDataError if a file is not what was fetched; as `locate`.

    >>> if data.available("minilm"):
    ...     verify("minilm")
    3
    """
    place, name = locate(name_or_path), str(name_or_path)
    if name in _PACKAGES and place == _package_path(name):
        data.verify(name)
        return len(data.packages()[name].files)
    hashed = 0
    for file in sorted(file for file in place.rglob("*") if file.is_file()):
        expected = file.resolve().name
        if file.is_symlink() and re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", expected):
            hashed += 1
            if _checksum(file, sha256=len(expected) == 64) != expected:
                raise MissingDataError(f"{name} is damaged: {file.name} does not have the checksum {expected[:12]}…")
    return hashed


def cached_models() -> dict[str, Path]:
    """The models in the cache of the Hugging Face hub that are whole, by name; none without `huggingface_hub`.

    >>> all("/" in name or path.is_dir() for name, path in cached_models().items())
    True
    """
    if not importlib.util.find_spec("huggingface_hub"):
        return {}
    from huggingface_hub import constants, scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repositories = scan_cache_dir(constants.HF_HUB_CACHE).repos
    except CacheNotFound:
        return {}
    names = sorted(repository.repo_id for repository in repositories if repository.repo_type == "model")
    return {name: path for name in names if (path := _cached(name))}


def _cached(name):
    """The folder of a model in the hub's cache, if it is whole there."""
    if not importlib.util.find_spec("huggingface_hub"):
        return None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        config = try_to_load_from_cache(name, "config.json")
    except HFValidationError:  # a path, not a name
        return None
    place = Path(config).parent if isinstance(config, str) else None
    return place if place and not _missing(place) else None


def _from_hub(name):
    if not importlib.util.find_spec("huggingface_hub"):
        raise MissingDataError(f"{name} is no folder; to ask the hub for it: pip install 'mathllm[hub]'")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    try:
        place = Path(snapshot_download(name, allow_patterns=_WANTED))
    except GatedRepoError:
        raise MissingDataError(f"{name} asks for consent: give it on the page of the model, and log in") from None
    except RepositoryNotFoundError:
        raise MissingDataError(f"the Hugging Face hub has no model {name}") from None
    except (OfflineModeIsEnabled, LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        reason = "HF_HUB_OFFLINE is set" if _offline() else f"the hub is out of reach ({type(error).__name__})"
        raise MissingDataError(f"{name} is not in the cache, and {reason}") from error
    if missing := _missing(place):
        raise ValueError(f"{name} cannot be read here: its repository has no {missing}")
    return place


def _offline():
    from huggingface_hub.constants import is_offline_mode

    return is_offline_mode()


def _not_here(name):
    how = "" if importlib.util.find_spec("huggingface_hub") else "pip install 'mathllm[cli,hub]', then "
    raise MissingDataError(f"{name} is no folder and not in the cache of the hub: {how}`mathllm models install {name}`")


def _missing(place):
    """The first file that a folder lacks to be a model, or None."""
    if not (place / "config.json").is_file():
        return "config.json"
    if (place / _WEIGHTS[0]).is_file():
        return None
    if not (place / _WEIGHTS[1]).is_file():
        return _WEIGHTS[0]
    parts = sorted(set(_table(place / _WEIGHTS[1]).get("weight_map", {}).values()))
    return next((part for part in parts if not (place / part).is_file()), None)


def _package_path(name):
    try:
        return data.path(name)
    except MissingDataError:
        return None


def _tokenizer(place):
    if (place / "tokenizer.json").is_file() and not (place / "vocab.txt").is_file():
        return Tokenizer.load(place / "tokenizer.json")
    if (place / "vocab.json").is_file() and (place / "merges.txt").is_file():
        vocabulary = _table(place / "vocab.json")
        lines = (place / "merges.txt").read_text(encoding="utf-8").split("\n")
        merges = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
        special = {text: vocabulary[text] for text in ("<|endoftext|>",) if text in vocabulary}
        return Tokenizer.from_strings(vocabulary, merges, special)
    return WordPiece.load(place / "vocab.txt") if (place / "vocab.txt").is_file() else None


def _ends(place):
    """The ids that end a text, as generation_config.json or config.json has them: one, several or none."""
    for name in ("generation_config.json", "config.json"):
        if (place / name).is_file():
            ids = _table(place / name).get("eos_token_id")
            if ids is not None:
                return (ids,) if isinstance(ids, int) else tuple(ids)
    return ()


def _table(file):
    """A JSON file that holds a table; where it does not, the error names the file."""
    try:
        table = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is damaged: {error}") from None
    if not isinstance(table, dict):
        raise ValueError(f"{file} is damaged: it holds no table of names and values")
    return table


def _checksum(file, *, sha256):
    """sha256 of the content, or git's: the sha1 of a short header and the content."""
    digest = hashlib.sha256() if sha256 else hashlib.sha1(f"blob {file.stat().st_size}\0".encode())
    with file.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
