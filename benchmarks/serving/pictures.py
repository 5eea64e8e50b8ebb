"""Draws what `measure.py --json` has kept.

python benchmarks/serving/pictures.py numbers.json benchmarks/serving
"""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

POLICIES = ("none", "fixed", "aimd", "quantile")


def bars(
    axes: Any, names: list[str], series: dict[str, list[float]], what: str
) -> None:
    """Groups of bars, on a logarithmic scale, each with its number."""
    width = 0.8 / len(series)
    for k, (label, values) in enumerate(series.items()):
        at = [n + (k - (len(series) - 1) / 2) * width for n in range(len(names))]
        drawn = axes.bar(at, [max(v, 1) for v in values], width, label=label)
        axes.bar_label(drawn, [f"{v:.0f}" for v in values], fontsize=6)
    axes.set_yscale("log")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel(what)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=7)


def of_policies(found: dict[str, Any], axes: Any) -> None:
    """(a) Throughput under each policy."""
    models = list(dict.fromkeys(key.split()[0] for key in found))
    rates = {p: [found[f"{m} {p}"]["rate"] for m in models] for p in POLICIES}
    bars(axes, models, rates, "requests/s at a p99 of 20 ms")


def of_peers(found: dict[str, Any], axes: Any) -> None:
    """(h) What a closed loop of 64 requests gets beside other servers."""
    split = {key: key.rsplit(", ", 1) for key in found}
    cases = list(dict.fromkeys(case for case, _ in split.values()))
    names = ["fxflow", "jax", "torch", "onnxruntime"]
    empty = {"closed": 0.0}
    rates = {n: [found.get(f"{c}, {n}", empty)["closed"] for c in cases] for n in names}
    shown = {n if n == "fxflow" else f"FastAPI, {n}": v for n, v in rates.items()}
    places = [case.replace(", ", "\n") for case in cases]
    bars(axes, places, shown, "requests/s, closed loop of 64")


def of_sizes(found: dict[str, Any], axes: Any) -> None:
    """(b) What a batch takes, by its rows."""
    for model, of in found.items():
        times = {int(n): ms for n, (ms, _) in of["times"].items()}
        axes.plot(list(times), list(times.values()), label=model)
    axes.axhline(20, color="gray", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="rows of a batch", ylabel="ms")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=7)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("numbers", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    numbers = json.loads(given.numbers.read_text())
    drawn = {"batching": of_policies, "peers": of_peers, "sizes": of_sizes}
    for section, draw in drawn.items():
        if section in numbers:
            wide = 8 if section == "peers" else 5
            figure, axes = plt.subplots(figsize=(wide, 3), layout="constrained")
            draw(numbers[section], axes)
            path = given.folder / f"{section}.svg"
            figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
