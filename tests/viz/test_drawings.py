"""Graphs as pages and files."""

import html
import json
import re
import shutil
import subprocess

import pytest

import fxflow
from fxflow import lax, viz
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError


def model(params, x):
    with fxflow.named_scope("dense"):
        x = fnp.tanh(fnp.atleast_2d(x) @ params["w"] + params["b"])
    x, _ = lax.scan(lambda c, _: (fnp.sin(c), None), x, length=3)
    return fnp.sum(x)


ARGS = {"w": fnp.ones((3, 4)), "b": fnp.zeros(4)}, fnp.ones((2, 3))
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.S)


def data(drawing):
    return json.loads(DATA.search(drawing.html())[1])


def captions(drawing):
    return {item.label or item.operation for item in drawing.items}


@pytest.mark.parametrize(
    ("transform", "operation"),
    [
        (lambda f: f, "tanh"),
        (fxflow.jit, "tanh"),
        (fxflow.grad, "cos"),
        (lambda f: fxflow.jit(fxflow.value_and_grad(f)), "cos"),
        (lambda f: fxflow.vmap(f, in_axes=(None, 0)), "dot_general"),
    ],
)
def test_any_function(transform, operation):
    drawing = viz.graph(transform(model), *ARGS)
    assert {operation, "params['w']", "x", "scan"} <= captions(drawing)
    page = data(drawing)
    assert len(page["items"]) == len(drawing.items)
    line = f"viz/test_drawings.py:{model.__code__.co_firstlineno + 2} (model)"
    assert line in page["text"]


def test_ready_graphs_and_types():
    ready = fxflow.make_graph(model)(*ARGS)
    assert captions(viz.graph(ready)) == captions(viz.graph(ready.graph))
    drawing = viz.graph(lambda x: x + 1, fxflow.ShapeDtypeStruct((2,), "float32"))
    assert str(drawing.items[0].avals[0]) == "f32[2]" and "lambda" in repr(drawing)
    with pytest.raises(ArgumentError, match="a ready graph takes no arguments"):
        viz.graph(ready, 1.0)


def test_the_page_stands_alone():
    drawing = viz.graph(fxflow.named_call(model, name="</script>&"), *ARGS)
    page = drawing.html()
    assert page.count("</script>") == 2 and "src=" not in page
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert any(
        "<_script>&" in text or "</script>&" in text for text in data(drawing)["text"]
    )
    frame = drawing._repr_html_()
    (inside,) = re.findall(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(inside) == page


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_script_is_javascript(tmp_path):
    page = viz.graph(model, *ARGS).html()
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    (tmp_path / "page.js").write_text(script)
    command = ["node", "--check", str(tmp_path / "page.js")]
    assert subprocess.run(command, capture_output=True).returncode == 0


def test_drawings_are_saved_by_suffix(tmp_path):
    drawing = viz.graph(model, *ARGS)
    begins = {"html": "<!DOCTYPE", "svg": "<svg", "dot": "digraph", "mmd": "flowchart"}
    for suffix, begin in begins.items():
        drawing.save(tmp_path / f"graph.{suffix}")
        assert (tmp_path / f"graph.{suffix}").read_text().startswith(begin)
    with pytest.raises(ArgumentError, match=r"ends in one of \.html, .*'graph.png'"):
        drawing.save("graph.png")
