"""States by context: bounded, and the same where servers share them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxflow.serve.selection.contexts import Contexts, Exchange
from fxflow.serve.selection.policies import Change, State

ONE = Change(1.0, (1.0, 0.0), (0.5, 0.0))


class Elsewhere:
    """What the shared states are, without a network."""

    def __init__(self) -> None:
        self.states: dict[str, State] = {}
        self.last: dict[int, int] = {}

    def take(self, writer: int, exchange: Exchange) -> dict[str, State]:
        if self.last.get(writer, 0) < exchange.number:
            self.last[writer] = exchange.number
            for context, change in exchange.changes.items():
                state = self.states.get(context, State.start(2))
                self.states[context] = state.after(change)
        return {c: self.states.get(c, State.start(2)) for c in exchange.wanted}


def test_the_one_used_longest_ago_is_forgotten() -> None:
    contexts = Contexts(models=2, most=3)
    for name in "abc":
        contexts.change(name, ONE)
    assert contexts.get("a", 0.0).counts == (1.0, 0.0)
    contexts.change("d", ONE)
    assert not contexts.known("b") and contexts.known("a")
    assert contexts.get("b", 0.0) == State.start(2)
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
def test_servers_come_to_the_same_state(seed: int) -> None:
    """Each exchange may be lost before or after it was made, and is then repeated."""
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
                continue  # lost on its way
            states = elsewhere.take(number, exchange)
            if fate < 0.6:
                continue  # its answer was
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


def test_what_changes_meanwhile_is_not_lost() -> None:
    contexts = Contexts(2, 10, shared=True)
    contexts.change("a", ONE)
    sent = contexts.exchange()
    contexts.change("a", ONE)
    contexts.exchanged({"a": State((5.0, 5.0), (1.0, 1.0))}, 0.0)
    assert contexts.get("a", 0.0) == State((6.0, 5.0), (1.5, 1.0))
    assert sent.changes == {"a": ONE} and contexts.exchange().changes == {"a": ONE}


def test_what_waits_is_bounded_and_counted() -> None:
    contexts = Contexts(2, 4, shared=True)
    for k in range(10):
        contexts.change(str(k), ONE)
        contexts.change(str(k), ONE)
    assert contexts.dropped == 6
    exchange = contexts.exchange()
    assert len(exchange.changes) == 4
    assert exchange.changes["9"] == Change(1.0, (2.0, 0.0), (1.0, 0.0))


def test_a_fresh_state_is_not_asked_for() -> None:
    contexts = Contexts(2, 4, shared=True, fresh=1.0)
    contexts.get("a", 0.0)
    assert contexts.exchange().wanted == ("a",)
    contexts.exchanged({"a": State.start(2)}, 0.0)
    contexts.get("a", 0.5)
    assert not contexts.pending
    contexts.get("a", 1.5)
    assert contexts.pending
