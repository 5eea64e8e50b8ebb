"""Models that the tests serve, good and bad."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow.serve.containers.models import Model


def linear(scale: float = 2.0) -> Model:
    return Model(
        lambda w, x: x @ w,
        fnp.eye(3) * scale,
        inputs={"x": "f32[batch,3]"},
        outputs=["y"],
    )


doubling = linear()


def negative(x: Any) -> Any:
    return -x


def shouting(text: Any) -> dict[str, Any]:
    return {
        "loud": np.array([t.upper() for t in text], object),
        "length": np.array([len(t) for t in text], np.int32),
    }


def act(x: Any) -> Any:
    """Does what the least of the first numbers of its rows says."""
    match int(x[:, 0].min()):
        case 1:
            raise ValueError("one is not liked")
        case 2:
            os.kill(os.getpid(), 9)
        case 3:
            time.sleep(60)
        case 4:
            hoard = [np.ones(1 << 20) for _ in range(100)]  # 800 MiB
            time.sleep(60)
            del hoard
        case 5:
            time.sleep(0.05)
    return x


def wrong_rows(x: Any) -> Any:
    return x[:1]
