"""Graphs as SVG."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow import viz
from fxflow.viz.svg import spread

NAMESPACE = "{http://www.w3.org/2000/svg}"


def model(x, w):
    with fxflow.named_scope("dense"):
        x = fnp.tanh(x @ w)
    with fxflow.named_scope("loss"):
        return fnp.sum(x)


def boxes(drawing, **options):
    picture = ET.fromstring(drawing.svg(**options))
    texts = [e.text for e in picture.iter(f"{NAMESPACE}text")]
    found = []
    for rect in picture.iter(f"{NAMESPACE}rect"):
        x, y, w, h = (float(rect.get(k)) for k in ("x", "y", "width", "height"))
        assert x >= 0 and x + w <= float(picture.get("width")) + 1
        assert y >= 0 and y + h <= float(picture.get("height")) + 1
        found.append((rect.get("class"), x, y, w, h))
    return texts, found


def test_boxes_have_labels_and_do_not_overlap():
    drawing = viz.graph(fxflow.grad(model), fnp.ones((2, 3)), fnp.ones((3, 4)))
    texts, found = boxes(drawing)
    assert {"dense", "loss", "x", "w", "dot_general", "f32[2,4]"} <= set(texts)
    shown = [box for box in found if box[0] != "open"]
    for i, (_, x, y, w, h) in enumerate(shown):
        for _, x2, y2, w2, h2 in shown[i + 1 :]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
    folded, _ = boxes(drawing, shown=1)
    assert "▸ dense" in folded and "dot_general" not in folded


@pytest.mark.parametrize("seed", range(3))
def test_centres_are_near_and_do_not_overlap(seed):
    rng = np.random.default_rng(seed)
    wanted, widths = rng.uniform(0, 100, 12), rng.uniform(5, 40, 12)
    x = spread(wanted, widths)
    ends = [(c - w / 2, c + w / 2) for c, w in zip(x, widths, strict=True)]
    assert all(b[0] - a[1] > 17.9 for a, b in pairwise(ends))
    # The least squares: moving all at once makes it no better.
    cost = np.sum((np.array(x) - wanted) ** 2)
    for step in (-0.5, 0.5):
        assert np.sum((np.array(x) + step - wanted) ** 2) > cost
    assert spread([10.0, 90.0], [4.0, 4.0]) == [10.0, 90.0]
