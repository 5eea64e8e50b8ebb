"""Texts are taken to numbers and told by exported programs, behind a server."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from fxflow import random
from tests.examples.programs import EXAMPLES

for name in ("tqdm", "uvicorn", "starlette"):
    pytest.importorskip(name, reason="pip install 'fxflow[examples,serve]'")
WORDS = ["", "good", "bad", "film"]


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        patch.setenv("PYTHONPATH", str(EXAMPLES.parent))
        yield importlib.import_module("serve_sentences")


@pytest.mark.slow
def test_what_is_served_is_what_was_exported(
    example: ModuleType, tmp_path: Path
) -> None:
    sentences = importlib.import_module("sentences")
    settings = sentences.Settings(filters=4)
    tables = sentences.tables_of(settings, example.VECTOR, len(WORDS), None)
    first = sentences.init(random.key(0), example.VECTOR, settings)
    params = {**first, "vectors": tables[0]}
    example.write(tmp_path, params, tables[1], WORDS, 12)
    rows = np.zeros((2, 12), np.int32)
    rows[0, 4:7], rows[1, 4:6] = [1, 0, 3], [2, 3]
    expected = example.nn.softmax(sentences.logits(params, tables[1], rows, None, 0.0))
    with example.served(tmp_path, "--port=0") as port:
        texts = ["Good, great FILM!", "bad film"]
        found = example.ask(port, "opinion", {"text": texts})
        np.testing.assert_allclose(found["praise"], expected[:, 1], rtol=1e-5)
        assert found["known_words"] == [2, 2]
        # Longer than any sentence, of no known word, and of no word at all.
        for text in ("film " * 500, "\u00e9\u4e16", ""):
            assert 0 <= example.ask(port, "opinion", [text])["praise"][0] <= 1
