"""Models selected and combined based on feedback, without processes."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.selection.policies import (
    EpsilonGreedy,
    Exp3,
    Thompson,
    selection_policy,
)
from fxflow.serve.selector import FeedbackResult, Selector, SelectorConfig
from fxflow.serve.service import Prediction, PredictionRequest, RequestOrigin
from tests.serve import virtual_time
from tests.serve.fakes import Fake, Heard, always, lookup, signature


def three() -> dict[str, Fake]:
    return {"a": Fake(always(1)), "b": Fake(always(2)), "c": Fake(always(2))}


def using(
    body: Callable[[Selector, dict[str, Fake], Heard], Awaitable[None]],
    members: dict[str, Fake] | None = None,
    **options: Any,
) -> None:
    async def main() -> None:
        fakes = three() if members is None else members
        heard = Heard()
        options.setdefault("seed", 1)
        config = SelectorConfig("best", tuple(fakes), **options)
        selector = Selector(config, lookup(fakes), heard)
        selector.check()
        await body(selector, fakes, heard)
        await selector.drain()

    virtual_time.run(main)


def ask(selector: Selector, value: float = 0.0, rows: int = 1, **origin: str) -> Any:
    x = np.full(rows, value, np.float32)
    request = PredictionRequest({"x": x}, rows, origin=RequestOrigin(**origin))
    return selector.submit(request)


def said(answer: Prediction) -> list[Any]:
    found: list[Any] = answer.outputs["y"].tolist()
    return found


# -- one model for each request --------------------------------------------------------


@pytest.mark.parametrize("policy", ["exp3", "epsilon-greedy", "thompson"])
def test_the_model_that_is_right_is_chosen(policy: str) -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        for k in range(300):
            answer = await ask(selector, k)
            await selector.feedback(id=answer.provenance.id, label=[1])
        weights = selector.describe()["models"]
        assert weights["a"]["weight"] > 0.8
        before = fakes["a"].asked
        for k in range(50):
            await ask(selector, k)
        assert fakes["a"].asked - before > 30
        assert heard.events["feedback", "joined"] == 300
        assert heard.events["judged", "a"] > 150
        assert heard.events["losses", "a"] == 0
        assert heard.events["losses", "b"] == heard.events["judged", "b"]
        total = sum(heard.events["choices", m] for m in "abc")
        assert total == 350 == sum(fake.asked for fake in fakes.values())

    using(body, policy=selection_policy(policy))


def test_contexts_have_separate_states_and_are_bounded() -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        for k in range(300):
            context = "even" if k % 2 else "odd"
            answer = await ask(selector, k, context=context)
            right = 1 if context == "odd" else 2
            await selector.feedback(id=answer.provenance.id, label=right)
        assert selector.describe("odd")["models"]["a"]["weight"] > 0.7
        assert selector.describe("even")["models"]["a"]["weight"] < 0.2
        for k in range(30):
            await ask(selector, context=str(k))
        assert selector.describe("odd")["contexts"] <= 10
        # It was dropped, and starts afresh.
        assert selector.describe("odd")["models"]["a"]["weight"] < 0.5

    using(body, policy=Exp3(), contexts=10)


def test_a_model_that_fails_costs_no_request() -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        fakes["a"].error = ServeError("it crashed", 500)
        answers = await asyncio.gather(*(ask(selector, k) for k in range(100)))
        assert all(said(answer) == [2] for answer in answers)
        assert heard.events["failures", "a"] > 0
        # The failure counts as a wrong answer.
        assert selector.describe()["models"]["a"]["weight"] < 0.3
        fakes["a"].ready = False
        before = fakes["a"].asked
        await asyncio.gather(*(ask(selector, k) for k in range(20)))
        assert fakes["a"].asked == before
        del fakes["b"]  # unloaded
        assert said(await ask(selector)) == [2]
        fakes["c"].error = ServeError("busy", 503, 2.0)
        with pytest.raises(ServeError, match="busy"):
            await ask(selector)
        fakes["c"].error = ServeError("4 rows at most", 413)
        with pytest.raises(ServeError, match="4 rows"):
            await ask(selector)
        del fakes["c"]
        with pytest.raises(ServeError, match="none of its models is ready") as caught:
            await ask(selector)
        assert caught.value.status == 503 and not selector.ready

    using(body, policy=Exp3())


def test_overload_does_not_count_as_loss() -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        fakes["a"].error = ServeError("busy", 503, 1.0)
        for k in range(50):
            assert said(await ask(selector, k)) == [2]
        assert selector.describe()["models"]["a"]["losses"] == 0

    using(body, policy=EpsilonGreedy())


# -- the stream of one model -----------------------------------------------------------


def generators() -> dict[str, Fake]:
    members = three()
    for fake in members.values():
        fake.signature = signature(streamed=True)
    return members


async def read(
    selector: Selector, value: float = 0.0, most: int = 9, **origin: str
) -> list[Prediction]:
    """Returns the results of a stream, or the first of them."""
    x = np.full(1, value, np.float32)
    request = PredictionRequest({"x": x}, 1, origin=RequestOrigin(**origin))
    results = selector.stream(request)
    found = []
    async with aclosing(results):
        async for answer in results:
            found.append(answer)
            if len(found) == most:
                break
    return found


@pytest.mark.parametrize("policy", ["exp3", "epsilon-greedy", "thompson"])
def test_the_stream_that_is_right_is_chosen(policy: str) -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        for k in range(300):
            found = await read(selector, k)
            (name,) = {model for a in found for model in a.provenance.models}  # type: ignore[union-attr]
            first = 1 if name == "a" else 2
            assert [said(a) for a in found] == [[first], [first + 1], [first + 2]]
            # The label is compared with the last result.
            await selector.feedback(id=found[0].provenance.id, label=3)  # type: ignore[union-attr]
        models = selector.describe()["models"]
        assert models["a"]["weight"] > 0.8 and models["a"]["loss"] == 0
        assert sum(heard.events["choices", m] for m in "abc") == 300
        with pytest.raises(ServeError, match="/v2/models/best/generate_stream"):
            await ask(selector)

    using(body, generators(), policy=selection_policy(policy))


def test_feedback_joins_a_stream_while_it_runs() -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        x = {"x": np.zeros(1, np.float32)}
        results = selector.stream(PredictionRequest(x, 1, origin=RequestOrigin("r")))
        with pytest.raises(ServeError, match="unknown prediction id 'r'"):
            await selector.feedback(id="r", loss=0.0)
        await anext(results)
        joined = await selector.feedback(id="r", loss=0.25)
        assert list(joined.losses.values()) == [0.25]
        # A later failure does not count, nor does a client that closes it.
        await anext(results)
        await results.aclose()
        assert sum(fake.closed for fake in fakes.values()) == 1
        with pytest.raises(ServeError, match="has feedback already"):
            await selector.feedback(id="r", loss=0.0)
        (one,) = await read(selector, most=1, id="s")
        assert (await selector.feedback(id="s", label=said(one)[0])).losses
        assert sum(heard.events["judged", m] for m in "abc") == 2

    using(body, generators(), policy=Exp3())


def test_a_stream_that_fails_counts_as_one_loss() -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        # A failure before its first result costs no request.
        fakes["a"].fails = fakes["b"].fails = 0
        for k in range(30):
            assert [said(a) for a in await read(selector, k)] == [[2], [3], [4]]
        assert heard.events["failures", "a"] > 0
        # A later failure does, and counts once as a wrong answer.
        fakes["c"].fails = 2
        before = selector.describe()["models"]["c"]["losses"]
        results = selector.stream(PredictionRequest({"x": np.zeros(1, np.float32)}, 1))
        first = await anext(results)
        await anext(results)
        with pytest.raises(ServeError, match="it ended"):
            await anext(results)
        assert selector.describe()["models"]["c"]["losses"] == before + 1
        assert first.provenance is not None
        with pytest.raises(ServeError, match="has feedback already"):
            await selector.feedback(id=first.provenance.id, loss=1.0)
        # After feedback, a failure does not count.
        results = selector.stream(PredictionRequest({"x": np.ones(1, np.float32)}, 1))
        first = await anext(results)
        assert first.provenance is not None
        await selector.feedback(id=first.provenance.id, loss=0.0)
        with pytest.raises(ServeError, match="it ended"):
            async for _ in results:
                pass
        assert selector.describe()["models"]["c"]["losses"] == pytest.approx(
            before + 2, abs=0.1
        )

    using(body, generators(), policy=EpsilonGreedy(explore=0.0))


def test_a_stream_outlives_its_models_readiness() -> None:
    """Draining models accept no new requests, and finish open streams."""

    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        results = selector.stream(PredictionRequest({"x": np.zeros(1, np.float32)}, 1))
        await anext(results)
        for fake in fakes.values():
            fake.ready = False
        assert len([answer async for answer in results]) == 2

    using(body, generators(), policy=Thompson())


def test_streams_are_not_combined() -> None:
    async def never(*_: Any) -> None:
        raise AssertionError

    with pytest.raises(ServeError, match="'exp4' cannot combine streams") as caught:
        using(never, generators())
    assert caught.value.status == 400


# -- all models ------------------------------------------------------------------------


def test_votes_are_learned() -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        answer = await ask(selector, rows=2)
        assert said(answer) == [2, 2]  # two of three
        assert answer.provenance.confidence.tolist() == pytest.approx([2 / 3, 2 / 3])
        for k in range(40):
            answer = await ask(selector, k)
            joined = await selector.feedback(id=answer.provenance.id, label=[1])
        assert joined.losses == {"a": 0.0, "b": 1.0, "c": 1.0}
        assert joined.weights["a"] > 0.9 and joined.shared is None
        answer = await ask(selector)
        assert said(answer) == [1]
        assert answer.provenance.confidence.tolist() == pytest.approx([1 / 3])
        assert set(answer.provenance.models) == {"a", "b", "c"}

    using(body)


def test_an_answer_at_the_objective_with_what_has_arrived() -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        fakes["c"].delay = 0.3
        answer = await ask(selector)
        assert virtual_time.now() == pytest.approx(0.05)
        assert answer.provenance.late == ("c",)
        assert answer.provenance.confidence.tolist() == pytest.approx([1 / 3])
        assert heard.events["stragglers", "c"] == 1
        # Late answers still receive feedback.
        await asyncio.sleep(0.35)
        joined = await selector.feedback(id=answer.provenance.id, label=[2])
        assert joined.losses == {"a": 1.0, "b": 0.0, "c": 0.0}
        # Earlier feedback covers only the models that have answered.
        answer = await ask(selector, 1)
        joined = await selector.feedback(id=answer.provenance.id, label=[2])
        assert joined.losses == {"a": 1.0, "b": 0.0}
        # No answer in time: the first one is used.
        for name, delay in (("a", 0.2), ("b", 0.1), ("c", 0.3)):
            fakes[name].delay = delay
        answer = await ask(selector, 2)
        assert answer.provenance.models == ("b",) and said(answer) == [2]
        # No answer at all.
        for fake in fakes.values():
            fake.delay = 9.0
        begun = virtual_time.now()
        with pytest.raises(ServeError, match="by the deadline"):
            await ask(selector, 3)
        assert virtual_time.now() - begun == pytest.approx(0.5)

    using(body, slo=0.05, deadline=0.5)


def test_failures_of_some_models_fail_no_request() -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        fakes["b"].error = fakes["c"].error = ServeError("it crashed", 500)
        answer = await ask(selector)
        assert said(answer) == [1] and heard.events["failures", "b"] == 1
        fakes["a"].error = ServeError("it crashed too", 500)
        with pytest.raises(ServeError, match="it crashed"):
            await ask(selector)

    using(body)


def test_clients_that_disconnect_cancel_their_requests() -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        for fake in fakes.values():
            fake.delay = 0.5
        fakes["a"].error = ServeError("it crashed", 500)
        fakes["a"].delay = 0.0
        task = asyncio.create_task(ask(selector))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        names = [t.get_coro().__qualname__ for t in asyncio.all_tasks()]  # type: ignore[union-attr]
        assert not any("submit" in name for name in names)

    using(body)


def test_means_and_functions() -> None:
    floats = {"signature": signature("f32[batch]")}
    members = {
        "a": Fake(always(1, np.float32), **floats),
        "b": Fake(always(2, np.float32), **floats),
        "c": Fake(always(3, np.float32), delay=0.2, **floats),
    }

    async def mean(selector: Selector, fakes: Any, heard: Heard) -> None:
        answer = await ask(selector)
        assert said(answer) == [1.5] and answer.provenance.late == ("c",)

    using(mean, members, combine="mean", slo=0.05)

    def largest(outputs: Any, weights: Any) -> Any:
        assert weights.keys() == set("abc")
        assert outputs.keys() == (set("abc") if whole else set("ab"))
        return {"y": np.max([found["y"] for found in outputs.values()], axis=0)}

    async def function(selector: Selector, fakes: Any, heard: Heard) -> None:
        assert said(await ask(selector)) == [2.0]

    for whole in (False, True):
        using(
            function,
            members,
            combine=largest,
            slo=0.05,
            stragglers="substitute" if whole else "drop",
        )

    async def broken(selector: Selector, fakes: Any, heard: Heard) -> None:
        with pytest.raises(ServeError, match="must return 'y' as float32"):
            await ask(selector)

    async def raising(selector: Selector, fakes: Any, heard: Heard) -> None:
        with pytest.raises(ServeError, match="ZeroDivisionError"):
            await ask(selector)

    using(broken, members, combine=lambda outputs, weights: {}, slo=0.05)
    using(broken, members, combine=lambda o, w: {"y": np.zeros(9)}, slo=0.05)
    using(raising, members, combine=lambda o, w: 1 / 0, slo=0.05)


# -- feedback --------------------------------------------------------------------------


def test_feedback_by_inputs() -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        x = np.array([3.0], np.float32)
        await ask(selector, 3)
        joined = await selector.feedback(inputs={"x": x.copy()}, label=[2])
        assert joined.losses["b"] == 0.0
        asked = fakes["a"].asked
        # All models can run again, or answer from their caches.
        joined = await selector.feedback(inputs={"x": x + 1}, label=[1])
        assert joined.losses == {"a": 0.0, "b": 1.0, "c": 1.0}
        assert fakes["a"].asked == asked + 1

    using(body)

    async def bandit(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        x = {"x": np.array([3.0], np.float32)}
        for _ in range(2):
            await ask(selector, 3)
        for _ in range(2):
            await selector.feedback(inputs=x, loss=0.5)
        with pytest.raises(ServeError, match="for these inputs") as caught:
            await selector.feedback(inputs=x, loss=0.5)
        assert caught.value.status == 404
        await ask(selector, 3, context="other")
        with pytest.raises(ServeError, match="for these inputs"):
            await selector.feedback(inputs=x, loss=0.5)
        assert await selector.feedback(inputs=x, loss=0.5, context="other")

    using(bandit, policy=Exp3())


def test_feedback_that_is_late_unknown_or_repeated() -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        await ask(selector, id="one")
        await selector.feedback(id="one", label=1)
        await ask(selector, id="two")
        time.sleep(0.06)  # feedback is joined by the clock of the day
        for id, status in (("one", 409), ("two", 410), ("three", 404)):
            with pytest.raises(ServeError) as caught:
                await selector.feedback(id=id, label=1)
            assert caught.value.status == status
        counts = {k[1]: v for k, v in heard.events.items() if k[0] == "feedback"}
        assert counts == {"joined": 1, "repeated": 1, "late": 1, "unknown": 1}
        assert sum(v["losses"] for v in selector.describe()["models"].values()) == 3

    using(body, within=0.05)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "either 'id' or 'inputs'"),
        ({"id": "r"}, "one of 'label', 'loss' and 'losses'"),
        ({"id": "r", "label": 1, "loss": 0.1}, "one of 'label', 'loss' and 'losses'"),
        ({"id": "r", "label": [1, 2, 3]}, "2 in all; got 3"),
        ({"id": "r", "label": [math.nan, 1]}, "must be finite"),
        ({"id": "r", "label": ["a", "b"]}, "'label' must be numbers"),
        ({"id": "r", "loss": 0.1}, "combines several"),
        ({"id": "r", "losses": {}}, "got nothing"),
        ({"id": "r", "losses": {"z": 0.1}}, "among 'a', 'b', 'c'; got 'z'"),
        ({"id": "r", "losses": {"a": math.nan}}, "the loss of 'a' must be a number"),
        ({"id": "r", "losses": {"a": 3}}, "the loss of 'a' must be a number"),
        ({"id": "r", "label": 1, "context": "x"}, "had context ''"),
        ({"id": "r" * 300, "label": 1}, "256 characters"),
    ],
)
def test_invalid_feedback_is_refused(options: dict[str, Any], words: str) -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        await ask(selector, rows=2, id="r")
        with pytest.raises(ServeError, match=words) as caught:
            await selector.feedback(**options)
        assert caught.value.status == 400 and heard.events["feedback", "refused"] == 1
        # Invalid feedback does not use up the record.
        joined: FeedbackResult = await selector.feedback(id="r", label=[1, 2])
        assert joined.losses == {"a": 0.5, "b": 0.5, "c": 0.5}

    using(body)


def test_losses_of_one_model() -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        answer = await ask(selector, id="r")
        (chosen,) = answer.provenance.models
        other = next(m for m in "abc" if m != chosen)
        with pytest.raises(ServeError, match="whose loss is missing"):
            await selector.feedback(id="r", losses={other: 0.5})
        joined = await selector.feedback(id="r", losses={other: 0.5, chosen: 0.25})
        assert joined.losses == {chosen: 0.25}

    using(body, policy=Thompson())


def test_memory_is_bounded() -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        for k in range(100):
            await ask(selector, k, context=str(k))
        stats = selector.stats()
        assert stats["contexts", "known"] <= 5 and stats["contexts", "journal"] == 7
        assert sum(v for (n, _), v in stats.items() if n == "weight") == 1.0

    using(body, contexts=5, journal=7)


# -- invalid groups --------------------------------------------------------------------


def test_models_that_differ_are_refused() -> None:
    async def never(*_: Any) -> None:
        raise AssertionError

    for options, words in (
        ({"combine": "mean"}, "has no mean"),
        ({"output": "z"}, "unknown output 'z'"),
    ):
        with pytest.raises(ServeError, match=words):
            using(never, **options)


def test_long_ids_and_contexts_are_refused() -> None:
    async def body(selector: Selector, fakes: dict[str, Fake], heard: Heard) -> None:
        for origin in ({"id": "x" * 257}, {"context": "x" * 257}):
            with pytest.raises(ServeError, match="256 characters") as caught:
                await ask(selector, **origin)
            assert caught.value.status == 400

    using(body)
