"""Which of SciPy's names there are: the guide lists the others."""

from __future__ import annotations

import inspect
import re
import types
from pathlib import Path
from typing import Any

import scipy.stats

from fxflow.scipy import stats
from fxflow.scipy.stats._examples import EXAMPLES
from fxflow.scipy.stats._protocol import Distribution

GUIDE = Path(__file__).parents[3] / "docs/guides/other-libraries.md"
# Namespaces that SciPy has deprecated, and its test runner.
OLD = {"biasedurn", "distributions", "kde", "morestats", "mstats_basic"}
OLD |= {"mstats_extras", "mvn", "stats", "test"}


def listed(section: str) -> set[str]:
    """The names in the first column of the table behind a sentence of the guide."""
    text = GUIDE.read_text(encoding="utf-8").split(section, 1)[1]
    table = text.split("\n\n")[1]
    rows = [line for line in table.splitlines()[2:] if line.startswith("|")]
    return {n for row in rows for n in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_the_guide_lists_what_is_left_out() -> None:
    theirs = {name for name in dir(scipy.stats) if not name.startswith("_")}
    missing = {n for n in theirs - OLD if not hasattr(stats, n)}
    # The guide lists the names of the newest SciPy.
    found = {n for n in listed("lacks these names of `scipy.stats`") if n in theirs}
    assert found == missing


#: Generators, threads and shapes: the guide has a line for each.
COMMON = {"rng", "random_state", "seed", "size", "workers"}
#: The same under another name.
RENAMED = {("matrix_normal", "X"), ("matrix_t", "X"), ("tukey_hsd", "args")}


def parameters(function: Any) -> set[str]:
    try:
        return set(inspect.signature(function).parameters) - {"self"}
    except (TypeError, ValueError):
        return set()


def pairs() -> list[tuple[str, Any, Any]]:
    """Functions that both libraries have, also those of objects and engines."""
    found = []
    for theirs, ours in ((scipy.stats, stats), (scipy.stats.qmc, stats.qmc)):
        for name in theirs.__all__:
            one, other = getattr(theirs, name), getattr(ours, name, None)
            one_dimensional = scipy.stats.rv_continuous | scipy.stats.rv_discrete
            kinds = one_dimensional | types.ModuleType
            if other is None or isinstance(one, kinds):
                continue
            if inspect.isfunction(one) or inspect.isclass(one):
                found.append((name, one, other))
            if not inspect.isfunction(one):
                found += [
                    (f"{name}.{own}", getattr(one, own), getattr(other, own))
                    for own in dir(one)
                    if own[0] != "_" and callable(getattr(other, own, None))
                ]
    return found


def test_the_guide_lists_the_arguments_that_are_left_out() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    table = text.split("objects of `fxflow.scipy.stats` are left out:")[1]
    rows = table.split("\n\n")[1].splitlines()
    seen = 0
    for name, theirs, ours in pairs():
        seen += 1
        first = name.partition(".")[0]
        if first == "rv_histogram":
            continue
        for argument in parameters(theirs) - parameters(ours) - COMMON:
            listed = [r for r in rows if f"`{first}" in r and argument in r]
            assert listed or (first, argument) in RENAMED, (name, argument)
    assert seen > 200


def test_the_guide_lists_what_qmc_lacks() -> None:
    missing = set(scipy.stats.qmc.__all__) - set(stats.qmc.__all__)
    missing |= set(scipy.stats.contingency.__all__) - set(stats.contingency.__all__)
    assert listed("and of its modules `qmc` and `contingency`") == missing


def test_each_distribution_has_an_example_with_scipy_s_value() -> None:
    names = {n for n in stats.__all__ if isinstance(getattr(stats, n), Distribution)}
    assert set(EXAMPLES) == names
    for name, (call, value) in EXAMPLES.items():
        assert value in str(getattr(stats, name).__doc__)
        function, _, arguments = call.partition("(")
        given = [float(x) for x in arguments.rstrip(")").split(", ") if x]
        want = getattr(getattr(scipy.stats, name), function)(*given)
        digits = len(value.partition(".")[2])
        assert abs(float(want) - float(value)) < 0.6 * 10.0**-digits, name
