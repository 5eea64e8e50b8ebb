"""Pictures of plans: fragments by device, with what they send and receive."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import fxflow
from fxflow import dataflow, viz
from fxflow import numpy as fnp
from fxflow.dataflow import on, stages
from fxflow.viz.plans import plan_items
from fxflow.viz.walk import RECV, SEND

SVG = "{http://www.w3.org/2000/svg}"


def f(x: Any, w: Any) -> Any:
    with on("/device:cpu:1"):
        y = fnp.tanh(x @ w)
    with on("/device:cpu:2"):
        z = fnp.sin(y)
    with on("/device:cpu:1"):
        return fnp.cos(z) + y, 2.0, x


ARGS = fnp.ones((4, 8)), fnp.ones((8, 8))


def test_what_is_sent_is_received_once() -> None:
    plan = dataflow.jit(f).plan(*ARGS)
    items = plan_items(plan)
    sends = {i: item for i, item in enumerate(items) if item.operation == SEND}
    receives = [item for item in items if item.operation == RECV]
    between = [edge for edge in plan.edges if edge.source is not None]
    assert len(sends) == len(receives) == len(between) == 2
    for item in receives:
        ((source, _),) = item.inputs
        assert item.label == sends.pop(source).place != item.place
    assert not sends
    for item in items:
        for source, _ in item.inputs:
            before = items[source]
            assert (
                item.operation == RECV
                or before.place in ("", item.place)
                or not (item.place)
            )
    (first, second, third) = ({i.path[0] for i in items if len(i.path) > 1}, 0, 0)
    del second, third
    assert first == {
        "fragment 0 on cpu:1",
        "fragment 1 on cpu:2",
        "fragment 2 on cpu:1",
    }


def test_a_picture_has_the_colours_of_devices_and_bytes() -> None:
    drawing = viz.graph(dataflow.jit(f), *ARGS)
    picture = ET.fromstring(drawing.svg())
    fills = {e.get("style") for e in picture.iter(f"{SVG}rect") if e.get("style")}
    assert len(fills) == 2
    texts = [e.text for e in picture.iter(f"{SVG}text")]
    assert {"x", "w", "send to cpu:2", "recv from cpu:1", "cpu:1", "cpu:2"} <= set(
        texts
    )
    assert texts.count("f32[4,8] 128 bytes") >= 2
    dot = drawing.dot()
    assert 'label="f32[4,8] 128 bytes"' in dot
    assert len(set(re.findall(r'fillcolor="(#\w+)"', dot))) == 2
    mermaid = drawing.mermaid()
    assert "classDef on_cpu_1 fill:#" in mermaid and "class n" in mermaid
    page = drawing.html()
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert set(data["colors"]) == {"cpu:1", "cpu:2"}
    places = [
        data["text"][group["p"]] for group in data["root"]["c"] if type(group) is dict
    ]
    assert sorted(filter(None, places)) == ["cpu:1", "cpu:1", "cpu:2"]


def test_a_pipeline_is_drawn_by_its_actions() -> None:
    def loss(params: Any, x: Any) -> Any:
        for stage, w in zip(stages(2), params, strict=True):
            with on(stage):
                x = fnp.tanh(x @ w)
        return (x**2).mean()

    step = fxflow.train.accumulate_gradients(loss, 2)
    split = dataflow.jit(step, devices=fxflow.local_devices()[:2])
    plan = split.plan([ARGS[1]] * 2, ARGS[0])
    drawing = viz.graph(plan)
    assert "▸ 0F0 on cpu:0" in drawing.svg(shown=1)
    assert drawing.name == plan.name


def test_a_graph_without_devices_has_no_colours() -> None:
    drawing = viz.graph(fnp.sin, 1.0)
    assert "fillcolor" not in drawing.dot() and "classDef" not in drawing.mermaid()
    assert "key" not in drawing.svg()
