"""Areas under ROC curves are those of `train.metrics`; errors cover chance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow.serve.selection.quality import Auc, AucWindow
from fxflow.train import metrics

EXAMPLES = st.lists(
    st.tuples(st.floats(0, 1, width=32), st.booleans()), min_size=1, max_size=40
)


@settings(max_examples=25)
@given(examples=EXAMPLES)
def test_areas_are_those_of_the_metrics_of_training(examples: Any) -> None:
    window = AucWindow(100)
    for score, label in examples:
        window.add(score, label)
    found = window.auc()
    scores, labels = map(np.array, zip(*examples, strict=True))
    assert (found.positives, found.negatives) == (labels.sum(), (~labels).sum())
    if found.positives and found.negatives:
        wanted = float(metrics.scores(scores.astype(np.float32), labels).compute())
        assert found.value == pytest.approx(wanted, abs=1e-5)
    else:
        assert math.isnan(found.value) and found.error == math.inf


def test_a_window_forgets_the_oldest() -> None:
    window = AucWindow(3)
    for score, label in [(0.9, 0), (0.1, 1), (0.2, 0), (0.8, 1)]:
        window.add(score, label)
    assert len(window) == 3
    assert window.auc() == Auc(0.5, 2, 1)
    window.add(math.nan, 1), window.add(1.5, 1)
    assert len(window) == 3


def test_the_error_is_that_of_repeated_samples() -> None:
    rng = np.random.default_rng(0)
    values, errors = [], []
    for _ in range(200):
        window = AucWindow(1000)
        labels = rng.random(200) < 0.3
        for label in labels:
            window.add(float(1 / (1 + np.exp(-rng.normal(float(label))))), label)
        values.append(window.auc().value)
        errors.append(window.auc().error)
    assert np.std(values) == pytest.approx(np.mean(errors), rel=0.2)
    assert 0 < Auc(1.0, 50, 50).error < 0.02
