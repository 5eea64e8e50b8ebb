"""Recommends films, with a table larger than its server's memory limit.

    python examples/recommender_ps.py                  # the server gets 260 MB
    python examples/recommender_ps.py --memory 0       # no limit
    fxflow launch --ps 2 --workers 2 examples/recommender_ps.py

The model predicts a person's rating of a film from their earlier ratings. Each
pair of films has a row of 31 weights: one for each number of stars and each interval
of time between the two, and one for having seen the other at all (after Koren 2008).
There are 2.8 million pairs, and rows are created when they are first used. The most
recently used rows are in memory, the others on disk (`pip install fxflow[tables]`).

The script starts a server whose memory the system limits (`RLIMIT_DATA`: allocated
memory, not the pages of its file). The last ten ratings of each person are for testing.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from helpers.ratings import Ratings, load_ratings

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim
from fxflow.distributed import parameter_server as ps
from fxflow.distributed.parameter_server import parameter_server

GAPS = (60, 3600, 86400, 7 * 86400, 30 * 86400)  # seconds, between two ratings
WIDTH = 5 * (len(GAPS) + 1) + 1


class Settings(NamedTuple):
    """The settings of a run.

    Attributes:
      history: maximum number of earlier ratings that count: the last ones.
      rate: learning rate of Adagrad, for rows.
      decay: λ of the sum of squares of the weights of an example.
      batch: ratings per step.
      epochs: passes over the ratings.
      rows: maximum number of rows in a server's memory; 0: no limit.
      seed: seed of the order.
    """

    history: int = 128
    rate: float = 0.04
    decay: float = 0.05
    batch: int = 128
    epochs: int = 2
    rows: int = 50_000
    seed: int = 0


class Examples(NamedTuple):
    """Ratings, and the earlier ratings of the same person.

    Attributes:
      people: i64[n].
      films: i64[n].
      stars: f32[n].
      before: i64[n], the position of the person's first rating that counts.
      last: bool[n], whether the rating is for testing.
    """

    people: np.ndarray
    films: np.ndarray
    stars: np.ndarray
    before: np.ndarray
    last: np.ndarray


def examples_of(ratings: Ratings, settings: Settings, held: int = 10) -> Examples:
    """Finds the start of each rating's history, and the ratings for testing."""
    places = np.arange(len(ratings.people))
    starts = np.searchsorted(ratings.people, ratings.people)
    ends = np.searchsorted(ratings.people, ratings.people, side="right")
    before = np.maximum(starts, places - settings.history)
    last = places >= ends - held
    return Examples(ratings.people, ratings.films, ratings.stars, before, last)


def batches(
    ratings: Ratings,
    examples: Examples,
    chosen: np.ndarray,
    settings: Settings,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yields batches of the chosen ratings: ids of pairs, and inputs of the loss."""
    films = int(ratings.films.max()) + 1
    steps = np.arange(settings.history)
    for start in range(0, len(chosen) - settings.batch + 1, settings.batch):
        own = chosen[start : start + settings.batch]
        seen = examples.before[own][:, None] + steps
        real = seen < own[:, None]
        seen = np.where(real, seen, own[:, None])
        pairs = ratings.films[own][:, None] * films + ratings.films[seen]
        gap = np.digitize(ratings.times[own][:, None] - ratings.times[seen], GAPS)
        context = gap * 5 + ratings.stars[seen].astype(np.int64) - 1
        batch = {
            "people": examples.people[own].astype(np.int32),
            "films": examples.films[own].astype(np.int32),
            "stars": examples.stars[own],
            "context": context.astype(np.int32),
            "real": real,
        }
        yield {"pairs": np.where(real, pairs, 0)}, batch


def init(ratings: Ratings) -> dict[str, Any]:
    """Returns dense parameters: the mean, and offsets for each person and film."""
    return {
        "mean": np.float32(ratings.stars.mean()),
        "people": np.zeros(int(ratings.people.max()) + 1, np.float32),
        "films": np.zeros(int(ratings.films.max()) + 1, np.float32),
    }


def predicted(params: Any, rows: Any, batch: Any) -> tuple[Any, Any]:
    """Returns predicted stars f32[batch], and the weights that were used."""
    plain = params["mean"] + params["people"][batch["people"]]
    plain = plain + params["films"][batch["films"]]
    if rows is None:
        return plain, fnp.zeros(())
    stars = fnp.take_along_axis(rows["pairs"], batch["context"][..., None], axis=2)
    used = stars[..., 0] + rows["pairs"][..., -1]
    used = fnp.where(batch["real"], used, 0)
    count = fnp.maximum(fnp.sum(batch["real"], axis=1), 1)
    return plain + fnp.sum(used, axis=1) / fnp.sqrt(count), used


def make_loss(settings: Settings) -> Any:
    """Makes `loss(params, rows, batch)`: squared errors with regularization."""

    def loss(params: Any, rows: Any, batch: Any) -> Any:
        stars, used = predicted(params, rows, batch)
        error = fnp.mean((stars - batch["stars"]) ** 2)
        own = params["people"][batch["people"]], params["films"][batch["films"]]
        size = sum(fnp.mean(x**2) for x in own)
        return error + 0.02 * size + settings.decay * fnp.sum(used**2) / len(stars)

    return loss


def root_mean_square(errors: list[np.ndarray]) -> float:
    """Returns the root mean square of all errors."""
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))


def film_means(ratings: Ratings, last: np.ndarray) -> float:
    """Returns the error of predicting the mean rating of each film."""
    films, stars = ratings.films[~last], ratings.stars[~last]
    count = np.bincount(films, minlength=ratings.films.max() + 1)
    total = np.bincount(films, stars, minlength=len(count))
    mean = (total + 5 * stars.mean()) / (count + 5)
    return root_mean_square([mean[ratings.films[last]] - ratings.stars[last]])


def fit(
    ratings: Ratings,
    settings: Settings,
    *,
    cluster: ps.Cluster | None = None,
    folder: str | None = None,
    pairs: bool = True,
) -> float:
    """Trains as one of the workers, and returns the error on the ratings for testing.

    Args:
      ratings: the ratings.
      settings: the settings of the run.
      cluster: the servers; None: this process. Each of n workers takes every n-th
        rating.
      folder: the folder for rows that are not in memory.
      pairs: whether to use the table, or only dense parameters.
    """
    index, workers = (cluster.rank, len(cluster.trainers) or 1) if cluster else (0, 1)
    examples = examples_of(ratings, settings)
    table = ps.TableSpec(
        "pairs",
        WIDTH,
        optim.adagrad(settings.rate, initial_accumulator_value=1e-6),
        nn.initializers.zeros,
        rows_in_memory=settings.rows if folder and settings.rows else None,
        folder=folder,
    )
    loss = make_loss(settings)
    server = parameter_server(
        loss if pairs else lambda params, batch: loss(params, None, batch),
        optim.adam(0.005),
        consistency=ps.asynchronous(),
        cluster=cluster,
        tables=[table] if pairs else [],
    )
    state = server.init(init(ratings))
    rng = np.random.default_rng([settings.seed, index])
    train = np.flatnonzero(~examples.last)[index::workers]
    for epoch in range(settings.epochs):
        total, number, started = 0.0, 0, time.perf_counter()
        for ids, batch in batches(ratings, examples, rng.permutation(train), settings):
            state, metrics = server.step(state, batch, ids=ids if pairs else None)
            total, number = total + float(metrics.loss), number + 1
        seconds = time.perf_counter() - started
        print(
            f"epoch {epoch + 1}/{settings.epochs}: loss {total / number:.4f}, "
            f"{number / seconds:.1f} steps/s",
            flush=True,
        )
    params = server.params(state)
    guess = fxflow.jit(lambda *given: predicted(*given)[0])
    errors = []
    test = np.flatnonzero(examples.last)
    whole = settings._replace(batch=test.size // 41)
    for ids, batch in batches(ratings, examples, test, whole):
        rows = server.rows(ids) if pairs else None
        errors.append(np.asarray(guess(params, rows, batch)) - batch["stars"])
    server.close()
    return root_mean_square(errors)


# -- a server whose memory is limited --------------------------------------------------


class Limited:
    """A server process that may allocate `limit` bytes.

    Args:
      limit: in bytes; 0: no limit.
    """

    def __init__(self, limit: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        self.cluster = ps.Cluster((address,))
        server = [sys.executable, "-m", "fxflow.distributed.parameter_server"]
        # The limit includes each thread's stack, and each thread's own heap.
        limits = f"ulimit -s 1024; ulimit -d {limit // 1024 or 'unlimited'}"
        self._process = subprocess.Popen(
            ["sh", "-c", f'{limits}; exec "$@"', "sh", *server]
            + ["--number", "0", "--servers", address],
            env={**os.environ, "MALLOC_ARENA_MAX": "1"},
        )

    def bytes_of(self, *names: str) -> list[int]:
        """Returns entries of the process's memory status, such as ``VmData``."""
        text = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        found = dict(line.split(":", 1) for line in text.splitlines())
        return [int(found[name].split()[0]) * 1024 for name in names]

    def close(self) -> None:
        """Ends the process."""
        self._process.terminate()
        self._process.wait(30)


def main(arguments: list[str] | None = None) -> float:
    """Runs the example and returns the error of the ratings for testing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memory", type=int, default=260, help="of the server, in MB")
    for name, value in Settings()._asdict().items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    given = parser.parse_args(arguments)
    settings = Settings(*(getattr(given, name) for name in Settings._fields))
    ratings = load_ratings()
    cluster = ps.cluster_of(None)
    with tempfile.TemporaryDirectory() as folder:
        if cluster:
            error = fit(ratings, settings, cluster=cluster, folder=folder)
            print(f"error of the ratings for testing: {error:.4f} stars")
            return error
        last = examples_of(ratings, settings).last
        print(f"error of means of films: {film_means(ratings, last):.4f} stars")
        plain = fit(ratings, settings, pairs=False)
        print(f"error without pairs: {plain:.4f} stars")
        server = Limited(given.memory * 10**6)
        try:
            error = fit(ratings, settings, cluster=server.cluster, folder=folder)
            print(f"error of the ratings for testing: {error:.4f} stars")
            held = sum(f.stat().st_blocks * 512 for f in Path(folder).rglob("*.mdb"))
            names = "VmData", "VmHWM", "RssAnon"
            data, peak, own = (n / 1e6 for n in server.bytes_of(*names))
            print(
                f"table on disk: {held / 1e6:.0f} MB; the server: {data:.0f} MB "
                f"allocated, {own:.0f} MB of it resident; {peak:.0f} MB at most with "
                "pages of its files"
            )
        finally:
            server.close()
    return error


if __name__ == "__main__":
    main()
