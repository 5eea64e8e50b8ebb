"""One program that makes features of a Parquet file; `features.py` starts it.

For each line on its input it passes over the file, and prints rows a second by the
clock and by the time of the CPU.
"""

import json
import sys
import time
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

SIZE = 1_000_000  # of hashes
EDGES = [18, 25, 35, 50, 65]
TAGS = 4
COLUMNS = ["site", "user", "ad", "age", "price", "tags"]
MEAN, DEVIATION = 1.65, 2.16  # of prices
#: Rows of a pass of grain, which takes them one by one.
FEW = 20_000


def write(path: str, rows: int) -> None:
    """Writes the file, and the sites that occur twice."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)

    def some(values: list[Any]) -> list[Any]:
        missing = rng.random(rows) < 0.05
        return [None if m else v for m, v in zip(missing, values, strict=True)]

    sites = [f"www.site{n}.example.com" for n in (rng.zipf(1.2, rows) % 100_000)]
    tags = np.char.add("tag", rng.integers(0, 5000, 4 * rows).astype(str)).tolist()
    ends = np.append(0, np.cumsum(rng.integers(0, TAGS + 2, rows))) % len(tags)
    lists = [tags[a:b] for a, b in zip(ends[:-1].tolist(), ends[1:].tolist())]
    table = {
        "site": some(sites),
        "user": [f"{n:016x}" for n in rng.integers(0, 2**40, rows).tolist()],
        "ad": some((rng.zipf(1.2, rows) % 10_000_000).tolist()),
        "age": some((rng.random(rows) * 90).tolist()),
        "price": rng.lognormal(size=rows),
        "tags": lists,
    }
    pq.write_table(pa.table(table), path)
    values, counts = np.unique(np.array(sites), return_counts=True)
    with open(path + ".json", "w") as stream:
        json.dump(values[counts > 1].tolist(), stream)


def vocabulary(path: str) -> list[str]:
    with open(path + ".json") as stream:
        found: list[str] = json.load(stream)
    return found


# -- programs: each returns a function that yields batches -----------------------------


def of_fxflow(path: str, size: int) -> Any:
    from fxflow.train import data

    described = {
        "site": data.Vocabulary("site"),
        "user": data.Hash("user", SIZE),
        "ad": data.Hash("ad", SIZE),
        "both": data.Cross(["site", "ad"], SIZE),
        "tags": data.Hash("tags", SIZE, width=TAGS),
        "age": data.Bucket("age", EDGES),
        "price": data.Normalize("price"),
    }
    learned = {"site": vocabulary(path), "price": [MEAN, DEVIATION]}
    features = data.FittedFeatures(described, {}, learned)
    return lambda: data.parquet(path, size=size, columns=COLUMNS).map(features)


def of_reading(path: str, size: int) -> Any:
    import pyarrow.parquet as pq

    def batches() -> Iterator[Any]:
        for batch in pq.ParquetFile(path).iter_batches(size, columns=COLUMNS):
            yield {"price": batch.column("price")}

    return batches


def of_pyarrow(path: str, size: int) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    sites = pa.array(vocabulary(path))

    def hashed(column: Any) -> Any:
        encoded = column.dictionary_encode()
        each = np.array(
            [zlib.crc32(v.encode()) for v in encoded.dictionary.to_pylist()], np.uint64
        )
        if not len(each):
            each = np.zeros(1, np.uint64)
        return each[np.asarray(encoded.indices.fill_null(0))]

    def ids(hashes: Any, missing: Any) -> Any:
        found = (hashes % np.uint64(SIZE - 1)).astype(np.int32) + 1
        found[missing] = 0
        return found

    def mixed(column: Any) -> Any:
        bits = np.asarray(column.fill_null(0)).astype(np.uint64)
        bits *= np.uint64(0x9E3779B97F4A7C15)
        return bits ^ (bits >> np.uint64(32))

    def batches() -> Iterator[Any]:
        for batch in pq.ParquetFile(path).iter_batches(size, columns=COLUMNS):
            site, user, ad, age, price, tags = batch.columns
            no_site, no_ad = np.asarray(site.is_null()), np.asarray(ad.is_null())
            ads = mixed(ad)
            both = (hashed(site) * np.uint64(31)) ^ ads
            index = pc.index_in(site, value_set=sites, skip_nulls=True)
            ages = np.asarray(age.fill_null(float("nan")))
            bucket = np.searchsorted(EDGES, ages, side="right").astype(np.int32) + 1
            bucket[np.isnan(ages)] = 0
            flat = tags.flatten()
            lengths = np.asarray(tags.value_lengths().fill_null(0))
            row = np.repeat(np.arange(len(lengths)), lengths)
            at = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            kept = at < TAGS
            padded = np.zeros((len(lengths), TAGS), np.int32)
            found = ids(hashed(flat), np.asarray(flat.is_null()))
            padded[row[kept], at[kept]] = found[kept]
            yield {
                "site": np.asarray(index.fill_null(-1)) + 1,
                "user": ids(hashed(user), np.asarray(user.is_null())),
                "ad": ids(ads, no_ad),
                "both": ids(both, no_site | no_ad),
                "tags": padded,
                "age": bucket,
                "price": ((np.asarray(price) - MEAN) / DEVIATION).astype(np.float32),
            }

    return batches


def of_pandas(path: str, size: int) -> Any:
    import pandas as pd
    import pyarrow.parquet as pq
    import torch

    sites = pd.Index(vocabulary(path))
    hash_array = pd.util.hash_array

    def ids(hashes: Any, missing: Any) -> Any:
        found = (hashes % np.uint64(SIZE - 1)).astype(np.int32) + 1
        found[missing] = 0
        return torch.from_numpy(found)

    def features(frame: Any) -> dict[str, Any]:
        site = frame["site"].to_numpy(object)
        no_site = frame["site"].isna().to_numpy()
        no_ad = frame["ad"].isna().to_numpy()
        ads = hash_array(frame["ad"].fillna(0).to_numpy().astype(np.int64))
        both = hash_array(np.where(no_site, "", site), categorize=True)
        flat = frame["tags"].explode()
        at = flat.groupby(level=0).cumcount().to_numpy()
        tags = flat.to_numpy(object)
        no_tag = flat.isna().to_numpy()
        found = hash_array(np.where(no_tag, "", tags), categorize=True)
        kept = at < TAGS
        padded = torch.zeros((len(frame), TAGS), dtype=torch.int32)
        padded[
            torch.from_numpy(flat.index.to_numpy()[kept]), torch.from_numpy(at[kept])
        ] = ids(found, no_tag)[torch.from_numpy(kept)]
        age = torch.from_numpy(frame["age"].to_numpy().copy())
        bucket = torch.bucketize(age, torch.tensor(EDGES, dtype=age.dtype), right=True)
        price = torch.from_numpy(frame["price"].to_numpy().copy())
        return {
            "site": torch.from_numpy(sites.get_indexer(site).astype(np.int32) + 1),
            "user": ids(
                hash_array(frame["user"].to_numpy(object), categorize=False), []
            ),
            "ad": ids(ads, no_ad),
            "both": ids(both * np.uint64(31) ^ ads, no_site | no_ad),
            "tags": padded,
            "age": torch.where(age.isnan(), 0, bucket + 1).int(),
            "price": ((price - MEAN) / DEVIATION).float(),
        }

    class Rows(torch.utils.data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Iterator[Any]:
            for batch in pq.ParquetFile(path).iter_batches(size, columns=COLUMNS):
                yield features(batch.to_pandas())

    return lambda: torch.utils.data.DataLoader(Rows(), batch_size=None)


def of_grain(path: str, size: int) -> Any:
    import grain
    import pyarrow.parquet as pq

    rows = pq.read_table(path, columns=COLUMNS).slice(0, FEW).to_pylist()
    index = {site: i for i, site in enumerate(vocabulary(path), 1)}

    def hashed(value: Any) -> int:
        return 0 if value is None else zlib.crc32(str(value).encode()) % (SIZE - 1) + 1

    def features(row: Any) -> dict[str, Any]:
        tags = np.zeros(TAGS, np.int32)
        for i, tag in enumerate(row["tags"][:TAGS]):
            tags[i] = hashed(tag)
        age, absent = row["age"], row["site"] is None or row["ad"] is None
        return {
            "site": np.int32(index.get(row["site"], 0)),
            "user": np.int32(hashed(row["user"])),
            "ad": np.int32(hashed(row["ad"])),
            "both": np.int32(0 if absent else hashed(f"{row['site']} {row['ad']}")),
            "tags": tags,
            "age": np.int32(0 if age is None else np.searchsorted(EDGES, age) + 1),
            "price": np.float32((row["price"] - MEAN) / DEVIATION),
        }

    return lambda: grain.MapDataset.source(rows).map(features).batch(size)


def main() -> None:
    program, path, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if program == "write":
        return write(path, size)
    programs = {"pandas, torch": of_pandas, "grain": of_grain, "pyarrow": of_pyarrow}
    programs |= {"fxflow": of_fxflow, "reading": of_reading}
    batches = programs[program](path, size)
    print(0, flush=True)
    for _ in sys.stdin:
        rows, clock, cpu = 0, time.perf_counter(), time.process_time()
        for batch in batches():
            rows += len(batch["price"])
        clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
        print(rows / clock, rows / cpu, flush=True)
    return None


if __name__ == "__main__":
    main()
