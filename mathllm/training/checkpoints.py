"""How does a run of weeks survive a power cut? It is written down now and then, so that no moment lacks a whole copy.

A checkpoint is one file. It is first written beside its place, forced onto the disk, and then renamed: a rename is done
at once or not at all, so the name always stands for a file that is whole, the old one or the new one.
"""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_FORMAT = 1


def save_checkpoint(path: str | Path, state: Any) -> Path:
    """Write nested dicts, lists and tuples of arrays and plain values to one file, all of it or nothing.

    path: of the file, in a folder that exists   state: for instance a TrainingState   ->   the path

    The file is NumPy's .npz: every array under its place ("state/params/blocks/0/attention/query"), and under "json"
    the structure with the plain values (steps done, state of the random numbers). Killed at any moment, the program
    leaves the checkpoint that was there before, or the new one, and perhaps a `.partial` file that the next call
    overwrites.
    Nothing in the file is executed when it is read.
    Raises: TypeError for values that the file cannot hold.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_checkpoint(Path(folder) / "run.npz", {"weight": np.ones(2), "step": 7})
    ...     load_checkpoint(path)
    {'weight': array([1., 1.]), 'step': 7}
    """
    path, arrays = Path(path), {}
    text = json.dumps({"format": _FORMAT, "structure": _described(state, "state", arrays)})
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        np.savez(file, json=np.array(text), **arrays)
        file.flush()
        os.fsync(file.fileno())  # on the disk before the name points at it
    os.replace(partial, path)
    if os.name == "posix":  # the rename itself onto the disk; Windows does it by itself
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    return path


def load_checkpoint(path: str | Path, structure: Callable | None = None) -> Any:
    """What `save_checkpoint` wrote: the same structure, dtypes and bits.

    path: of the file   structure: what to make of the fields of a named tuple, which is stored as a dictionary, for
    instance TrainingState   ->   the state

    Raises: FileNotFoundError; ValueError for a file that is damaged, no checkpoint, or one of another structure.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_checkpoint(save_checkpoint(Path(folder) / "run.npz", [np.float32(0.1), (1, None)]))
    [np.float32(0.1), (1, None)]
    """
    content = Path(path).read_bytes()
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            description = json.loads(str(arrays["json"]))
            if description["format"] != _FORMAT:
                raise ValueError(f"its format is {description['format']}, not {_FORMAT}")
            state = _rebuilt(description["structure"], arrays)
        return state if structure is None else structure(**state)
    except Exception as error:  # of zipfile, json or NumPy: a damaged file can lead any of them astray
        raise ValueError(f"{path} is damaged or no checkpoint of mathllm ({error})") from error


def _described(tree, place, arrays):
    """The structure as JSON can hold it; the arrays are put aside under their places."""
    if isinstance(tree, np.ndarray | np.generic) and tree.dtype.kind in "biufcUS":
        while place in arrays:  # {"a/b": …, "a": {"b": …}}
            place += "'"
        arrays[place] = np.asarray(tree)
        return {"array" if isinstance(tree, np.ndarray) else "scalar": place}
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    tree = tree._asdict() if hasattr(tree, "_asdict") else tree  # a named tuple
    if isinstance(tree, dict) and all(isinstance(key, str) for key in tree):
        return {"dict": {key: _described(branch, f"{place}/{key}", arrays) for key, branch in tree.items()}}
    if isinstance(tree, list | tuple):
        kind = "tuple" if isinstance(tree, tuple) else "list"
        return {kind: [_described(branch, f"{place}/{i}", arrays) for i, branch in enumerate(tree)]}
    found = f"{type(tree).__name__} at {place}"
    raise TypeError(f"save_checkpoint() writes arrays, plain values, and dicts with words as keys, got {found}")


def _rebuilt(description, arrays):
    """The state, from its structure and its arrays."""
    if not isinstance(description, dict):
        return description
    ((kind, content),) = description.items()
    if kind in ("array", "scalar"):
        return arrays[content] if kind == "array" else arrays[content][()]
    if kind == "dict":
        return {key: _rebuilt(branch, arrays) for key, branch in content.items()}
    return {"list": list, "tuple": tuple}[kind](_rebuilt(branch, arrays) for branch in content)
