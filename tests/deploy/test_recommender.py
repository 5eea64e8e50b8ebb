"""The manifests of deploy/kubernetes/recommender train a program that there is."""

from typing import Any

import pytest

from .checkout import check_program
from .manifests import RENDERED


def found(folder: str) -> dict[str, Any]:
    """The containers of a folder's pods, by name."""
    return {
        container["name"]: container
        for manifest in RENDERED[folder]
        if "template" in manifest.get("spec", {})
        for container in manifest["spec"]["template"]["spec"]["containers"]
    }


def test_programs_are_in_the_image() -> None:
    pytest.importorskip("tqdm", reason="pip install fxflow[examples]")
    boxes = found("recommender")
    (first, *chief), (_, *worker) = boxes["chief"]["args"], boxes["worker"]["args"]
    assert first == "python"
    check_program(chief)
    # All train the same model on the same logs.
    assert chief[:-1] == worker and chief[-1].startswith("--logdir=/runs/")


def test_only_programs_and_memory_differ() -> None:
    ours, theirs = found("recommender"), found("parameter-server")
    assert ours.keys() == theirs.keys()
    for name, box in ours.items():
        changed = {key for key in box if box[key] != theirs[name].get(key)}
        allowed = {"ps": {"resources"}, "chief": {"args"}, "worker": {"args"}}
        assert changed == allowed.get(name, set())
    assert ours["ps"]["resources"]["limits"]["memory"] == "8Gi"
