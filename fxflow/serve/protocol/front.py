"""The common part of HTTP and gRPC: admits, answers and reports requests.

`http` and `rpc` translate the messages of a protocol to and from `InferRequest` and
`Prediction`. A `Front` does the rest: it checks API keys and limits, calls the model,
and writes the span, the metrics and the log line of each request.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import logging
import math
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from fxflow._version import __version__
from fxflow.errors import ServeError
from fxflow.serve.metrics import Metrics
from fxflow.serve.protocol.tensors import InferRequest
from fxflow.serve.repository import Repository
from fxflow.serve.service import (
    Prediction,
    PredictionRequest,
    RequestOrigin,
    allowed,
    answers,
)
from fxflow.serve.telemetry import RequestSpan, Tracing

_log = logging.getLogger("fxflow.serve")
#: Logs one line per request: INFO for requests that succeed or are refused under load.
_requests = logging.getLogger("fxflow.serve.requests")
#: Statuses of refusals under load. The metrics count them; a warning for each would
#: cost more than the refusal.
_REFUSED = frozenset({429, 503})
FAILED = "internal server error; see the server's log"
DISCONNECTED = "the client disconnected"
_UNRECORDED = RequestSpan()
_ID = re.compile(r"[\w.:/+=-]{1,128}", re.ASCII)
_EXTENSIONS = [
    *("binary_tensor_data", "generate", "model_configuration", "model_repository"),
    "statistics",
]


def key_checker(keys: Mapping[str, str]) -> Callable[[str], str | None]:
    """Returns a function that finds the client of an API key.

    It compares all keys, each in constant time, so that the time reveals nothing.

    Args:
      keys: client → key.

    Returns:
      A function from a key to the client, or None for an unknown key.

    Example:
      >>> check = key_checker({"alice": "secret"})
      >>> check("secret"), check("guess")
      ('alice', None)
    """
    digests = {
        name: hashlib.sha256(key.encode()).digest() for name, key in keys.items()
    }

    def check(key: str) -> str | None:
        given = hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
        found = None
        for name, digest in digests.items():
            if hmac.compare_digest(given, digest):
                found = name
        return found

    return check


def retry_after(error: ServeError) -> str:
    """Returns the whole seconds after which a client may retry, at least 1.

    Args:
      error: the error that refused the request.
    """
    return str(max(1, math.ceil(error.retry_after)))


def _level(status: int) -> int:
    good = status < 400 or status in _REFUSED
    return logging.INFO if good else logging.WARNING


def is_logged(status: int) -> bool:
    """Returns whether requests with a status are logged.

    Collecting the details of a line takes a tenth of the time of a request.

    Args:
      status: HTTP status.
    """
    return _requests.isEnabledFor(_level(status))


@dataclass(slots=True)
class RequestReport:
    """The data of one request for its log line, its span and the metrics.

    Attributes:
      id: the client's id, or one that the server generated.
      method: the method, such as ``POST`` or ``ModelInfer``.
      model: name of the model that the request is for.
      path: URL path; empty for gRPC.
      client: the name of its API key, or its address.
      waited: seconds that the request waited before it was read.
      status: HTTP status.
      error: why it failed; empty if it did not.
      span: its span.
      begun: when it arrived, by the monotonic clock.
    """

    id: str
    method: str
    model: str
    path: str = ""
    client: str = ""
    waited: float = 0.0
    status: int = 500
    error: str = ""
    span: RequestSpan = _UNRECORDED
    begun: float = field(default_factory=time.monotonic)

    def log(self, seconds: float, version: str, status: str | int) -> None:
        """Writes the log line; a failure is a warning, a refusal under load is not.

        Args:
          seconds: time that the request took.
          version: version of the model; empty: there is no such model.
          status: the protocol's status.
        """
        if not is_logged(self.status):
            return
        details = {
            "id": self.id,
            "method": self.method,
            "path": self.path,
            "status": status,
            "seconds": round(seconds, 6),
            "client": self.client,
            "model": self.model if version else "",
            "version": version,
            "trace": self.span.trace,
            "error": self.error,
        }
        known = {name: value for name, value in details.items() if value != ""}
        _requests.log(_level(self.status), "request", extra={"details": known})


class Front:
    """Admits, answers and reports the requests of all protocols.

    Args:
      repository: the models.
      metrics: counts requests.
      limits: limits of requests.
      keys: client → API key; empty: no authentication.
      control: whether requests may load and unload models.
      tracing: creates the spans of requests.

    Attributes:
      repository, metrics, limits, tracing: as above.
      authenticates: whether there are keys.
      admits_all: whether there are neither keys nor limits for clients.
      is_anonymous: whether clients are not identified and spans are not recorded.
    """

    def __init__(
        self,
        repository: Repository,
        metrics: Metrics,
        *,
        limits: RequestLimits | None = None,
        keys: Mapping[str, str] | None = None,
        control: bool = False,
        tracing: Tracing | None = None,
    ) -> None:
        self.repository: Repository = repository
        self.metrics: Metrics = metrics
        self.limits: RequestLimits = limits or RequestLimits()
        self.tracing: Tracing = tracing or Tracing()
        self.authenticates: bool = bool(keys)
        self.admits_all: bool = not (keys or self.limits.clients.rate)
        self.is_anonymous: bool = self.admits_all and not self.tracing.recording
        self._client_of = key_checker(keys or {})
        self._control = control
        self._in_flight = 0
        # The first half is unique to this server.
        self._run, self._ids = secrets.token_hex(4), itertools.count(1)

    # -- admission ---------------------------------------------------------------------

    def request_id(self, given: str) -> str:
        """Returns the id of a request.

        Args:
          given: the client's id; replaced if it is empty or unsafe to log.
        """
        if given and _ID.fullmatch(given):
            return given
        return f"{self._run}-{next(self._ids):x}"

    def admit(self, address: str, headers: Mapping[str, str]) -> str:
        """Checks the API key and the rate of a client.

        Args:
          address: the client's address.
          headers: the request's headers by lower-case name.

        Returns:
          The name of the key, or the address.

        Raises:
          ServeError: status 401 without a valid key, 429 above the rate.
        """
        if self.admits_all:
            return address
        client = address
        if self.authenticates:
            given = headers.get("x-api-key", "")
            kind, _, token = headers.get("authorization", "").partition(" ")
            if kind.lower() == "bearer":
                given = token.strip()
            name = self._client_of(given)
            if name is None:
                raise ServeError(
                    "an API key is required: Authorization: Bearer KEY", 401
                )
            client = name
        clients = self.limits.clients
        if wait := clients.take(client, time.monotonic()):
            raise ServeError(
                f"client {client!r} may send {clients.rate:g} requests per second",
                429,
                wait,
            )
        return client

    def check_control(self) -> None:
        """Checks that requests may load and unload models.

        Raises:
          ServeError: status 403; they may not.
        """
        if not self._control:
            raise ServeError(
                "this server does not let requests load or unload models", 403
            )

    def check_size(self, size: int) -> None:
        """Checks the size of a request's body against the limits.

        Args:
          size: its bytes, as far as known.

        Raises:
          ServeError: status 413 if the body is too large, 503 if all bodies in flight
            are.
        """
        limits = self.limits
        if size > limits.max_body:
            raise ServeError(
                f"a body may have {limits.max_body} bytes, got {size}", 413
            )
        if self._in_flight + size > limits.max_bodies:
            raise ServeError("too many bytes of requests are in flight", 503, 1.0)

    def hold(self, size: int) -> None:
        """Counts the bytes of a body in flight; a negative size releases them.

        Args:
          size: number of bytes.
        """
        self._in_flight += size

    # -- answers -----------------------------------------------------------------------

    async def answer(
        self, served: Any, request: InferRequest, report: RequestReport
    ) -> Prediction:
        """Returns the model's answer to a request.

        Args:
          served: a model's service, or a group of models.
          request: the request.
          report: its report.

        Raises:
          ServeError: the model failed or did not answer in time.
        """
        answer: Prediction = await served.submit(self._asked(served, request, report))
        report.span.answered(answer)
        return answer

    async def answers(
        self, served: Any, request: InferRequest, report: RequestReport
    ) -> AsyncGenerator[Prediction, None]:
        """Yields the model's results for a request: one, unless it is a generator.

        Args:
          served, request, report: as for `answer`.

        Raises:
          ServeError: the model failed or did not answer in time.
        """
        count = 0
        results = answers(served, self._asked(served, request, report))
        try:
            async with aclosing(results):
                async for answer in results:
                    count += 1
                    yield answer
        finally:
            if count:
                report.span.answered(answer)
                report.span.set(fxflow__results=count)

    @staticmethod
    def _asked(
        served: Any, request: InferRequest, report: RequestReport
    ) -> PredictionRequest:
        """Returns what a request asks of a model, within the time that is left."""
        timeout = request.timeout
        if report.waited:
            timeout = max(allowed(timeout, served.deadline) - report.waited, 1e-6)
        return PredictionRequest(
            request.inputs,
            request.rows,
            request.priority,
            timeout,
            RequestOrigin(request.id, report.client, request.context),
        )

    # -- reports -----------------------------------------------------------------------

    def report(
        self, report: RequestReport, *, predicts: bool, status: str | int | None = None
    ) -> None:
        """Reports a finished request to its span, the metrics and the log.

        Args:
          report: the request's report.
          predicts: whether to count it as a prediction.
          status: the protocol's status; None: the HTTP status.
        """
        seconds = time.monotonic() - report.begun
        known, version = report.model in self.repository, ""
        # Count only existing models: metrics keep their labels forever.
        if known and predicts:
            self.metrics.request(report.model, report.status, seconds)
        if self.tracing.recording or is_logged(report.status):
            if known:
                version = self.repository.version(report.model)
                report.span.set(fxflow__model=report.model, fxflow__version=version)
            if report.error:
                report.span.failed(report.status, report.error)
            report.log(seconds, version, report.status if status is None else status)

    # -- metadata ----------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """Returns the server's metadata in the protocol's format."""
        return {"name": "fxflow", "version": __version__, "extensions": _EXTENSIONS}

    def describe_model(self, name: str, version: str = "") -> dict[str, Any]:
        """Returns a model's metadata in the protocol's format.

        Args:
          name: name of a model or a group of models.
          version: version to require; empty: any.

        Raises:
          ServeError: status 404 if there is no such model, 503 if it is not ready.
        """
        served = self.repository.get(name, version)
        signature = served.signature
        return {
            "name": served.config.name,
            "versions": list(served.versions),
            "platform": "fxflow",
            "inputs": [spec.metadata() for spec in signature.inputs],
            "outputs": [spec.metadata() for spec in signature.outputs],
        }

    def index(self, *, ready: bool = False) -> list[dict[str, str]]:
        """Returns the protocol's index of models.

        Args:
          ready: whether to list only models that are ready.
        """
        entries = self.repository.index()
        return [e for e in entries if e["state"] == "READY" or not ready]


# -- limits ----------------------------------------------------------------------------


@dataclass
class ClientLimits:
    """Token buckets by client.

    A bucket holds up to `burst` tokens and gains `rate` tokens per second; a request
    takes one. Full buckets are dropped, so at most the clients of the last
    `burst / rate` seconds are in memory, and never more than `most`.

    Attributes:
      rate: sustained requests per second; 0: unlimited.
      burst: requests at once.
      most: most clients in memory; the least recently active one is dropped first.

    Example:
      >>> limits = ClientLimits(rate=2.0, burst=1)
      >>> limits.take("a", now=0.0), limits.take("a", now=0.0), limits.take("b", 0.0)
      (0.0, 0.5, 0.0)
      >>> limits.take("a", now=0.5)
      0.0
    """

    rate: float = 0.0
    burst: int = 1
    most: int = 10_000
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, client: str, now: float) -> float:
        """Takes a token from a client's bucket.

        Args:
          client: the client that sent the request.
          now: the time, in seconds.

        Returns:
          0 if there was a token, else the seconds until the next one.
        """
        if not self.rate:
            return 0.0
        tokens, then = self._buckets.pop(client, (float(self.burst), now))
        tokens = min(float(self.burst), tokens + (now - then) * self.rate)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self.rate
        self._buckets[client] = (tokens if wait else tokens - 1, now)
        while self._buckets:
            oldest, (left, at) = next(iter(self._buckets.items()))
            full = left + (now - at) * self.rate >= self.burst
            if not full and len(self._buckets) <= self.most:
                break
            del self._buckets[oldest]
        return wait


@dataclass
class RequestLimits:
    """Limits of the requests that a server accepts.

    Attributes:
      max_body: most bytes of one request.
      max_bodies: most bytes of all requests in flight.
      body_timeout: seconds within which a body must arrive, and within which the client
        must read each result of a stream.
      clients: rate limits per client.
    """

    max_body: int = 64 << 20
    max_bodies: int = 512 << 20
    body_timeout: float = 10.0
    clients: ClientLimits = field(default_factory=ClientLimits)
