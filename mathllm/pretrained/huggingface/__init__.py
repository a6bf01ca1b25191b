"""The same weights under two sets of names: ours, and those of the checkpoints on the Hugging Face hub.

A checkpoint is a table `config.json` and tensors by name. `from_hf` turns both into our `Config` and parameters,
`to_hf` goes back; each undoes the other, and since every step is a renaming, a transposition or a cut, both do for
gradients what they do for weights. What our model cannot express is refused, never left out in silence: a checkpoint
that loads gives the numbers of the original.

    kinds.py      what there is to know of a type of model
    gpt2.py, llama.py, bert.py, t5.py   the types, with the names of their tensors and of their settings
    rotary.py     how a checkpoint tells its rotary positions
    settings.py   config.json <-> Config
    weights.py    tensors <-> parameters
    folder.py     a checkpoint in a folder
    from_gguf.py  a GGUF file, as such a checkpoint
"""

from .folder import load_pretrained, save_pretrained
from .from_gguf import gguf_to_hf
from .settings import to_hf_config
from .weights import from_hf, to_hf

__all__ = ["from_hf", "gguf_to_hf", "load_pretrained", "save_pretrained", "to_hf", "to_hf_config"]
