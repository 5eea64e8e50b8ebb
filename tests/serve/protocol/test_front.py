"""Admission, answers and reports, which all protocols share."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from fxflow.errors import ServeError
from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.metrics import Metrics
from fxflow.serve.protocol.front import (
    ClientLimits,
    Front,
    RequestLimits,
    RequestReport,
    key_checker,
    retry_after,
)
from fxflow.serve.repository import Repository
from fxflow.serve.service import ModelConfig

KEY = "0123456789abcdef"


def front(**options: Any) -> Front:
    repository = Repository([ModelConfig("m", ModelSource("none:none"), version="7")])
    return Front(repository, Metrics(), **options)


def test_without_keys_a_client_is_its_address() -> None:
    assert front().admit("10.0.0.1", {}) == "10.0.0.1"
    assert key_checker({})("") is None


@pytest.mark.parametrize(
    "headers",
    [
        {"x-api-key": KEY},
        {"authorization": f"Bearer {KEY}"},
        {"authorization": f"bearer  {KEY} ", "x-api-key": "wrong"},
        {"authorization": "Basic abc", "x-api-key": KEY},
    ],
)
def test_a_client_is_the_name_of_its_key(headers: dict[str, str]) -> None:
    keyed = front(keys={"alice": KEY})
    assert keyed.admit("10.0.0.1", headers) == "alice"
    with pytest.raises(ServeError, match="an API key is required") as caught:
        keyed.admit("10.0.0.1", {name: f"{v}?" for name, v in headers.items()})
    assert caught.value.status == 401


def test_rates_are_limited_by_client() -> None:
    slow = front(limits=RequestLimits(clients=ClientLimits(rate=0.1, burst=1)))
    assert [slow.admit(client, {}) for client in "ab"] == ["a", "b"]
    with pytest.raises(ServeError, match=r"'a' may send 0\.1 requests") as caught:
        slow.admit("a", {})
    assert caught.value.status == 429 and int(retry_after(caught.value)) in (9, 10)


def test_bodies_in_flight_are_limited_together() -> None:
    small = front(limits=RequestLimits(max_body=10, max_bodies=15))
    with pytest.raises(ServeError, match="a body may have 10 bytes, got 11"):
        small.check_size(11)
    small.hold(10)
    small.check_size(5)
    with pytest.raises(ServeError, match="too many bytes") as caught:
        small.check_size(6)
    assert caught.value.status == 503
    small.hold(-10)
    small.check_size(6)


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "\n"])
def test_ids_unfit_for_a_log_are_replaced(given: str) -> None:
    one = front()
    assert one.request_id("mine/1") == "mine/1"
    first, second = one.request_id(given), one.request_id(given)
    assert re.fullmatch(r"[0-9a-f]{8}-1", first) and second == f"{first[:-1]}2"


def test_models_are_controlled_by_requests_only_if_allowed() -> None:
    front(control=True).check_control()
    with pytest.raises(ServeError, match="does not let requests load") as caught:
        front().check_control()
    assert caught.value.status == 403


@pytest.mark.parametrize(
    ("status", "level"),
    [(200, "INFO"), (404, "WARNING"), (429, "INFO"), (500, "WARNING"), (503, "INFO")],
)
def test_failures_are_warnings_and_refusals_under_load_are_not(
    status: int, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    report = RequestReport("id", "POST", "m", status=status)
    with caplog.at_level("INFO", "fxflow.serve"):
        front().report(report, predicts=True)
    (record,) = caplog.records
    assert record.levelname == level
    details = record.details  # type: ignore[attr-defined]
    assert details.pop("seconds") >= 0
    assert details == {
        "id": "id",
        "method": "POST",
        "status": status,
        "model": "m",
        "version": "7",
    }


def test_only_predictions_of_existing_models_are_counted() -> None:
    one = front()
    for model, predicts in (("m", True), ("m", False), ("other", True)):
        one.report(RequestReport("id", "POST", model, status=200), predicts=predicts)
    assert one.metrics.histograms().keys() == {"m"}
    assert one.metrics.histograms()["m"]["statuses"] == {"200": 1}


# -- limits ----------------------------------------------------------------------------


def test_rate_0_is_unlimited() -> None:
    assert not any(ClientLimits().take("a", 0.0) for _ in range(100))


@pytest.mark.parametrize("seed", range(5))
def test_requests_within_rate_and_burst_are_accepted(seed: int) -> None:
    rng = random.Random(seed)
    limits = ClientLimits(rate=10.0, burst=5)
    now, taken = 0.0, 0
    while now < 20.0:
        wait = limits.take("a", now)
        assert 0 <= wait <= 0.1 + 1e-9
        taken += not wait
        assert taken <= 5 + 10 * now + 1e-6
        now += rng.expovariate(40.0)
    assert taken >= 190


def test_a_client_that_waits_for_the_retry_time_is_accepted() -> None:
    limits = ClientLimits(rate=2.0)
    assert limits.take("a", 0.0) == 0
    assert limits.take("a", limits.take("a", 0.1) + 0.1 + 1e-9) == 0


def test_memory_is_bounded() -> None:
    limits = ClientLimits(rate=1.0, burst=1, most=100)
    for number in range(1000):
        limits.take(str(number), number * 1e-4)
    assert len(limits._buckets) == 100
    limits.take("late", 10.0)
    assert len(limits._buckets) == 1
