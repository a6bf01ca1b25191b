"""The model of the first page computes in JavaScript what mathllm computes with the same rounded weights."""

import base64

import build_names_model
import numpy as np
import pytest
from test_widgets import run_js

import mathllm as ml
from mathllm.transformer import Transformer, count_parameters

FILE = "names_model.js"
HEADS = ("query", "key", "value", "weights", "mixed")


@pytest.fixture(scope="module")
def model():
    model = Transformer(build_names_model.config())
    params = model.init(np.random.default_rng(0))
    build_names_model.read(params)
    return model, params


@pytest.mark.parametrize("word", ["", "mar", "Zoë", "wilhelminaaaaaaaaa"])
def test_every_matrix_of_the_first_page_is_that_of_mathllm(model, word):
    model, params = model
    seen = {}
    (tokens,) = run_js(FILE, "encode", [[word]])
    logits = model(params, np.array([tokens]), tap=lambda name, value: seen.setdefault(name, value))
    weights = base64.b64encode(build_names_model.PLACE.read_bytes()).decode()
    (ours,) = run_js(FILE, "run", [[weights, tokens]])

    def same(matrix, expected):
        np.testing.assert_allclose(matrix, expected, rtol=0, atol=1e-5)

    same(ours["embeddings"], seen["embeddings"][0])
    for number, block in enumerate(ours["blocks"]):
        for name in HEADS:
            same([head[name] for head in block["heads"]], seen[f"blocks.{number}.attention.{name}"][0])
        for head in block["heads"]:
            raw = np.array(head["query"]) @ np.transpose(head["key"]) / 4
            same(head["scores"], raw)
        same(block["output"], seen[f"blocks.{number}.output"][0])
    same(ours["logits"], logits[0])


def test_the_model_has_as_many_parameters_as_the_page_says_and_has_learned(model):
    model, params = model
    assert count_parameters(params) == 100_160
    (tokens,) = run_js(FILE, "encode", [["mar"]])
    assert ml.softmax(model(params, np.array([tokens]))[0, -1])[[1 + 8, 1 + 2]].sum() > 0.2  # "mari", "marc"
    assert len(build_names_model.PLACE.read_bytes()) == 200_320
