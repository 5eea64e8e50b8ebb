"""Input pipelines: from arrays, files and iterables to batches on devices.

For example::

    dataset = data.arrays(train).shuffle(seed=0).repeat().batch(128).prefetch()
    batches = dataset.iterate()
    for batch in batches:
        ...  # save the position, batches.state; dataset.iterate(state) resumes there

Read the modules in this order: `streams` (sources), `numbers` (elements by number),
`batching`, `parallel`, `transfer`, `dataset` (the methods), `paths`, `sources`; for
tables of rows `parts`, `readers`; and by themselves `columns`, `learned`, `features`
(raw columns as arrays, the same in training and serving) and `labels`.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.train.data.dataset import DataIterator, Dataset, IndexedDataset
from fxflow.train.data.features import (
    Bucket, Cross, Features, FittedFeatures, Hash, Normalize, Statistics, Vocabulary,
)
from fxflow.train.data.labels import LabelJoin
from fxflow.train.data.parts import BadRows, Follow
from fxflow.train.data.readers import csv, json_lines, parquet, records
from fxflow.train.data.sources import (
    arrays, concatenate, files, indexed, iterable, lines, mix, zip,
)

__all__ = [
    "Bucket", "Cross", "Features", "FittedFeatures", "Hash", "Normalize", "Statistics",
    "Vocabulary",
    "DataIterator", "Dataset", "IndexedDataset",
    "arrays", "files", "indexed", "iterable", "lines",
    "LabelJoin",
    "BadRows", "Follow", "csv", "json_lines", "parquet", "records",
    "concatenate", "mix", "zip",
]

_public(globals(), __all__)
# fmt: on
