"""What the simulator says: idle time, backup workers, scaling.

    python benchmarks/parameter_server/simulated.py [--quick]

Prints Markdown tables with what is assumed. Numbers depend on the seed alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence

from fxflow.distributed.parameter_server import asynchronous, backup, bsp, place, ssp
from fxflow.distributed.parameter_server.placement import PlacementPlan, Tensor
from fxflow.distributed.parameter_server.simulator import (
    Compute,
    Network,
    Quadratic,
    simulate,
)

#: A data centre's link of 10 Gbit/s.
NETWORK = Network(latency=100e-6, bandwidth=1.25e9, request=20e-6, apply=0.1e-9)
#: 25 million parameters, as Inception-v3 has.
INCEPTION = Tensor("inception", (100_000, 250))
#: 1.9 s a step with a tail: one in a hundred steps takes 1.4 times as long.
STEP = Compute(1.9, "lognormal", sigma=0.05, straggling=(0.01, 1.4))


def table(title: str, assumed: str, head: Sequence[str], rows: Iterable[list]) -> None:
    print(f"\n### {title}\n\n{assumed}\n\n| {' | '.join(head)} |")
    print(f"|{' --- |' * len(head)}")
    for row in rows:
        cells = (f"{x:.4g}" if isinstance(x, float) else str(x) for x in row)
        print(f"| {' | '.join(cells)} |", flush=True)


def idle_time(steps: int) -> Iterable[list]:
    compute = Compute(0.1, "lognormal", sigma=0.5, slow={0: 1.2})
    target = Quadratic(noise=0.3)
    for staleness in range(17):
        found = simulate(
            ssp(staleness),
            workers=8,
            servers=place([Tensor("w", (1000, 2500))], 2, strategy="rows"),
            compute=compute,
            network=NETWORK,
            steps=steps,
            problem=target,
            learning_rate=0.02,
        )
        reached = [t for t, _, loss in found.losses if loss < 0.1 * found.losses[0][2]]
        updates = [n for _, n, loss in found.losses if loss < 0.1 * found.losses[0][2]]
        yield [
            staleness,
            f"{found.idle:.1%}",
            found.throughput,
            found.mean_staleness,
            reached[0] if reached else "never",
            updates[0] if updates else "never",
        ]


def backups(steps: int, compute: Compute = STEP) -> Iterable[tuple]:
    """Spare workers, seconds of a step, gain, dropped gradients."""
    base = 0.0
    for spares in range(6):
        found = simulate(
            backup(50, spares),
            workers=50 + spares,
            servers=place([INCEPTION], 17, strategy="rows"),
            compute=compute,
            network=NETWORK,
            steps=steps,
        )
        each = found.seconds / found.updates
        base = base or each
        gain = base / each * 50 / (50 + spares)
        yield spares, each, gain - 1, found.dropped


def backups_by_tail(steps: int) -> Iterable[list]:
    """The same for other tails of the time of a step."""
    for sigma, share, factor in (
        *((0.05, 0.0, 1.0), (0.1, 0.0, 1.0), (0.2, 0.0, 1.0)),
        *((0.05, 0.01, 1.4), (0.05, 0.02, 1.4), (0.05, 0.04, 1.4)),
        *((0.05, 0.02, 2.0), (0.1, 0.04, 1.4)),
    ):
        compute = Compute(1.9, "lognormal", sigma=sigma, straggling=(share, factor))
        found = list(backups(steps, compute))
        best = max(found, key=lambda row: row[2])
        tail = f"{share:.0%} × {factor:g}" if share else "none"
        gains = [f"{gain:+.1%}" for _, _, gain, _ in found[1:]]
        yield [sigma, tail, found[0][1], found[4][1], *gains, best[0]]


def scaling(
    plan: PlacementPlan, compute: Compute, sizes: Sequence[int]
) -> Iterable[list]:
    """Throughput over that of one worker."""
    kinds = (asynchronous(), bsp(), ssp(4))
    alone = simulate(bsp(), workers=1, servers=plan, compute=compute, network=NETWORK)
    for workers in sizes:
        row: list = [workers]
        begin = time.perf_counter()
        for value in kinds:
            steps = max(6, min(40, 20_000 // workers))
            found = simulate(
                value,
                workers=workers,
                servers=plan,
                compute=compute,
                network=NETWORK,
                steps=steps,
            )
            row += [found.throughput / alone.throughput, f"{found.idle:.0%}"]
        yield [*row, time.perf_counter() - begin]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer steps and workers")
    quick = parser.parse_args().quick
    table(
        "Idle time over the staleness bound",
        "8 workers, lognormal steps of 0.1 s (σ 0.5), worker 0 slower by 1.2; 10 MB on "
        "2 servers; a noisy quadratic problem to a tenth of its loss.",
        ["bound", "idle", "steps/s", "staleness", "time to target", "updates"],
        idle_time(50 if quick else 300),
    )
    table(
        "Backup workers",
        "50 gradients of 50 + b workers; 100 MB on 17 servers; lognormal steps of "
        "1.9 s (σ 0.05), 1 % of them 1.4 times as long. Gain: t(0)/t(b)·50/(50 + b) − "
        "1.",
        ["b", "s/step", "gain", "dropped"],
        (
            [spares, each, f"{gain:+.1%}", dropped]
            for spares, each, gain, dropped in backups(20 if quick else 300)
        ),
    )
    table(
        "Backup workers by the tail of the steps",
        "The same for other steps of 1.9 s: lognormal (σ), and a share of them longer. "
        "Abadi et al. (OSDI 2016, figure 8) have +9.5 % at b = 3, where 50 machines "
        "trained Inception-v3, and the shortest steps, of 1.93 s, at b = 4.",
        [
            "σ",
            "longer",
            "s/step, b = 0",
            "b = 4",
            *(f"gain, b = {b}" for b in range(1, 6)),
            "best b",
        ],
        backups_by_tail(20 if quick else 300),
    )
    sizes = (1, 10, 50, 100, 500) + (() if quick else (1000, 5000, 10_000))
    head = ["workers"]
    for kind in ("asynchronous", "bsp", "ssp(4)"):
        head += [kind, "idle"]
    head.append("s to simulate")
    table(
        "Scaling, dense",
        "Speed-up over one worker; 100 MB on 17 servers; steps of 1.9 s as above.",
        head,
        scaling(place([INCEPTION], 17, strategy="rows"), STEP, sizes),
    )
    sparse = Tensor("table", (100_000_000, 64), accesses=1e-6)
    table(
        "Scaling, sparse",
        "Speed-up over one worker; 100 rows (25.6 kB) of a table of 25.6 GB a step, on "
        "500 servers; lognormal steps of 0.05 s (σ 0.3).",
        head,
        scaling(
            place([sparse], 500, strategy="rows"),
            Compute(0.05, "lognormal", sigma=0.3),
            sizes,
        ),
    )


if __name__ == "__main__":
    main()
