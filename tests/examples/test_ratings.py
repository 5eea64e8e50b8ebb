"""Ratings are fetched, checked and ordered."""

import hashlib
import io
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.examples.programs import EXAMPLES


@pytest.fixture
def ratings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """`examples/helpers/ratings.py`, whose cache is empty."""
    monkeypatch.setenv("FXFLOW_DATA_DIR", str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from helpers import ratings

    return ratings


def keep(ratings: ModuleType, lines: int, folder: Path) -> str:
    """Puts a package with `lines` ratings in the cache, and returns its digest."""
    table = ["user_id:token\titem_id:token\trating:float\ttimestamp:float"]
    table += [
        f"{1 + n % 2}\t{1 + n % 5}\t{1 + n % 5}\t{lines - n}" for n in range(lines)
    ]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        name = "recbole/dataset_example/ml-100k/ml-100k.inter"
        archive.writestr(name, "\n".join(table))
    (folder / ratings.MOVIELENS.file).write_bytes(out.getvalue())
    return hashlib.sha256(out.getvalue()).hexdigest()


def test_in_the_order_of_people_and_times(
    ratings: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    digest = keep(ratings, 100_000, tmp_path)
    package = ratings.MOVIELENS._replace(sha256=digest)
    monkeypatch.setattr(ratings, "MOVIELENS", package)
    found = ratings.load_ratings()
    assert found.people[:2].tolist() == [0, 0] and found.people[-1] == 1
    assert (found.times[:50_000].argsort() == range(50_000)).all()
    assert set(found.stars) == {1, 2, 3, 4, 5} and found.films.min() == 0


def test_another_table_is_refused(
    ratings: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    digest = keep(ratings, 10, tmp_path)
    package = ratings.MOVIELENS._replace(sha256=digest)
    monkeypatch.setattr(ratings, "MOVIELENS", package)
    with pytest.raises(RuntimeError, match="expected 100,000"):
        ratings.load_ratings()
