"""States that several servers share in Redis, for which no request waits long.

Each server updates its own copy at once. Its changes are sent later, all that have
gathered in one exchange, whose answer holds the changes of the others. An exchange has
a number, so that one whose answer was lost is not applied twice. While Redis is down or
slow, servers go on with their copies and gather changes; when it is back they agree
again. What waits is bounded by the number of contexts and of records.

A script in Redis applies an exchange in one step: the change of a state, fading and
addition, is the same arithmetic for all policies.
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
#: Seconds for one exchange, for which no request waits.
_PATIENCE = 1.0
#: Seconds until Redis is tried again: the first time, and at most.
_AGAIN = (0.1, 2.0)
#: Records that go with one exchange, and that may wait for one.
_RECORDS, _MOST_RECORDS = 256, 10_000
#: Seconds after which unused entries expire: a state, a server's number.
_MONTH, _DAY = 30 * 86400, 86400
_USED = b"used"

#: KEYS: the server's last number, contexts by their last use, states. ARGV: number,
#: models, contexts at most, seconds of a state, seconds of a number; then for each
#: state what is left of it (empty: it is only read) and what is added.
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
      url: such as ``redis://127.0.0.1:6379/0``; ``rediss`` has TLS.
      name: of the selector; a state is of these models and this policy.
      models: their names.
      contexts: the most that are kept.
      within: seconds for which records are.

    Raises:
      ServeError: redis is not installed, or it is not a Redis URL.
    """

    def __init__(
        self,
        url: str,
        name: str,
        models: tuple[str, ...],
        contexts: int,
        within: float,
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
                socket_timeout=_PATIENCE,
                socket_connect_timeout=_PATIENCE,
                retry=Retry(NoBackoff(), 0),  # we try again ourselves
                protocol=2,
            )
        except (ValueError, RedisError) as error:
            raise ServeError(f"store: {error}", 400) from None
        self._models, self._contexts = len(models), contexts
        self._within = max(1, math.ceil(within))
        # In braces: one slot of a cluster, which a script needs.
        digest = hashlib.blake2b(json.dumps([name, *models]).encode(), digest_size=8)
        self._prefix = f"fxflow:{{{name}:{digest.hexdigest()}}}:"
        self._writer = secrets.token_hex(8)

    async def exchange(
        self, exchange: Exchange | None, records: dict[str, PredictionRecord | None]
    ) -> dict[str, LossTotals]:
        """Makes changes and brings states.

        Args:
          exchange: of `Contexts.exchange`.
          records: to be kept, by id; None: its feedback came.

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
          id: of the request.

        Returns:
          The record; None if there is none.

        Raises:
          ServeError: status 409; its feedback came before.
        """
        text = await self._client.get(f"{self._prefix}record:{id}")
        if text is None:
            return None
        if text == _USED:
            raise ServeError(f"the feedback for request {id!r} came already", 409)
        return PredictionRecord.from_json(id, json.loads(text), self._models)

    async def claim(self, id: str) -> bool:
        """Notes that one of the servers has received the feedback of a record.

        Args:
          id: of the request.

        Returns:
          Whether it is the first.
        """
        found = await self._client.eval(_CLAIM, 1, f"{self._prefix}record:{id}")
        return bool(found == 2)

    async def disconnect(self) -> None:
        """Drops connections: a late answer must not be taken for another one's."""
        await self._client.connection_pool.disconnect()

    async def close(self) -> None:
        """Ends the connections."""
        await self._client.aclose()


class Sharing:
    """Keeps the states of a selector in step with those of other servers.

    Args:
      contexts: the states.
      store: where they are shared.
      timeout: seconds that feedback for another server's request may wait.

    Attributes:
      up: whether the store answered the last attempt.
      failures: attempts that it did not answer.
      dropped: records that were not kept because too many waited.
    """

    dropped: int
    failures: int
    up: bool

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
        """Returns what shares the states of a selector; None if it has no store.

        Args:
          config: of the selector.
          contexts: its states.

        Returns:
          What shares them.

        Raises:
          ServeError: redis is not installed, or it is not a Redis URL.
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
        """Begins to exchange, if there is something."""
        if self._task is None and (self._contexts.pending or self._records):
            self._task = asyncio.get_running_loop().create_task(self._run())

    def keep(self, record: PredictionRecord) -> None:
        """Shares a prediction with other servers.

        Args:
          record: of it.
        """
        self._records[record.id] = record
        self._put_in_order()

    def used(self, record: PredictionRecord) -> None:
        """Tells other servers that its feedback has arrived.

        Args:
          record: of the prediction.
        """
        self._records[record.id] = None
        self._put_in_order()

    def _put_in_order(self) -> None:
        while len(self._records) > _MOST_RECORDS:
            self._records.popitem(last=False)
            self.dropped += 1
        self.wake()

    async def settled(self, timeout: float) -> bool:
        """Waits until the other servers can read the current state.

        Args:
          timeout: seconds.

        Returns:
          Whether they can; at once False while the store is away.
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
          id: of the request.

        Returns:
          The record.

        Raises:
          ServeError: 404 if there is none, 409 if its feedback came before, 503 if
            the store does not say.
        """
        found: PredictionRecord | None = await self._asked(self._store.fetch(id))
        if found is None:
            raise ServeError(f"no prediction with id {id!r} is known, or any more", 404)
        return found

    async def claim(self, id: str) -> None:
        """Notes that the feedback of another server's request has arrived.

        Args:
          id: of the request.

        Raises:
          ServeError: 409 if it came before, 503 if the store does not say.
        """
        if not await self._asked(self._store.claim(id)):
            raise ServeError(f"the feedback for request {id!r} came already", 409)

    async def _asked(self, answer: Any) -> Any:
        try:
            if not self.up:
                answer.close()
                raise TimeoutError("Redis timed out on the previous attempt")
            async with asyncio.timeout(max(self._timeout, 0.001) * 5):
                return await answer
        except self._store.errors as error:
            raise ServeError(
                "the prediction was another server's, and the store that knows of it "
                f"does not answer: {error or type(error).__name__}",
                503,
                1.0,
            ) from None
        except ValueError as error:
            raise ServeError(
                f"the store has no such prediction: {error}", 404
            ) from None

    async def close(self) -> None:
        """Sends what waits, if the store answers, and ends the connections."""
        if self.up:
            await self.settled(_PATIENCE)
        if self._contexts.pending:
            _log.warning("the store does not know what was learned last")
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._store.close()

    async def _run(self) -> None:
        pause = _AGAIN[0]
        expected: tuple[type[Exception], ...] = (*self._store.errors, ValueError)
        try:
            while self._contexts.pending or self._records:
                exchange = self._contexts.exchange() if self._contexts.pending else None
                records = dict(list(self._records.items())[:_RECORDS])
                self._busy = True
                try:
                    async with asyncio.timeout(2 * _PATIENCE):
                        states = await self._store.exchange(exchange, records)
                except expected as error:
                    self._failed(error)
                    with contextlib.suppress(*self._store.errors):
                        await self._store.disconnect()
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _AGAIN[1])
                    continue
                finally:
                    self._busy = False
                if not self.up:
                    _log.warning("the store answers again")
                self.up, pause = True, _AGAIN[0]
                for id, record in records.items():
                    if self._records.get(id, record) is record:
                        self._records.pop(id, None)
                if exchange is not None:
                    now = asyncio.get_running_loop().time()
                    self._contexts.exchanged(states, now)
                self._done += 1
                self._told()
        finally:
            self._task = None
            self._told()

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        if self.up:
            words = str(error) or type(error).__name__
            _log.warning(
                "the store does not answer, states are this server's: %s", words
            )
        self.up = False
        self._told()

    def _told(self) -> None:
        self._tick.set()
        self._tick = asyncio.Event()
