"""Arguments that cannot be right are refused in words, by every function that declares what it takes.

The good arguments are those of the function's own example. They are spoiled one at a time: an axis is too few, too
many, empty or of another size, a number is not real, or lies just outside its interval.
"""

import ast
import functools
import inspect
import re

import numpy as np
import pytest
from examples import FUNCTIONS, run_example
from package import MODULES

import mathllm as ml
from mathllm.errors import CHAPTERS
from mathllm.shapes import Contract

# What examples leave out, from what they give
ALSO_GIVEN = {
    "attention.scaled_dot_product.attention_weights": lambda query, key, **_: {
        "mask": np.ones((len(query), len(key)), bool),
        "bias": np.zeros((len(query), len(key))),
    },
    "inference.filters.penalize_repetition": lambda tokens, **_: {"attention_mask": np.ones_like(tokens)},
    "interpretability.attention_patterns.value_weighted_attention": lambda value, **_: {
        "output": np.ones((np.shape(value)[-3] * np.shape(value)[-1], 2))
    },
    "interpretability.superposition.superposition_loss": lambda x, **_: {"importance": np.ones(np.shape(x)[-1])},
}


@functools.cache
def good_arguments(name):
    """The arguments, by name, of the first call of a function in its own example that returns, and of ALSO_GIVEN."""
    function, _ = FUNCTIONS[name]
    calls = []

    def wrapped(place, thing):
        if thing is not function:
            return thing

        @functools.wraps(thing)
        def call(*args, **options):
            result = thing(*args, **options)
            bound = inspect.signature(thing).bind(*args, **options)
            calls.append(bound.arguments)
            return result

        return call

    run_example(name, wrapped)
    return calls[0] | ALSO_GIVEN.get(name, lambda **_: {})(**calls[0])


def call_with(name, **changed):
    """Call the function as its example does, with some arguments changed."""
    function, _ = FUNCTIONS[name]
    signature = inspect.signature(function)
    bound = signature.bind_partial()
    given = good_arguments(name) | changed
    bound.arguments.update({name: given[name] for name in signature.parameters if name in given})
    return function(*bound.args, **bound.kwargs)


# Shapes


def declared_shapes():
    """The shapes that a function declares with @primitive or @contract, by its dotted name."""
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for decorator in getattr(node, "decorator_list", []):
                if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") in ("contract", "primitive"):
                    options = {option.arg: option.value for option in decorator.keywords}
                    text = decorator.args[0] if decorator.args else options.get("shapes")
                    if text is not None:
                        yield f"{module}.{node.name}".removeprefix("mathllm."), text.value


def shortened(x, axes, symbol, size):
    """The array with no more than `size` entries along each axis of this symbol."""
    for place, axis in enumerate(reversed(axes), 1):
        if axis.rstrip("?+") == symbol:
            x = np.take(x, range(size), axis=-place)
    return x


def spoiled(name, text):
    """Changes of the good arguments, one at a time, after which the shapes do not fit; each with the words for it."""
    given, sizes = good_arguments(name), {}
    parameters = inspect.signature(FUNCTIONS[name][0]).parameters
    arguments = list(zip(parameters, Contract(text).arguments, strict=False))
    looked_at = [(key, axes) for key, axes in arguments if axes != ["_"] and given.get(key) is not None]
    several = [key for key, axes in looked_at if axes[:1] == ["..."]]
    for key, axes in looked_at:
        x, fixed = np.asarray(given[key]), [axis for axis in axes if axis != "..."]
        if axes == ["*"]:
            yield r"\* is \(.*\) in ", {key: np.stack([x, x])}
            continue
        if fixed:
            yield f"{key} has {len(fixed) - 1} axes", {key: x[(0,) * (x.ndim - len(fixed) + 1)]}
        if "..." not in axes:
            yield f"{key} has {x.ndim + 1} axes", {key: x[None]}
        elif len(several) > 1:
            other = next(other for other in several if other != key)
            stacked = np.broadcast_to(np.asarray(given[other]), (2, *np.shape(given[other])))
            yield "the axes in front do not fit", {key: np.broadcast_to(x, (3, *x.shape)), other: stacked}
        for place, axis in zip(range(-len(fixed), 0), fixed, strict=True):
            size, symbol, least = x.shape[place], axis.rstrip("?+"), axis.count("+")
            if least:
                short = {other: shortened(given[other], others, symbol, least - 1) for other, others in looked_at}
                yield f"{symbol} is {least - 1} in ", short
            if symbol.isdigit() or symbol in sizes:
                words = f"{2 * size} in place of {symbol}" if symbol.isdigit() else f"{symbol} is "
                yield words, {key: np.concatenate([x, x], axis=place)}
            sizes[symbol] = size


SHAPES = {name: text for name, text in declared_shapes() if name in FUNCTIONS}
NO_GOOD_EXAMPLE = {"probability.distributions.distribution"}  # whose example is refused


def test_no_function_has_lost_its_declaration_of_shapes():
    assert len(SHAPES) >= 121  # what would be lost, the tests below would not miss


@pytest.mark.parametrize("name", sorted(SHAPES.keys() - NO_GOOD_EXAMPLE))
def test_shapes_that_do_not_fit_are_refused_in_words(name):
    chapter, *_, function = name.split(".")
    for words, changed in spoiled(name, SHAPES[name]):
        with pytest.raises(ml.ShapeError, match=rf"^{function}\(\) needs .*, got shape.*: .*{words}") as error:
            call_with(name, **changed)
        assert str(error.value).endswith(f"(see chapter {CHAPTERS.index(chapter) + 1:02})")


TAKEN_AS_IT_IS = ("similarity.sentences.mean_pool", "mask")  # NumPy warns


@pytest.mark.parametrize("name", sorted(SHAPES.keys() - NO_GOOD_EXAMPLE))
def test_numbers_that_are_not_real_are_refused_in_words(name):
    arguments = zip(inspect.signature(FUNCTIONS[name][0]).parameters, Contract(SHAPES[name]).arguments, strict=False)
    for key, axes in arguments:
        given = good_arguments(name).get(key)
        if axes != ["_"] and given is not None and (name, key) != TAKEN_AS_IT_IS:
            with pytest.raises(TypeError, match=r"needs (real numbers|integer|.*booleans)"):
                call_with(name, **{key: np.asarray(given).astype(complex)})


@pytest.mark.parametrize("name", sorted(SHAPES.keys() - NO_GOOD_EXAMPLE))
def test_none_stands_for_an_array_only_where_it_is_the_default(name):
    parameters = inspect.signature(FUNCTIONS[name][0]).parameters
    for key, axes in zip(parameters, Contract(SHAPES[name]).arguments, strict=False):
        if axes != ["_"] and parameters[key].default is not None:
            with pytest.raises(TypeError, match="needs real numbers, got None"):
                call_with(name, **{key: None})


# Intervals: the numbers that a function takes, as function.parameter

INTERVALS = """
(-∞, ∞): beam_search.length_penalty binary_cross_entropy.logits bootstrap_interval.values
    classify_critical_point.gradient classify_critical_point.hessian direction_correlations.activations
    feature_dimensions.weight integral.a integral.b least_squares.X least_squares.y neuron_correlations.features
    retrieve.documents retrieve.query ridge_regression.X ridge_regression.y sequence_score.length_penalty
    vector.components watermark_logits.strength
(0, 1): bootstrap_interval.level clipped_surrogate.epsilon
(0, 1]: deduplicate.threshold keep_top_p.p sparse_features.density
(0, ∞): compute_optimal.flops conditional_probability.condition dpo_loss.beta fit_scaling_law.losses
    fit_scaling_law.parameters fit_scaling_law.tokens group_advantages.epsilon info_nce.temperature ipo_loss.beta
    kl_optimal_policy.beta kto_loss.beta map_linear_regression.noise map_linear_regression.prior
    markov_source.concentration mixed_precision_gradient.scale normal_log_density.standard_deviation
    penalize_repetition.penalty perturbation_gradient.h polynomial_decay.power rotary_angles.base
    sinusoidal_positions.base
(0, ∞]: clip_gradient.max_norm log.x scaling_loss.parameters scaling_loss.tokens
(1, ∞): convert_information.from_base convert_information.to_base cross_entropy_between.base entropy.base
    kl_divergence.base mutual_information.base perplexity.base surprise.base
[-∞, 0]: log1m_exp.x
[0, 1): bias_correction.beta dropout.rate momentum_step.beta rmsprop_step.beta
[0, 1]: advantages.decay advantages.discount band_probability.similarity bernoulli_log_likelihood.theta
    binary_cross_entropy.targets contextual_embeddings.mix green_list.fraction keep_min_p.p selectivity.accuracy
    selectivity.control_accuracy successor_texts.noise surprise.p
[0, ∞): adam_step.l2 adam_step.learning_rate adamw_step.learning_rate adamw_step.weight_decay
    apply_temperature.temperature cosine_restarts.step distribution_from_counts.add distribution_from_counts.counts
    grpo_loss.beta kto_loss.divergence kv_cache_bytes.layers l2_penalty.strength momentum_step.learning_rate
    polynomial_decay.step posterior.likelihood ridge_regression.penalty rmsprop_step.learning_rate
    sequential_posterior.likelihoods sgd_step.learning_rate sgd_step.weight_decay sparse_autoencoder_loss.penalty
    train_ngram.add training_memory.parameters warmup_cosine.peak warmup_cosine.step
[0, ∞]: log_product.p perplexity.cross_entropy
[1, ∞): cosine_restarts.growth cosine_restarts.period he_scale.inputs polynomial_decay.total step_flops.length
    training_loop.save_every training_loop.validate_every warmup_cosine.total welch_bound.d xavier_scale.inputs
    xavier_scale.outputs
[2, ∞): welch_bound.features
{0, 1}: kto_loss.desirable mean_pool.mask padding_mask.attention_mask penalize_repetition.attention_mask
whole [0, 3]: zero_memory.stage
whole [0, ∞): arithmetic_decode.length beam_search.max_new_tokens distances.keys distances.queries
    generate.max_new_tokens green_list.key green_list.previous keys_computed.steps learn_merges.merges
    markov_source.order sample_markov_chain.steps training_loop.steps
whole [1, ∞): approximate_parameters.layers approximate_parameters.width band_probability.bands band_probability.rows
    beam_search.num_beams bias_correction.step bits_per_byte.size bootstrap_interval.samples bump_network.bumps
    deep_network.depth embed.batch_size flash_attention.block_size hat_network.pieces induction_model.context
    induction_model.vocabulary initial_weights.inputs initial_weights.outputs keep_top_k.k markov_source.vocabulary
    minhash_signature.hashes one_hot.size pipeline_bubble.microbatches pipeline_bubble.stages
    pipeline_schedule.microbatches pipeline_schedule.stages random_batch.batch_size random_batch.length
    random_directions.d random_directions.features retrieve.k sawtooth_network.depth shingles.size
    simulate_read_out.trials skip_gram_pairs.window sliding_window_mask.window sparse_autoencoder_init.d
    sparse_autoencoder_init.size speculative_generate.num_drafts successor_texts.examples successor_texts.length
    successor_texts.vocabulary train_ngram.n train_ngram.vocabulary_size train_superposition.d
    train_superposition.features update_loss_scale.interval usable_workers.workers validation_batches.batch_size
    validation_batches.length zero_init.workers zero_memory.workers
whole [2, ∞): control_labels.classes
"""
ROWS = [row.split(": ") for row in re.split(r"\n(?! )", INTERVALS.strip())]
SHORT = {name.rpartition(".")[2]: name for name in FUNCTIONS}


def outside(interval):
    """Numbers that are not in the interval, but nearly: its ends where they are open, what is beyond where not; NaN."""
    if interval == "{0, 1}":
        yield from (-1, 0.5, 2)
        interval = "[0, 1]"
    whole, bounds = interval.startswith("whole "), interval.removeprefix("whole ")
    low, high = (float(end.strip("[]()").replace("∞", "inf")) for end in bounds.split(", "))
    step = 1 if whole else 1e-6
    if bounds.startswith("("):
        yield low
    elif np.isfinite(low):
        yield low - step
    if bounds.endswith(")"):
        yield high
    elif np.isfinite(high):
        yield high + step
    if whole:
        yield low + 0.5
    yield np.nan


@pytest.mark.parametrize(("name", "interval"), [(name, interval) for interval, names in ROWS for name in names.split()])
def test_numbers_outside_their_interval_are_refused_in_words(name, interval):
    function, parameter = name.split(".")
    value = good_arguments(SHORT[function]).get(parameter)
    bounds = interval.removeprefix("whole ")
    for number in outside(interval):
        wrong = number
        if np.ndim(value):
            wrong = np.array(value, float)
            wrong.flat[0] = number
        with pytest.raises(ValueError, match=rf"needs (a whole number )?{parameter} in {re.escape(bounds)}, got "):
            call_with(SHORT[function], **{parameter: wrong})


# Options


def in_float32(argument):
    """An array of floating-point numbers, or a list of them, as float32; anything else as it is."""
    if isinstance(argument, list | np.ndarray) and np.asarray(argument).dtype.kind == "f":
        return np.asarray(argument, np.float32)
    return argument


DECORATED = [name for name, (function, _) in FUNCTIONS.items() if hasattr(function, "__wrapped__")]


@pytest.mark.parametrize("name", sorted(set(DECORATED) - NO_GOOD_EXAMPLE))
def test_a_number_of_numpy_is_as_good_an_option_as_one_of_python(name):
    """Beside an array of float32, NumPy's own float64(0.5) would make the result a float64."""
    given = {key: in_float32(argument) for key, argument in good_arguments(name).items()}
    parameters, contract = inspect.signature(FUNCTIONS[name][0]).parameters, Contract(SHAPES.get(name, ""))
    arrays = {key for key, axes in zip(parameters, contract.arguments, strict=False) if axes != ["_"]}
    for key in parameters.keys() - arrays:
        number = given.get(key, parameters[key].default)
        if type(number) in (int, float):
            ours = call_with(name, **given | {key: np.asarray(number)[()]})
            right = call_with(name, **given | {key: number})
            assert getattr(ours, "dtype", None) == getattr(right, "dtype", None)


# Random numbers

DRAWING = [name for name, (function, _) in FUNCTIONS.items() if "rng" in inspect.signature(function).parameters]
DRAWN_LATER = {
    "backpropagation.depth.deep_network": lambda layers: layers[0](np.arange(4.0)),
    "gradient_descent.word2vec.train_word2vec": lambda words: words.vectors,
    "inference.generation.sampler": lambda choose: [choose(np.zeros((1, 50)), None, None) for _ in range(5)],
    "interpretability.induction.train_induction_model": lambda trained: trained[1:],
}
METHODS = {
    "Transformer.init": lambda rng: ml.Transformer(ml.gpt2_config(vocabulary=9, width=4, layers=1, heads=1)).init(rng),
    "NGram.sample": lambda rng: ml.train_ngram([0, 0, 1, 1], 2).sample(20, rng),
}


def drawn(name, rng):
    """What a function draws from `rng` for the arguments of its example."""
    if name in METHODS:
        return METHODS[name](rng)
    return DRAWN_LATER.get(name, lambda result: result)(call_with(name, rng=rng))


@pytest.mark.parametrize("name", [*DRAWING, *METHODS])
def test_a_seed_stands_for_a_new_generator_and_what_is_neither_is_refused(name):
    np.testing.assert_equal(drawn(name, 7), drawn(name, np.random.default_rng(7)))
    for wrong in ("7", np.random):
        with pytest.raises(TypeError, match="expects int"):
            drawn(name, wrong)


@pytest.mark.parametrize("name", DRAWING)
def test_a_generator_comes_after_what_must_be_given_and_before_what_may_be(name):
    parameters = inspect.signature(FUNCTIONS[name][0]).parameters.values()
    order = [parameter for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    if "rng" in (names := [parameter.name for parameter in order]):
        place = names.index("rng")
        assert all(parameter.default is parameter.empty for parameter in order[:place])
        assert all(parameter.default is not parameter.empty for parameter in order[place + 1 :])
