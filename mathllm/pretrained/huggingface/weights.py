"""Tensors under their names, and our parameters: renamed, transposed and cut, nothing else."""

import re
from collections.abc import Mapping

import numpy as np

from ...errors import ShapeError, suggest
from ...transformer import Config
from .kinds import _some
from .settings import _kind_of, _read_config, to_hf_config

__all__ = ["from_hf", "to_hf"]


def from_hf(config: Mapping, tensors: Mapping[str, np.ndarray]) -> tuple[Config, dict]:
    """Our configuration and parameters for a checkpoint of type gpt2, llama, mixtral, bert or t5.

    config: what config.json holds   tensors: arrays by their names there   ->   (Config, params)

    The parameters are views of the tensors, transposed where they have to be. Names may lack the prefix of the body
    ("h.0…" for "transformer.h.0…"). A BERT without cls.predictions has no head. What no logit depends on is passed
    over: BERT's pooler, constants such as position_ids.

    Raises: ValueError for missing or unexpected tensors and for settings that our model does not have; ShapeError for
    a tensor of another shape than the configuration says.

    >>> from mathllm.transformer import Transformer, gpt2_config
    >>> config = gpt2_config(vocabulary=5, width=4, layers=1, heads=2, context=3)
    >>> tensors = to_hf(config, Transformer(config).init(np.random.default_rng(0)))
    >>> from_hf(to_hf_config(config), tensors)[0] == config
    True
    """
    kind = _kind_of(config)
    found = {_with_body(kind, name): name for name in tensors}
    if len(found) < len(tensors):
        raise ValueError(f"from_hf() got a tensor twice, with {kind.body!r} before its name and without")
    ours = _read_config(config, head=any(name.startswith("cls.predictions.") for name in found))
    names = _names(kind, ours)
    copies = kind.copies | ({kind.unembedding: kind.embedding} if ours.tied else {})
    for copy, original in copies.items():
        if copy in found and original not in found:
            found[original] = found.pop(copy)
    used = dict.fromkeys(name for name in found if name not in copies and not re.search(kind.no_part, name))
    _require_all("from_hf", kind, ours, wanted=names, found=used)
    params = {}
    for name, (paths, transposed) in names.items():
        for path, part in zip(paths, _cut(ours, name, paths, tensors[found[name]], transposed), strict=True):
            _put(params, path.split("."), part)
    for copy, original in copies.items():
        if copy in found and not np.array_equal(tensors[found[copy]], tensors[found[original]], equal_nan=True):
            raise ValueError(f"from_hf() needs {copy} to equal {original}, to which the configuration ties it")
    return ours, params


def to_hf(config: Config, params: Mapping) -> dict[str, np.ndarray]:
    """Parameters, or gradients, under the names of a Hugging Face checkpoint: the inverse of `from_hf`.

    config, params: as of `Transformer`   ->   name -> array, for the model type that `to_hf_config` tells

    Raises: ValueError for a model that is none of gpt2, llama, mixtral, bert and t5, and for missing or unexpected
    parameters; ShapeError for a parameter of another shape than the configuration says.

    >>> from mathllm.transformer import Transformer, llama_config
    >>> config = llama_config(vocabulary=5, width=4, layers=1, heads=2, hidden=6)
    >>> to_hf(config, Transformer(config).init(np.random.default_rng(0)))["model.layers.0.mlp.up_proj.weight"].shape
    (6, 4)
    """
    kind = _kind_of(to_hf_config(config))
    leaves, names = dict(_leaves(params)), _names(kind, config)
    wanted = dict.fromkeys(path for paths, _transposed in names.values() for path in paths)
    _require_all("to_hf", kind, config, wanted=wanted, found=leaves)
    for path, array in leaves.items():
        if np.shape(array) != _shape(config, path):
            raise ShapeError(f"to_hf() needs {path} of shape {_shape(config, path)}, got {np.shape(array)}")
    tensors = {}
    for name, (paths, transposed) in names.items():
        parts = [np.asarray(leaves[path]) for path in paths]
        joined = np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
        if kind.name == "bert" and not config.head_transform:
            name = name.removeprefix("bert.")  # so it is called in a BertModel without a head
        tensors[name] = joined.T if transposed else joined
    return tensors


def _names(kind, config):
    """Their name -> (our paths, whether it is to be transposed)."""
    lines = kind.names(config).splitlines() + ([] if config.tied else [f"{kind.unembedding} = unembedding ᵀ"])
    names = {}
    for line in filter(None, map(str.strip, lines)):
        theirs, _, ours = line.partition(" = ")
        first, *others = ours.removesuffix("ᵀ").split(" + ")
        paths = [first.strip(), *(first.rpartition(".")[0] + other.strip() for other in others)]
        layers = config.encoder_layers if first.startswith("encoder.") else config.layers
        for l in range(layers if "{l}" in line else 1):
            for e in range(config.experts if "{e}" in line else 1):
                names[theirs.strip().format(l=l, e=e)] = [p.format(l=l, e=e) for p in paths], ours.endswith("ᵀ")
    return names


def _with_body(kind, name):
    return name if name.startswith((kind.body, "lm_head.", "cls.")) else kind.body + name


def _require_all(function, kind, config, *, wanted, found):
    """Nothing missing, and nothing left over."""
    missing, extra = [name for name in wanted if name not in found], [name for name in found if name not in wanted]
    if missing or extra:
        problems = [f"misses {_some(missing)}"] * bool(missing) + [f"does not expect {_some(extra)}"] * bool(extra)
        hint = suggest(missing[0], extra) if missing else ""
        whose = f"{function}(), for a {kind.name} of {config.layers} layers,"
        raise ValueError(f"{whose} {' and '.join(problems)}{hint}")


def _cut(config, name, paths, array, transposed):
    """Their tensor as our parameters, which may stand side by side in it."""
    array, shapes = np.asarray(array), [_shape(config, path) for path in paths]
    expected = (*shapes[0][:-1], sum(shape[-1] for shape in shapes))
    expected = expected[::-1] if transposed else expected
    if array.shape != expected:
        raise ShapeError(f"from_hf() needs {name} of shape {expected}, got {array.shape}")
    return np.split(array.T if transposed else array, np.cumsum([s[-1] for s in shapes])[:-1], axis=-1)


def _shape(config, path):
    """The shape of the parameter at `path`."""
    c, (*above, name) = config, path.split(".")
    queries, keys = c.heads * c.head_width, c.kv_heads * c.head_width
    if above == ["head"] and name == "bias":
        return (c.vocabulary,)
    if c.positions == "relative" and name in ("positions", "encoder_positions"):
        return (c.position_buckets, c.heads)
    return {
        "embedding": (c.vocabulary, c.width), "unembedding": (c.width, c.vocabulary),
        "positions": (c.context, c.width), "segments": (c.segments, c.width),
        "gain": (c.width,), "bias": (c.width,), "transform": (c.width, c.width), "transform_bias": (c.width,),
        "query": (c.width, queries), "key": (c.width, keys), "value": (c.width, keys), "output": (queries, c.width),
        "query_bias": (queries,), "key_bias": (keys,), "value_bias": (keys,), "output_bias": (c.width,),
        "gate": (c.width, c.hidden), "up": (c.width, c.hidden), "down": (c.hidden, c.width),
        "up_bias": (c.hidden,), "down_bias": (c.width,), "router": (c.width, c.experts),
    }[name]  # fmt: skip


def _put(tree, path, value):
    """Store a value in nested dictionaries and lists; a path's number is the place in a list."""
    name, *rest = path
    if isinstance(tree, list):
        name = int(name)
        tree += [None] * (name + 1 - len(tree))
    if not rest:
        tree[name] = value
        return
    if (tree[name] if isinstance(tree, list) else tree.get(name)) is None:
        tree[name] = [] if rest[0].isdigit() else {}
    _put(tree[name], rest, value)


def _leaves(tree, path=""):
    for name, value in tree.items() if isinstance(tree, Mapping) else enumerate(tree):
        if isinstance(value, Mapping | list | tuple):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
