"""What cannot run is an error at planning; calls before and after it are unharmed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow
from fxflow.dataflow import Cluster, on
from fxflow.errors import PlacementError, ShapeError

X = np.arange(4, dtype=np.float32)


def at(where: str, body: Callable[[Any], Any] = lambda x: x * 2) -> Callable[..., Any]:
    """Returns a function whose operations are in a scope."""

    def f(x: Any) -> Any:
        with on(where):
            return body(x)

    return f


def enormous(x: Any) -> Any:
    return fnp.broadcast_to(fnp.sum(x), (1_000_000, 1_000_000)) + 0


@pytest.mark.parametrize(
    ("f", "match"),
    [
        (at("/task:0/device:cpu:9"), "no device '/task:0/.*cpu:9': task:0 has cpu:0"),
        (at("/task:0/device:gpu:0"), "no device '/task:0/device:gpu:0': task:0 has"),
        (at("/task:7"), "no task 7 in job 'worker': the cluster has 2 of job 'worker'"),
        (at("/job:ps/task:0"), "no task 0 in job 'ps'"),
        (at("encoder"), "no device for the label 'encoder'"),
        (
            at("/task:1", enormous),
            r"f32\[1000000,1000000\] takes 4,000,000,000,000 bytes, more than the .* "
            r"of task:1 cpu:0 ",
        ),
        (
            at("/task:0", lambda x: fxflow.pure_callback(np.sin, x, x)),
            "calls Python, and is on task:0",
        ),
    ],
)
def test_planning_refuses(cluster: Cluster, f: Callable[..., Any], match: str) -> None:
    good = dataflow.jit(at("/task:1"), devices=cluster)
    before = good(X)
    step = dataflow.jit(f, devices=cluster)
    for refused in (step, step.plan):
        with pytest.raises(PlacementError, match=match) as caught:
            refused(X)
        assert re.search(r"test_bad_input\.py:\d+", str(caught.value))
    np.testing.assert_array_equal(before, X * 2)
    np.testing.assert_array_equal(good(before), X * 4)
    assert not cluster.lost


def test_a_type_that_changes_between_steps_is_planned_or_refused(
    cluster: Cluster,
) -> None:
    step = dataflow.jit(
        at("/task:0", lambda x: fnp.reshape(x, (2, -1)) + 1), devices=cluster
    )
    first = step(X)
    np.testing.assert_array_equal(step(np.arange(6)), np.arange(6).reshape(2, 3) + 1)
    with pytest.raises(ShapeError, match=r"reshape f32\[5\]"):
        step(np.ones(5, np.float32))
    with pytest.raises(ShapeError, match="reshape"):
        step(step(X)[:, :1][0])
    np.testing.assert_array_equal(first, X.reshape(2, 2) + 1)
    np.testing.assert_array_equal(step(X), first)
