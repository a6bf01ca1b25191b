"""How do you compare two words?

Words are vectors; this chapter compares them. The dot product depends on both lengths and on the angle, the cosine on
the angle alone. With these two a program can find the nearest words, solve analogies, and search among sentences.

    dot.py        the dot product
    cosine.py     cosine similarity, of two vectors and of all pairs
    words.py      words with vectors: neighbours and analogies
    sentences.py  vectors in context, vectors for sentences, retrieval
"""

# What the modules define, written by tools/build_exports.py
from .cosine import cosine_similarity, cosine_similarity_matrix
from .dot import dot
from .sentences import contextual_embeddings, mean_pool, retrieve
from .words import WordVectors

__all__ = [
    "WordVectors", "contextual_embeddings", "cosine_similarity", "cosine_similarity_matrix", "dot", "mean_pool",
    "retrieve",
]  # fmt: skip
