"""Metrics of parameter servers for Prometheus, and the endpoint that it scrapes.

Each scrape reads the servers; between scrapes nothing runs. A server that does not
answer has ``fxflow_ps_up 0``.
"""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Mapping, Sequence
from typing import Self

from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.metrics import CONTENT_TYPE, Registry
from fxflow.distributed.parameter_server.monitor.figures import Figures, Monitor
from fxflow.errors import DistributedError

#: Counts of a table's rows: members of the label `event`.
_EVENTS = (
    *("created", "updated", "evicted", "loaded", "expired", "unadmitted"),
    *("non_finite", "rejected"),
)

#: Upper bounds of the histogram's buckets; they must not change during a run.
_STALENESS = (0, 1, 2, 4, 8, 16, 32, 64, 128)

#: Family of `flat_counts` → its metric, the metric's help, the label of its members.
_COUNTERS = {
    "pushes": ("pushes", "Gradients accepted."),
    "updates": ("updates", "Updates made from gradients."),
    "repeated": ("repeated_pushes", "Pushes that had been accepted before."),
    "dropped": ("dropped_pushes", "Gradients that were not used.", "reason"),
    "received": ("received_messages", "Messages received.", "kind"),
    "sent": ("sent_messages", "Messages sent.", "kind"),
    "received_bytes": ("received_bytes", "Bytes of messages received.", "kind"),
    "sent_bytes": ("sent_bytes", "Bytes of messages sent.", "kind"),
    "shared_bytes": ("shared_bytes", "Bytes of both in shared memory.", "kind"),
    "dropped_messages": (
        "dropped_messages",
        "Messages neither sent nor accepted, and refused connections.",
        "reason",
    ),
    "push": ("pushed_bytes", "Bytes of gradients received.", "filter"),
    "pull": ("pulled_bytes", "Bytes of parameters sent.", "filter"),
    "busy": ("busy_seconds", "Seconds spent answering messages.", "kind"),
    "cpu": ("cpu_seconds", "Processor seconds of the server's process."),
}


def exposition(figures: Figures) -> str:
    """Returns figures in Prometheus's text format.

    Args:
      figures: what `Monitor.look` returned.

    Returns:
      The text, in version 0.0.4 of the format.
    """
    registry = Registry("fxflow_ps")
    up = registry.gauge("up", "Whether the server answers.", "server")
    counters = {
        family: registry.counter(name, help, "server", *label)
        for family, (name, help, *label) in _COUNTERS.items()
    }
    staleness = registry.histogram(
        "staleness",
        "Updates between the parameters that a used gradient was computed from and "
        "those that it was applied to.",
        "server",
        bounds=_STALENESS,
    )
    gauge = registry.gauge
    of_shard = "server", "shard"
    shards = {
        "version": gauge("version", "Updates of a shard.", *of_shard),
        "bytes": gauge(
            "parameter_bytes", "Bytes of the parameters of a shard.", *of_shard
        ),
    }
    load = gauge(
        "shard_load",
        "Share of the server's time in the last minute that a shard took.",
        *of_shard,
    )
    missing = gauge(
        "missing_copies", "Planned copies of a shard that are not complete.", *of_shard
    )
    of_table = *of_shard, "table"
    rows = gauge("table_rows", "Rows of a table in a shard.", *of_table)
    in_memory = gauge("table_rows_in_memory", "Those of them in memory.", *of_table)
    size = gauge("table_bytes", "Bytes of the rows and their state.", *of_table)
    events = registry.counter(
        "table_events",
        "Rows of a table that were created, updated, evicted to disk, loaded from it, "
        "expired, or not admitted; with gradients not finite; pushes rejected.",
        *(*of_table, "event"),
    )
    stats = {
        "waiting": gauge("waiting_pulls", "Pulls not answered yet.", "server"),
        "epoch": gauge(
            "epoch", "Epoch of the view: grows as servers join and leave.", "server"
        ),
    }
    clock = gauge("worker_clock", "Pushes of a worker since it joined.", "worker")
    silence = gauge(
        "worker_silence_seconds", "Since a worker was last heard.", "worker"
    )
    for server in figures.servers:
        up.labels(server.number).set(bool(server.stats))
        if not server.stats:
            continue
        staleness.labels(server.number)  # zeros before the first gradient
        for (family, member), value in server.counts.items():
            if family == "staleness":
                staleness.labels(server.number).observe(int(member), int(value))
            elif family in counters:
                label = [member] if len(_COUNTERS[family]) == 3 else []
                counters[family].labels(server.number, *label).inc(value)
        for key, metric in shards.items():
            for number, shard in server.served:
                metric.labels(server.number, number).set(shard[key])
        for number, shard in server.served:
            load.labels(server.number, number).set(shard.get("load", 0.0))
            missing.labels(server.number, number).set(shard.get("missing", 0))
            for name, counts in shard.get("tables", {}).items():
                labels = server.number, number, name
                rows.labels(*labels).set(counts["rows"])
                in_memory.labels(*labels).set(counts["in_memory"])
                size.labels(*labels).set(counts["bytes"])
                for event in _EVENTS:
                    events.labels(*labels, event).inc(counts[event])
        for key, metric in stats.items():
            metric.labels(server.number).set(server.stats[key])
    for worker in figures.workers:
        clock.labels(worker.name).set(worker.clock)
        silence.labels(worker.name).set(worker.silent)
    return registry.exposition()


# -- the scrape endpoint ---------------------------------------------------------------


class _ScrapeHandler(http.server.BaseHTTPRequestHandler):
    """Answers one request."""

    server: _ScrapeServer
    #: Seconds for a request to arrive: the only thread must not wait for long.
    timeout = 2.0

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "metrics are at /metrics")
            return
        text = exposition(self.server.monitor.look()).encode()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: object) -> None:
        pass


class _ScrapeServer(http.server.HTTPServer):
    def __init__(self, place: tuple[str, int], monitor: Monitor) -> None:
        self.monitor = monitor
        if ":" in place[0]:
            self.address_family = socket.AF_INET6
        super().__init__(place, _ScrapeHandler)

    def handle_error(self, *_: object) -> None:
        """Logs nothing: the client has disconnected."""


class Exporter:
    """Serves ``GET /metrics`` to Prometheus from a background thread.

    Args:
      port: the port to listen on; 0 chooses a free port.
      addresses: the addresses of the servers to report, by number.
      keys: the run's keys; None on this machine.
      host: the address to listen on. Any client that reaches it can read the metrics
        without keys; by default only this machine can.

    Attributes:
      port: the port that it listens on.

    Raises:
      DistributedError: the port is in use, or the host is not this machine's; an
        address is malformed, or needs keys.

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
            self._server = _ScrapeServer((host, port), monitor)
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
        """Stops serving; may be called again."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server.monitor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
