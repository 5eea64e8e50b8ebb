"""Triton's extensions for clients, over HTTP and gRPC."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ..clients import triton
from .serving import both_protocols

pytest.importorskip("starlette", reason="pip install 'fxflow[serve]'")
pytest.importorskip("grpc", reason="pip install 'fxflow[serve]'")
uvicorn = pytest.importorskip("uvicorn", reason="pip install 'fxflow[serve]'")


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, int]]:
    """A server in a thread, with a port for each protocol."""
    with both_protocols() as found:
        yield found


def ask(ports: dict[str, int], path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", ports["http"], timeout=30)
    try:
        if body is None:
            connection.request("GET", path)
        else:
            connection.request("POST", path, json.dumps(body))
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def test_configuration_of_a_model(ports: dict[str, int]) -> None:
    status, found = ask(ports, "/v2/models/linear/config")
    assert status == 200
    assert (found["name"], found["max_batch_size"]) == ("linear", 4)
    # `dims` leaves out the batch axis.
    assert found["input"] == [
        {"name": "x", "data_type": "TYPE_FP32", "dims": [3], "optional": False}
    ]
    assert found["output"] == [{"name": "y", "data_type": "TYPE_FP32", "dims": [3]}]
    batching = found["dynamic_batching"]
    assert batching["preferred_batch_size"] == [1, 2, 3, 4]
    assert batching["max_queue_delay_microseconds"] == 1000
    assert found["response_cache"] == {"enable": True}
    assert ask(ports, "/v2/models/linear/versions/1/config") == (200, found)
    status, found = ask(ports, "/v2/models/shouting/config")
    assert found["input"][0]["data_type"] == "TYPE_STRING"
    assert ask(ports, "/v2/models/mixed/config")[1]["max_batch_size"] == 4


@pytest.mark.parametrize("what", ["config", "stats"])
def test_unknown_models_are_refused(ports: dict[str, int], what: str) -> None:
    for path in (f"/v2/models/none/{what}", f"/v2/models/linear/versions/7/{what}"):
        status, found = ask(ports, path)
        assert status == 404 and path.split("/")[3] in found["error"]


def counted(ports: dict[str, int], name: str) -> dict[str, Any]:
    status, found = ask(ports, f"/v2/models/{name}/stats")
    assert status == 200
    (of_model,) = found["model_stats"]
    assert of_model["name"] == name
    return dict(of_model)


def test_statistics_count_only_predictions(ports: dict[str, int]) -> None:
    before = counted(ports, "linear")
    assert ask(ports, "/predict/linear", [[1.5, 2, 3], [3, 4, 5]])[0] == 200
    assert ask(ports, "/predict/linear", [[1.5, 2, 3], [3, 4, 5]])[0] == 200  # known
    assert ask(ports, "/predict/linear", [[1]])[0] == 400
    for path in ("/v2/models/linear/ready", "/v2/models/linear"):
        assert ask(ports, path)[0] == 200
    after = counted(ports, "linear")
    assert after["inference_count"] - before["inference_count"] == 2
    assert after["execution_count"] - before["execution_count"] == 1
    new = {
        name: after["inference_stats"][name]["count"] - value["count"]
        for name, value in before["inference_stats"].items()
    }
    assert (new["success"], new["fail"]) == (2, 1)
    assert (new["queue"], new["compute_infer"]) == (1, 1)
    assert (new["cache_hit"], new["cache_miss"]) == (1, 1)
    assert after["last_inference"] > 1.6e12  # milliseconds
    sizes = {batch["batch_size"]: batch for batch in after["batch_stats"]}
    assert sizes[2]["compute_infer"]["ns"] > 0
    everything = ask(ports, "/v2/models/stats")[1]["model_stats"]
    assert [m["name"] for m in everything] == ["linear", "shouting", "mixed"]


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_tritonclient(
    ports: dict[str, int], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The unmodified clients of another project."""
    module = triton(monkeypatch, kind)
    refused = triton(monkeypatch, "utils").InferenceServerException
    client = module.InferenceServerClient(f"127.0.0.1:{ports[kind]}")
    options = {"as_json": True} if kind == "grpc" else {}
    try:
        found = client.get_model_config("linear", **options)
        config = found["config"] if kind == "grpc" else found
        assert config["max_batch_size"] == 4
        assert config["input"][0]["data_type"] == "TYPE_FP32"
        given = module.InferInput("x", [1, 3], "FP32")
        given.set_data_from_numpy(np.full((1, 3), 0.1, np.float32))
        client.infer("linear", [given])
        found = client.get_inference_statistics("linear", **options)
        success = found["model_stats"][0]["inference_stats"]["success"]
        assert int(success["count"]) >= 1 and int(success["ns"]) > 0
        found = client.get_inference_statistics(**options)
        assert {m["name"] for m in found["model_stats"]} >= {"linear", "mixed"}
        with pytest.raises(refused, match="unknown model 'none'"):
            client.get_model_config("none")
        with pytest.raises(refused, match="unknown model 'none'"):
            client.get_inference_statistics("none")
    finally:
        client.close()


def test_an_unknown_route_lists_the_routes(ports: dict[str, int]) -> None:
    status, found = ask(ports, "/v2/modles/linear")
    assert status == 404 and "no such route; GET / lists" in found["error"]
    for route in ("GET /v2/models/{model}/config", "POST /predict/{model}", "GET /"):
        assert route in found["routes"]
