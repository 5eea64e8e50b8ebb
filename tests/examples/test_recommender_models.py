"""Logs of clicks are the same however they are read; models of them learn."""

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.examples.programs import example

SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("wide_deep", "dlrm")]


@pytest.fixture(scope="module")
def program() -> ModuleType:
    return example("recommender_models")


@pytest.fixture(scope="module")
def logs() -> ModuleType:
    return example("recommenders.clicks")


@pytest.fixture(scope="module")
def few(logs: ModuleType) -> Any:
    return logs.Clicks(2000)


# -- logs ------------------------------------------------------------------------------


def test_examples_do_not_depend_on_batches(logs: ModuleType, few: Any) -> None:
    start, count = logs.BLOCK - 300, 700
    whole = few(start, count)
    parts = [few(start, 100), few(start + 100, 0), few(start + 100, 600)]
    for column, pieces in zip(whole, zip(*parts, strict=True), strict=True):
        np.testing.assert_array_equal(column, np.concatenate(pieces))
    again, other = logs.Clicks(2000)(start, count), logs.Clicks(2000, seed=1)(start, 9)
    np.testing.assert_array_equal(again.ids, whole.ids)
    assert (other.ids != whole.ids[:9]).mean() > 0.3
    sizes = [len(batch.ids) for batch in few.batches(5, 105, 30)]
    assert sizes == [30, 30, 30]


def test_statistics_are_those_of_criteo(logs: ModuleType) -> None:
    clicks = logs.Clicks()
    batch = clicks(0, 2 * logs.BLOCK)
    assert clicks.sizes == logs.SIZES and sum(clicks.sizes) > 33e6
    assert abs(batch.clicked.mean() - 0.256) < 0.01
    assert abs(batch.clicked.mean() - batch.chance.mean()) < 0.01
    missing = np.isnan(batch.numbers).mean(axis=0)
    np.testing.assert_allclose(missing, logs.MISSING, atol=0.02)
    assert (batch.ids >= 0).all() and (batch.ids < clicks.sizes).all()
    # A power law: the second id is 2^-1.1 as frequent as the first, nearly.
    first, second = np.sort(np.unique(batch.ids[:, 2], return_counts=True)[1])[:-3:-1]
    assert 0.4 < second / first < 0.65
    assert batch.numbers[:, 1].max() > 20 * np.median(batch.numbers[:, 1])


def test_any_number_of_ids_and_clicks(logs: ModuleType) -> None:
    for ids in (800, 1e5, 1e8):
        sizes = logs.Clicks(ids).sizes
        assert 0.97 * ids < sum(sizes) <= ids and min(sizes) == 3
    rare = logs.Clicks(1e5, rate=0.03)(0, logs.BLOCK)
    assert abs(rare.chance.mean() - 0.03) < 0.003
    with pytest.raises(ValueError, match="at least 780 ids"):
        logs.Clicks(100)
    with pytest.raises(ValueError, match="rate must be in"):
        logs.Clicks(rate=1.5)


def test_files_have_the_examples(logs: ModuleType, few: Any, tmp_path: Path) -> None:
    path, batch = tmp_path / "clicks.csv", few(7, 40)
    logs.write(path, few, 7, 47)
    lines = [line.split(",") for line in path.read_text().splitlines()]
    assert tuple(lines[0]) == logs.NAMES and len(lines) == 41
    table = dict(zip(lines[0], zip(*lines[1:], strict=True), strict=True))
    assert [float(x) for x in table["label"]] == batch.clicked.tolist()
    shown = [float(x) if x else np.nan for x in table["I1"]]
    np.testing.assert_array_equal(shown, batch.numbers[:, 0])
    # Strings stand for ids one to one.
    for column in ("C3", "C9"):
        ids = batch.ids[:, int(column[1:]) - 1]
        pairs = set(zip(table[column], ids.tolist(), strict=True))
        assert len(pairs) == len(set(ids.tolist())) == len(set(table[column]))
        assert all(len(text) == 8 for text in table[column])
    parquet = pytest.importorskip("pyarrow.parquet")
    logs.write(tmp_path / "clicks.parquet", few, 7, 47)
    read = parquet.read_table(tmp_path / "clicks.parquet").to_pydict()
    assert tuple(read["C3"]) == table["C3"]
    assert [x is None for x in read["I1"]] == np.isnan(batch.numbers[:, 0]).tolist()


# -- models of clicks ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["logistic", *SLOW])
def test_models_of_clicks_learn(program: ModuleType, few: Any, name: str) -> None:
    settings = program.training.Settings(
        examples=64 * 256, batch=256, rate=0.005, test=4096
    )
    model = program.click_models.MODELS[name](few.sizes, limit=500)
    found = program.training.fit(model, few, settings)
    behind = few.batches(settings.examples, settings.examples + settings.test, 256)
    best = program.training.best_quality(behind)
    auc, limit = float(found.scores.compute()), float(best.scores.compute())
    assert 0.63 < auc < limit and 0.8 < limit < 0.9
    assert float(found.calibration.compute()) < 0.1
    assert float(best.calibration.compute()) < 0.03
    assert "AUC 0." in str(found)


@pytest.mark.slow
def test_servers_give_the_same(program: ModuleType, few: Any) -> None:
    settings = program.training.Settings(examples=640, batch=128, test=256)
    model = program.click_models.dlrm(few.sizes, limit=500)
    values = [
        str(program.training.fit(model, few, settings, consistency=way))
        for way in program.training.CONSISTENCIES
    ]
    assert len(values) == 6 and len(set(values)) == 1


def test_ids_of_a_model_are_rows_of_its_tables(
    program: ModuleType, logs: ModuleType
) -> None:
    clicks = logs.Clicks(1e6)
    batch = clicks(0, 500)
    for make in program.click_models.MODELS.values():
        model = make(clicks.sizes, limit=1000)
        ids = model.ids(batch)
        for table in model.tables:
            found = ids[table.name]
            assert found.min() >= 0 and found.max() < table.rows
            # Columns share no rows, but crosses do.
            owners: dict[int, int] = {}
            for column in range(26):
                for row in set(found[:, column].tolist()):
                    assert owners.setdefault(row, column) == column


# -- models that find items ------------------------------------------------------------


def ratings(program: ModuleType, people: int, length: int, films: int) -> Any:
    """Everyone sees films in order, from a random one on, half in steps of two."""
    rng = np.random.default_rng(0)
    start, stride = rng.integers(0, films, people), rng.integers(1, 3, people)
    seen = (start[:, None] + stride[:, None] * np.arange(length)) % films
    persons = np.repeat(np.arange(people), length)
    times = np.tile(np.arange(length), people)
    load = program.load_ratings.__globals__["Ratings"]
    return load(persons, seen.reshape(-1), np.ones(people * length, np.float32), times)


def test_histories_end_before_the_item(program: ModuleType) -> None:
    retrieval = program.retrieval
    histories = retrieval.histories_of(ratings(program, 3, 5, 11))
    seen = retrieval.before(histories, np.array([0, 2, 4, 5, 9]), 3)
    own = histories.items
    assert seen.tolist() == [
        [0, 0, 0], [0, own[0], own[1]], own[1:4].tolist(), [0, 0, 0], own[6:9].tolist()
    ]  # fmt: skip
    assert own.min() >= 1 and histories.count == own.max() + 1
    places = retrieval._places(histories, np.random.default_rng(0), 100)
    assert not np.isin(places, [0, 4, 5, 9, 10, 14]).any()


@pytest.mark.parametrize(
    ("name", "steps", "least"),
    [
        ("two_towers", 60, 0.3),
        pytest.param("sequence", 200, 0.8, marks=pytest.mark.slow),
    ],
)
def test_the_next_item_is_found(
    program: ModuleType, name: str, steps: int, least: float
) -> None:
    """By its order: all items are chosen about as often."""
    retrieval = program.retrieval
    histories = retrieval.histories_of(ratings(program, 200, 8, 60))
    model = retrieval.MODELS[name](histories.count, length=6, features=16)
    settings = retrieval.Settings(steps=steps, batch=64, rate=0.005, report=1000)
    plain = float(retrieval.popular(histories, 2).recall.compute())
    found = retrieval.fit(model, histories, settings)
    assert plain < 0.15 and least < float(found.recall.compute()) <= 1
    assert "recall@10 0." in str(found) or "recall@10 1." in str(found)


@pytest.mark.slow
def test_the_program_runs(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    given = ["--examples=2048", "--batch=256", "--test=1024", "--ids=2000"]
    auc = program.main(["logistic", *given, "--consistency", "asynchronous"])
    shown = capsys.readouterr().out
    assert 0.5 < auc < 0.8 and f"logistic: AUC {auc:.4f}" in shown
    made = ratings(program, 40, 6, 30)
    monkeypatch.setattr(program, "load_ratings", lambda: made)
    recall = program.main(["two_towers", "--steps", "5", "--batch", "16"])
    assert 0 <= recall <= 1 and "recall@10" in capsys.readouterr().out
