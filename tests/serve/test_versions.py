"""Candidates as shadows and as canaries, without processes."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxflow.errors import ServeError
from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.repository import Repository
from fxflow.serve.selection.quality import Auc
from fxflow.serve.service import ModelConfig, PredictionRequest, RequestOrigin
from fxflow.serve.versions import (
    Rollout,
    RolloutPlan,
    Versions,
    VersionsConfig,
    least_rate,
    point_of,
    same,
)
from tests.serve import virtual_time
from tests.serve.fakes import Fake, Heard, always, lookup, signature


def using(
    body: Callable[[Versions, Fake, Fake, Heard], Awaitable[None]],
    plan: RolloutPlan,
    *,
    kind: str = "i64[batch]",
    **options: Any,
) -> None:
    async def main() -> None:
        stable, candidate = Fake(always(1)), Fake(always(2), version="2")
        stable.signature = candidate.signature = signature(kind)
        heard = Heard()
        config = VersionsConfig("m", "old", "new", plan, **options)
        fakes = {"old": stable, "new": candidate}
        versions = Versions(config, lookup(fakes), heard)
        versions.check()
        await body(versions, stable, candidate, heard)
        await versions.drain()

    virtual_time.run(main)


async def ask(versions: Versions, value: float = 0.0, **origin: str) -> tuple[int, str]:
    x = np.full(1, value, np.float32)
    request = PredictionRequest({"x": x}, 1, origin=RequestOrigin(**origin))
    answer = await versions.submit(request)
    assert answer.provenance is not None
    return int(answer.outputs["y"][0]), answer.provenance.version


def test_a_shadow_is_compared_and_delays_no_request() -> None:
    async def body(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        new.delay = 0.2
        assert await ask(versions) == (1, "1")
        new.says = always(1)
        assert await ask(versions) == (1, "1")
        for _ in range(6):  # four at a time are copied
            await ask(versions)
        assert virtual_time.now() == 0
        await asyncio.sleep(0.3)
        new.error = ServeError("it crashed", 500)
        assert await ask(versions) == (1, "1")
        await asyncio.sleep(0.3)
        shadow = {k[1]: v for k, v in heard.events.items() if k[0] == "shadow"}
        # The candidate answered later.
        assert shadow == {"same": 4, "dropped": 4, "failed": 1}
        new.error, new.delay, new.says = None, 0.0, always(7)
        await ask(versions)
        await asyncio.sleep(0.01)
        assert heard.events["shadow", "different"] == 1
        assert versions.describe()["shadow"] and versions.describe()["share"] == 0

    using(body, RolloutPlan(shares=(0.0, 1.0)), copies=4)


def test_a_canary_always_gets_the_same_share() -> None:
    async def body(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        first = [await ask(versions, k) for k in range(400)]
        assert first == [await ask(versions, k) for k in range(400)]
        assert set(first) == {(1, "1"), (2, "2")}
        assert 0.14 < sum(v == 2 for v, _ in first) / 400 < 0.26
        versions.forward()
        second = [await ask(versions, k) for k in range(400)]
        # A larger share includes the smaller one.
        assert all(
            b == 2 for (a, _), (b, _) in zip(first, second, strict=True) if a == 2
        )
        by_id = {await ask(versions, k, id="one") for k in range(10)}
        assert len(by_id) == 1
        assert heard.events["choices", "new"] > 100

    using(body, RolloutPlan(shares=(0.2, 0.6)))


def test_a_canary_selected_by_client() -> None:
    async def body(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        found = {}
        for k in range(200):
            client = f"client {k % 20}"
            found.setdefault(client, set()).add(await ask(versions, k, client=client))
        assert all(len(answers) == 1 for answers in found.values())
        assert {a for (a,) in found.values()} == {(1, "1"), (2, "2")}

    using(body, RolloutPlan(shares=(0.5,)), by="client")


@pytest.mark.parametrize("how", ["errors", "late", "gone"])
def test_a_bad_candidate_is_rolled_back_without_a_lost_request(how: str) -> None:
    async def body(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        if how == "errors":
            new.error = ServeError("it crashed", 500)
        elif how == "late":
            new.delay = 0.03
        else:
            new.error = ServeError("model 'new' is not loaded", 503)

        async def client(k: int) -> None:
            for n in range(20):
                value, _ = await ask(versions, 100 * k + n)
                answers.append(value)

        answers: list[int] = []
        await asyncio.gather(*(client(k) for k in range(30)))
        assert len(answers) == 600  # every request has an answer
        assert versions.rollout.back and versions.describe()["share"] == 0
        assert heard.events["rollbacks", "new"] == 1
        asked = new.asked
        await client(99)
        assert new.asked == asked
        versions.forward()  # the candidate was repaired
        new.error, new.delay = None, 0.0
        await client(98)
        assert new.asked > asked and not versions.rollout.back

    plan = RolloutPlan(
        shares=(0.5, 1.0), least=10, slow=0.02 if how == "late" else None
    )
    using(body, plan)


def test_a_canary_that_hangs_leaves_time_for_the_stable_version() -> None:
    async def body(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        new.delay = 60.0
        assert await ask(versions) == (1, "1")
        assert 0.15 < virtual_time.now() < 0.4
        assert heard.events["failures", "new"] == 1

    using(body, RolloutPlan(shares=(1.0,)), deadline=0.4)


def test_a_good_candidate_reaches_every_step() -> None:
    async def body(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        shares = []
        for k in range(400):
            await ask(versions, k)
            await asyncio.sleep(0)
            if versions.rollout.share not in shares[-1:]:
                shares.append(versions.rollout.share)
        assert shares == [0.0, 0.3, 1.0]
        assert await ask(versions) == (2, "2")
        versions.back("an operator said so")
        assert await ask(versions) == (1, "1")
        assert versions.describe()["rolled_back"] == "an operator said so"

    using(body, RolloutPlan(shares=(0.0, 0.3, 1.0), hold=50))


# -- streams of results ----------------------------------------------------------------


def streaming(
    body: Callable[[Versions, Fake, Fake, Heard], Awaitable[None]],
    plan: RolloutPlan,
    **options: Any,
) -> None:
    async def prepared(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        old.signature = new.signature = signature(streamed=True)
        versions.check()
        await body(versions, old, new, heard)

    using(prepared, plan, **options)


async def read(
    versions: Versions, value: float = 0.0, most: int = 9, **origin: str
) -> tuple[list[int], set[str]]:
    """Returns a stream's results, or the first of them, and their versions."""
    x = np.full(1, value, np.float32)
    request = PredictionRequest({"x": x}, 1, origin=RequestOrigin(**origin))
    results = versions.stream(request)
    found, of = [], set()
    async with aclosing(results):
        async for answer in results:
            assert answer.provenance is not None
            found.append(int(answer.outputs["y"][0]))
            of.add(answer.provenance.version)
            if len(found) == most:
                break
    return found, of


def test_a_stream_always_comes_from_the_same_version() -> None:
    async def body(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        first = [await read(versions, k) for k in range(100)]
        assert first == [await read(versions, k) for k in range(100)]
        assert {tuple(found): of for found, of in first} == {
            (1, 2, 3): {"1"},
            (2, 3, 4): {"2"},
        }
        assert 20 < sum(of == {"2"} for _, of in first) < 80
        by_id = [await read(versions, k, id="one") for k in range(10)]
        assert all(found == by_id[0] for found in by_id)
        with pytest.raises(ServeError, match="/v2/models/m/generate_stream") as caught:
            await ask(versions)
        assert caught.value.status == 400

    streaming(body, RolloutPlan(shares=(0.5,)))


def test_the_stable_version_takes_over_before_the_first_result() -> None:
    async def body(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        new.delay = 60.0
        assert await read(versions) == ([1, 2, 3], {"1"})
        assert 0.15 < virtual_time.now() < 0.4
        new.delay, new.fails = 0.0, 0
        assert await read(versions) == ([1, 2, 3], {"1"})
        assert versions.describe()["failed"] == 2
        # A stream that has started is not restarted.
        new.fails = 2
        with pytest.raises(ServeError, match="it ended"):
            await read(versions)
        assert versions.describe()["failed"] == 3 == heard.events["failures", "new"]
        # An empty stream is a success.
        new.results = 0
        assert await read(versions) == ([], set())
        assert versions.describe()["requests"] == 4

    streaming(body, RolloutPlan(shares=(1.0,)), deadline=0.4)


def test_streams_that_fail_later_roll_a_candidate_back() -> None:
    async def body(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        new.fails = 1
        for _ in range(10):
            with pytest.raises(ServeError, match="it ended"):
                await read(versions)
        assert "10 of 10 requests failed" in versions.rollout.back
        assert await read(versions) == ([1, 2, 3], {"1"})

    streaming(body, RolloutPlan(shares=(1.0,), least=10))


def test_closing_a_stream_closes_the_candidates() -> None:
    async def body(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        assert await read(versions, most=1) == ([2], {"2"})
        assert new.closed == 1 and versions.describe()["requests"] == 1
        # Closing before the first result does not count.
        new.delay = 0.5
        task = asyncio.create_task(read(versions))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert new.closed == 2 and versions.describe()["requests"] == 1

    streaming(body, RolloutPlan(shares=(1.0,)))


def test_a_shadow_of_a_stream_is_compared() -> None:
    async def body(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        async def compared(kind: str) -> None:
            before = heard.events["shadow", kind]
            assert (await read(versions))[1] == {"1"}
            await asyncio.sleep(0.01)
            assert heard.events["shadow", kind] == before + 1

        await compared("different")
        new.says = always(1)
        await compared("same")
        for new.results in (2, 4):  # fewer or more results
            await compared("different")
        # Long streams are compared by their first results and then closed.
        old.results, new.results, new.asked = 100, 1_000_000, 0
        assert (await read(versions, most=200))[0] == [*range(1, 101)]
        await asyncio.sleep(0.05)
        assert heard.events["shadow", "same"] == 2 and new.asked == 64
        new.fails = 1
        old.results = 3
        await compared("failed")
        assert versions.describe()["failed"] == 1

    streaming(body, RolloutPlan(shares=(0.0,)))


# --------------------------------------------------------------------------------------


def test_versions_are_pinned_and_checked() -> None:
    async def body(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        assert versions.versions == ("1", "2") and versions.ready
        assert versions.pinned("2") is new and versions.pinned("1") is old
        with pytest.raises(ServeError, match="versions: '1', '2'") as caught:
            versions.pinned("3")
        assert caught.value.status == 404
        assert versions.stats() == {("share", "new"): 0.5, ("rolled_back", "new"): 0}
        new.signature = signature("f32[batch]")
        with pytest.raises(ServeError, match="'old' and 'new' differ in outputs"):
            versions.check()

    using(body, RolloutPlan(shares=(0.5,)))


def test_processes_under_load() -> None:
    """Steps forward and back, and a killed candidate, with requests in flight."""
    source = ModelSource("tests.serve.zoo:act", inputs={"x": "f32[b,2]"}, max_batch=8)

    async def main() -> None:
        plan = RolloutPlan(shares=(0.5, 1.0), least=5)
        models = [
            ModelConfig(m, source, slo=2.0, deadline=20.0) for m in ("old", "new")
        ]
        repository = Repository(models)
        faults = await repository.configure(
            models, [VersionsConfig("m", "old", "new", plan)]
        )
        assert not faults, faults
        versions = repository.get("m")
        assert isinstance(versions, Versions)
        models_of: list[str] = []

        async def client(number: int, stop: asyncio.Event) -> None:
            k = 0
            while not stop.is_set():
                k += 1
                x = np.full((1, 2), 10 + number, np.float32)
                origin = RequestOrigin(f"{number} {k}")
                request = PredictionRequest({"x": x}, 1, origin=origin)
                answer = await repository.get("m").submit(request)
                assert (answer.outputs["output"] == x).all()  # the request's own answer
                assert answer.provenance is not None
                models_of.extend(answer.provenance.models)

        async def until(wanted: set[str], count: int = 40) -> None:
            del models_of[:]
            while len(models_of) < count or set(models_of[-count:]) != wanted:
                await asyncio.sleep(0.002)

        stop = asyncio.Event()
        clients = [asyncio.create_task(client(k, stop)) for k in range(12)]
        try:
            async with asyncio.timeout(60):
                await until({"old", "new"})
                versions.forward()
                await until({"new"})
                versions.back()
                await until({"old"})
                versions.forward()
                await until({"old", "new"})
                # One kill may meet too few requests in flight for the limit of errors.
                while not versions.rollout.back:
                    for pid in repository.member("new").pids():
                        with suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                    await asyncio.sleep(0.002)
                await until({"old"})
            stop.set()
            await asyncio.gather(*clients)  # no client had an error
        finally:
            for task in clients:
                task.cancel()
            await repository.drain()

    asyncio.run(main())


def test_results_are_compared_within_a_tolerance() -> None:
    half = np.array([1.0], ml_dtypes.bfloat16)
    assert same({"y": half}, {"y": half.copy()}, 0.0)
    assert not same({"y": half}, {"y": half * 2}, 0.1)
    assert same({"y": np.array([np.nan])}, {"y": np.array([np.nan])}, 0.1)
    assert not same({"y": np.array([1, 2])}, {"y": np.array([1, 3])}, 9.0)
    assert not same({"y": np.array([1])}, {"y": np.array([1, 1])}, 0.1)
    assert not same({"y": np.array([1])}, {"z": np.array([1])}, 0.1)
    text = np.array([b"a"], object)
    assert same({"y": text}, {"y": text.copy()}, 0.1)


# -- decisions -------------------------------------------------------------------------


def test_shares_are_stable_and_even() -> None:
    points = [point_of("m", b"%d" % k) for k in range(4000)]
    assert points == [point_of("m", b"%d" % k) for k in range(4000)]
    for share in (0.01, 0.1, 0.5):
        got = sum(p < share for p in points) / len(points)
        assert got == pytest.approx(share, abs=0.03)
    # Another rollout starts with other clients.
    other = [point_of("n", b"%d" % k) for k in range(4000)]
    both = sum(p < 0.5 and q < 0.5 for p, q in zip(points, other, strict=True))
    assert both / 4000 == pytest.approx(0.25, abs=0.03)


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_lower_bound_is_below_the_rate(bad: int, more: int) -> None:
    of = bad + more
    low = least_rate(bad, of)
    assert 0 <= low <= (bad / of if of else 0) + 1e-12
    if bad and more:
        assert least_rate(10 * bad, 10 * of) > low  # more is known


def run(
    plan: RolloutPlan, errors: float, slow: float, requests: int, seed: int
) -> Rollout:
    rng = random.Random(seed)
    rollout = Rollout(plan)
    for _ in range(requests):
        seconds = 1.0 if rng.random() < slow else 0.01
        rollout = rollout.after(failed=rng.random() < errors, seconds=seconds)
    return rollout


PLAN = RolloutPlan(shares=(0.1, 1.0), max_errors=0.05, slow=0.1, max_slow=0.1)


def test_a_bad_version_is_rolled_back_soon() -> None:
    for seed in range(20):
        assert "failed" in run(PLAN, 0.5, 0.0, 40, seed).back
        assert "took more than 0.1 s" in run(PLAN, 0.0, 0.6, 40, seed).back


def test_a_good_version_is_rarely_rolled_back() -> None:
    back = sum(bool(run(PLAN, 0.01, 0.03, 500, seed).back) for seed in range(20))
    assert back <= 1


def test_few_requests_decide_nothing() -> None:
    rollout = Rollout(RolloutPlan(shares=(0.1,), least=20))
    for _ in range(19):
        rollout = rollout.after(failed=True, seconds=0.0)
        assert rollout.share == 0.1
    assert rollout.after(failed=True, seconds=0.0).share == 0.0


def test_each_step_begins_after_hold_requests() -> None:
    plan = RolloutPlan(shares=(0.0, 0.5, 1.0), hold=30)
    rollout, shares = Rollout(plan), []
    assert rollout.shadowed
    for _ in range(100):
        shares.append(rollout.share)
        rollout = rollout.after(failed=False, seconds=0.0)
    assert [shares.count(s) for s in plan.shares] == [30, 30, 40]
    by_hand = Rollout(RolloutPlan(shares=(0.0, 1.0)))
    for _ in range(5000):
        by_hand = by_hand.after(failed=False, seconds=0.0)
    assert by_hand.share == 0.0 and len(by_hand.seen) == by_hand.plan.window
    assert by_hand.forward().share == by_hand.forward().forward().share == 1.0


def test_a_rollout_can_restart_after_a_rollback() -> None:
    rollout = Rollout(RolloutPlan(shares=(0.5, 1.0))).forward().rolled_back("by hand")
    assert (rollout.share, rollout.shadowed, rollout.back) == (0.0, False, "by hand")
    assert rollout.after(failed=False, seconds=0.0) == rollout
    again = rollout.forward()
    assert (again.share, again.back) == (0.5, "")


# -- labels ----------------------------------------------------------------------------


def judged(plan: RolloutPlan, stable: Auc, candidate: Auc, requests: int) -> Rollout:
    rollout = Rollout(plan)
    for _ in range(requests):
        rollout = rollout.after(failed=False, seconds=0.01)
    return rollout.judged(stable, candidate)


def test_labels_decide_beyond_chance_only() -> None:
    plan = RolloutPlan(shares=(0.1, 1.0), hold=30, max_auc_loss=0.01)
    many, few = 20_000, 500
    good = judged(plan, Auc(0.75, many, many), Auc(0.751, many, many), 40)
    assert good.step == 1 and not good.back and good.aucs[1].value == 0.751
    # Equal, but that could be chance: neither forward nor back.
    open_ = judged(plan, Auc(0.75, few, few), Auc(0.75, few, few), 40)
    assert (open_.step, open_.back) == (0, "")
    bad = judged(plan, Auc(0.75, many, many), Auc(0.70, many, many), 40)
    assert bad.share == 0 and "its AUC is 0.7000 after 40000 labels" in bad.back
    # Few labels say nothing, even without any request.
    assert not judged(plan, Auc(0.9, 99, many), Auc(0.1, 99, many), 0).back
    # Without enough requests the share does not grow.
    assert judged(plan, Auc(0.75, many, many), Auc(0.75, many, many), 10).step == 0


def test_no_share_grows_without_labels_if_they_decide() -> None:
    plan = RolloutPlan(shares=(0.1, 1.0), hold=30, max_auc_loss=0.01)
    rollout = Rollout(plan)
    for _ in range(100):
        rollout = rollout.after(failed=False, seconds=0.01)
    assert rollout.step == 0


@pytest.mark.parametrize(("better", "back"), [(0, True), (1, False)])
def test_a_shadow_is_judged_by_labels(better: int, back: bool, tmp_path: Any) -> None:
    """The candidate's scores are noise, or those of the stable version."""
    plan = RolloutPlan(shares=(0.0, 1.0), hold=20, max_auc_loss=0.1)
    file = tmp_path / "labels.jsonl"
    noise = random.Random(0)

    async def body(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        old.says = lambda x: x
        new.says = lambda x: x if better else x * 0 + noise.random()
        for k in range(700):
            clicked = k % 3 == 0
            score = np.float32(min(max(noise.gauss(0.4 + 0.2 * clicked, 0.15), 0), 1))
            request = PredictionRequest(
                {"x": np.full(1, score)}, 1, origin=RequestOrigin(id=f"r{k}")
            )
            await versions.submit(request)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            joined = await versions.feedback(id=f"r{k}", label=[int(clicked)])
            assert joined.rows == 1
            if versions.rollout.back or versions.rollout.share:
                break
        assert bool(versions.rollout.back) == back
        assert back or versions.rollout.share == 1.0
        if back:
            assert "its AUC is" in versions.rollout.back
            assert heard.events["rollbacks", "new"] == 1
        described = versions.describe()["auc"]
        assert described["old"]["value"] > 0.7
        assert ("auc", "new") in versions.stats()
        with pytest.raises(ServeError, match="has feedback already"):
            await versions.feedback(id="r0", label=[1])
        with pytest.raises(ServeError, match="must have 'id' and 'label'"):
            await versions.feedback(loss=0.5)
        versions.forward()
        assert not versions.rollout.back

    using(body, plan, kind="f32[batch]", feedback=str(file))
    assert len(file.read_text().splitlines()) >= 200


def test_labels_need_scores(tmp_path: Any) -> None:
    async def body(versions: Versions, old: Fake, new: Fake, heard: Heard) -> None:
        with pytest.raises(ServeError, match="'m' takes no feedback: set its option"):
            await versions.feedback(id="x", label=1)

    using(body, RolloutPlan(shares=(0.0, 1.0)))
    plan = RolloutPlan(max_auc_loss=0.1)
    with pytest.raises(ServeError, match="one score for each row, 'y' is i64"):
        using(body, plan)
    with pytest.raises(ServeError, match="unknown output 'z'; outputs: y"):
        using(body, plan, output="z")
