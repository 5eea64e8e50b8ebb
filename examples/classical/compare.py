"""Compares classical learning on small tables with scikit-learn.

    pip install "fxflow[examples]"
    python examples/classical/compare.py                # all
    python examples/classical/compare.py forest process

For each task, prints the score on a held-out quarter (or the minimized value), ours and
scikit-learn's, and the seconds of both. Ours are those of a second run; those of the
first run, which includes compilation, are in a separate column.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import bayes
import forest
import kmeans
import logistic
import numpy as np
import process

import fxflow
from fxflow import random


class Row(NamedTuple):
    """A task's results; a lower score is better for k-means, a higher one elsewhere."""

    task: str
    score: float
    theirs: float
    seconds: float
    their_seconds: float
    first_seconds: float

    def gap(self) -> float:
        """Returns by what fraction our score is worse; below 0 it is better."""
        worse = self.score - self.theirs
        return (worse if self.task.startswith("k-means") else -worse) / abs(self.theirs)


class Table(NamedTuple):
    """A table in two parts: three quarters for training, one for testing."""

    x: np.ndarray
    y: np.ndarray
    new_x: np.ndarray
    new_y: np.ndarray


def table(name: str, scaled: bool = True) -> Table:
    """Loads one of scikit-learn's tables; columns have mean 0 and deviation 1."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    labels = y if y.dtype.kind == "i" else None
    x, new_x, y, new_y = train_test_split(
        x, y, test_size=0.25, random_state=0, stratify=labels
    )
    if scaled:
        mean, deviation = x.mean(0), x.std(0) + (x.std(0) == 0)
        x, new_x = (x - mean) / deviation, (new_x - mean) / deviation
    if labels is None:
        mean, deviation = y.mean(), y.std()
        y, new_y = (y - mean) / deviation, (new_y - mean) / deviation
    kind = "float32" if labels is None else "int32"
    return Table(
        *(np.asarray(a, t) for a, t in zip((x, y, new_x, new_y), ("f", kind) * 2))
    )


def timed(f: Callable[[], Any]) -> tuple[Any, float]:
    """Returns the result of `f`, once it is computed, and the seconds that it took."""
    begin = time.perf_counter()
    result = fxflow.block_until_ready(f())
    return result, time.perf_counter() - begin


def row(
    task: str,
    ours: Callable[[], Any],
    score: Callable[[Any], float],
    theirs: Callable[[], Any],
    their_score: Callable[[Any], float],
) -> Row:
    """Runs both sides."""
    _, first = timed(ours)
    result, seconds = timed(ours)
    model, their_seconds = timed(theirs)
    return Row(
        task,
        float(score(result)),
        float(their_score(model)),
        seconds,
        their_seconds,
        first,
    )


def accuracy(labels: Any, wanted: np.ndarray) -> float:
    """Returns the fraction of correct labels."""
    return float((np.asarray(labels) == wanted).mean())


def r2(predicted: Any, wanted: np.ndarray) -> float:
    """Returns the fraction of the variance that a prediction explains."""
    errors = np.asarray(predicted, np.float64) - wanted
    return float(1 - (errors**2).mean() / wanted.var())


# -- tasks ----------------------------------------------------------------------------


def clustering() -> list[Row]:
    """Compares k-means with ten clusters on digits."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    x = table("digits", scaled=False).x
    inertia = lambda found: found.inertia
    theirs = lambda model: model.inertia_
    whole = KMeans(10, n_init=10, random_state=0)
    batches = MiniBatchKMeans(10, batch_size=512, n_init=5, random_state=0)
    key = random.key(0)
    return [
        row(
            "k-means, digits",
            lambda: kmeans.fit(key, x, k=10),
            inertia,
            lambda: whole.fit(x),
            theirs,
        ),
        row(
            "k-means by batches, digits",
            lambda: kmeans.fit_batches(key, x, k=10),
            inertia,
            lambda: batches.fit(x),
            theirs,
        ),
    ]


def classification() -> list[Row]:
    """Compares logistic regression on two tables."""
    from sklearn.linear_model import LogisticRegression

    rows = []
    for name in ("breast_cancer", "digits"):
        data = table(name)
        classes = int(data.y.max()) + 1
        model = LogisticRegression(max_iter=1000)
        rows.append(
            row(
                f"logistic, {name}",
                lambda data=data, c=classes: logistic.fit(data.x, data.y, classes=c),
                lambda m, data=data: accuracy(
                    logistic.predict(m, data.new_x), data.new_y
                ),
                lambda data=data, model=model: model.fit(data.x, data.y),
                lambda m, data=data: m.score(data.new_x, data.new_y),
            )
        )
    return rows


def trees() -> list[Row]:
    """Compares the mean of three forests on two tables: one alone varies by 1 %."""
    from sklearn.ensemble import RandomForestClassifier

    def task(name: str, bins: int, depth: int) -> Row:
        data = table(name, scaled=False)
        edges = forest.quantiles(data.x, bins)
        x, new = (forest.binned(a, edges) for a in (data.x, data.new_x))
        sizes = {"classes": int(data.y.max()) + 1, "bins": bins, "depth": depth}
        return row(
            f"forest, {name}",
            lambda: [forest.fit(random.key(i), x, data.y, **sizes) for i in range(3)],
            lambda found: np.mean(
                [accuracy(forest.predict(f, new), data.new_y) for f in found]
            ),
            lambda: [
                RandomForestClassifier(100, random_state=i).fit(data.x, data.y)
                for i in range(3)
            ],
            lambda found: np.mean([f.score(data.new_x, data.new_y) for f in found]),
        )

    return [task("breast_cancer", 16, 8), task("digits", 8, 10)]


def regression() -> list[Row]:
    """Compares two methods of Bayesian linear regression on diabetes."""
    from sklearn.linear_model import BayesianRidge

    data = table("diabetes")
    x, y, new_x, new_y = data
    key = random.key(0)
    theirs = lambda: BayesianRidge().fit(x, y)
    their_score = lambda model: r2(model.predict(new_x), new_y)

    def sampled(result: Any) -> float:
        draws, _ = result
        return r2(new_x @ np.mean(draws.w, (0, 1)) + np.mean(draws.b), new_y)

    def normal(result: Any) -> float:
        mean, _ = result
        return r2(new_x @ np.asarray(mean.w) + np.asarray(mean.b), new_y)

    return [
        row(
            "Bayes by HMC, diabetes",
            lambda: bayes.sample(key, x, y),
            sampled,
            theirs,
            their_score,
        ),
        row(
            "Bayes by variation, diabetes",
            lambda: bayes.approximate(key, x, y),
            normal,
            theirs,
            their_score,
        ),
    ]


def processes() -> list[Row]:
    """Compares Gaussian processes on diabetes."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    x, y, new_x, new_y = table("diabetes")
    kernel = ConstantKernel(1.0) * RBF(3.0) + WhiteKernel(0.25)
    model = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0)
    return [
        row(
            "Gaussian process, diabetes",
            lambda: process.fit(x, y),
            lambda m: r2(process.predict(m, x, y, new_x)[0], new_y),
            lambda: model.fit(x, y),
            lambda m: r2(m.predict(new_x), new_y),
        )
    ]


TASKS: dict[str, Callable[[], list[Row]]] = {
    "kmeans": clustering,
    "logistic": classification,
    "forest": trees,
    "bayes": regression,
    "process": processes,
}


def main(arguments: list[str] | None = None) -> list[Row]:
    """Runs the tasks that are named, or all, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(TASKS)}; default: all")
    given = parser.parse_args(arguments)
    if unknown := set(given.tasks) - set(TASKS):
        parser.error(f"no task {', '.join(unknown)}; there are {', '.join(TASKS)}")
    head = f"{'':30} {'score':>10} {'theirs':>10} {'s':>7} {'theirs':>7} {'first':>7}"
    print(head)
    rows = []
    for name in given.tasks or TASKS:
        for found in TASKS[name]():
            rows.append(found)
            print(
                f"{found.task:30} {found.score:10.5g} {found.theirs:10.5g} "
                f"{found.seconds:7.2f} {found.their_seconds:7.2f} "
                f"{found.first_seconds:7.2f}",
                flush=True,
            )
    return rows


if __name__ == "__main__":
    main()
