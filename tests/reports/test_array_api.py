"""Reports on libraries that take arrays of others: array API, SciPy, type checkers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax


def test_the_namespace_is_found_in_traced_functions() -> None:
    """A tracer answers `__array_namespace__` (array-api-compat#229)."""
    found = fxflow.jit(lambda x: x.__array_namespace__().sin(x))(0.0)
    assert found == 0.0
    seen = []
    fxflow.vmap(fxflow.grad(lambda x: seen.append(x.__array_namespace__()) or x))(
        fnp.ones(2)
    )
    assert seen and set(seen) == {fnp}


def test_capabilities_exclude_masks_as_indices() -> None:
    """Code that asks writes `where` for an immutable array (array-api#845)."""

    def halve(x: Any) -> Any:
        xp = x.__array_namespace__()
        if xp.__array_namespace_info__().capabilities()["boolean indexing"]:
            x[x > 1] = x[x > 1] / 2
            return x
        return xp.where(x > 1, x / 2, x)

    x = fnp.asarray([1.0, 4.0])
    np.testing.assert_array_equal(halve(x), [1, 2])
    np.testing.assert_array_equal(fxflow.jit(halve)(x), [1, 2])


@pytest.mark.parametrize(
    ("method", "changed"),
    [
        ("set", [2, 2]),
        ("add", [1, -1]),
        ("multiply", [-2, -6]),
        ("divide", [-0.5, -1.5]),
        ("min", [-1, -3]),
        ("max", [2, 2]),
    ],
)
def test_masked_updates_by_a_number_can_be_traced(
    method: str, changed: list[float]
) -> None:
    """`x.at[mask].set(0)` has a static shape (array-api-extra#121, scipy#20085)."""
    x = fnp.asarray([-1.0, 2.0, -3.0])
    update = lambda x: getattr(x.at[x < 0], method)(2.0)
    expected = [changed[0], 2.0, changed[1]]
    np.testing.assert_array_equal(update(x), expected)
    np.testing.assert_array_equal(fxflow.jit(update)(x), expected)


def test_assignment_names_the_method() -> None:
    """The error of `x[0] = 1` says what to write (jax#24315, NeSST#71)."""
    x = fnp.ones(2)
    with pytest.raises(TypeError, match=r"instead of x\[i\] = v use x = x\.at\[i\]"):
        x[0] = 1.0
    with pytest.raises(TypeError, match="immutable"):
        fxflow.jit(lambda x: x.__setitem__(0, 1.0))(x)


def test_a_traced_index_of_a_list_is_explained() -> None:
    """`[1, 2, 3][i]` names the cause, not the type of the list (jax#5853)."""
    with pytest.raises(TypeError, match="an index"):
        fxflow.jit(lambda i: [1, 2, 3][i])(0)
    assert fxflow.jit(lambda i: fnp.asarray([1, 2, 3])[i])(1) == 2


def test_lists_of_arrays_have_one_answer() -> None:
    """`ndim` of a list is the same eager and traced (jax#12083)."""
    answers = []
    for transform in (lambda f: f, fxflow.jit):
        try:
            answers.append(int(transform(lambda x: fnp.ndim([fnp.ones(1)]) + x)(0)))
        except TypeError as error:
            answers.append(type(error))
    assert answers[0] == answers[1]


def test_arguments_by_name_have_their_lengths_compared() -> None:
    """vmap names both lengths, of arguments by name too (jax#10193)."""
    f = fxflow.vmap(lambda x, y: x + y)
    with pytest.raises(ValueError, match=r"(?s)1.*2"):
        f(fnp.ones(1), y=fnp.ones(2))


def test_an_array_of_an_array_is_made_at_once() -> None:
    """`asarray(x)` and `np.asarray(x)` do not take rows apart (jax#389, jax#1344)."""
    x = fnp.ones((50_000, 2))
    assert fnp.asarray(x) is x
    view = np.asarray(x)
    assert view.shape == (50_000, 2) and not view.flags.writeable
    assert np.array(x).flags.writeable


def test_instances_cover_tracers() -> None:
    """A hint of `fxflow.Array` holds in the body of a loop (beartype#183)."""
    seen = []

    def step(carry: fxflow.Array, x: fxflow.Array) -> tuple[Any, Any]:
        seen.append(isinstance(carry, fxflow.Array) and isinstance(x, fxflow.Array))
        return carry + x, carry

    lax.scan(step, 0.0, fnp.arange(3.0))
    assert seen and all(seen)


def test_axes_computed_from_others_are_checked() -> None:
    """`dim+1` works under the decorator of both (jaxtyping#231)."""
    jaxtyping = pytest.importorskip("jaxtyping")
    beartype = pytest.importorskip("beartype").beartype

    def append(x):
        return fnp.append(x, 1)

    Int, Array = jaxtyping.Integer, fxflow.Array
    append.__annotations__ = {"x": Int[Array, "n"], "return": Int[Array, "n+1"]}
    checked = jaxtyping.jaxtyped(append, typechecker=beartype)
    assert fxflow.jit(checked)(fnp.arange(2)).shape == (3,)
    append.__annotations__["return"] = Int[Array, "n"]
    wrong = jaxtyping.jaxtyped(append, typechecker=beartype)
    with pytest.raises(jaxtyping.TypeCheckError):
        wrong(fnp.arange(2))


def test_angles_are_wrapped_without_assignment() -> None:
    """The code of `logsumexp` for signs runs on immutable arrays (scipy#22256)."""

    def wrap(x: Any) -> Any:
        xp = x.__array_namespace__()
        wrapped = -((-x + xp.pi) % (2 * xp.pi) - xp.pi)
        return xp.where(xp.abs(x) < xp.pi, x, wrapped)

    x = fnp.asarray([0.5, 4.0, -7.0])
    np.testing.assert_allclose(
        fxflow.jit(wrap)(x), np.angle(np.exp(1j * np.asarray(x))), atol=1e-6
    )
