"""Shares the states of selectors among servers in Redis, without delaying requests.

Each server updates its own copy at once, and later sends the accumulated changes in one
exchange; the reply has the states with the other servers' changes. Exchanges are
numbered, so that one whose reply was lost is not applied twice. While Redis is down or
slow, servers keep working with their copies and accumulate changes; when it is back,
their states converge again. Pending changes are bounded by the number of contexts, and
pending records by a constant.

A Lua script applies an exchange atomically: changes (decay and addition) are the same
arithmetic for all policies.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import math
import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from fxflow.errors import ServeError
from fxflow.serve.selection.memory import Contexts, Exchange, PredictionRecord
from fxflow.serve.selection.policies import LossTotals

if TYPE_CHECKING:
    from fxflow.serve.selector import SelectorConfig

_log = logging.getLogger("fxflow.serve")
#: Timeout of Redis in seconds. Requests do not wait for exchanges.
_TIMEOUT = 1.0
#: Seconds before Redis is tried again: the first time, and at most.
_RETRY = (0.1, 2.0)
#: Records sent with one exchange, and most pending records.
_RECORDS, _MAX_RECORDS = 256, 10_000
#: Seconds after which unused entries expire: states, exchange numbers.
_MONTH, _DAY = 30 * 86400, 86400
_USED = b"used"

#: KEYS: the server's last exchange number, contexts by last use, states. ARGV: exchange
#: number, models, most contexts, seconds until a state expires, seconds until a number
#: expires; then for each state its decay factor (empty: read only) and the addends.
_EXCHANGE = """
local models, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local fresh = tonumber(ARGV[1]) > tonumber(redis.call('GET', KEYS[1]) or '0')
if fresh then redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[5]) end
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1e6
local found, at = {}, 6
for n = 3, #KEYS do
  local numbers = {}
  local text = redis.call('GET', KEYS[n])
  for word in string.gmatch(text or '', '%S+') do
    local x = tonumber(word)
    if x and x >= 0 and x < 1e300 then numbers[#numbers + 1] = x end
  end
  if #numbers ~= 2 * models then
    for k = 1, 2 * models do numbers[k] = 0 end
  end
  local changed = ARGV[at] ~= ''
  if changed then
    local keep = tonumber(ARGV[at])
    if fresh then
      for k = 1, 2 * models do
        numbers[k] = keep * numbers[k] + tonumber(ARGV[at + k])
      end
    end
    at = at + 2 * models
  end
  at = at + 1
  local words = {}
  for k = 1, 2 * models do words[k] = string.format('%.17g', numbers[k]) end
  found[#found + 1] = table.concat(words, ' ')
  if text or changed then
    redis.call('SET', KEYS[n], found[#found], 'EX', ARGV[4])
    redis.call('ZADD', KEYS[2], now, KEYS[n])
  end
end
local over = redis.call('ZCARD', KEYS[2]) - most
if over > 0 then
  local old = redis.call('ZPOPMIN', KEYS[2], over)
  for k = 1, #old, 2 do redis.call('DEL', old[k]) end
end
redis.call('EXPIRE', KEYS[2], ARGV[4])
return found
"""
_CLAIM = """
local found = redis.call('GET', KEYS[1])
if not found then return 0 end
if found == 'used' then return 1 end
redis.call('SET', KEYS[1], 'used', 'KEEPTTL')
return 2
"""


class RedisStore:
    """The states and records of one selector in Redis.

    Args:
      url: URL such as ``redis://127.0.0.1:6379/0``; ``rediss`` uses TLS.
      name: name of the selector and its policy.
      models: names of its models; other models have other states.
      contexts: most contexts in Redis.
      within: seconds for which records are kept.

    Raises:
      ServeError: redis is not installed, or `url` is not a Redis URL.
    """

    def __init__(
        self, url: str, name: str, models: tuple[str, ...], contexts: int, within: float
    ) -> None:
        try:
            import redis.asyncio as redis
            from redis.asyncio.retry import Retry
            from redis.backoff import NoBackoff
            from redis.exceptions import RedisError
        except ImportError:
            raise ServeError(
                "states in Redis need redis: pip install 'fxflow[redis]'"
            ) from None
        #: Errors of Redis and of its connection.
        self.errors: tuple[type[Exception], ...] = (RedisError, OSError, TimeoutError)
        try:
            self._client: Any = redis.from_url(
                url,
                socket_timeout=_TIMEOUT,
                socket_connect_timeout=_TIMEOUT,
                retry=Retry(NoBackoff(), 0),  # `Sharing._run` retries
                protocol=2,
            )
        except (ValueError, RedisError) as error:
            raise ServeError(f"store: {error}", 400) from None
        self._models, self._contexts = len(models), contexts
        self._within = max(1, math.ceil(within))
        # The braces put all keys in one hash slot, as scripts require in a cluster.
        digest = hashlib.blake2b(json.dumps([name, *models]).encode(), digest_size=8)
        self._prefix = f"fxflow:{{{name}:{digest.hexdigest()}}}:"
        self._writer = secrets.token_hex(8)

    async def exchange(
        self, exchange: Exchange | None, records: dict[str, PredictionRecord | None]
    ) -> dict[str, LossTotals]:
        """Applies changes, stores records, and returns states.

        Args:
          exchange: from `Contexts.exchange`; None: only records.
          records: records by id; None marks a record as used.

        Returns:
          States by context.
        """
        pipe = self._client.pipeline(transaction=False)
        for id, record in records.items():
            text = _USED if record is None else json.dumps(record.to_json())
            pipe.set(f"{self._prefix}record:{id}", text, ex=self._within)
        if exchange is not None:
            keys = [f"{self._prefix}writer:{self._writer}", f"{self._prefix}contexts"]
            values: list[Any] = [
                exchange.number, self._models, self._contexts, _MONTH, _DAY
            ]  # fmt: skip
            for context in exchange.wanted:
                keys.append(f"{self._prefix}state:{context}")
                change = exchange.changes.get(context)
                if change is None:
                    values.append("")
                else:
                    values += map(repr, (change.keep, *change.counts, *change.loss))
            pipe.eval(_EXCHANGE, len(keys), *keys, *values)
        found = await pipe.execute()
        if exchange is None:
            return {}
        return dict(zip(exchange.wanted, map(self._state, found[-1]), strict=True))

    def _state(self, text: bytes) -> LossTotals:
        numbers = tuple(map(float, text.split()))
        if not all(0 <= x < math.inf for x in numbers):
            raise ValueError(f"Redis has a malformed state: {text[:80]!r}")
        return LossTotals(numbers[: self._models], numbers[self._models :])

    async def fetch(self, id: str) -> PredictionRecord | None:
        """Returns the record of a request that another server answered.

        Args:
          id: id of the request.

        Returns:
          The record, or None if Redis has no such record.

        Raises:
          ServeError: status 409; it has feedback already.
        """
        text = await self._client.get(f"{self._prefix}record:{id}")
        if text is None:
            return None
        if text == _USED:
            raise ServeError(f"request {id!r} has feedback already", 409)
        return PredictionRecord.from_json(id, json.loads(text), self._models)

    async def claim(self, id: str) -> bool:
        """Marks a record as used.

        Args:
          id: id of the request.

        Returns:
          Whether the record was unused.
        """
        found = await self._client.eval(_CLAIM, 1, f"{self._prefix}record:{id}")
        return bool(found == 2)

    async def disconnect(self) -> None:
        """Drops connections, so that a late reply is not read as another command's."""
        await self._client.connection_pool.disconnect()

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()


class Sharing:
    """Synchronizes the states of a selector with those of other servers.

    Args:
      contexts: the states.
      store: the store that servers share.
      timeout: seconds that a request may wait for the store.

    Attributes:
      up: whether the last exchange succeeded.
      failures: number of failed exchanges.
      dropped: number of records dropped because too many were pending.
    """

    up: bool
    failures: int
    dropped: int

    def __init__(self, contexts: Contexts, store: RedisStore, timeout: float) -> None:
        self._contexts, self._store, self._timeout = contexts, store, timeout
        self.up = True
        self.failures = self.dropped = 0
        self._records: OrderedDict[str, PredictionRecord | None] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        self._busy = False
        self._done = 0
        self._tick = asyncio.Event()

    @classmethod
    def of(cls, config: SelectorConfig, contexts: Contexts) -> Sharing | None:
        """Returns the `Sharing` of a selector, or None if it has no store.

        Args:
          config: the selector's configuration.
          contexts: its states.

        Returns:
          The `Sharing`, or None.

        Raises:
          ServeError: redis is not installed, or the store is not a Redis URL.
        """
        if config.store is None:
            return None
        store = RedisStore(
            config.store,
            f"{config.name}/{config.policy.name}",
            config.models,
            config.contexts,
            config.within,
        )
        return cls(contexts, store, config.store_timeout)

    def wake(self) -> None:
        """Starts exchanging if anything is pending."""
        if self._task is None and (self._contexts.pending or self._records):
            self._task = asyncio.get_running_loop().create_task(self._run())

    def keep(self, record: PredictionRecord) -> None:
        """Shares a prediction's record with other servers.

        Args:
          record: the record.
        """
        self._enqueue(record.id, record)

    def used(self, record: PredictionRecord) -> None:
        """Marks a prediction's record as used on all servers.

        Args:
          record: the record.
        """
        self._enqueue(record.id, None)

    def _enqueue(self, id: str, record: PredictionRecord | None) -> None:
        self._records[id] = record
        while len(self._records) > _MAX_RECORDS:
            self._records.popitem(last=False)
            self.dropped += 1
        self.wake()

    async def settled(self, timeout: float) -> bool:
        """Waits until the store has the current state.

        Args:
          timeout: seconds.

        Returns:
          Whether it has; False at once while the store is down.
        """
        self.wake()
        if self._task is None:
            return self.up
        wanted = self._done + (2 if self._busy else 1)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self.up and self._done < wanted and self._task is not None:
                    await self._tick.wait()
        return self.up and (self._done >= wanted or self._task is None)

    async def fetch(self, id: str) -> PredictionRecord:
        """Returns the record of a request that another server answered.

        Args:
          id: id of the request.

        Returns:
          The record.

        Raises:
          ServeError: 404 if the id is unknown, 409 if it has feedback already, 503 if
            the store does not answer.
        """
        found: PredictionRecord | None = await self._query(self._store.fetch(id))
        if found is None:
            raise ServeError(f"prediction id {id!r} is unknown or expired", 404)
        return found

    async def claim(self, id: str) -> None:
        """Marks the record of another server's request as used.

        Args:
          id: id of the request.

        Raises:
          ServeError: 409 if it has feedback already, 503 if the store does not answer.
        """
        if not await self._query(self._store.claim(id)):
            raise ServeError(f"request {id!r} has feedback already", 409)

    async def _query(self, reply: Any) -> Any:
        try:
            if not self.up:
                reply.close()
                raise TimeoutError("Redis timed out on the previous attempt")
            async with asyncio.timeout(max(self._timeout, 0.001) * 5):
                return await reply
        except self._store.errors as error:
            raise ServeError(
                "another server made the prediction, and the store with its record "
                f"does not answer: {error or type(error).__name__}",
                503,
                1.0,
            ) from None
        except ValueError as error:
            raise ServeError(
                f"the store has no such prediction: {error}", 404
            ) from None

    async def close(self) -> None:
        """Sends what is pending if the store is up, and closes the connections."""
        if self.up:
            await self.settled(_TIMEOUT)
        if self._contexts.pending:
            _log.warning("the latest changes were not sent to the store")
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._store.close()

    async def _run(self) -> None:
        pause = _RETRY[0]
        expected: tuple[type[Exception], ...] = (*self._store.errors, ValueError)
        try:
            while self._contexts.pending or self._records:
                exchange = self._contexts.exchange() if self._contexts.pending else None
                records = dict(list(self._records.items())[:_RECORDS])
                self._busy = True
                try:
                    async with asyncio.timeout(2 * _TIMEOUT):
                        states = await self._store.exchange(exchange, records)
                except expected as error:
                    self._failed(error)
                    with contextlib.suppress(*self._store.errors):
                        await self._store.disconnect()
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _RETRY[1])
                    continue
                finally:
                    self._busy = False
                if not self.up:
                    _log.warning("the store answers again")
                self.up, pause = True, _RETRY[0]
                for id, record in records.items():
                    if self._records.get(id, record) is record:
                        self._records.pop(id, None)
                if exchange is not None:
                    now = asyncio.get_running_loop().time()
                    self._contexts.exchanged(states, now)
                self._done += 1
                self._notify()
        finally:
            self._task = None
            self._notify()

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        if self.up:
            words = str(error) or type(error).__name__
            _log.warning("the store does not answer, states are not shared: %s", words)
        self.up = False
        self._notify()

    def _notify(self) -> None:
        self._tick.set()
        self._tick = asyncio.Event()
