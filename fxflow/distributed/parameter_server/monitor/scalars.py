"""What servers are doing, as numbers by name: for logs and TensorBoard."""

from __future__ import annotations

from fxflow.distributed.parameter_server.monitor.figures import Figures


def scalars(figures: Figures, prefix: str = "servers") -> dict[str, float]:
    """Returns what servers are doing as numbers, for any `log(step, values)`.

    Numbers a second, where there were two looks; of what grows all the time the rate
    is what can be drawn. Servers that do not answer have none.

    Args:
      figures: of `Monitor.look`.
      prefix: of all names.

    Returns:
      `pushes_per_second`, `updates_per_second`, `bytes_in_per_second`,
      `bytes_out_per_second`, `staleness` (the mean), `load/0` of each server,
      `clock/worker 0` of each worker, `dropped/reason` so far, `push/filter` and
      `pull/filter` in bytes a second.

    Example:
      >>> from fxflow.distributed.parameter_server import LocalServers, monitor
      >>> local = LocalServers(1)
      >>> with monitor.Monitor(local.cluster.servers) as watched:
      ...     print(monitor.scalars(watched.look()))
      {'servers/answering': 1.0}
      >>> local.close()
    """
    answering = [server for server in figures.servers if server.stats]
    found = {"answering": float(len(answering))}
    if figures.seconds:
        for name in ("pushes", "updates"):
            found[f"{name}_per_second"] = sum(figures.rate(name).values())
        for way, name in (("in", "received_bytes"), ("out", "sent_bytes")):
            found[f"bytes_{way}_per_second"] = sum(figures.rate(name).values())
        for server in answering:
            found[f"load/{server.number}"] = server.load
        for way in ("push", "pull"):
            for code, rate in figures.rate(way).items():
                found[f"{way}/{code}"] = rate
    counts = figures.rate("staleness")
    if not sum(counts.values()):
        counts = figures.total("staleness")
    if total := sum(counts.values()):
        found["staleness"] = sum(int(s) * n for s, n in counts.items()) / total
    for reason, count in figures.total("dropped").items():
        found[f"dropped/{reason}"] = count
    for worker in figures.workers:
        found[f"clock/{worker.name}"] = float(worker.clock)
    return {f"{prefix}/{name}": value for name, value in found.items()}
