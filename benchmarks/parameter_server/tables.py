"""What pulls and pushes of a table cost, over sizes of the table.

    python benchmarks/parameter_server/tables.py  # in memory: 10 MB, 1 GB, 8 GB
    python benchmarks/parameter_server/tables.py --width 8 --rows 1e6 1e7 4e7
    python benchmarks/parameter_server/tables.py --disk /tmp/rows --rows 1e6 1e7

Sizes count rows and optimizer state (Adagrad, 64 columns: 512 bytes a row). Times are
in µs: the median and, since others may use the machine, the first decile. The rows
asked for are drawn from all there are. With `--disk`, a tenth of them may be in memory.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from fxflow import optim
from fxflow.distributed.parameter_server.tables import (
    RowBlock,
    RowPrograms,
    RowTable,
    TableSpec,
    row_programs,
)

BLOCK = 65536


def microseconds(calls: list[Callable[[], object]]) -> tuple[float, float]:
    times = []
    for call in calls:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    decile = statistics.quantiles(times, n=10)[0]
    return round(statistics.median(times) * 1e6, 1), round(decile * 1e6, 1)


def filled(spec: TableSpec, programs: RowPrograms, rows: int) -> tuple[RowTable, float]:
    """Returns a table of rows with ids spread over 10⁹, and seconds to write them."""
    table = RowTable(spec, programs)
    shape = BLOCK, spec.width
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    start = time.perf_counter()
    for first in range(0, rows, BLOCK):
        ids = np.arange(first, min(first + BLOCK, rows)) * 7919 % 1_000_000_007
        table.put(RowBlock(ids, values[: len(ids)], (values[: len(ids)] ** 2,)))
    return table, time.perf_counter() - start


def measured(table: RowTable, rows: int, batch: int, rounds: int) -> dict[str, object]:
    """Returns the times of a pull and a push of a batch of distinct rows."""
    generator = np.random.default_rng(1)
    gradients = np.ones((batch, table.spec.width), np.float32)
    batches = [
        np.sort(generator.integers(0, rows, batch) * 7919 % 1_000_000_007)
        for _ in range(2 * rounds)
    ]
    pulls = [lambda ids=ids: table.pull(ids) for ids in batches]
    pushes = [lambda ids=ids: table.push(ids, gradients) for ids in batches]
    microseconds(pulls[:rounds] + pushes[:rounds])  # warm
    return {
        "pull": microseconds(pulls[rounds:]),
        "push": microseconds(pushes[rounds:]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=float, nargs="*", default=[1e7, 1e9, 8e9])
    parser.add_argument("--disk", help="a folder for rows that are not in memory")
    parser.add_argument("--rows", type=float, nargs="+", help="in place of bytes")
    parser.add_argument("--width", type=int, default=64, help="columns")
    options = parser.parse_args()
    width, size = options.width, 2 * 4 * options.width
    programs = row_programs(TableSpec("t", width, optim.adagrad(0.1)))
    sizes = options.rows or [nbytes / size for nbytes in options.bytes]
    printed = False
    for rows in map(int, sizes):
        limit = {}
        if options.disk:
            limit = {"rows_in_memory": rows // 10, "folder": options.disk}
        spec = TableSpec("t", width, optim.adagrad(0.1), **limit)
        table, seconds = filled(spec, programs, rows)
        with table:
            found = {
                "MB": round(rows * size / 1e6),
                "rows": rows,
                "fill us/row": round(seconds / rows * 1e6, 2),
                "32 rows": measured(table, rows, 32, 300),
                "10000 rows": measured(table, rows, 10_000, 10),
            }
            if options.disk:
                found["MB on disk"] = round(table.bytes_on_disk / 1e6)
                found["loaded"] = table.counts.loaded
            if not printed:
                print(f"| {' | '.join(found)} |\n|{' --- |' * len(found)}")
                printed = True
            print(f"| {' | '.join(map(str, found.values()))} |", flush=True)


if __name__ == "__main__":
    main()
