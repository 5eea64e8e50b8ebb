"""What groups of models have in common."""

import dataclasses

import pytest

from fxflow.errors import ServeError
from fxflow.serve.groups import check_alike, checked_origin
from fxflow.serve.service import Origin
from tests.serve.fakes import signature


def test_models_that_differ() -> None:
    with pytest.raises(ServeError, match=r"differ in outputs: y: INT64\[-1\] and y: F"):
        check_alike("m", {"a": signature(), "b": signature("f32[batch]")})
    alone = dataclasses.replace(signature(), batched=False)
    with pytest.raises(ServeError, match="differ in batched: True and False"):
        check_alike("m", {"a": signature(), "b": alone})
    streamed = dataclasses.replace(signature(), streamed=True)
    with pytest.raises(ServeError, match="differ in streamed: True and False"):
        check_alike("m", {"a": streamed, "b": signature()})
    check_alike("m", {"a": streamed, "b": streamed})
    check_alike("m", {"a": signature("i64[batch]"), "b": signature("i64[n]")})
    check_alike("m", {})


def test_ids() -> None:
    made = [checked_origin(Origin(client="alice")) for _ in range(2)]
    assert made[0].id != made[1].id and not made[0].chosen
    assert checked_origin(Origin("mine")) == Origin("mine", chosen=True)
    with pytest.raises(ServeError, match="'id' may have 256 characters, got 257"):
        checked_origin(Origin("x" * 257))
