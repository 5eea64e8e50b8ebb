"""What it costs to turn Python into a graph, and a graph into StableHLO.

The libraries are warm: the same functions were traced before, but each measurement
traces a function object that is new, as when a person edits a cell.
"""

from collections.abc import Callable
from typing import Any

from . import models
from .library import Case, Cases, Library, once


def put(library: Library, tree: Any) -> Any:
    """A tree of NumPy arrays as arrays of the library."""
    return library.root.tree.map(library.np.asarray, tree)


def gradient(library: Library, model: models.Model) -> tuple[Any, tuple[Any, ...]]:
    """`value_and_grad` of a model's loss, and its arguments."""
    function = library.root.value_and_grad(model.loss)
    return function, (put(library, model.params), *put(library, model.batch))


def small_problem(library: Library) -> tuple[Any, Any, Any]:
    """A perceptron's loss on one vector of parameters, the vector, and examples."""
    np = library.np
    w = models.weights(24)

    def loss(w: Any, x: Any) -> Any:
        hidden = np.tanh(x @ w[:20].reshape(5, 4))
        return np.sum((hidden @ w[20:]) ** 2)

    return loss, np.asarray(w), np.asarray(models.weights(8, 5))


def subjects(library: Library) -> dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]]:
    """Functions to trace, with arguments; built when asked for."""

    def hessian() -> tuple[Any, tuple[Any, ...]]:
        loss, w, xs = small_problem(library)
        return library.root.hessian(loss), (w, xs)

    def vmap_of_grad() -> tuple[Any, tuple[Any, ...]]:
        loss, w, xs = small_problem(library)
        return library.root.vmap(library.root.grad(loss), (None, 0)), (w, xs)

    def of(maker: Callable[..., models.Model], **sizes: int) -> Callable[[], Any]:
        return lambda: gradient(library, maker(library, **sizes))

    return {
        "MLP": of(models.mlp),
        "12-layer transformer": of(
            models.transformer, layers=12, size=64, batch=2, length=16
        ),
        "ResNet-50": of(models.resnet50),
        "LSTM by scan": of(models.lstm),
        "hessian": hessian,
        "vmap of grad": vmap_of_grad,
        "chain of 1000": lambda: chain(library, 1_000),
        "chain of 10000": lambda: chain(library, 10_000),
    }


def chain(library: Library, length: int) -> tuple[Any, tuple[Any, ...]]:
    """`length` operations, each on the result of the one before."""

    def function(x: Any) -> Any:
        for _ in range(length):
            x = library.lax.sin(x)
        return x

    return function, (library.np.ones(4),)


def cases(library: Library) -> Cases:
    jit = library.root.jit

    def fresh(function: Callable[..., Any]) -> Any:
        return jit(lambda *arguments: function(*arguments))

    def trace(subject: Callable[[], Any]) -> Callable[[], float]:
        function, arguments = subject()
        return lambda: once(lambda: fresh(function).trace(*arguments))

    def lower(subject: Callable[[], Any]) -> Callable[[], float]:
        function, arguments = subject()

        def measure() -> float:
            traced = fresh(function).trace(*arguments)
            return once(traced.lower)

        return measure

    def case(prepare: Any, subject: Any, name: str, at_most: float, aim: float) -> Case:
        if name.startswith("chain"):  # the growth counts, not the ratio
            return Case("ms", lambda: prepare(subject), most_rounds=3)
        return Case("ms", lambda: prepare(subject), at_most, aim)

    found = {}
    for name, subject in subjects(library).items():
        found[f"trace {name}"] = case(trace, subject, name, 0.45, 0.3)
    for name, subject in subjects(library).items():
        found[f"lower {name}"] = case(lower, subject, name, 0.60, 0.4)
    return found
