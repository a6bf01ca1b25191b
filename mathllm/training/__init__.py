"""What has to be done before, during and after the training of a language model?

Before: text becomes tokens, pages are selected, duplicates are removed, and the stream of tokens is cut into batches.
During: the loop, its checkpoints, and worker processes that divide a batch. After: the evaluation of the model, with
its uncertainty.

    bpe.py            byte-pair encoding: learning merges and replaying them
    tokenizer.py      any text to ids and back: byte-level BPE, GPT-2's own vocabulary
    text_filters.py   pages worth reading, and their language
    deduplication.py  MinHash, and bands that find pages with nearly the same text
    batching.py       windows of the token stream, and the token after each
    loop.py           the loop: steps, progress, validation, and an error where the loss is not finite
    checkpoints.py    files that are complete at any moment
    data_parallel.py  worker processes that divide a batch
    sources.py        made-up languages of which the lowest loss is known
    evaluation.py     perplexity and confidence intervals
"""

# What the modules define, written by tools/build_exports.py
from .batching import Batch, next_token_pairs, random_batch, token_stream, validation_batches
from .bpe import Merge, apply_merges, learn_merges, merge_ranks
from .checkpoints import load_checkpoint, save_checkpoint
from .data_parallel import divide, one_blas_thread, parallel_value_and_grad, shared, target_count, usable_workers
from .deduplication import (
    band_probability, candidate_pairs, deduplicate, jaccard_similarity, minhash_signature, shingles,
)  # fmt: skip
from .evaluation import Interval, bits_per_byte, bootstrap_interval, held_out_perplexity, perplexity_interval
from .loop import (
    TrainingProgress, TrainingState, TrainingStopped, mean_loss, progress_bar, train, training_loop, training_state,
)  # fmt: skip
from .sources import entropy_rate, markov_source, sample_source
from .text_filters import (
    LanguageGuess, LanguageModel, QUALITY_RULES, guess_language, quality_problems, quality_signals,
    train_language_model,
)  # fmt: skip
from .tokenizer import Tokenizer, gpt2_tokenizer, pre_tokenize, train_tokenizer

__all__ = [
    "Batch", "Interval", "LanguageGuess", "LanguageModel", "Merge", "QUALITY_RULES", "Tokenizer", "TrainingProgress",
    "TrainingState", "TrainingStopped", "apply_merges", "band_probability", "bits_per_byte", "bootstrap_interval",
    "candidate_pairs", "deduplicate", "divide", "entropy_rate", "gpt2_tokenizer", "guess_language",
    "held_out_perplexity", "jaccard_similarity", "learn_merges", "load_checkpoint", "markov_source", "mean_loss",
    "merge_ranks", "minhash_signature", "next_token_pairs", "one_blas_thread", "parallel_value_and_grad",
    "perplexity_interval", "pre_tokenize", "progress_bar", "quality_problems", "quality_signals", "random_batch",
    "sample_source", "save_checkpoint", "shared", "shingles", "target_count", "token_stream", "train",
    "train_language_model", "train_tokenizer", "training_loop", "training_state", "usable_workers",
    "validation_batches",
]  # fmt: skip
