"""The recommender learns which films go together; its server keeps to its memory."""

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.examples.programs import example


@pytest.fixture(scope="module")
def recommender() -> ModuleType:
    return example("recommender_ps")


def ratings(module: ModuleType, people: int = 40, films: int = 24) -> Any:
    """Half of the films are liked by those who dislike the others."""
    rng = np.random.default_rng(0)
    seen = np.stack([rng.permutation(films) for _ in range(people)])
    taste = rng.integers(0, 2, (people, 1))
    stars = np.where(seen % 2 == taste, 5, 1).astype(np.float32)
    times = np.broadcast_to(np.arange(films) * 1000, seen.shape)
    who = np.repeat(np.arange(people), films)
    return module.Ratings(
        who, seen.reshape(-1), stars.reshape(-1), times.reshape(-1).copy()
    )


def test_pairs_tell_what_films_alone_do_not(recommender: ModuleType) -> None:
    given = ratings(recommender)
    settings = recommender.Settings(history=8, rate=0.4, decay=0.01, batch=16, epochs=4)
    last = recommender.examples_of(given, settings).last
    assert last.sum() == 400
    assert recommender.film_means(given, last) > 1.8
    assert recommender.fit(given, settings) < 1.0


def test_pairs_come_before_and_are_named_once(recommender: ModuleType) -> None:
    given = ratings(recommender, people=3, films=12)
    settings = recommender.Settings(history=4, batch=6)
    examples = recommender.examples_of(given, settings, held=2)
    chosen = np.array([0, 1, 11, 12, 20, 35])
    [(ids, batch)] = recommender.batches(given, examples, chosen, settings)
    assert batch["real"].sum(axis=1).tolist() == [0, 1, 4, 0, 4, 4]
    films = given.films
    assert ids["pairs"][1, 0] == films[1] * 12 + films[0]
    assert (ids["pairs"][2] == films[11] * 12 + films[7:11]).all()
    assert batch["context"].max() < recommender.WIDTH - 1


@pytest.mark.soak
def test_a_server_of_limited_memory(recommender: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("lmdb")
    given = ratings(recommender)
    settings = recommender.Settings(history=8, batch=64, epochs=1, rows=512)
    server = recommender.Limited(400 * 10**6)
    try:
        recommender.fit(given, settings, cluster=server.cluster, folder=str(tmp_path))
        [allocated] = server.bytes_of("VmData")
        assert allocated < 400 * 10**6
        assert list(tmp_path.rglob("*.mdb"))
    finally:
        server.close()
