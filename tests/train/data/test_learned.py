"""Counts in bounded memory and moments, of data in parts."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from fxflow.errors import ArgumentError, DataError, DtypeError
from fxflow.train import data
from fxflow.train.data import (
    Features,
    FittedFeatures,
    Normalize,
    Statistics,
    Vocabulary,
)
from fxflow.train.data.learned import Counts

RNG = np.random.default_rng(0)


def test_counts_in_bounded_memory_are_too_small_by_at_most_their_error() -> None:
    values = RNG.zipf(1.3, 20_000) % 5000
    true = Counter(values.tolist())
    parts = [Counts(50), Counts(50)]
    for i, batch in enumerate(np.split(values, 40)):
        parts[i % 2].add(Counter(batch.tolist()))
        assert len(parts[i % 2].found) <= 100
    both = Counts(50)
    for part in parts:
        both.add(part.found, part.error)
    for counts, total in ((parts[0], 10_000), (both, 20_000)):
        assert 0 < counts.error <= total / 51
    assert all(0 <= n - both.found.get(v, 0) <= both.error for v, n in true.items())
    often = [v for v, n in true.most_common(5)]
    assert sorted(both.found, key=lambda v: -both.found[v])[:5] == often


def test_an_endless_stream_has_a_vocabulary_in_bounded_memory() -> None:
    described = Features({"w": Vocabulary("w", minimum=50, most=4, memory=20)})
    found = described.statistics()
    for n in range(60):
        rare = [f"once {n} {i}" for i in range(30)]
        found.update({"w": [*rare, *"aaabbc"]})
    # 2160 words: counts are too small by at most 2160 / 21 = 102.
    assert found.errors["w"] <= 102 and found.rows == 2160
    assert found.fitted().learned["w"][:1] == ["a"]
    exact = Features({"w": Vocabulary("w", minimum=50, most=4)})
    assert exact.fit([{"w": list("ab") * 60}]).learned["w"] == ["a", "b"]


def test_statistics_of_parts_are_those_of_all() -> None:
    described = Features(
        {"w": Vocabulary("w"), "n": Normalize("n"), "m": Normalize("n", log=True)}
    )

    def batch() -> dict[str, list[object]]:
        words = RNG.choice(list("abcdef"), 50).tolist()
        return {"w": words, "n": [None, *RNG.normal(5, 2, 49).tolist()]}

    batches = [batch() for _ in range(9)]
    whole = described.fit(batches)
    parts = [described.statistics() for _ in range(3)]
    for i, one in enumerate(batches):
        parts[i % 3].update(one)
    texts = [part.to_json() for part in parts]
    again = [Statistics.from_json(described, text) for text in texts]
    fitted = again[0].merged(again[1]).merged(again[2]).fitted()
    assert fitted.learned["w"] == whole.learned["w"] and fitted.kinds == whole.kinds
    for name in ("n", "m"):
        np.testing.assert_allclose(fitted.learned[name], whole.learned[name], 1e-12)
    logs = np.log1p(np.abs([v for b in batches for v in b["n"] if v is not None]))
    signs = np.sign([v for b in batches for v in b["n"] if v is not None])
    np.testing.assert_allclose(whole.learned["m"][0], (signs * logs).mean(), 1e-9)
    scaled = whole({"w": ["a"], "n": [-1.0]})["m"][0]
    mean, deviation = whole.learned["m"]
    np.testing.assert_allclose(scaled, (-np.log(2) - mean) / deviation, 1e-6)


def test_ids_stay_when_a_vocabulary_is_fitted_to_more_data() -> None:
    described = Features({"w": Vocabulary("w", minimum=2, most=4)})
    first = described.fit([{"w": list("bbba")}])
    second = described.fit([{"w": list("ccaaabddddee")}], previous=first)
    assert second.learned["w"] == ["b", "d", "a", "c"]  # e has no room
    third = described.fit([], previous=second)
    assert third.learned == second.learned and third.kinds == {"w": "string"}
    again = FittedFeatures.from_json(second.to_json())
    assert again({"w": list("bdace")})["w"].tolist() == [1, 2, 3, 4, 0]
    for previous, error, message in (
        (
            Features({"w": Vocabulary("v")}),
            ArgumentError,
            "'w' is Vocabulary.*previous",
        ),
        (Features({"w": data.Hash("w", 9)}), ArgumentError, "'w' is Hash"),
    ):
        with pytest.raises(error, match=message):
            described.fit([], previous=previous.fit([{"w": ["a"], "v": ["a"]}]))
    small = Features({"w": Vocabulary("w", most=1)})
    with pytest.raises(
        ArgumentError, match="has 4 values in previous, more than most=1"
    ):
        small.fit([], previous=second)
    with pytest.raises(DtypeError, match="is of kind integer, in previous of kind str"):
        described.fit([{"w": [1]}], previous=second)


def test_infinite_numbers_and_other_statistics_are_refused() -> None:
    described = Features({"n": Normalize("n")})
    with pytest.raises(DataError, match="'n': row 3 is infinite"):
        described.fit([{"n": [1.0, 2.0]}, {"n": [None, -np.inf]}])
    other = Features({"n": Vocabulary("n")}).statistics()
    with pytest.raises(ArgumentError, match="the features differ"):
        described.statistics().merged(other)
    with pytest.raises(ArgumentError, match="not statistics of these features"):
        Statistics.from_json(described, other.to_json())
    with pytest.raises(ArgumentError, match="version 9 is not 1"):
        text = json.dumps({**json.loads(other.to_json()), "version": 9})
        Statistics.from_json(described, text)
    strings, integers = (Features({"n": Vocabulary("n")}).statistics() for _ in "ab")
    strings.update({"n": ["a"]})
    integers.update({"n": [1]})
    with pytest.raises(DtypeError, match="of kind string in one part and integer in"):
        strings.merged(integers)
