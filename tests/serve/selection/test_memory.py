"""Journals of predictions, and states by context."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxflow.errors import ServeError
from fxflow.serve.selection.memory import Contexts, Exchange, Journal, PredictionRecord
from fxflow.serve.selection.policies import Change, Choice, LossTotals

CHOICE = Choice(0, 0.5, (0, 1))


def record(id: str, key: bytes = b"k", at: float = 0.0) -> PredictionRecord:
    return PredictionRecord(id, key, "c", CHOICE, 1, at)


def test_feedback_counts_once() -> None:
    journal = Journal(most=10, within=60.0)
    journal.put(record("a"))
    journal.use(journal.find("a", 1.0))
    assert journal.last(b"k") is None
    for id, status, words in (
        ("a", 409, "has feedback already"),
        ("b", 404, "unknown prediction id 'b'"),
    ):
        with pytest.raises(ServeError, match=words) as caught:
            journal.find(id, 1.0)
        assert caught.value.status == status


def test_late_feedback_is_refused() -> None:
    journal = Journal(most=10, within=60.0)
    journal.put(record("a", at=100.0))
    assert journal.find("a", 160.0).id == "a"
    with pytest.raises(ServeError, match="late: 61 s after the request") as caught:
        journal.find("a", 161.0)
    assert caught.value.status == 410


def test_a_full_journal_drops_the_oldest() -> None:
    journal = Journal(most=3, within=60.0)
    for k in range(10):
        journal.put(record(str(k), key=b"%d" % k))
    assert len(journal) == 3
    assert journal.last(b"1") is None and journal.last(b"9") == "9"
    assert "6" not in journal and "7" in journal
    journal.put(record("8", key=b"other"))  # the same id again
    assert len(journal) == 3 and journal.last(b"8") is None
    assert len(journal._by_key) == 3


def test_the_last_request_with_the_same_inputs() -> None:
    journal = Journal(most=3, within=60.0)
    for id in "abc":
        journal.put(record(id))
    found = []
    while (id := journal.last(b"k")) is not None:
        journal.use(journal.find(id, 0.0))
        found.append(id)
    assert found == ["c", "b", "a"]
    journal.put(record("d"))  # drops a
    assert journal.last(b"k") == "d" and len(journal) == 3


def test_records_survive_json() -> None:
    made = record("a")
    made.answers = {
        0: np.array([[0.25, 0.75]], np.float32),
        1: np.array([b"caf\xc3", b"x"], object),
    }
    text = json.dumps(made.to_json())
    found = PredictionRecord.from_json("a", json.loads(text), models=2)
    assert found.choice == CHOICE and found.key == b"k" and found.context == "c"
    assert found.answers[0].tolist() == [[0.25, 0.75]]
    assert found.answers[1].tolist() == [b"caf\xc3", b"x"]


@pytest.mark.parametrize(
    "change",
    [
        {"choice": [5, 0.5, [0, 1]]},
        {"choice": [0, 0.0, [0, 1]]},
        {"choice": [0, float("nan"), [0, 1]]},
        {"choice": None},
        {"answers": {"7": [1]}, "shapes": {"7": [1]}},
        {"answers": {"0": [1, 2, 3]}, "shapes": {"0": [2, 2]}},
        {"at": float("inf")},
        {"key": "zz"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_invalid_records_are_refused(change: dict) -> None:
    with pytest.raises(ValueError):
        PredictionRecord.from_json("a", record("a").to_json() | change, models=2)


ONE = Change(1.0, (1.0, 0.0), (0.5, 0.0))


class Elsewhere:
    """The shared states, without a network."""

    def __init__(self) -> None:
        self.states: dict[str, LossTotals] = {}
        self.last: dict[int, int] = {}

    def take(self, writer: int, exchange: Exchange) -> dict[str, LossTotals]:
        if self.last.get(writer, 0) < exchange.number:
            self.last[writer] = exchange.number
            for context, change in exchange.changes.items():
                state = self.states.get(context, LossTotals.start(2))
                self.states[context] = state.after(change)
        return {c: self.states.get(c, LossTotals.start(2)) for c in exchange.wanted}


def test_the_least_recently_used_context_is_dropped() -> None:
    contexts = Contexts(models=2, most=3)
    for name in "abc":
        contexts.change(name, ONE)
    assert contexts.get("a", 0.0).counts == (1.0, 0.0)
    contexts.change("d", ONE)
    assert not contexts.known("b") and contexts.known("a")
    assert contexts.get("b", 0.0) == LossTotals.start(2)
    assert len(contexts) == 3 and contexts.forgotten == 2


@given(st.lists(st.integers(0, 50), max_size=200), st.integers(1, 10))
def test_bounded(names: list[int], most: int) -> None:
    contexts = Contexts(models=2, most=most, shared=True)
    for now, name in enumerate(names):
        if name % 3:
            contexts.get(str(name), float(now))
        else:
            contexts.change(str(name), ONE)
        assert len(contexts) <= most
    exchange = contexts.exchange(most=1000)
    assert len(exchange.wanted) <= 2 * most


@pytest.mark.parametrize("seed", range(4))
def test_servers_reach_the_same_state(seed: int) -> None:
    """An exchange may be lost before or after it is applied, and is then repeated."""
    rng = random.Random(seed)
    elsewhere = Elsewhere()
    servers = [Contexts(2, 10, shared=True, fresh=0.0) for _ in range(3)]
    made: dict[str, list[float]] = {"a": [0.0, 0.0], "b": [0.0, 0.0]}
    for now in range(600):
        number = rng.randrange(3)
        server = servers[number]
        if rng.random() < 0.5:
            name, k, loss = rng.choice("ab"), rng.randrange(2), rng.random()
            loss_, count = [0.0, 0.0], [0.0, 0.0]
            loss_[k], count[k] = loss, 1.0
            server.change(name, Change(1.0, tuple(count), tuple(loss_)))
            made[name][k] += loss
        elif server.pending:
            exchange = server.exchange()
            fate = rng.random()
            if fate < 0.3:
                continue  # the exchange was lost
            states = elsewhere.take(number, exchange)
            if fate < 0.6:
                continue  # its reply was lost
            server.exchanged(states, float(now))
    for number, server in enumerate(servers):
        while server.pending:
            exchange = server.exchange()
            server.exchanged(elsewhere.take(number, exchange), 1e3)
    for name in "ab":
        assert elsewhere.states[name].loss == pytest.approx(tuple(made[name]))
        for number, server in enumerate(servers):
            server.get(name, 1e6)
            server.exchanged(elsewhere.take(number, server.exchange()), 1e6)
            assert server.get(name, 1e6) == elsewhere.states[name]


def test_changes_during_an_exchange_are_kept() -> None:
    contexts = Contexts(2, 10, shared=True)
    contexts.change("a", ONE)
    sent = contexts.exchange()
    contexts.change("a", ONE)
    contexts.exchanged({"a": LossTotals((5.0, 5.0), (1.0, 1.0))}, 0.0)
    assert contexts.get("a", 0.0) == LossTotals((6.0, 5.0), (1.5, 1.0))
    assert sent.changes == {"a": ONE} and contexts.exchange().changes == {"a": ONE}


def test_pending_changes_are_bounded_and_counted() -> None:
    contexts = Contexts(2, 4, shared=True)
    for k in range(10):
        contexts.change(str(k), ONE)
        contexts.change(str(k), ONE)
    assert contexts.dropped == 6
    exchange = contexts.exchange()
    assert len(exchange.changes) == 4
    assert exchange.changes["9"] == Change(1.0, (2.0, 0.0), (1.0, 0.0))


def test_a_fresh_state_is_not_read_again() -> None:
    contexts = Contexts(2, 4, shared=True, fresh=1.0)
    contexts.get("a", 0.0)
    assert contexts.exchange().wanted == ("a",)
    contexts.exchanged({"a": LossTotals.start(2)}, 0.0)
    contexts.get("a", 0.5)
    assert not contexts.pending
    contexts.get("a", 1.5)
    assert contexts.pending
