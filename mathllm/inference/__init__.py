"""How does a distribution over the next token become a text?

Somebody has to choose, again and again: always the best token, or a drawn one, from a distribution made sharper,
flatter or shorter; or several texts at once, of which one survives. This chapter holds those choices, the cache that
makes each step cheap, a way to let a small model do most of the reading, and a mark that tells generated text from
other text.

    filters.py      temperature, top-k, top-p, min-p, the repetition penalty; greedy choice and sampling
    cache.py        keys and values kept, with a window if wanted; what they cost and save
    decoding.py     one token of one sequence, as fast as its weights can be read
    beam.py         beam search and its score
    generation.py   one function that generates, for several prompts at once
    speculative.py  guess with a small model, check with the large one
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
