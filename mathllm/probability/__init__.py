"""What does it mean that a sentence is probable?

A language model is a probability distribution over the next token, given all tokens before it. This chapter defines
each term of that statement, estimates such distributions from data, and ends with a language model that writes text.

    distributions.py  distributions, conditional probabilities from counts, drawing
    expectation.py    mean, variance, densities and their integrals
    estimation.py     maximum likelihood, Bayes' theorem, Beta distributions, MAP estimation as ridge regression
    sequences.py      the chain rule of probability, Markov chains, vocabularies
    ngrams.py         n-gram language models with smoothing
"""

# What the modules define, written by tools/build_exports.py
from .distributions import (
    bigram_counts, conditional_probability, distribution, distribution_from_counts, is_distribution, sample,
    token_sequence,
)  # fmt: skip
from .estimation import (
    Beta, bernoulli_log_likelihood, least_squares, map_linear_regression, maximum_likelihood, posterior,
    ridge_regression, sequential_posterior,
)  # fmt: skip
from .expectation import expectation, integral, normal_density, normal_log_density, variance
from .ngrams import NGram, train_ngram
from .sequences import Vocabulary, sample_markov_chain, sequence_log_probabilities

__all__ = [
    "Beta", "NGram", "Vocabulary", "bernoulli_log_likelihood", "bigram_counts", "conditional_probability",
    "distribution", "distribution_from_counts", "expectation", "integral", "is_distribution", "least_squares",
    "map_linear_regression", "maximum_likelihood", "normal_density", "normal_log_density", "posterior",
    "ridge_regression", "sample", "sample_markov_chain", "sequence_log_probabilities", "sequential_posterior",
    "token_sequence", "train_ngram", "variance",
]  # fmt: skip
