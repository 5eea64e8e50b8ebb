"""States that servers share in a real redis-server."""

from __future__ import annotations

import asyncio
import math
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.selection.memory import Exchange
from fxflow.serve.selection.policies import Change, Exp4, LossTotals
from fxflow.serve.selector import Selector, SelectorConfig
from fxflow.serve.service import PredictionRequest, RequestOrigin
from fxflow.serve.store import RedisStore
from tests.serve.fakes import Fake, Heard, always, lookup
from tests.serve.redis_server import RedisServer, redis_server


@pytest.fixture(scope="module")
def shared() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


def serving(
    body: Callable[..., Awaitable[None]],
    server: RedisServer,
    count: int,
    **options: Any,
) -> None:
    """Runs several servers' selectors of the same name."""

    async def main() -> None:
        name = f"m{random.getrandbits(60)}"
        options.setdefault("store_timeout", 0.5)
        config = SelectorConfig(name, ("a", "b"), store=server.url, **options)
        members = {"a": Fake(always(1)), "b": Fake(always(2))}
        selectors = [Selector(config, lookup(members), Heard()) for _ in range(count)]
        try:
            await body(*selectors)
        finally:
            for selector in selectors:
                await selector.drain()

    asyncio.run(main())


def ask(selector: Selector, value: float = 0.0, **origin: str) -> Any:
    return selector.submit(
        PredictionRequest(
            {"x": np.full(1, value, np.float32)}, 1, origin=RequestOrigin(**origin)
        )
    )


def test_servers_share_what_they_learn(shared: RedisServer) -> None:
    async def body(one: Selector, other: Selector) -> None:
        for k in range(30):
            answer = await ask(one, k, context="alice")
            joined = await one.feedback(id=answer.provenance.id, label=1)
            assert joined.shared is True
        # The state of a new context is read at its first request.
        answer = await ask(other, context="alice")
        assert answer.outputs["y"].tolist() == [1]
        mine, theirs = one.describe("alice"), other.describe("alice")
        assert mine["models"] == theirs["models"] and mine["shared"] is True

    serving(body, shared, 2)


def test_feedback_reaches_the_server_that_did_not_answer(shared: RedisServer) -> None:
    async def body(one: Selector, other: Selector) -> None:
        await ask(one, id="r", context="alice")
        assert one._sharing is not None
        assert await one._sharing.settled(1.0)
        joined = await other.feedback(id="r", label=[2])
        assert joined.losses == {"a": 1.0, "b": 0.0}
        for _ in range(2):
            with pytest.raises(ServeError, match="has feedback already") as caught:
                await other.feedback(id="r", label=[2])
            assert caught.value.status == 409
        await ask(one, id="s")
        await one.feedback(id="s", label=[1])
        with pytest.raises(ServeError, match="has feedback already"):
            await other.feedback(id="s", label=[2])
        with pytest.raises(ServeError, match="prediction id") as caught:
            await other.feedback(id="t", label=[2])
        assert caught.value.status == 404
        # Invalid feedback does not use up the record.
        await ask(one, id="u")
        assert await one._sharing.settled(1.0)
        with pytest.raises(ServeError, match="got 3"):
            await other.feedback(id="u", label=[1, 2, 3])
        assert await other.feedback(id="u", label=[1])

    serving(body, shared, 2)


def test_concurrent_changes_are_all_counted(shared: RedisServer) -> None:
    async def body(*selectors: Selector) -> None:
        async def client(number: int) -> None:
            rng = random.Random(number)
            for k in range(40):
                selector = rng.choice(selectors)
                answer = await ask(selector, k)
                await selector.feedback(id=answer.provenance.id, label=1)

        await asyncio.gather(*(client(k) for k in range(8)))
        await asyncio.sleep(0.25)
        for selector in selectors:
            selector.describe()
            assert selector._sharing is not None
            assert await selector._sharing.settled(2.0)
            found = selector.describe()["models"]
            assert found["b"]["losses"] == found["b"]["loss"] == 320
            assert found["a"]["loss"] == 0

    serving(body, shared, 3, policy=Exp4(window=math.inf))


def test_no_request_fails_while_redis_is_down_or_slow() -> None:
    with redis_server() as server:

        async def body(one: Selector, other: Selector) -> None:
            async def rounds(count: int, name: str) -> float:
                worst = 0.0
                for k in range(count):
                    begun = time.monotonic()
                    answer = await ask(one, k, context=f"{name} {k}")
                    await one.feedback(id=answer.provenance.id, label=1)
                    worst = max(worst, time.monotonic() - begun)
                return worst

            await rounds(5, "up")
            server.pause()
            # Until the failure is noticed, a request waits twice for 50 ms.
            assert await rounds(5, "slow") < 5
            end = time.monotonic() + 10
            while one.describe()["shared"]:
                await asyncio.sleep(0.05)
                assert time.monotonic() < end
            assert await rounds(50, "away") < 5
            # Feedback for another server's request is refused for now.
            begun = time.monotonic()
            with pytest.raises(ServeError, match="does not answer") as caught:
                await one.feedback(id="elsewhere", label=1)
            assert caught.value.status == 503 and time.monotonic() - begun < 5
            server.resume()
            await back(one)
            server.stop()
            await rounds(20, "gone")
            server.start()
            await back(one)
            # The other server has the changes made meanwhile.
            await ask(other, context="gone 3")
            assert other.describe("gone 3")["models"]["b"]["losses"] == 1
            stats = one.stats()
            assert stats["store", "up"] == 1 and stats["store", "failures"] >= 2
            assert stats["store", "dropped"] == 0

        async def back(one: Selector) -> None:
            assert one._sharing is not None
            end = time.monotonic() + 20
            while not await one._sharing.settled(0.1) or one._contexts.pending:
                await asyncio.sleep(0.02)
                assert time.monotonic() < end

        serving(body, server, 2, store_timeout=0.05)


def test_an_exchange_is_applied_once_and_memory_is_bounded(shared: RedisServer) -> None:
    async def main() -> None:
        store = RedisStore(shared.url, "once", ("a", "b"), contexts=3, within=60.0)
        change = Change(0.5, (1.0, 0.0), (0.25, 0.0))
        for number, count in ((1, 1.0), (1, 1.0), (2, 1.5), (1, 1.5), (2, 1.5)):
            exchange = Exchange(number, {"x": change}, ("x", "unknown"))
            found = await store.exchange(exchange, {})
            assert found["x"].counts == (count, 0.0)
            assert found["unknown"] == LossTotals.start(2)
        for k in range(10):
            name = str(k)
            await store.exchange(Exchange(3 + k, {name: change}, (name,)), {})
        prefix = store._prefix
        assert await store._client.zcard(f"{prefix}contexts") == 3
        keys = await store._client.keys(f"{prefix}state:*")
        assert {key.decode()[-1] for key in keys} == set("789")
        # Malformed values at its keys are ignored.
        for text in ("nonsense", "nan 1 1 1", "1 2 3", "1 2 3 inf", ""):
            await store._client.set(f"{prefix}state:9", text)
            found = await store.exchange(Exchange(99, {}, ("9",)), {})
            assert found == {"9": LossTotals.start(2)}
        await store._client.set(f"{prefix}record:r", "{}")
        with pytest.raises(ValueError, match="not a prediction record"):
            await store.fetch("r")
        await store.close()

    asyncio.run(main())


def test_invalid_urls_are_refused() -> None:
    pytest.importorskip("redis", reason="pip install 'fxflow[redis]'")
    with pytest.raises(ServeError, match="store: Redis URL"):
        RedisStore("http://127.0.0.1", "m", ("a",), 1, 1.0)


def test_redis_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(ServeError, match=r"pip install 'fxflow\[redis\]'"):
        RedisStore("redis://127.0.0.1", "m", ("a",), 1, 1.0)
