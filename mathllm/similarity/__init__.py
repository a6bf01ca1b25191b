"""How do you compare two words?

Words are vectors; this chapter compares them. The dot product measures length and agreement at once, the cosine keeps
the agreement only, and with these two a machine can look up neighbours, solve analogies, search for sentences and even
learn its own word vectors from plain text.

    dot.py        the dot product
    cosine.py     cosine similarity and the table that interprets it
    words.py      words with vectors: neighbours and analogies
    sentences.py  vectors in context, vectors for sentences, the contrastive loss, retrieval
    word2vec.py   learning word vectors from text by negative sampling
"""

# What the modules define, written by tools/build_exports.py
from .cosine import COSINE_BANDS, cosine_similarity, cosine_similarity_matrix, interpret_cosine
from .dot import dot
from .sentences import contextual_embeddings, info_nce, mean_pool, retrieve
from .word2vec import negative_sampling_loss, sigmoid, skip_gram_pairs, train_word2vec
from .words import WordVectors

__all__ = [
    "COSINE_BANDS", "WordVectors", "contextual_embeddings", "cosine_similarity", "cosine_similarity_matrix", "dot",
    "info_nce", "interpret_cosine", "mean_pool", "negative_sampling_loss", "retrieve", "sigmoid", "skip_gram_pairs",
    "train_word2vec",
]  # fmt: skip
