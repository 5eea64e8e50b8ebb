"""Makes logs of clicks with the statistics of Criteo's, and a known best answer.

    python examples/recommenders/clicks.py clicks.parquet --examples 1e6
    python examples/recommenders/clicks.py clicks.csv --ids 1e8 --rate 0.03

Criteo's data (2014, 45.8 million lines of a week) are not on the package index. What
they look like is known: a label that is 1 for 25.6 % (3 % in the later set of 24
days); 13 numbers, counts with long tails, some missing; 26 columns of ids, which have
from 3 to 10 million different values whose frequencies fall as a power of the rank.
These logs have the same columns, numbers of ids (`SIZES`) and shares. Unlike Criteo's,
columns are independent of each other, and the law does not change with time.

The probability of a click is a formula of an example's columns: a weight for each id,
products of the vectors of some pairs of ids, and functions of the numbers. `Clicks`
returns it, so the best AUC and log loss that any model can have are known.

Example i is the same however the logs are divided into batches.
"""

import argparse
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

#: Different values of the 26 columns of ids in Criteo's data of a week (Naumov et al.
#: 2019, "Deep learning recommendation model", code): 33.8 million.
SIZES = (
    1460, 583, 10_131_227, 2_202_608, 305, 24, 12_517, 633, 3, 93_145, 5683, 8_351_593,
    3194, 27, 14_992, 5_461_306, 10, 5652, 2173, 4, 7_046_547, 18, 15, 286_181, 105,
    142_572,
)  # fmt: skip
NUMBERS = 13
#: Shares of missing numbers, rounded from Criteo's.
MISSING = (0.45, 0.0, 0.2, 0.2, 0.03, 0.2, 0.04, 0.0, 0.04, 0.45, 0.04, 0.75, 0.2)
#: Pairs of columns whose vectors are multiplied.
PAIRS = ((0, 1), (4, 8), (5, 13), (1, 16), (7, 19), (0, 17), (12, 24), (6, 10))
FACTORS = 4
BLOCK = 1 << 14  # examples that are made together
NAMES = ("label", *(f"I{i + 1}" for i in range(13)), *(f"C{i + 1}" for i in range(26)))


class Batch(NamedTuple):
    """Examples.

    Attributes:
      numbers: f32[n, 13], whole numbers from 0; nan where they are missing.
      ids: i64[n, 26], from 0, each below its column's size.
      clicked: f32[n], 0 or 1.
      chance: f32[n], the probability that the label was drawn with.
    """

    numbers: np.ndarray
    ids: np.ndarray
    clicked: np.ndarray
    chance: np.ndarray


class Clicks:
    """Logs of clicks of any length.

    Args:
      ids: the number of different ids of all columns; large columns shrink or grow to
        fit. None: those of Criteo's, 33.8 million.
      rate: the share of clicks.
      exponent: of the power law of each column's frequencies.
      seed: of everything.
    """

    def __init__(
        self,
        ids: float | None = None,
        *,
        rate: float = 0.256,
        exponent: float = 1.1,
        seed: int = 0,
    ) -> None:
        if not 0 < rate < 1:
            raise ValueError(f"Clicks: the rate must be in (0, 1), got {rate}")
        self.sizes, self.exponent, self.seed = _scaled(ids), exponent, seed
        sizes = np.array(self.sizes)
        # What the inverse of the distribution of a rank needs: see `_ranks`.
        self._ends = (sizes + 1.0) ** (1 - exponent)
        self._strides = np.array([_coprime(size) for size in self.sizes])
        # Weights of the terms of the log-odds, of a variance of about 3 in all.
        rng = np.random.Generator(np.random.Philox(key=[seed, 2**63]))
        # Single ids of large columns matter less: most are too rare to be learnt.
        large = np.maximum(np.array(SIZES) / 1000, 1)
        self._linear = _unit((0.5 + rng.random(26)) / large**0.25) * 1.2
        self._paired = _unit(0.5 + rng.random(len(PAIRS))) * 1.0
        self._numeric = _unit(rng.random(NUMBERS) - 0.5) * 0.8
        self._bias = 0.0
        self._bias = _bias_of(self._columns(-1, BLOCK)[2], rate)

    def __call__(self, start: int, count: int) -> Batch:
        """Returns examples `start` to `start + count`.

        Args:
          start: a natural number.
          count: a natural number.
        """
        if start < 0 or count < 0:
            raise ValueError(f"Clicks: expected natural numbers, got {start}, {count}")
        parts = []
        for block in range(start // BLOCK, -(-(start + count) // BLOCK)):
            first = block * BLOCK
            part = slice(max(start - first, 0), min(start + count - first, BLOCK))
            parts.append(Batch(*(column[part] for column in self._block(block))))
        if not parts:
            parts = [Batch(*(column[:0] for column in self._block(0)))]
        return Batch(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def batches(self, start: int, stop: int, size: int) -> Iterator[Batch]:
        """Yields the batches of examples `start` to `stop`, all of one size.

        Args:
          start: the first example.
          stop: behind the last one; what is left over is left out.
          size: the number of examples of each batch.
        """
        for first in range(start, stop - size + 1, size):
            yield self(first, size)

    @functools.lru_cache(maxsize=4)  # noqa: B019 - a few blocks, for short batches
    def _block(self, block: int) -> Batch:
        numbers, ids, logits, draws = self._columns(block, BLOCK)
        chance = 1 / (1 + np.exp(-logits - self._bias))
        clicked = (draws < chance).astype(np.float32)
        return Batch(numbers, ids, clicked, chance.astype(np.float32))

    def _columns(self, block: int, n: int) -> tuple[Any, Any, Any, Any]:
        """Returns numbers, ids, log-odds less the bias, and draws for the labels."""
        rng = np.random.Generator(np.random.Philox(key=[self.seed, block % 2**63]))
        draws = rng.random((n, 26 + 2 * NUMBERS + 1), np.float32)
        ids = self._ranks(draws[:, :26]) * self._strides % np.array(self.sizes)
        u = np.clip(draws[:, 26 : 26 + NUMBERS], 1e-6, 1 - 1e-6)
        z = np.log(u / (1 - u))  # logistic, with long tails after exp
        numbers = np.floor(np.exp(0.8 * z + 1.5)).astype(np.float32)
        numbers[draws[:, 26 + NUMBERS : -1] < np.array(MISSING, np.float32)] = np.nan
        return numbers, ids, self._logits(numbers, ids), draws[:, -1]

    def _ranks(self, u: np.ndarray) -> np.ndarray:
        """Returns ranks from 0: a continuous power law, cut at the size, rounded."""
        power = 1 + u.astype(np.float64) * (self._ends - 1)
        ranks = power ** (1 / (1 - self.exponent))
        return np.minimum(ranks.astype(np.int64), self.sizes) - 1

    def _logits(self, numbers: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Returns the log-odds of clicks, less the bias."""
        columns = np.arange(26, dtype=np.uint64) + np.uint64(1)
        keys = ids.astype(np.uint64) + (columns << np.uint64(40))
        hashed = _hashes(keys ^ np.uint64(self.seed << 48 & 2**64 - 1))
        vectors = _factors(hashed)
        own = vectors[..., 0] - vectors[..., 1]
        logits = own @ (self._linear / np.sqrt(2)).astype(np.float32)
        for (one, other), weight in zip(PAIRS, self._paired, strict=True):
            product = np.einsum("nf,nf->n", vectors[:, one], vectors[:, other])
            logits += product * np.float32(weight / np.sqrt(FACTORS))
        known = np.nan_to_num(np.tanh(np.log1p(numbers) - 1.7), nan=-0.5)
        out: np.ndarray = logits + known @ self._numeric.astype(np.float32) * 2
        return out


def _scaled(ids: float | None) -> tuple[int, ...]:
    """Returns sizes of the columns with a given sum; small columns keep theirs."""
    if ids is None:
        return SIZES
    ids = int(ids)
    if ids < 26 * 30:
        raise ValueError(f"Clicks: 26 columns need at least 780 ids, got {ids}")
    given = np.array(SIZES, np.float64)
    more, large = ids - given.sum(), given > 1e6
    if more >= 0:
        sizes = given + np.where(large, more * given / given[large].sum(), 0)
        return tuple(int(size) for size in sizes)
    low, high = 3.0, given.max()  # of the largest columns, by bisection
    for _ in range(60):
        middle = (low + high) / 2
        few = np.minimum(given, middle).sum() <= ids
        low, high = (middle, high) if few else (low, middle)
    return tuple(int(size) for size in np.minimum(given, low))


def _coprime(size: int) -> int:
    """Returns a factor that permutes ids, so that neighbours are not as frequent."""
    factor = int(size * 0.618) | 1
    while np.gcd(factor, size) != 1:
        factor += 2
    return factor % size or 1


def _unit(weights: np.ndarray) -> np.ndarray:
    """Returns weights whose squares have the sum 1."""
    out: np.ndarray = weights / np.sqrt(np.sum(weights**2))
    return out


def _hashes(keys: np.ndarray) -> np.ndarray:
    """Returns 64 bits for each key (splitmix64; Steele, Lea, Flood 2014)."""
    x = keys * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _factors(hashed: np.ndarray) -> np.ndarray:
    """Returns 4 numbers of mean 0 and variance 1 from each 64 bits, uniform."""
    parts = hashed[..., None].view(np.uint16).astype(np.float32)
    return (parts - 32767.5) * np.float32(np.sqrt(3) / 32768)


def _bias_of(logits: np.ndarray, rate: float) -> float:
    """Returns what to add to log-odds for a mean probability, by bisection."""
    low, high = -30.0, 30.0
    for _ in range(50):
        middle = (low + high) / 2
        mean = np.mean(1 / (1 + np.exp(-logits.astype(np.float64) - middle)))
        low, high = (middle, high) if mean < rate else (low, middle)
    return low


# -- files -----------------------------------------------------------------------------


def columns_of(batch: Batch) -> dict[str, np.ndarray]:
    """Returns a batch as columns of a log: ids are strings of 8 hexadecimal digits.

    Args:
      batch: the examples.

    Returns:
      By the names of `NAMES`: the label i8[n], numbers f32[n], ids S8[n].
    """
    found: dict[str, np.ndarray] = {"label": batch.clicked.astype(np.int8)}
    for i in range(NUMBERS):
        found[f"I{i + 1}"] = batch.numbers[:, i]
    columns = np.arange(26, dtype=np.uint64) << np.uint64(40)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    shifts = np.arange(28, -1, -4, dtype=np.uint64)
    hashed = _hashes(batch.ids.astype(np.uint64) + columns)
    text = digits[(hashed[..., None] >> shifts) & np.uint64(15)]
    for i in range(26):
        found[f"C{i + 1}"] = np.ascontiguousarray(text[:, i]).view("S8")[:, 0]
    return found


def write(path: str | Path, clicks: Clicks, start: int, stop: int) -> None:
    """Writes examples to a file: Parquet, by pyarrow, or CSV with a header.

    Args:
      path: of the file, ending with ``.parquet`` or ``.csv``.
      clicks: the logs.
      start: the first example.
      stop: behind the last one.
    """
    path = Path(path)
    parts = (
        columns_of(clicks(first, min(BLOCK * 4, stop - first)))
        for first in range(start, stop, BLOCK * 4)
    )
    if path.suffix == ".csv":
        with path.open("w", encoding="ascii") as file:
            file.write(",".join(NAMES) + "\n")
            for part in parts:
                texts = [
                    ["" if x != x else f"{x:.0f}" for x in column.tolist()]
                    if column.dtype.kind != "S"
                    else column.astype(str).tolist()
                    for column in part.values()
                ]
                file.writelines(
                    ",".join(row) + "\n" for row in zip(*texts, strict=True)
                )
        return
    if path.suffix != ".parquet":
        raise ValueError(f"write: expected a file .parquet or .csv, got {path}")
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {name: pa.string() for name in NAMES}
    types |= {"label": pa.int8(), **{f"I{i + 1}": pa.int32() for i in range(NUMBERS)}}
    with pq.ParquetWriter(path, pa.schema(list(types.items()))) as writer:
        for part in parts:
            arrays = []
            for name, column in part.items():
                if column.dtype.kind == "S":
                    arrays.append(pa.array(column).cast(pa.string()))
                else:
                    arrays.append(pa.array(column, types[name], from_pandas=True))
            writer.write_table(pa.table(arrays, names=list(part)))


def main(arguments: list[str] | None = None) -> None:
    """Writes a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", help="ends with .parquet (pip install pyarrow) or .csv")
    parser.add_argument("--start", type=float, default=0, help="the first example")
    parser.add_argument("--examples", type=float, default=1e6)
    parser.add_argument("--ids", type=float, default=sum(SIZES), help="different ones")
    parser.add_argument("--rate", type=float, default=0.256, help="the share of clicks")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    clicks = Clicks(given.ids, rate=given.rate, seed=given.seed)
    start = int(given.start)
    write(given.path, clicks, start, start + int(given.examples))
    size = Path(given.path).stat().st_size
    print(f"{given.path}: {int(given.examples):,} examples, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(main())
