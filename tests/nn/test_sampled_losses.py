"""Losses over drawn classes against their formulas in float64."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, log_softmax

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, random
from fxflow.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(0)
CLASSES, FEATURES = 11, 4
PARAMS = {"w": RNG.normal(size=(CLASSES, FEATURES)), "b": RNG.normal(size=CLASSES)}
X = RNG.normal(size=(3, FEATURES))
LABELS = np.array([[0, 2], [5, 1], [10, 0]])
DRAWN = nn.log_uniform_candidates(random.key(1), LABELS, 5, CLASSES)

narrow = lambda tree: fxflow.tree.map(lambda x: np.asarray(x, np.float32), tree)


def scores(labels: Any, remove: bool) -> Any:
    """Yields the scores of the labels and of the candidates of each example."""
    for row, true in enumerate(labels):
        score = PARAMS["w"] @ X[row] + PARAMS["b"]
        yes = [
            score[k] - float(DRAWN.true_log_expected[row, i])
            for i, k in enumerate(true)
        ]
        no = [
            score[int(k)] - float(e)
            for k, e in zip(DRAWN.ids, DRAWN.log_expected, strict=True)
            if not (remove and int(k) in true)
        ]
        yield np.array(yes), np.array(no)


def nce(yes: Any, no: Any) -> float:
    share = 1 / len(yes)
    out = share * np.log(expit(yes)).sum() + (1 - share) * np.log(expit(-yes)).sum()
    return -(out + np.log(expit(-no)).sum())


def softmax(yes: Any, no: Any) -> float:
    return -log_softmax(np.concatenate([yes, no]))[: len(yes)].mean()


LOSSES = {"nce_loss": nce, "sampled_softmax_loss": softmax}
losses = pytest.mark.parametrize("name", LOSSES)


@losses
@pytest.mark.parametrize("remove", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_as_formula(name: str, remove: bool, count: int) -> None:
    labels = LABELS[:, :count]
    few = DRAWN._replace(
        true_log_expected=DRAWN.true_log_expected[:, :count],
        hits=(labels[..., None] == np.asarray(DRAWN.ids)).any(1),
    )
    assert remove is False or few.hits.any()
    want = [LOSSES[name](*pair) for pair in scores(labels, remove)]
    run = lambda p, x: getattr(nn, name)(
        p, x, labels, few, remove_accidental_hits=remove
    )
    np.testing.assert_allclose(fxflow.jit(run)(narrow(PARAMS), narrow(X)), want, 1e-5)
    half = fxflow.tree.map(lambda x: fnp.asarray(x, "bfloat16"), (PARAMS, X))
    np.testing.assert_allclose(run(*half), want, 0.1)
    slopes = fxflow.grad(lambda p, x: run(p, x).sum(), (0, 1))(
        narrow(PARAMS), narrow(X)
    )
    assert all(np.isfinite(s).all() for s in fxflow.tree.leaves(slopes))


@losses
def test_gradient_of_gathered_rows(name: str) -> None:
    """As the head of the module says."""
    loss, params, x = getattr(nn, name), narrow(PARAMS), narrow(X)
    labels = LABELS[:, :1]
    drawn = nn.log_uniform_candidates(random.key(1), labels, 5, CLASSES)
    whole = fxflow.grad(lambda p: loss(p, x, labels, drawn).sum())(params)
    rows = fnp.concatenate([labels[:, 0], drawn.ids])
    few = {key: weight[rows] for key, weight in params.items()}
    here = drawn._replace(ids=3 + fnp.arange(5))
    part = fxflow.grad(lambda p: loss(p, x, np.arange(3)[:, None], here).sum())(few)
    for key in params:
        spread = fnp.zeros_like(params[key]).at[rows].add(part[key])
        np.testing.assert_allclose(spread, whole[key], 1e-5, 1e-6)


def test_sampled_softmax_nears_the_whole_one() -> None:
    labels = LABELS[:, :1]
    params, x = narrow(PARAMS), narrow(X)
    drawn = nn.uniform_candidates(random.key(0), labels, CLASSES, CLASSES)
    # All classes are drawn, each expected alike: E cancels.
    same = drawn._replace(
        log_expected=0 * drawn.log_expected,
        true_log_expected=0 * drawn.true_log_expected,
    )
    have = nn.sampled_softmax_loss(params, x, labels, same)
    scores = x @ params["w"].T + params["b"]
    want = -log_softmax(scores, -1)[np.arange(3), labels[:, 0]]
    np.testing.assert_allclose(have, want, 1e-5)


def test_nan_is_not_hidden() -> None:
    x = np.full_like(X, np.nan, dtype="f")
    for name in LOSSES:
        assert np.isnan(getattr(nn, name)(narrow(PARAMS), x, LABELS, DRAWN)).all()


@losses
def test_labels_out_of_range_are_seen(name: str) -> None:
    labels = LABELS.copy()
    labels[1, 0] = CLASSES
    out = getattr(nn, name)(narrow(PARAMS), narrow(X), labels, DRAWN)
    assert np.isnan(out).tolist() == [False, True, False]


def test_inputs_labels_and_candidates_that_do_not_fit_are_refused() -> None:
    params, x = narrow(PARAMS), narrow(X)
    with pytest.raises(ShapeError, match=r"nce_loss: x must be float\[..., 4\], as w"):
        nn.nce_loss(params, x[:, :3], LABELS, DRAWN)
    with pytest.raises(
        ShapeError, match=r"labels must be int\[3, labels\], got i32\[3\]"
    ):
        nn.nce_loss(params, x, LABELS[:, 0].astype("int32"), DRAWN)
    with pytest.raises(
        ArgumentError, match="candidates must be what a sampler such as"
    ):
        nn.sampled_softmax_loss(params, x, LABELS, DRAWN.ids)
    with pytest.raises(
        ShapeError, match=r"candidates.hits must be bools of shape \[3, "
    ):
        nn.sampled_softmax_loss(params, x, LABELS, DRAWN._replace(hits=DRAWN.hits[0]))
    with pytest.raises(DtypeError, match="labels must be integers, got f32"):
        nn.nce_loss(params, x, x, DRAWN)


# -- negatives of the batch ------------------------------------------------------------


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_in_batch_softmax_as_formula(corrected: bool, named: bool) -> None:
    q, v = RNG.normal(size=(4, FEATURES)), RNG.normal(size=(6, FEATURES))
    ids, expected = np.array([2, 0, 2, 1, 0, 7]), RNG.normal(size=6)
    want = []
    for i in range(4):
        keep = [j for j in range(6) if j == i or not (named and ids[j] == ids[i])]
        scores = q[i] @ v[keep].T - (expected[keep] if corrected else 0)
        want.append(-log_softmax(scores)[keep.index(i)])
    options = {"ids": ids} if named else {}
    if corrected:
        options["log_expected"] = expected.astype(np.float32)
    run = lambda q, v: nn.in_batch_softmax_loss(q, v, **options)
    given = narrow((q, v))
    np.testing.assert_allclose(run(*given), want, 1e-5)
    np.testing.assert_allclose(fxflow.jit(run)(*given), want, 1e-5)
    slopes = fxflow.grad(lambda q, v: run(q, v).sum(), (0, 1))(*given)
    assert all(np.isfinite(s).all() for s in slopes)


def test_in_batch_softmax_corrects_for_how_often_items_are_drawn() -> None:
    """Drawn by a skewed law, the mean of the corrected losses has the whole softmax's
    minimum: at the logits of that law, its slope with respect to an item's logit is 0.
    """
    share = np.array([0.55, 0.25, 0.1, 0.07, 0.03])
    logits = np.log(np.array([0.1, 0.1, 0.2, 0.2, 0.4]))  # what the right model says
    rng = np.random.default_rng(1)
    right = rng.choice(5, 4000, p=np.exp(logits))
    others = rng.choice(5, (4000, 40), p=share)
    loss = lambda table, law: fnp.mean(
        fxflow.vmap(
            lambda one, many: nn.in_batch_softmax_loss(
                fnp.ones((1, 1)),
                table[fnp.concatenate([one[None], many])][:, None],
                ids=fnp.concatenate([one[None], many]),
                log_expected=law[fnp.concatenate([one[None], many])],
            )[0]
        )(right, others)
    )
    start = logits.astype(np.float32)
    slope = fxflow.jit(fxflow.grad(loss))(start, np.log(share).astype(np.float32))
    plain = fxflow.jit(fxflow.grad(loss))(start, np.zeros(5, np.float32))
    assert np.abs(slope).max() < 0.03 < 0.1 < np.abs(plain).max()


def test_in_batch_softmax_alone_and_wrong() -> None:
    one = np.ones((1, 2), np.float32)
    assert nn.in_batch_softmax_loss(one, one).tolist() == [0.0]
    none = np.zeros((0, 2), np.float32)
    assert nn.in_batch_softmax_loss(none, one).shape == (0,)
    for queries, items in ((np.ones((2, 2), "f4"), one), (one, one[:, :1]), (one, 1.0)):
        with pytest.raises(ShapeError, match="in_batch_softmax_loss: "):
            nn.in_batch_softmax_loss(queries, items)
    with pytest.raises(ShapeError, match="log_expected"):
        nn.in_batch_softmax_loss(one, one, log_expected=np.ones(2, np.float32))
    with pytest.raises(DtypeError, match="ids must be integers"):
        nn.in_batch_softmax_loss(one, one, ids=np.ones(1, np.float32))
