"""Chapter 13, the text before training and the score after it: filters, copies, batches, perplexity, intervals."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refusing

import mathllm as ml
from mathllm import training

ENGLISH = """The river was high that year, and the people of the town had to work with what they found. They took the
old boats to the mill, and when evening came they lit a fire on the bank. Nobody asked what it would cost. It was clear
to them that the water would go down again, and that they would be there to see it; so they waited, and told stories."""


# ------------------------------------------------------------------------------------------------------------- filters


def test_a_page_of_prose_passes_every_rule():
    assert training.quality_problems(ENGLISH) == []
    assert len(training.QUALITY_RULES) == 9  # as many as the pages below


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("Page not found.", "too few or too many words"),
        ("\n".join("• " + line for line in ENGLISH.splitlines()), "a list"),
        ("\n".join(line + "..." for line in ENGLISH.splitlines()), "lines that are cut off with …"),
        (ENGLISH + " #" * 20, "too many # and …"),
        (ENGLISH + " 12 34 56" * 20, "too few words with letters"),
        ("Regen Wasser Berge Kinder Sonne " * 20, "no English sentences"),
        ("\n".join([*ENGLISH.splitlines()] * 3), "the same lines again and again"),
        ("click here now " * 50, "the same three words again and again"),
        ("a b c d e to of and " * 20, "words too short or too long"),
    ],
)
def test_each_fault_is_named(page, problem):
    assert problem in training.quality_problems(page)


@given(st.text(max_size=200))
def test_signals_of_any_text_are_finite_and_shares_lie_between_0_and_1(text):
    signals = training.quality_signals(text)
    assert all(np.isfinite(value) for value in signals.values())
    shares = ["bullet_lines", "cut_lines", "words_with_letters", "repeated_lines"]
    assert all(0 <= signals[name] <= 1 for name in shares)


# Sentences of everyday language, none of them in the samples of the built-in model
EVERYDAY = """
en: The quick brown fox jumps over the lazy dog. | Could you tell me the way to the station, please?
en: My sister lives in a very large house. | Yesterday I bought a new bicycle.
de: Guten Morgen, wie geht es Ihnen heute? | Können Sie mir bitte den Weg zum Bahnhof sagen?
de: Meine Schwester wohnt in einem sehr großen Haus. | Gestern habe ich ein neues Fahrrad gekauft.
fr: Je ne sais pas ce que tu veux dire. | Pouvez-vous me dire où est la gare, s'il vous plaît?
fr: Ma sœur habite dans une très grande maison. | Hier j'ai acheté un nouveau vélo.
es: No entiendo nada de lo que dices. | ¿Puede decirme dónde está la estación, por favor?
es: Mi hermana vive en una casa muy grande. | Ayer compré una bicicleta nueva.
it: Non capisco niente di quello che dici. | Può dirmi dov'è la stazione, per favore?
it: Mia sorella abita in una casa molto grande. | Ieri ho comprato una bicicletta nuova.
nl: Ik begrijp er helemaal niets van. | Kunt u mij zeggen waar het station is, alstublieft?
nl: Mijn zus woont in een heel groot huis. | Gisteren heb ik een nieuwe fiets gekocht.
pt: Não entendo nada do que você diz. | Pode dizer-me onde fica a estação, por favor?
pt: A minha irmã mora numa casa muito grande. | Ontem comprei uma bicicleta nova.
"""
SENTENCES = [(line[:2], line[4:].split(" | ")) for line in EVERYDAY.strip().splitlines()]


def test_the_language_of_nearly_every_everyday_sentence_is_found():
    guesses = [(language, training.guess_language(text)) for language, texts in SENTENCES for text in texts]
    assert all(1 / 7 < guess.probability <= 1 for _, guess in guesses)
    right = [language == guess.language for language, guess in guesses]
    assert sum(right) >= 0.9 * len(right)


@pytest.mark.parametrize(("language", "texts"), SENTENCES)
def test_the_language_of_two_sentences_is_found(language, texts):
    assert training.guess_language(" ".join(texts)).language == language


@pytest.mark.parametrize(
    "text",
    ["", "OK", "1234567890 " * 9, "これは日本語の文章です。英語ではありません。とても長いです。", "xq zvk wqj " * 9],
)
def test_what_is_too_short_or_too_strange_gets_no_language(text):
    assert training.guess_language(text) == (None, 0.0)


def test_a_text_without_letters_has_no_language_however_few_are_asked_for():
    assert training.guess_language("", min_letters=0) == (None, 0.0)


def test_a_model_trained_on_two_samples_tells_these_two_apart():
    model = training.train_language_model({"vowels": "aeiou aeiou ouea", "consonants": "bcdfg bcdfg gfdc"})
    assert training.guess_language("aeiouaeiou aeiou", model, min_letters=5).language == "vowels"
    for table, unseen in zip(model.trigrams.values(), model.unseen.values(), strict=True):
        runs = len({*model.trigrams["vowels"], *model.trigrams["consonants"]}) + 1
        total = sum(np.exp(p) for p in table.values()) + (runs - len(table)) * np.exp(unseen)
        assert total == pytest.approx(1)  # a distribution over the runs that were seen, and one that was not


# -------------------------------------------------------------------------------------------------------------- copies


def some_set(size, shared, name):
    return {f"shared {i}" for i in range(shared)} | {f"{name} {i}" for i in range(size - shared)}


@given(st.sets(st.text(max_size=5)), st.sets(st.text(max_size=5)))
def test_a_signature_belongs_to_the_set_and_a_union_has_the_smaller_minima(a, b):
    signature = training.minhash_signature(sorted(a), 16)
    np.testing.assert_array_equal(signature, training.minhash_signature(sorted(a, reverse=True) * 2, 16))
    both = np.minimum(signature, training.minhash_signature(b, 16))
    np.testing.assert_array_equal(both, training.minhash_signature(a | b, 16))


def test_a_large_set_is_hashed_in_parts_with_the_same_result():
    items = [str(i) for i in range(5000)]
    parts = [training.minhash_signature(items[i : i + 1000], 8) for i in range(0, 5000, 1000)]
    np.testing.assert_array_equal(training.minhash_signature(items, 8), np.min(parts, axis=0))


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_jaccard_similarity_is_a_symmetric_share(a, b):
    J = training.jaccard_similarity(a, b)
    assert 0 <= J <= 1
    assert training.jaccard_similarity(b, a) == J
    assert (J == 1) == (a == b)


@pytest.mark.parametrize("shared", [120, 180, 240])
def test_pages_share_a_band_as_often_as_the_s_curve_says(shared):
    a, b = some_set(300, shared, "a"), some_set(300, shared, "b")
    bands, rows, trials = 8, 3, 400
    one = [training.minhash_signature(a, bands * rows, seed) for seed in range(trials)]
    other = [training.minhash_signature(b, bands * rows, seed) for seed in range(trials)]
    found = np.mean([bool(training.candidate_pairs(pair, bands)) for pair in zip(one, other, strict=True)])
    P = training.band_probability(training.jaccard_similarity(a, b), bands, rows)
    assert abs(found - P) <= 4 * np.sqrt(P * (1 - P) / trials)  # four standard errors


def test_candidates_are_the_pairs_with_an_equal_band():
    table = np.array([[1, 2, 3, 4], [1, 2, 9, 9], [8, 8, 9, 9], [3, 4, 1, 2]])
    assert training.candidate_pairs(table, bands=2) == {(0, 1), (1, 2)}
    assert training.candidate_pairs([], bands=2) == set()


def test_copies_go_and_the_first_stays():
    near = ENGLISH.replace("old boats", "new boats")
    other = "A comet was seen over the northern sea in the first week of May, as the newspapers wrote later on."
    pages = [other, ENGLISH, near, ENGLISH.upper(), "", "!!!", other + " Nobody knew its name or cared."]
    assert training.jaccard_similarity(training.shingles(ENGLISH), training.shingles(near)) > 0.8
    assert training.deduplicate(pages) == [0, 1, 4, 5, 6]
    assert training.deduplicate(pages, threshold=0.7, bands=64, rows=2) == [0, 1, 4, 5]
    assert training.deduplicate([]) == []


# ------------------------------------------------------------------------------------------------------------- batches

streams = st.integers(2, 60).map(np.arange)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_the_target_is_the_token_that_follows(size, length, seed):
    tokens = np.random.default_rng(seed).permutation(50)
    follower = dict(itertools.pairwise(tokens))
    inputs, targets = ml.random_batch(tokens, size, length, np.random.default_rng(seed))
    assert inputs.shape == targets.shape == (size, length)
    assert [follower[i] for i in inputs.ravel()] == targets.ravel().tolist()


@given(streams, st.integers(1, 7), st.integers(1, 70))
def test_validation_asks_for_every_token_but_the_first_exactly_once(tokens, size, length):
    batches = list(training.validation_batches(tokens, size, length))
    targets = np.concatenate([batch.targets.ravel() for batch in batches])
    inputs = np.concatenate([batch.inputs.ravel() for batch in batches])
    counted = targets != ml.IGNORED
    np.testing.assert_array_equal(targets[counted], tokens[1:])
    np.testing.assert_array_equal(inputs[counted], tokens[:-1])
    assert all(len(batch.inputs) == size for batch in batches[:-1])
    assert all(batch.inputs.shape == batch.targets.shape for batch in batches)


def test_random_windows_begin_everywhere():
    tokens, rng = np.arange(12), np.random.default_rng(0)
    starts = {int(ml.random_batch(tokens, 1, 4, rng).inputs[0, 0]) for _ in range(300)}
    assert starts == set(range(8))  # the last window ends with the last token as a target


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.int64, np.uint64])
def test_a_stream_is_left_alone_and_integers_of_any_dtype_do(dtype):
    tokens = np.arange(20, dtype=dtype)
    tokens.flags.writeable = False
    assert ml.random_batch(tokens, 2, 3, np.random.default_rng(0)).inputs.dtype == dtype
    assert ml.next_token_pairs(tokens).inputs.dtype == dtype
    (batch,) = training.validation_batches(tokens, 4, 10)
    assert batch.inputs.dtype == dtype
    assert batch.targets.dtype == np.int64
    assert batch.targets.min() == ml.IGNORED


def test_documents_become_one_stream_each_closed_by_the_end():
    assert training.token_stream([], end=9).size == 0
    np.testing.assert_array_equal(training.token_stream([[1, 2], [], np.array([3])], end=9), [1, 2, 9, 9, 3, 9])


# ---------------------------------------------------------------------------------------------------------- evaluation


@pytest.mark.parametrize(("level", "deviations"), [(0.95, 1.96), (0.9, 1.645), (0.5, 0.6745)])
def test_the_interval_of_a_mean_is_close_to_the_formula_of_the_normal_distribution(level, deviations):
    values = np.random.default_rng(1).normal(size=400)
    low, estimate, high = training.bootstrap_interval(values, np.random.default_rng(2), samples=4000, level=level)
    half = deviations * values.std() / 20
    np.testing.assert_allclose([low, high], [estimate - half, estimate + half], atol=0.1 * half)


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=20))
def test_perplexity_of_sums_is_perplexity_of_tokens(probabilities):
    log_p = np.log(probabilities)
    whole = training.held_out_perplexity(log_p)
    assert whole == pytest.approx(np.prod(1 / np.array(probabilities)) ** (1 / len(log_p)))
    cut = len(log_p) // 2
    sums, counts = [log_p[:cut].sum(), log_p[cut:].sum()], [cut, len(log_p) - cut]
    assert training.held_out_perplexity(sums, counts) == pytest.approx(whole)


def test_perplexity_is_resampled_by_documents():
    draw = np.random.default_rng(5)
    tokens = draw.integers(10, 200, size=50)
    log_p = -tokens * draw.uniform(2, 4, size=50)
    low, estimate, high = training.perplexity_interval(log_p, tokens, np.random.default_rng(0))
    assert low < estimate < high
    assert estimate == pytest.approx(training.held_out_perplexity(log_p, tokens))
    assert high / low < 1.5


def test_the_interval_of_a_perplexity_that_overflows_has_infinite_ends_and_no_nan():
    assert training.perplexity_interval([-1e4, -1e4], [1, 1], np.random.default_rng(0)) == (np.inf, np.inf, np.inf)
    low, estimate, high = training.perplexity_interval([-2000, -1], [1, 1], np.random.default_rng(0))
    assert low == pytest.approx(np.e)
    assert estimate == high == np.inf


# ------------------------------------------------------------------------------------------------------------ refusals

rng = np.random.default_rng(0)


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: training.train_language_model({"en": "one"}), ValueError, r"languages in \[2, ∞\), got 1"),
    (lambda: training.train_language_model({"en": "one", "no": "12"}), ValueError, "sample of 'no'"),
    (lambda: training.candidate_pairs(np.ones((2, 9)), 2), ml.ShapeError, r"\(2, 9\) evenly into 2 bands"),
    (lambda: training.token_stream([[1.7]], end=0), TypeError, "integer token ids, got float64"),
    (lambda: training.token_stream([[1]], end=0.5), TypeError, "integer token ids, got float64"),
    (lambda: ml.next_token_pairs([1]), ml.ShapeError, r"at least 2 tokens, got shape \(1,\)"),
    (lambda: ml.random_batch([1, 2, 3], 1, 3, rng), ml.ShapeError, r"at least 4 tokens, got shape \(3,\)"),
    (lambda: ml.random_batch([1.0, 2.0], 1, 1, rng), TypeError, "integer token ids, got float64"),
    (lambda: training.bootstrap_interval([], rng), ml.ShapeError, r"at least one value, got shape \(0,\)"),
    (lambda: training.perplexity_interval([-np.inf, -1], [1, 1], rng), ValueError, "values in.* got -inf"),
    (lambda: training.perplexity_interval([0, -1], [0, 1], rng), ValueError, r"tokens in \[1, ∞\), got 0"),
    (lambda: training.held_out_perplexity([0.5]), ValueError, r"log_probabilities in \[-∞, 0\], got 0.5"),
    (lambda: training.held_out_perplexity([]), ValueError, r"tokens in \(0, ∞\), got 0"),
    (lambda: training.held_out_perplexity([-1, -1], [3]), ml.ShapeError, "n is 2 in log_prob.* 1 in tokens"),
)
