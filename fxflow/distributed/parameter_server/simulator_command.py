"""``fxflow simulate`` compares consistencies under a virtual clock.

    fxflow simulate --workers 16 --step 0.1 --sigma 0.5 --slow 0:2
    fxflow simulate --workers 50 --step 1.9 --measured steps.txt "backup(46, 4)" bsp

It prints a line for each consistency: throughput, the share of the workers' time that
they waited for others, staleness, and the time of a step. The numbers depend only on
the arguments.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Sequence

from fxflow.distributed.parameter_server import consistency
from fxflow.distributed.parameter_server.consistency import Consistency
from fxflow.distributed.parameter_server.placement import Tensor, place
from fxflow.distributed.parameter_server.simulator import Compute, Network, simulate
from fxflow.errors import ArgumentError

_KINDS = (
    *("bsp", "ssp", "asynchronous", "backup", "softsync", "local_sgd"),
    "elastic_averaging",
)


def _consistency_of(text: str) -> Consistency:
    """Returns the consistency that a call such as ``ssp(4)`` or ``bsp`` makes."""
    try:
        call = ast.parse(text, mode="eval").body
        if isinstance(call, ast.Name):
            call = ast.Call(call, [], [])
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise ValueError("not a call")
        if call.func.id not in _KINDS:
            raise ValueError(f"the kinds are {', '.join(_KINDS)}")
        given = [ast.literal_eval(value) for value in call.args]
        named = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
        found: Consistency = getattr(consistency, call.func.id)(*given, **named)
        return found
    except (SyntaxError, ValueError, TypeError) as error:
        raise ArgumentError(f"{text!r}: {error}") from None


def _pair(text: str) -> tuple[float, float]:
    first, colon, second = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"{text!r}: two numbers with a colon between")
    return float(first), float(second)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fxflow simulate",
        description="Predict how fast workers of a parameter server train, for one or "
        "more consistencies, under a virtual clock.",
        epilog="Exit status: 0; 2 for a wrong command line.",
    )
    add = parser.add_argument
    add(
        "consistencies",
        nargs="*",
        metavar="CONSISTENCY",
        help="such as bsp, 'ssp(4)', asynchronous, 'backup(14, 2)', 'local_sgd(10)' "
        "(default: bsp 'ssp(4)' asynchronous)",
    )
    add("--workers", type=int, default=8, metavar="N", help="default 8")
    add("--servers", type=int, default=1, metavar="N", help="default 1")
    add(
        "--megabytes",
        type=float,
        default=0.0,
        metavar="MB",
        help="of parameters, which each step pulls and pushes (default 0)",
    )
    add(
        "--step",
        type=float,
        default=0.1,
        metavar="S",
        help="mean seconds that a worker takes for a gradient (default 0.1)",
    )
    add(
        "--prepare",
        type=float,
        default=0.0,
        metavar="S",
        help="seconds before each step that need no parameters, such as for reading a "
        "batch; they overlap with waiting (default 0)",
    )
    add(
        "--sigma",
        type=float,
        default=0.0,
        help="spread of the steps: standard deviation of the logarithm (default 0)",
    )
    add(
        "--measured",
        metavar="FILE",
        help="times of measured steps, one on each line: their distribution, scaled "
        "to the mean of --step",
    )
    add(
        "--slow",
        type=_pair,
        action="append",
        default=[],
        metavar="WORKER:FACTOR",
        help="a worker whose steps take longer; may be repeated",
    )
    add(
        "--straggling",
        type=_pair,
        default=(0.0, 1.0),
        metavar="SHARE:FACTOR",
        help="the share of all steps that take longer",
    )
    add("--gigabits", type=float, default=10.0, metavar="G", help="default 10")
    add("--latency", type=float, default=50e-6, metavar="S", help="default 50e-6")
    add("--steps", type=int, default=100, metavar="N", help="of each (default 100)")
    add("--seed", type=int, default=0, help="default 0")
    return parser


def main(argv: Sequence[str]) -> int:
    """Runs ``fxflow simulate``.

    Args:
      argv: the arguments.

    Returns:
      The exit status.
    """
    parser = _parser()
    given = parser.parse_args(argv)
    named = given.consistencies or ["bsp", "ssp(4)", "asynchronous"]
    kind = "lognormal" if given.sigma else "constant"
    samples: tuple[float, ...] = ()
    try:
        if given.measured:
            with open(given.measured, encoding="utf-8") as file:
                kind, samples = "measured", tuple(map(float, file.read().split()))
        rows = max(given.servers, round(given.megabytes * 1e6 / 4 / 256))
        width = 256 if given.megabytes else 0
        tensor = Tensor("parameters", (rows, width))
        found = [
            simulate(
                _consistency_of(text),
                workers=given.workers,
                servers=place([tensor], given.servers, strategy="rows"),
                compute=Compute(
                    given.step,
                    kind,
                    sigma=given.sigma,
                    samples=samples,
                    slow={int(worker): factor for worker, factor in given.slow},
                    straggling=given.straggling,
                ),
                prepare=given.prepare,
                network=Network(given.latency, given.gigabits * 1e9 / 8),
                steps=given.steps,
                seed=given.seed,
            )
            for text in named
        ]
    except (ArgumentError, OSError, ValueError) as error:
        parser.error(str(error))
    size = max(11, *map(len, named))
    print(f"{'consistency':{size}}  steps/s  idle  staleness  step 50 %  step 99 %")
    for text, one in zip(named, found, strict=True):
        print(
            f"{text:{size}}  {one.throughput:7.4g}  {one.idle:4.0%}  "
            f"{one.mean_staleness:9.1f}  {one.percentiles[50]:7.3g} s  "
            f"{one.percentiles[99]:7.3g} s"
        )
    return 0
