"""What has to be done before, around and after the loop that trains a language model?

Text becomes numbers, pages are chosen, copies thrown out, and the stream of tokens cut into batches; somebody has to
know beforehand what the run will cost, and afterwards how sure one can be of its result.

    bpe.py            byte-pair encoding: learning merges and replaying them
    tokenizer.py      any text to ids and back: byte-level BPE, GPT-2's own vocabulary
"""

from .bpe import Merge, apply_merges, learn_merges, merge_ranks, pair_counts
from .tokenizer import Tokenizer, gpt2_tokenizer, pre_tokenize, train_tokenizer

__all__ = [
    "Merge",
    "Tokenizer",
    "apply_merges",
    "gpt2_tokenizer",
    "learn_merges",
    "merge_ranks",
    "pair_counts",
    "pre_tokenize",
    "train_tokenizer",
]
