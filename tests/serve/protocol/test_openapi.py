"""The description of the routes."""

import json

import pytest

from fxflow.serve.protocol import openapi
from fxflow.serve.signatures import Signature, TensorSpec

MODELS = {
    "m": Signature(
        (TensorSpec.parse("x", "f32[b,3]"),), (TensorSpec.parse("y", "i32[b]"),), True
    )
}


def test_types_of_a_model() -> None:
    found = json.loads(json.dumps(openapi.document(MODELS, "1")))
    body = found["paths"]["/predict/m"]["post"]["requestBody"]["content"]
    schema = body["application/json"]["schema"]
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate({"x": [[1, 2, 3.5]]}, schema)
    for wrong in ({}, {"x": [[1, 2]]}, {"x": [["a", "b", "c"]]}, {"x": [1, 2, 3]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_the_page_has_what_there_is() -> None:
    text = openapi.page(MODELS, "<1>")
    assert "x: f32[b,3]" in text and "&lt;1&gt;" in text
    assert all(path in text for path in openapi.ROUTES)
