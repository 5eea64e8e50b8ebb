"""Metrics of servers for Prometheus: its text, and the door at which it asks.

Names and units are as Prometheus has them: counters end in ``_total``, seconds and
bytes are the units. Each scrape asks the servers, so nothing runs between two of them,
and a server that does not answer has ``fxflow_ps_up 0``.
"""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from fxflow.distributed.parameter_server.keys import Keys
from fxflow.distributed.parameter_server.monitor.figures import (
    Figures,
    Monitor,
    ServerFigures,
)
from fxflow.errors import DistributedError

#: Version 0.0.4 of the text format; every Prometheus reads it.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: The upper ends of the histogram's buckets; they may not change during a run.
_STALENESS = (0, 1, 2, 4, 8, 16, 32, 64, 128)

#: Family of `flat_counts` → its metric, the label of its members, what it is.
_COUNTERS = {
    "pushes": ("pushes", "", "Gradients that were taken."),
    "updates": ("updates", "", "Updates that were made of gradients."),
    "repeated": ("repeated_pushes", "", "Pushes that had been taken before."),
    "dropped": ("dropped_pushes", "reason", "Gradients that were not used."),
    "received": ("received_messages", "kind", "Messages that came."),
    "sent": ("sent_messages", "kind", "Messages that were sent."),
    "received_bytes": ("received_bytes", "kind", "Bytes of messages that came."),
    "sent_bytes": ("sent_bytes", "kind", "Bytes of messages that were sent."),
    "shared_bytes": ("shared_bytes", "kind", "Bytes of both that went by memory."),
    "dropped_messages": (
        "dropped_messages",
        "reason",
        "Messages that were not sent or not taken, and strangers.",
    ),
    "push": ("pushed_bytes", "filter", "Bytes of gradients that came."),
    "pull": ("pulled_bytes", "filter", "Bytes of parameters that were sent."),
    "busy": ("busy_seconds", "kind", "Seconds in which messages were answered."),
    "cpu": ("cpu_seconds", "", "Seconds of processors of the server's process."),
}


def exposition(figures: Figures) -> str:
    """Returns what servers are doing, as Prometheus reads it.

    Args:
      figures: of `Monitor.look`.

    Returns:
      Text of version 0.0.4 of its format.
    """
    servers = figures.servers
    alive = [server for server in servers if server.stats]
    lines = _metric(
        "up",
        "gauge",
        "Whether the server answers.",
        [("", {"server": s.number}, int(bool(s.stats))) for s in servers],
    )
    for family, (name, label, text) in _COUNTERS.items():
        lines += _metric(
            f"{name}_total",
            "counter",
            text,
            [
                ("", {"server": s.number, **({label: member} if label else {})}, value)
                for s in alive
                for (found, member), value in s.counts.items()
                if found == family
            ],
        )
    lines += _metric(
        "staleness",
        "histogram",
        "Of gradients that were used: updates "
        "between the parameters they were computed from and theirs.",
        (sample for s in alive for sample in _histogram(s)),
    )
    for key, name, text in (
        ("version", "version", "Updates of the parameters of a shard."),
        ("bytes", "parameter_bytes", "Bytes of the parameters of a shard."),
    ):
        lines += _metric(
            name,
            "gauge",
            text,
            [
                ("", {"server": s.number, "shard": number}, shard[key])
                for s in alive
                for number, shard in s.served
            ],
        )
    lines += _metric(
        "waiting_pulls",
        "gauge",
        "Pulls that are not answered yet.",
        [("", {"server": s.number}, s.stats["waiting"]) for s in alive],
    )
    lines += _metric(
        "epoch",
        "gauge",
        "Of the view: grows as servers come and go.",
        [("", {"server": s.number}, s.stats["epoch"]) for s in alive],
    )
    lines += _metric(
        "worker_clock",
        "gauge",
        "Pushes that a worker has made, from the clock at which it joined.",
        [("", {"worker": w.name}, w.clock) for w in figures.workers],
    )
    lines += _metric(
        "worker_silence_seconds",
        "gauge",
        "Since a worker was last heard.",
        [("", {"worker": w.name}, w.silent) for w in figures.workers],
    )
    return "\n".join(lines) + "\n"


def _histogram(server: ServerFigures) -> Iterable[tuple[str, dict[str, Any], float]]:
    counts = {
        int(member): value
        for (family, member), value in server.counts.items()
        if family == "staleness"
    }
    labels = {"server": server.number}
    for end in _STALENESS:
        below = sum(n for value, n in counts.items() if value <= end)
        yield "_bucket", {**labels, "le": end}, below
    total = sum(counts.values())
    yield "_bucket", {**labels, "le": "+Inf"}, total
    yield "_sum", labels, sum(value * n for value, n in counts.items())
    yield "_count", labels, total


def _metric(
    name: str,
    kind: str,
    text: str,
    samples: Iterable[tuple[str, Mapping[str, Any], float]],
) -> list[str]:
    name = f"fxflow_ps_{name}"
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for suffix, labels, value in samples:
        said = ",".join(f'{key}="{_escaped(str(v))}"' for key, v in labels.items())
        # Whole numbers as such, however large.
        number = str(int(value)) if value == int(value) else repr(float(value))
        lines.append(f"{name}{suffix}{{{said}}} {number}")
    return lines


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


# -- the door --------------------------------------------------------------------------


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers one request."""

    server: _Server
    #: Seconds for a request to come: there is one thread, and somebody else may wait.
    timeout = 2.0

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "there is /metrics")
            return
        text = exposition(self.server.monitor.look()).encode()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: object) -> None:
        pass


class _Server(http.server.HTTPServer):
    def __init__(self, place: tuple[str, int], monitor: Monitor) -> None:
        self.monitor = monitor
        if ":" in place[0]:
            self.address_family = socket.AF_INET6
        super().__init__(place, _Handler)

    def handle_error(self, *_: object) -> None:
        """Says nothing: who asked has gone away."""


class Exporter:
    """Answers Prometheus, from a thread of its own: ``GET /metrics``.

    Args:
      port: 0 is any free one.
      addresses: of the servers that are told of, by number.
      keys: of the run; None on this machine.
      host: where to listen. Who reaches it can read the metrics, with no keys; nobody
        beyond this machine does by default.

    Attributes:
      port: where it listens.

    Raises:
      DistributedError: the port is in use, or the host is not this machine's; an
        address is none, or needs keys.

    Example:
      >>> import urllib.request
      >>> from fxflow.distributed.parameter_server import LocalServers, monitor
      >>> local = LocalServers(1)
      >>> with monitor.Exporter(0, local.cluster.servers) as exporter:
      ...     at = f"http://127.0.0.1:{exporter.port}/metrics"
      ...     text = urllib.request.urlopen(at).read().decode()
      >>> 'fxflow_ps_up{server="0"} 1' in text
      True
      >>> local.close()
    """

    def __init__(
        self,
        port: int,
        addresses: Sequence[str] | Mapping[int, str],
        keys: Keys | None = None,
        *,
        host: str = "127.0.0.1",
    ) -> None:
        monitor = Monitor(addresses, keys)
        try:
            self._server = _Server((host, port), monitor)
        except (OSError, OverflowError) as error:
            monitor.close()
            why = getattr(error, "strerror", None) or error
            raise DistributedError(
                f"metrics cannot be served at {host}:{port}: {why}"
            ) from None
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            args=(0.1,),
            name="fxflow-metrics",
            daemon=True,
        )
        self._thread.start()

    def close(self) -> None:
        """Ends it; may be repeated."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server.monitor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
