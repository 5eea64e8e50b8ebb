"""Runs any number of random programs; see the package's text."""

from __future__ import annotations

import argparse
import sys

from tests.programs.search import search


def main() -> int:
    """Prints what is found, smallest programs; the exit status says whether any was."""
    parser = argparse.ArgumentParser("python -m tests.programs", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jax", help="an interpreter that has JAX, to compare with")
    parser.add_argument("--whole", action="store_true", help="every way for each")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    found = search(
        args.seed,
        args.count,
        jax=args.jax,
        whole=args.whole,
        shrink=not args.no_shrink,
        processes=args.processes,
    )
    for one in found:
        print(one, end="\n\n")
    print(f"{args.count} programs, seed {args.seed}: {len(found)} findings")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
