"""Digits are trained, exported, served and asked; a page on which they are drawn."""

import http.server
import importlib
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

from fxflow import random
from tests.examples.programs import EXAMPLES
from tests.serve.browser import Browser

for name in ("tqdm", "uvicorn", "starlette"):
    pytest.importorskip(name, reason="pip install 'fxflow[examples,serve]'")


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        patch.setenv("PYTHONPATH", str(EXAMPLES.parent))
        yield importlib.import_module("serve_mnist")


@pytest.mark.slow
def test_what_is_served_is_what_was_trained(
    example: ModuleType, tmp_path: Path
) -> None:
    """Without a training: random weights, and labels that are what they say."""
    model = example.mnist.MODELS["mlp"]
    params = model.init(random.key(0))
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (200, 28, 28)).astype(np.uint8)
    told = np.asarray(model.apply(params, images.astype(np.float32) / 255)).argmax(-1)
    data = example.mnist.Mnist(images, told, images, told)
    example.write(tmp_path, model, params)
    assert len(list(tmp_path.glob("*.fx"))) == len(example.SIZES)
    with example.served(tmp_path, "--port=0") as port:
        assert example.query(port, data) == 1.0
        with pytest.raises(RuntimeError, match="400: input 'image' must have shape"):
            example.ask(port, "digits", [[1, 2]])


class Refusing(http.server.BaseHTTPRequestHandler):
    """A server that answers each request after a number of refusals."""

    refusals: ClassVar[list[int]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status = self.refusals.pop(0) if self.refusals else 200
        body = b"[1]" if status == 200 else b'{"error": "why"}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_a_request_that_meets_its_deadline_is_asked_again(example: ModuleType) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            Refusing.refusals = [504, 503, 504]
            assert example.ask(server.server_port, "digits", [[0]]) == [1]
            assert not Refusing.refusals
            Refusing.refusals = [400, 400]
            with pytest.raises(RuntimeError, match="400: why"):
                example.ask(server.server_port, "digits", [[0]])
            assert Refusing.refusals == [400]
        finally:
            server.shutdown()
            thread.join()


def around(x: float, y: float, rx: float, ry: float, start: float, turn: float) -> list:
    """Points on a part of an ellipse; 0 is on the right, 0.25 below."""
    angles = [2 * math.pi * (start + turn * k / 12) for k in range(13)]
    return [(x + rx * math.cos(a), y + ry * math.sin(a)) for a in angles]


#: Digits as people draw them, in 280 × 280 pixels.
DRAWN = {
    0: [around(140, 140, 55, 85, 0.7, 1.0)],
    1: [[(145, 60), (135, 220)]],
    3: [around(130, 95, 50, 40, 0.6, 0.65) + around(130, 180, 55, 45, 0.75, 0.65)],
    7: [[(85, 75), (195, 75), (130, 225)]],
}


@pytest.mark.slow
def test_drawn_digits_are_recognised(example: ModuleType, tmp_path: Path) -> None:
    """By a mouse, in a real browser, to a model that has seen MNIST for seconds."""
    with Browser() as browser:
        given = example.mnist.options("").parse_args(["--model=mlp", "--epochs=2"])
        data = example.mnist.load_mnist()
        params, _ = example.mnist.train(given, data, progress=False)
        example.write(tmp_path, example.mnist.MODELS["mlp"], params)
        with example.served(tmp_path, "--port=0") as port:
            browser.go(f"http://127.0.0.1:{port}/app/")
            browser.until("document.readyState == 'complete'")
            box = "document.getElementById('paper').getBoundingClientRect()"
            left, top = browser.value(f"{box}.left"), browser.value(f"{box}.top")
            for digit, lines in DRAWN.items():
                browser.value("document.getElementById('clear').click()")
                for line in lines:
                    browser.draw([(left + x, top + y) for x, y in line])
                found = browser.until(
                    "document.getElementById('message').dataset.digit"
                )
                browser.screenshot(tmp_path / f"{digit}.png")
                assert found == str(digit)
            shown = browser.value("document.querySelector('.best').innerText")
            assert shown.startswith("7") and "%" in shown
            assert not browser.errors
