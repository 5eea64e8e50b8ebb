"""What a release carries besides the wheel agrees with it."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import yaml

import fxflow

from .checkout import ROOT

RECIPE = (ROOT / "deploy/conda/meta.yaml").read_text(encoding="utf-8")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, BUILD = SETTINGS["project"], SETTINGS["build-system"]


def test_versions_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == fxflow.__version__
    assert f'version = "{fxflow.__version__}"' in RECIPE


def recipe() -> dict[str, Any]:
    """Returns the recipe of conda without its templates."""
    plain = "\n".join(line for line in RECIPE.splitlines() if "{%" not in line)
    found: dict[str, Any] = yaml.safe_load(re.sub(r"{{ *(\w+) *}}", r"\1", plain))
    return found


def test_the_recipe_builds_and_says_what_the_wheel_does() -> None:
    found = recipe()
    host = [d.replace(" ", "") for d in found["requirements"]["host"]]
    assert host[0] == "python" + PROJECT["requires-python"]
    assert {*BUILD["requires"]} <= {*host}
    scripts = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert found["build"]["entry_points"] == scripts
    assert found["package"]["name"] == PROJECT["name"]
    about = found["about"]
    assert about["license"] == PROJECT["license"]
    assert [about["license_file"]] == PROJECT["license-files"]
    assert about["summary"] == PROJECT["description"]
    assert (ROOT / "deploy/conda" / found["source"]["path"]).resolve() == ROOT.resolve()


def test_the_image_installs_extras_that_exist() -> None:
    text = (ROOT / "deploy/Containerfile").read_text(encoding="utf-8")
    named = re.findall(r"EXTRAS=([\w,]+)", text)
    extras = PROJECT["optional-dependencies"]
    assert named and all(n in extras for given in named for n in given.split(","))
    (version,) = re.findall(r"ARG PYTHON=([\d.]+)", text)
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_the_recipe_requires_what_the_wheel_requires() -> None:
    run = recipe()["requirements"]["run"]
    wanted = {d.replace(" ", "").replace("-", "_") for d in PROJECT["dependencies"]}
    assert {d.replace(" ", "") for d in run[1:]} == wanted
    assert run[0].replace(" ", "") == "python" + PROJECT["requires-python"]


def test_a_bug_report_asks_for_the_doctor() -> None:
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text("utf-8"))
    labels = [entry["attributes"]["label"] for entry in form["body"]]
    assert any("fxflow doctor --report" in label for label in labels)
