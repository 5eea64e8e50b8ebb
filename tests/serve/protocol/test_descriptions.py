"""The OpenAPI document and the web pages."""

from __future__ import annotations

import json
import re

import pytest

from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.metrics import Metrics
from fxflow.serve.protocol import descriptions
from fxflow.serve.repository import Repository
from fxflow.serve.service import ModelConfig
from fxflow.serve.signatures import ModelSignature, TensorSpec

MODELS = {
    "m": ModelSignature(
        (TensorSpec.parse("x", "f32[b,3]"),), (TensorSpec.parse("y", "i32[b]"),), True
    )
}


def test_openapi_has_the_types_of_each_model() -> None:
    found = json.loads(json.dumps(descriptions.openapi(MODELS, "1")))
    body = found["paths"]["/predict/m"]["post"]["requestBody"]["content"]
    schema = body["application/json"]["schema"]
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate({"x": [[1, 2, 3.5]]}, schema)
    for wrong in ({}, {"x": [[1, 2]]}, {"x": [["a", "b", "c"]]}, {"x": [1, 2, 3]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_the_index_lists_models_and_routes() -> None:
    text = descriptions.index(MODELS, "<1>")
    assert "x: f32[b,3]" in text and "&lt;1&gt;" in text
    assert all(path in text for path in descriptions.ROUTES)


def test_status_has_the_statistics_of_each_model() -> None:
    config = ModelConfig("m", ModelSource("a:b", max_batch=8), slo=0.02)
    metrics = Metrics()
    for seconds in (0.003, 0.0035, 0.04, 60):
        metrics.request("m", 200, seconds)
    metrics.request("m", 503, 0.001)
    metrics.batch("m", 8, 0.002, 2, 0.001)
    found = descriptions.status(Repository([config]), metrics, "1.2")
    (model,) = found["models"]
    assert (found["version"], model["name"], model["state"]) == (
        "1.2",
        "m",
        "UNAVAILABLE",
    )
    assert model["statuses"] == {"200": 4, "503": 1}
    counts = {bound: count for bound, count in model["seconds"] if count}
    assert counts == {0.001: 1, 0.005: 2, 0.05: 1, None: 1}
    assert {b: c for b, c in model["rows"] if c} == {8: 1}
    assert (model["slo"], model["max_batch"], model["stats"]) == (0.02, 8, {})


def test_the_page_loads_nothing_from_elsewhere() -> None:
    assert not re.search(
        r"(?:src|href)\s*=|https?://(?!www\.w3\.org/2000/svg)|@import",
        descriptions.STATUS,
    )
    assert (
        "default-src 'none'" in descriptions.STATUS_HEADERS["Content-Security-Policy"]
    )
    # Names are escaped.
    assert "innerHTML" not in descriptions.STATUS
