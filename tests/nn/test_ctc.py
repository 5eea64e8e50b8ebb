"""The loss against a sum over all paths, and PyTorch's numbers."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

import fxflow
import fxflow.numpy as fnp
from fxflow import nn
from fxflow.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(0)
TIME, CLASSES = 5, 3
LOGITS = RNG.normal(size=(6, TIME, CLASSES)) * 2
LABELS = np.array([[1, 2], [1, 1], [2, 1], [2, 2], [1, 2], [1, 2]])
LABEL_COUNTS = np.array([2, 2, 1, 0, 2, 0])
STEPS = np.array([5, 4, 5, 3, 1, 0])
LOGIT_MASK = np.arange(TIME) < STEPS[:, None]
LABEL_MASK = np.arange(2) < LABEL_COUNTS[:, None]


def over_paths(logits: Any, labels: list[int], blank: int) -> float:
    """The sum over all sequences of classes that say the labels."""
    log_p = log_softmax(logits, -1)
    found = [
        sum(log_p[t, k] for t, k in enumerate(path))
        for path in itertools.product(range(CLASSES), repeat=len(logits))
        if [k for k, _ in itertools.groupby(path) if k != blank] == labels
    ]
    return -logsumexp(found) if found else np.inf


def expected(logits: Any, blank: int = 0, labels: Any = LABELS) -> Any:
    rows = zip(logits, labels, STEPS, LABEL_COUNTS, strict=True)
    return [over_paths(x[:t], list(k[:n]), blank) for x, k, t, n in rows]


def loss(logits: Any, **more: Any) -> Any:
    more = {"labels": LABELS, **more}
    return nn.ctc_loss(logits, logit_mask=LOGIT_MASK, label_mask=LABEL_MASK, **more)


def test_as_sum_over_paths() -> None:
    want = expected(LOGITS)
    assert want[4] == np.inf and want[5] == 0
    np.testing.assert_allclose(fxflow.jit(loss)(LOGITS.astype("f")), want, 1e-5)
    last = (LABELS + 2) % CLASSES  # the blank is the last class
    have = loss(LOGITS.astype("f"), labels=last, blank_id=2)
    np.testing.assert_allclose(have, expected(LOGITS, 2, last), 1e-5)
    whole = nn.ctc_loss(LOGITS[0].astype("f"), LABELS[0])
    np.testing.assert_allclose(whole, want[0], 1e-5)


def test_the_gradient_agrees_with_differences() -> None:
    have = np.asarray(fxflow.grad(lambda x: loss(x).sum())(LOGITS.astype("f")))
    assert not have[4].any() and not have[~LOGIT_MASK].any()
    way = RNG.normal(size=LOGITS.shape)
    sides = [expected(LOGITS + e * way) for e in (1e-5, -1e-5)]
    for row in (0, 1, 2, 3):
        want = (sides[0][row] - sides[1][row]) / 2e-5
        np.testing.assert_allclose((have[row] * way[row]).sum(), want, 1e-3)


def test_forward_probabilities() -> None:
    x = LOGITS.astype("f")
    given = {"logit_mask": LOGIT_MASK, "label_mask": LABEL_MASK}
    have, blank, label = nn.ctc_loss_with_forward_probs(x, LABELS, **given)
    np.testing.assert_array_equal(have, loss(x))
    assert blank.shape == (TIME, 6, 3) and label.shape == (TIME, 6, 2)
    log_p = log_softmax(x, -1)
    for row, (labels, steps) in enumerate(zip(LABELS, STEPS, strict=True)):
        for t in range(steps):
            # All paths of t + 1 steps, by what they have said and how they end.
            ways: dict[Any, list[float]] = {}
            for path in itertools.product(range(CLASSES), repeat=t + 1):
                said = tuple(k for k, _ in itertools.groupby(path) if k)
                p = sum(log_p[row, i, k] for i, k in enumerate(path))
                ways.setdefault((said, path[-1] == 0), []).append(p)
            for n in range(3):
                said = tuple(labels[:n])
                want = logsumexp(ways.get((said, True), [-np.inf]))
                np.testing.assert_allclose(blank[t, row, n], want, 1e-4)
                if n:
                    want = logsumexp(ways.get((said, False), [-np.inf]))
                    np.testing.assert_allclose(label[t, row, n - 1], want, 1e-4)
        for t in range(max(steps, 1), TIME):
            np.testing.assert_array_equal(blank[t, row], blank[t - 1, row])


def test_rows_and_dtypes() -> None:
    x = LOGITS.astype("f")
    rows = fxflow.vmap(lambda x, k, s, t: nn.ctc_loss(x, k, logit_mask=s, label_mask=t))
    have = rows(x, LABELS, LOGIT_MASK, LABEL_MASK)
    np.testing.assert_allclose(have, loss(x), 1e-6)
    for dtype, tol in (("bfloat16", 0.05), ("float16", 0.01)):
        half = loss(fnp.asarray(x, dtype))
        assert half.dtype == "float32"
        np.testing.assert_allclose(half, loss(x), tol)


def test_long_sequences_do_not_underflow() -> None:
    x = np.zeros((400, 30), "f")
    out = nn.ctc_loss(x, np.arange(1, 21))
    # log of the number of paths: choose(400 + 20, 40), less 400 log 30
    paths = sum(np.log((420 - i) / (i + 1)) for i in range(40))
    np.testing.assert_allclose(out, 400 * np.log(30) - paths, 1e-4)


def test_as_torch() -> None:
    """`torch.nn.functional.ctc_loss` of PyTorch 2, reduction="none"."""
    x = np.cos(np.arange(24, dtype="f")).reshape(1, 6, 4) * 3
    have = nn.ctc_loss(x, np.array([[1, 3, 3]]))
    np.testing.assert_allclose(have, [3.526539], 1e-5)


def test_labels_out_of_range_are_seen() -> None:
    labels = LABELS.copy()
    labels[1, 0] = CLASSES
    out = np.isnan(nn.ctc_loss(LOGITS.astype("f"), labels))
    assert out.tolist() == [False, True, False, False, False, False]


def test_invalid_labels_masks_and_blanks_are_refused() -> None:
    x = LOGITS.astype("f")
    with pytest.raises(ShapeError, match=r"ctc_loss: labels must be int\[6, labels\]"):
        nn.ctc_loss(x, LABELS[0])
    with pytest.raises(ArgumentError, match="blank_id must be one of 3 classes, got 3"):
        nn.ctc_loss(x, LABELS, blank_id=3)
    with pytest.raises(ShapeError, match=r"logit_mask must be bools of shape \[6, 5\]"):
        nn.ctc_loss(x, LABELS, logit_mask=LABEL_MASK)
    with pytest.raises(DtypeError, match="labels must be integers, got f32"):
        nn.ctc_loss(x, fnp.ones((6, 2)))
