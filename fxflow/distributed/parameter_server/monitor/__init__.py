"""Seeing a run: what its servers are doing, from anywhere that can dial them.

`fxflow parameter-server watch` shows a live table. In a program, `Monitor` looks at the
servers, and pure functions make something of what it saw:

    with monitor.Monitor(cluster.servers, cluster.keys) as watched:
        print(monitor.table(watched.look()))
        log(step, monitor.scalars(watched.look()))  # a `train.logs.Logger`, say

`Exporter` answers Prometheus, and so does a server that has a `--metrics-port`. `trace`
writes what each server and worker did when, for Perfetto.

To be read in this order: `meter` (what a server counts by itself), `asking` (all
servers at once), `figures` (two looks, the rates between, and scalars), `table`,
`prometheus`; then `tracing` (spans of processes), `timeline` (the file for Perfetto),
and `command`.
"""

from fxflow.distributed.parameter_server.monitor.figures import (
    Figures,
    Monitor,
    ServerFigures,
    WorkerFigures,
)
from fxflow.distributed.parameter_server.monitor.prometheus import Exporter, exposition
from fxflow.distributed.parameter_server.monitor.figures import scalars
from fxflow.distributed.parameter_server.monitor.table import table
from fxflow.distributed.parameter_server.monitor.timeline import trace

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
