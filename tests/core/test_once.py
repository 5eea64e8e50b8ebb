"""Work that several threads ask for at once."""

from __future__ import annotations

import threading

import pytest

from fxflow.core import once as module
from fxflow.core.once import once


def race(count, function):
    """Calls a function from several threads at once; returns what they got."""
    together = threading.Barrier(count)
    found = []

    def run():
        together.wait()
        found.append(function())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return found


class Table(dict):
    """What is made, and how often."""

    def __init__(self):
        self.turns, self.made = {}, 0

    def get_once(self, make=lambda: None, **options):
        def run():
            self.made += 1
            make()
            self["x"] = "made"
            return "made"

        return once(self.turns, "x", lambda: self.get("x"), run, **options)


@pytest.mark.parametrize("patient", [False, True])
def test_one_makes_it_for_all(patient, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    table = Table()
    assert race(16, lambda: table.get_once(patient=patient)) == ["made"] * 16
    assert table.made == 1 and not table.turns


def test_errors_are_of_each_thread(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    table = Table()

    def fail():
        raise KeyError("no")

    def attempt():
        try:
            table.get_once(fail)
        except KeyError:
            return "failed"

    assert race(4, attempt) == ["failed"] * 4
    assert table.made == 4 and not table.turns


def test_a_thread_does_not_wait_for_itself():
    table = Table()

    def again():
        if table.made == 1:
            table.get_once(again)

    assert table.get_once(again) == "made"
    assert table.made == 2


def test_a_thread_that_waits_for_those_that_wait_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    table = Table()

    def with_children():
        if table.made == 1:
            assert race(3, lambda: table.get_once(with_children)) == ["made"] * 3

    assert table.get_once(with_children) == "made"
    assert 1 < table.made <= 4 and not table.turns


def test_two_threads_that_hold_what_the_other_wants(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    tables = Table(), Table()
    both = threading.Barrier(2)

    def run(first, second):
        def make():
            if first.made == 1:
                both.wait()
                second.get_once(lambda: None)

        return first.get_once(make)

    turn = iter([tables, tables[::-1]])
    assert race(2, lambda: run(*next(turn))) == ["made", "made"]
