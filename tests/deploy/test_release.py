"""What a release carries besides the wheel agrees with it."""

from __future__ import annotations

import re
import tomllib

import yaml

import fxflow

from .checkout import ROOT

RECIPE = (ROOT / "deploy/conda/meta.yaml").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]


def test_versions_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == fxflow.__version__
    assert f'version = "{fxflow.__version__}"' in RECIPE


def test_the_recipe_requires_what_the_wheel_requires() -> None:
    plain = "\n".join(line for line in RECIPE.splitlines() if "{%" not in line)
    run = yaml.safe_load(re.sub(r"{{ *(\w+) *}}", r"\1", plain))["requirements"]["run"]
    wanted = {d.replace(" ", "").replace("-", "_") for d in PROJECT["dependencies"]}
    assert {d.replace(" ", "") for d in run[1:]} == wanted
    assert run[0].replace(" ", "") == "python" + PROJECT["requires-python"]


def test_a_bug_report_asks_for_the_doctor() -> None:
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text("utf-8"))
    labels = [entry["attributes"]["label"] for entry in form["body"]]
    assert any("fxflow doctor --report" in label for label in labels)
