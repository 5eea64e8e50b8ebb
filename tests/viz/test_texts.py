"""Graphs in the languages of Graphviz and Mermaid."""

import shutil
import subprocess

import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow import viz


def model(x):
    with fxflow.named_scope('a "b"'):
        y = fnp.sin(x)
    return y * 2.0


DRAWING = viz.graph(model, fnp.ones((2, 3)))


def test_mermaid():
    assert DRAWING.mermaid().splitlines() == [
        "flowchart TD",
        '  n0(["x"])',
        '  n3["mul 2.0"]',
        '  n4(["result_0"])',
        "  subgraph s0 [\"a 'b'\"]",
        '    n1["sin"]',
        "  end",
        '  n0 -- "f32[2,3]" --> n1',
        '  n1 -- "f32[2,3]" --> n3',
        '  n3 -- "f32[2,3]" --> n4',
    ]


def test_dot():
    text = DRAWING.dot()
    assert text.startswith('digraph "model" {')
    assert 'n1 [label="sin\\nf32[2,3]", shape=box];' in text
    assert "subgraph cluster_0 { label=\"a 'b'\";" in text
    assert 'n1 -> n3 [label="f32[2,3]", fontsize=9];' in text
    assert text.count("{") == text.count("}")


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_graphviz_reads_it():
    ran = subprocess.run(["dot", "-Tsvg"], input=DRAWING.dot(), text=True, check=True)
    assert ran.returncode == 0
