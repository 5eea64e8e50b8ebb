"""Monitoring of parameter servers, from any machine that can connect to them.

`fxflow parameter-server watch` shows a live table. In a program, `Monitor` reads the
servers' statistics, and pure functions format them:

    with monitor.Monitor(cluster.servers, cluster.keys) as watched:
        print(monitor.table(watched.look()))
        log(step, monitor.scalars(watched.look()))  # a `train.logs.Logger`, say

`Exporter` serves metrics to Prometheus, as does a server with `--metrics-port`. `trace`
writes a timeline of servers and workers for Perfetto.

Read the modules in this order: `polling` (requests to all servers), `figures`
(readings, rates, scalars and the table), `prometheus`, `tracing`
(counts and spans of each process, and the file for Perfetto).
"""

from fxflow.distributed.parameter_server.monitor.figures import (
    Figures,
    Monitor,
    ServerFigures,
    WorkerFigures,
    scalars,
    table,
)
from fxflow.distributed.parameter_server.monitor.prometheus import Exporter, exposition
from fxflow.distributed.parameter_server.monitor.tracing import trace

__all__ = [
    "Exporter",
    "Figures",
    "Monitor",
    "ServerFigures",
    "WorkerFigures",
    "exposition",
    "scalars",
    "table",
    "trace",
]
