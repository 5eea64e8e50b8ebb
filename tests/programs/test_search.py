"""Random programs have one answer; and the search finds one that has two."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fxflow
from tests.programs import operations
from tests.programs.comparing import differences
from tests.programs.drawing import Input, Program, Refused, Step, draw
from tests.programs.operations import Api
from tests.programs.search import programs, run, search
from tests.programs.shrinking import smaller
from tests.sweeps import sampling


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10 if sampling.whole else 1))
def test_each_program_has_one_answer(part: int) -> None:
    found = search(10 * sampling.seed + part, 50 if sampling.whole else 16)
    assert not found, "\n\n".join(map(str, found))


def line(*steps: Step) -> Program:
    return Program(7, (Input((4,), "float64", "ordinary", 1),), steps)


def test_programs_are_data() -> None:
    for program in programs(3, 20):
        assert isinstance(program, Program)
        assert Program.of(program.data()) == program


def test_a_seed_draws_the_same_program() -> None:
    api = Api("fxflow")
    with fxflow.config.override(x64=True):
        assert draw(api, 5) == draw(api, 5) != draw(api, 6)


def test_a_crash_is_found_and_the_rest_still_runs() -> None:
    wrong = line(Step("sin", (0,), {}), Step("abort", (1,), {}))
    right = replace(line(Step("sin", (0,), {})), seed=8)
    job = [(wrong, ["compiled"]), (right, ["compiled"])]
    found = run(job, extra="tests.programs.planted")
    assert [(one.program.seed, one.way) for one in found] == [(7, "compiled")]
    assert "ended with -6" in found[0].text


def test_a_wrong_answer_is_found() -> None:
    program = line(Step("sin", (0,), {}), Step("biased", (1,), {}))
    (found,) = run([(program, ["compiled"])], extra="tests.programs.planted")
    assert found.way == "compiled"
    assert "4 of 4 differ" in found.text


def test_smaller_programs() -> None:
    program = line(
        Step("sin", (0,), {}), Step("cos", (1,), {}), Step("add", (1, 2), {})
    )
    names = [[step.name for step in one.steps] for one in smaller(program)]
    assert names == [["sin", "cos"], ["sin", "add"], ["cos", "add"]]


def test_an_operation_that_is_refused_is_found(monkeypatch: Any) -> None:
    def refuse(api: Api, x: Any) -> Any:
        raise TypeError("no")

    family = {"only": replace(operations.OPERATIONS["sin"], apply=refuse)}
    monkeypatch.setattr("tests.programs.drawing.OPERATIONS", family)
    monkeypatch.setattr("tests.programs.drawing.FAMILIES", ["elementwise"])
    with pytest.raises(Refused, match=r"only\(.*no"):
        draw(Api("fxflow"), 1)


def test_what_a_small_change_changes_is_not_compared() -> None:
    want = [np.array([1.0, 2.0])]
    got = [np.array([1.0, 3.0])]
    assert differences(got, want, 1e-8, lambda: [want])
    assert not differences(got, want, 1e-8, lambda: [[np.array([1.0, 2.5])]])
    assert differences([np.array([1.0, np.nan])], want, 1e-8, lambda: [want])
    assert differences([want[0].astype("f4")], want, 1e-8, lambda: [want])
