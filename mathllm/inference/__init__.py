"""How does a distribution over the next token become a text?

A decoding method chooses token after token: the most probable one, or one drawn from a distribution that was made
sharper or flatter, or was truncated; or it follows several texts at once and chooses among them at the end. Here are
these methods, the cache of keys and values that makes each step cheap, drafts that let one pass of a large
model check several tokens, and a watermark by which generated text can be recognised.

    filters.py      temperature, top-k, top-p, min-p, the repetition penalty; greedy choice and sampling
    cache.py        the cache of keys and values, with a window if wanted; what it costs and saves
    beam.py         beam search and its score
    generation.py   generation token by token, for several prompts at once
    speculative.py  speculative decoding: a cheap draft, checked by the model
    watermark.py    green lists, and the test for them
"""

# What the modules define, written by tools/build_exports.py
from .beam import Hypothesis, beam_search, sequence_score
from .cache import KVCache, keys_computed, kv_cache_bytes, step_flops
from .filters import apply_temperature, greedy, keep_min_p, keep_top_k, keep_top_p, penalize_repetition, sample_token
from .generation import continuation, generate, generate_with_beams, left_pad, reshape_logits, sampler
from .speculative import (
    ModelDraft, PromptLookup, Speculation, accept_drafts, acceptance_probability, residual_distribution,
    speculative_generate,
)  # fmt: skip
from .watermark import WatermarkTest, detect_watermark, green_list, watermark_logits

__all__ = [
    "Hypothesis", "KVCache", "ModelDraft", "PromptLookup", "Speculation", "WatermarkTest", "accept_drafts",
    "acceptance_probability", "apply_temperature", "beam_search", "continuation", "detect_watermark", "generate",
    "generate_with_beams", "greedy", "green_list", "keep_min_p", "keep_top_k", "keep_top_p", "keys_computed",
    "kv_cache_bytes", "left_pad", "penalize_repetition", "reshape_logits", "residual_distribution", "sample_token",
    "sampler", "sequence_score", "speculative_generate", "step_flops", "watermark_logits",
]  # fmt: skip
