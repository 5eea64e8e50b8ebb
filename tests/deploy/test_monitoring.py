"""The dashboard and the alerts name metrics that exist, and labels that they have."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("yaml")
pytest.importorskip("zmq")

import yaml

from fxflow.distributed.parameter_server.monitor import (
    Figures,
    ServerFigures,
    WorkerFigures,
    exposition,
)
from fxflow.distributed.parameter_server.tables import TableCounts

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "monitoring"
DASHBOARD = json.loads((FOLDER / "parameter-server.json").read_text())
RULES = yaml.safe_load((FOLDER / "parameter-server.rules.yaml").read_text())
RUNBOOK = ROOT / "docs" / "guides" / "parameter-server-runbook.md"
#: Labels that Prometheus itself adds.
SCRAPED = {"job", "instance"}


def endpoint() -> dict[str, set[str]]:
    """Returns the names of the endpoint's samples, with their labels."""
    counts = {
        (family, "x" if labelled else ""): 1.0
        for family, labelled in {
            **dict.fromkeys(("pushes", "updates", "repeated", "cpu"), False),
            **dict.fromkeys(("dropped", "received", "sent", "received_bytes"), True),
            **dict.fromkeys(("sent_bytes", "shared_bytes", "push", "pull"), True),
            **dict.fromkeys(("dropped_messages", "busy"), True),
        }.items()
    }
    table = {**TableCounts()._asdict(), "bytes": 1}
    shard = {
        "serves": True,
        "version": 1,
        "bytes": 4,
        "missing": 0,
        "load": 0.5,
        "tables": {"t": table},
    }
    stats = {"shards": {"0": shard}, "waiting": 0, "epoch": 1}
    servers = [ServerFigures(0, "a:1", "", counts, {}, stats)]
    workers = [WorkerFigures("worker 0", 1, 0.0, 0.0)]
    found: dict[str, set[str]] = {}
    for line in exposition(Figures(0.0, servers, workers)).splitlines():
        if not line.startswith("#"):
            name, _, labels = line.partition(" ")[0].partition("{")
            names = set(re.findall(r'(\w+)="', labels))
            found.setdefault(name, set()).update(names)
    return found


def expressions() -> dict[str, str]:
    panels = {
        f"{panel['title']}: {target['refId']}": target["expr"]
        for panel in DASHBOARD["panels"]
        for target in panel["targets"]
    }
    (group,) = RULES["groups"]
    return {**panels, **{rule["alert"]: rule["expr"] for rule in group["rules"]}}


@pytest.mark.parametrize("which", expressions())
def test_each_metric_and_label_exists(which: str) -> None:
    text, metrics = expressions()[which], endpoint()
    used = re.findall(r"(fxflow_\w+)(?:\{([^}]*)\})?", text)
    assert used
    labels = set(SCRAPED)
    for name, matchers in used:
        assert name in metrics, name
        labels |= metrics[name]
        for label in re.findall(r"(\w+)\s*[=!]", matchers):
            assert label in metrics[name] | SCRAPED, (name, label)
    for group in re.findall(r"by \(([^)]*)\)", text):
        assert {label.strip() for label in group.split(",")} <= labels
    assert text.count("(") == text.count(")")


def test_a_metric_that_is_missing_is_found() -> None:
    assert "fxflow_ps_up" in endpoint()
    assert endpoint()["fxflow_ps_staleness_bucket"] == {"server", "le"}
    assert "fxflow_ps_nothing" not in endpoint()


def test_each_alert_has_a_section_of_the_runbook() -> None:
    heads = re.findall(r"^#+ (.*)$", RUNBOOK.read_text(), re.M)
    anchors = {re.sub(r"[^\w ]", "", head).lower().replace(" ", "-") for head in heads}
    (group,) = RULES["groups"]
    for rule in group["rules"]:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert page == RUNBOOK.name and anchor in anchors, anchor
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_the_panels_do_not_overlap() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at: dict[str, Any] = panel["gridPos"]
        own = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not own & cells and max(x for x, _ in own) < 24
        cells |= own
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
