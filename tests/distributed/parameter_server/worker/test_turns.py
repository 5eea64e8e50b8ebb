"""Threads that take turns, with a protocol whose messages are queued by the tests."""

from __future__ import annotations

import functools
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from fxflow.distributed.parameter_server.worker.turns import DeferredInterrupt, Turns


class Protocol:
    """Calls what is queued, and notes which thread did: an order, or an event."""

    def __init__(self) -> None:
        self.inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self.orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.by: list[threading.Thread] = []
        self.in_turn = threading.Lock()
        #: The thread that has the turn, or had it last.
        self.now: threading.Thread | None = None
        self.ends = False
        self.turns = Turns(self.turn, self.wake, lambda: not self.orders.empty())
        self.thread = threading.Thread(target=self.turns.serve, args=(60.0,))
        self.thread.start()

    def wake(self) -> None:
        self.inbox.put(None)

    def turn(self, seconds: float) -> bool:
        assert self.in_turn.acquire(blocking=False), "two threads have the turn"
        try:
            event, self.now = None, threading.current_thread()
            if seconds:
                try:
                    event = self.inbox.get(timeout=seconds)
                except queue.Empty:
                    return True
            while not self.orders.empty():
                self.by.append(threading.current_thread())
                self.orders.get()()
            if event is not None:
                self.by.append(threading.current_thread())
                event()
            return not self.ends
        finally:
            self.in_turn.release()

    def end(self) -> None:
        def end() -> None:
            self.ends = True

        self.orders.put(end)
        self.turns.hand_over()
        self.thread.join()


@pytest.fixture
def protocol() -> Iterator[Protocol]:
    made = Protocol()
    yield made
    made.end()
    assert made.turns.is_over


class Answer:
    """An answer that arrives as an event."""

    def __init__(self, protocol: Protocol) -> None:
        self.turns, self.arrived = protocol.turns, threading.Event()

    def wait(self, seconds: float = 60.0) -> bool:
        return self.turns.wait(self.arrived.is_set, seconds, self.arrived.wait)


def test_a_caller_that_waits_has_the_turn(protocol: Protocol) -> None:
    answer, caller = Answer(protocol), threading.current_thread()

    def give() -> None:
        while protocol.now is not caller:
            time.sleep(0.001)
        protocol.inbox.put(answer.arrived.set)

    sender = threading.Thread(target=give)
    sender.start()
    assert answer.wait()
    sender.join()
    assert protocol.by == [caller]


def test_the_thread_has_the_turn_while_no_caller_waits(protocol: Protocol) -> None:
    done = threading.Event()
    protocol.inbox.put(done.set)
    assert done.wait(60)
    assert protocol.by == [protocol.thread]


def test_orders_are_done_at_once_or_by_another_thread(protocol: Protocol) -> None:
    for n in range(50):
        done = threading.Event()
        protocol.orders.put(done.set)
        if n % 2:
            protocol.turns.do()
        else:
            protocol.turns.hand_over()
        assert done.wait(60)


def test_all_callers_get_their_answers(protocol: Protocol) -> None:
    count, found = 8, queue.SimpleQueue[bool]()

    def call(rounds: int) -> None:
        for _ in range(rounds):
            answer = Answer(protocol)
            give = answer.arrived.set
            protocol.orders.put(functools.partial(protocol.inbox.put, give))
            protocol.turns.do()
            found.put(answer.wait())

    threads = [threading.Thread(target=call, args=(50,)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert all(found.get() for _ in range(50 * count))


def test_a_wait_ends_without_an_answer(protocol: Protocol) -> None:
    assert not Answer(protocol).wait(0.01)
    assert not Answer(protocol).wait(0.0)
    late = Answer(protocol)
    protocol.inbox.put(late.arrived.set)
    assert late.wait()


def test_a_wait_ends_with_the_protocol() -> None:
    protocol, answer = Protocol(), None
    protocol.end()
    protocol.orders.put(lambda: None)
    protocol.turns.do()
    assert not protocol.orders.empty()  # no thread has a turn any more
    answer = Answer(protocol)
    assert not answer.wait(0.01)


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Interrupts as Python handles them, also if tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_is_raised_after_a_turn(
    protocol: Protocol, interrupts: None
) -> None:
    whole = []

    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)
        whole.append(threading.current_thread())

    with protocol.turns._claim:  # so the thread rests
        protocol.wake()
        while protocol.turns._lock.locked():
            time.sleep(0.001)
        protocol.orders.put(interrupted)
        with pytest.raises(KeyboardInterrupt):
            protocol.turns.do()
    assert whole == [threading.current_thread()]
    answer = Answer(protocol)
    protocol.inbox.put(answer.arrived.set)
    assert answer.wait()


def test_an_interrupt_ends_a_wait(protocol: Protocol, interrupts: None) -> None:
    answer, thread = Answer(protocol), threading.main_thread()

    def interrupt() -> None:
        while not protocol.turns._claim.locked():
            time.sleep(0.001)
        signal.pthread_kill(thread.ident or 0, signal.SIGINT)

    sender = threading.Thread(target=interrupt)
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        answer.wait()
    sender.join()
    protocol.inbox.put(answer.arrived.set)
    assert answer.wait()


def test_other_handlers_of_interrupts_stay(protocol: Protocol) -> None:
    noted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        with DeferredInterrupt(protocol.wake) as interrupt:
            signal.raise_signal(signal.SIGINT)
            assert noted == [signal.SIGINT] and not interrupt.is_pending
    finally:
        signal.signal(signal.SIGINT, before)
