"""Models chosen by feedback that degrade and are repaired; ensembles with stragglers.

    python benchmarks/serving/selection.py    # both, some minutes; draws pictures

*Degraded*: five classifiers of digits answer under four selectors and one plain
ensemble. At a third of the run the best of them begins to answer at random, at two
thirds it is repaired. Each selector gets the label of each request as feedback.

*Stragglers*: six weak classifiers in an ensemble with an objective of 20 ms; some of
them take 100 ms longer for each batch. Requests arrive in a Poisson process,
whatever the server does; latency counts from when a request was to be sent. Beside it,
an ensemble that waits for all.

All is in one process but the models, which have one each: selectors without HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from digit_models import halves

from fxflow.errors import ServeError
from fxflow.serve import ModelConfig, ModelSource, Repository, SelectorConfig
from fxflow.serve.selection.policies import selection_policy
from fxflow.serve.service import MetricsSink, PredictionRequest

HERE = Path(__file__).parent
KINDS = ("svm", "neighbours", "linear", "bayes", "tree")


def model(name: str, folder: Path, kind: str, seed: int = 0) -> ModelConfig:
    arguments = {"kind": kind, "switch": str(folder / name), "seed": seed}
    source = ModelSource(
        f"{HERE / 'digit_models.py'}:classifier", factory=True, arguments=arguments
    )
    return ModelConfig(name, source, slo=0.5, deadline=5.0, capacity=10_000)


class Heard(MetricsSink):
    """Counts the answers that were missing."""

    def __init__(self) -> None:
        self.lost: Counter[str] = Counter()

    def event(self, kind: str, group: str, what: str, amount: float = 1.0) -> None:
        if kind in ("failures", "stragglers"):
            self.lost[f"{group}: {what}, {kind}"] += 1


# -- degraded and repaired -------------------------------------------------------------


async def degraded(requests: int, window: float, folder: Path) -> dict[str, Any]:
    """For each policy whether each answer was wrong, and the weights of the models."""
    _, _, images, digits = halves()
    common: dict[str, Any] = {"slo": 4.0, "deadline": 8.0, "seed": 7}
    policies = ("exp4", "exp3", "thompson", "epsilon-greedy")
    groups = [
        SelectorConfig(p, KINDS, policy=selection_policy(p, window=window), **common)
        for p in policies
    ]
    # What a vote is worth that learns nothing: its feedback is never sent.
    groups.append(SelectorConfig("even vote", KINDS, **common))
    heard = Heard()
    repository = Repository([], heard)
    faults = await repository.configure([model(k, folder, k) for k in KINDS], groups)
    assert not faults, faults
    wrong = {g.name: np.zeros(requests) for g in groups}
    wrong |= {kind: np.zeros(requests) for kind in KINDS}
    weights = {p: np.zeros((requests, len(KINDS))) for p in policies}
    order = np.random.default_rng(1).integers(0, len(images), requests)
    switch = folder / "svm"

    async def one(t: int) -> None:
        x = {"x": images[order[t]][None]}
        right = int(digits[order[t]])

        async def under(group: SelectorConfig) -> None:
            selector: Any = repository.groups[group.name]
            answer = await selector.submit(PredictionRequest(x, 1))
            wrong[group.name][t] = answer.outputs["digit"][0] != right
            if group.name in policies:
                joined = await selector.feedback(id=answer.provenance.id, label=right)
                weights[group.name][t] = [joined.weights[k] for k in KINDS]
            if group.name == "exp4":
                for kind in KINDS:
                    # What has not answered has no loss.
                    wrong[kind][t] = joined.losses.get(kind, np.nan)

        await asyncio.gather(*map(under, groups))

    begun = time.monotonic()
    together = 32
    for start in range(0, requests, together):
        if start >= 2 * requests // 3:
            switch.unlink(missing_ok=True)
        elif start >= requests // 3:
            switch.write_text("bad")
        await asyncio.gather(
            *(one(t) for t in range(start, min(start + together, requests)))
        )
    seconds = time.monotonic() - begun
    await repository.drain()
    print("late or failed:", dict(heard.lost) or "none")
    return {"wrong": wrong, "weights": weights, "seconds": seconds}


def recovered(wrong: Any, start: int, level: float, width: int = 200) -> int:
    """Requests after `start` until a window of errors is at most `level`."""
    sums = np.convolve(wrong[start:], np.ones(width) / width, "valid")
    below = np.flatnonzero(sums <= level)
    return int(below[0]) + width if below.size else -1


def table_degraded(found: dict[str, Any]) -> str:
    wrong = found["wrong"]
    requests = len(wrong["exp4"])
    third = requests // 3
    lines = [
        "| | before | degraded | of that the second half | repaired | of that the "
        "second half | whole |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    spans = [
        (0, third),
        (third, 2 * third),
        (third + third // 2, 2 * third),
        (2 * third, requests),
        (2 * third + third // 2, requests),
        (0, requests),
    ]
    for name, errors in wrong.items():
        cells = [f"{100 * np.nanmean(errors[a:b]):.1f}" for a, b in spans]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw_degraded(found: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 1, figsize=(8, 7), sharex=True)
    wrong = found["wrong"]
    requests = len(wrong["exp4"])
    width = max(50, requests // 40)
    for name, errors in wrong.items():
        if name in ("neighbours", "linear", "bayes", "tree"):
            continue
        style = {"svm": "k:", "even vote": "k--"}.get(name, "-")
        smooth = np.convolve(np.nan_to_num(errors), np.ones(width) / width, "valid")
        at = np.arange(len(smooth)) + width
        axes[0].plot(at, 100 * smooth, style, label=name, linewidth=1.2)
    axes[0].set_ylim(0, 30)
    axes[0].set_ylabel(f"wrong, % of the last {width}")
    axes[0].legend(ncols=3, fontsize=8)
    for name, values in found["weights"].items():
        axes[1].plot(values[:, 0], label=name, linewidth=1.2)
    axes[1].set_ylabel("weight of the svm")
    axes[1].set_xlabel("requests")
    for axis in axes:
        for t in (requests // 3, 2 * requests // 3):
            axis.axvline(t, color="0.6", linewidth=0.8)
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    pyplot.close(figure)


# -- stragglers ------------------------------------------------------------------------


async def stragglers(
    late: Sequence[int], rate: float, seconds: float, folder: Path
) -> list[dict[str, Any]]:
    """Accuracy, confidence and latency for each number of late models."""
    _, _, images, digits = halves()
    names = tuple(f"weak-{k}" for k in range(6))
    configs = [
        model(name, folder, "weak", seed) for seed, name in enumerate(names, start=1)
    ]
    groups = [
        SelectorConfig("at 20 ms", names, slo=0.02, deadline=2.0),
        SelectorConfig("waits for all", names, slo=1.9, deadline=2.0),
    ]
    repository = Repository([])
    faults = await repository.configure(configs, groups)
    assert not faults, faults
    rows = []
    for count in late:
        for number, name in enumerate(names):
            (folder / name).write_text("100" if number < count else "")
        for group in groups:
            await asyncio.sleep(0.3)
            selector: Any = repository.groups[group.name]
            rng = random.Random(count)
            due, times = 0.0, []
            while due < seconds:
                times.append(due)
                due += rng.expovariate(rate)
            picked = [rng.randrange(len(images)) for _ in times]
            loop = asyncio.get_running_loop()
            start = loop.time() + 0.05

            async def one(
                due: float, k: int, start: float = start, selector: Any = selector
            ) -> tuple[float, bool, float, int] | None:
                loop = asyncio.get_running_loop()
                await asyncio.sleep(max(0.0, start + due - loop.time()))
                try:
                    answer = await selector.submit(
                        PredictionRequest({"x": images[k][None]}, 1)
                    )
                except ServeError:
                    return None
                of = answer.provenance
                return (
                    loop.time() - start - due,
                    bool(answer.outputs["digit"][0] == digits[k]),
                    float(of.confidence[0]),
                    len(of.late),
                )

            found = await asyncio.gather(*map(one, times, picked))
            good = [f for f in found if f is not None]
            seconds_of = np.array([f[0] for f in good])
            sure = np.array([f[2] for f in good])
            right = np.array([f[1] for f in good])
            row = {
                "late": count,
                "group": group.name,
                "requests": len(found),
                "unanswered": len(found) - len(good),
                "accuracy": float(right.mean()),
                "p50": float(np.quantile(seconds_of, 0.5)),
                "p99": float(np.quantile(seconds_of, 0.99)),
                "confidence": float(sure.mean()),
                "missing": float(np.mean([f[3] for f in good])),
                "sure": float((sure > 0.5).mean()),
                "accuracy_sure": float(right[sure > 0.5].mean())
                if (sure > 0.5).any()
                else float("nan"),
            }
            print(json.dumps(row), flush=True)
            rows.append(row)
    await repository.drain()
    return rows


def table_stragglers(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| late | | answered in, p50 | p99 | missing of 6 | right | confidence | "
        "confidence > ½: share, right |",
        "| --: | --- | --: | --: | --: | --: | --: | --: |",
    ]
    for row in rows:
        sure = (
            f"{row['sure']:.0%}, {row['accuracy_sure']:.1%}" if row["sure"] else "0 %"
        )
        lines.append(
            f"| {row['late']} | {row['group']} | {1e3 * row['p50']:.1f} ms "
            f"| {1e3 * row['p99']:.1f} ms | {row['missing']:.2f} "
            f"| {row['accuracy']:.1%} | {row['confidence']:.2f} | {sure} |"
        )
    return "\n".join(lines)


def draw_stragglers(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6))
    for name in dict.fromkeys(row["group"] for row in rows):
        mine = [row for row in rows if row["group"] == name]
        late = [row["late"] for row in mine]
        axes[0].plot(late, [1e3 * row["p99"] for row in mine], "o-", label=name)
        axes[1].plot(late, [100 * row["accuracy"] for row in mine], "o-", label=name)
    axes[0].set_ylabel("p99, ms")
    axes[1].set_ylabel("right, %")
    for axis in axes:
        axis.set_xlabel("late models of 6")
        axis.set_ylim(bottom=0)
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=9000, help="of degraded")
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="of a row of stragglers"
    )
    parser.add_argument("--only", choices=["degraded", "stragglers"])
    options = parser.parse_args()
    requests, seconds = options.requests, options.seconds
    with tempfile.TemporaryDirectory() as folder:
        if options.only != "stragglers":
            found = asyncio.run(degraded(requests, requests / 30, Path(folder)))
            print(table_degraded(found))
            print(f"{found['seconds']:.0f} s")
            third = requests // 3
            for name in ("exp4", "exp3", "thompson", "epsilon-greedy"):
                after = recovered(found["wrong"][name], third, 0.06)
                print(f"{name}: errors of 6 % again after {after} requests")
            draw_degraded(found, HERE / "degraded.png")
        if options.only != "degraded":
            rows = asyncio.run(stragglers(range(7), 60.0, seconds, Path(folder)))
            print(table_stragglers(rows))
            draw_stragglers(rows, HERE / "stragglers.png")


if __name__ == "__main__":
    main()
