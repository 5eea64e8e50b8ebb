"""Models for the tests, correct and faulty."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
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
    """Acts by the smallest of the rows' first numbers."""
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


#: The number of results that each generator that ended was to give.
CLOSED: list[float] = []


def _counted(x: Any, k: int, fault: float) -> dict[str, Any]:
    if k == 2 and fault == 1:
        raise ValueError("two is not liked")
    if k == 2 and fault == 2:
        os.kill(os.getpid(), 9)
    return {"y": x[:, 3:] + np.float32(k), "closed": np.full(len(x), len(CLOSED))}


def counting(x: Any) -> Iterator[Any]:
    """Yields the last number + 0, 1, …; the inputs set count, fault and delay."""
    most, fault, pause = (float(value) for value in x[0, :3])
    try:
        for k in range(int(most)):
            time.sleep(pause)
            yield _counted(x, k, fault)
    finally:
        CLOSED.append(most)


async def counting_async(x: Any) -> AsyncIterator[Any]:
    most, fault, pause = (float(value) for value in x[0, :3])
    try:
        for k in range(int(most)):
            await asyncio.sleep(pause)
            yield _counted(x, k, fault)
    finally:
        CLOSED.append(most)


def counter(asynchronous: bool = False) -> Model:
    return Model(
        counting_async if asynchronous else counting,
        inputs={"x": "f32[batch,n]"},
        jit=False,
        example={"x": [2.0, 0.0, 0.0, 0.0]},
    )


def words(text_input: Any) -> Iterator[dict[str, Any]]:
    """Yields the words of a text."""
    for word in bytes(text_input[0]).split():
        yield {"text_output": np.array([word], object)}


WORDS = Model(
    words,
    inputs={"text_input": "bytes[1]"},
    batched=False,
    jit=False,
    example={"text_input": [b"a b"]},
)


def silent(x: Any) -> Iterator[Any]:
    yield from ()
