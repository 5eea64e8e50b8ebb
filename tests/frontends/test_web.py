"""`frontends/web`: in Node, and a page in a browser."""

import functools
import http.server
import json
import os
import re
import sys
import threading
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import fxflow
from fxflow import export
from fxflow.errors import ArgumentError
from tests.frontends import programs
from tests.frontends.building import ROOT, compiler, run
from tests.serve.browser import Browser

WEB = ROOT / "frontends" / "web"
STATE = "document.getElementById('state')"
MESSAGE = "document.getElementById('message')"


@pytest.fixture(scope="module")
def runtime():
    """The folder of onnxruntime-web, which `scripts/test.sh` installs."""
    installed = Path(sys.prefix, "clients-node", "node_modules", "onnxruntime-web")
    found = Path(os.environ.get("FXFLOW_ORT", installed))
    if not found.exists():
        pytest.skip("onnxruntime-web is not installed: npm install onnxruntime-web")
    pytest.importorskip("onnx")
    return found


def test_node(runtime, tmp_path):
    path = tmp_path / "model.fx"
    made = programs.write(path, onnx=("step", "swapped"))
    places = {"FXFLOW_ORT": str(runtime), "FXFLOW_TEST_MODEL": str(path)}
    done = run([compiler("node"), "--test", WEB / "test"], **places)
    assert "# fail 0" in done.stdout and "# pass 3" in done.stdout
    given = re.search(r"numbers (.*)", done.stdout)[1].split()
    state, step = programs.STATE, fxflow.jit(export.load(made).functions["step"].call)
    x = (np.arange(12, dtype=np.float32) / np.float32(11)).reshape(4, 3)
    for _ in range(100):
        state, y = step(state, x)
    expected = [float(y), *state["w"].tolist()]
    np.testing.assert_allclose([*map(float, given)], expected, rtol=1e-5, atol=1e-7)
    # What JavaScript saved has right digests.
    saved = export.load(f"{path}.saved").params
    np.testing.assert_array_equal(saved["w"], np.array(given[1:], np.float32))


@pytest.fixture(scope="module")
def page(runtime, tmp_path_factory):
    """The address of the page, with a net that was hardly trained."""
    folder = tmp_path_factory.mktemp("page")
    here = {"__name__": "build_page", "__file__": str(WEB / "build_page.py")}
    before = sys.path[:]
    try:
        exec(compile((WEB / "build_page.py").read_text(), "build_page", "exec"), here)
    finally:
        sys.path[:] = before
    state = fxflow.jit(here["export_mnist"].init)(fxflow.random.key(0))
    here["write"](folder, state["params"], runtime)

    class Handler(http.server.SimpleHTTPRequestHandler):
        extensions_map: ClassVar = {
            **http.server.SimpleHTTPRequestHandler.extensions_map,
            ".mjs": "text/javascript",
            ".wasm": "application/wasm",
        }

        def log_message(self, *_):
            """Prints nothing."""

    handler = functools.partial(Handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/index.html"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("width", [1000, 390])
def test_the_page_learns_from_corrections(page, width):
    with Browser() as browser:
        browser.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        browser.go(page)
        browser.until(f"{STATE}.dataset.ready", 60)
        assert browser.value("document.documentElement.scrollWidth") <= width
        find = "document.getElementById('paper').getBoundingClientRect()"
        browser.value("document.getElementById('paper').scrollIntoView()")
        x, y = browser.value(f"(box => [box.left, box.top])({find})")
        browser.draw([(x + 80, y + 60), (x + 200, y + 60), (x + 120, y + 240)])
        browser.until(f"{MESSAGE}.dataset.digit")
        for count, digit in enumerate((7, 3), start=1):
            browser.value(f"document.getElementById('is-{digit}').click()")
            browser.until(f"{STATE}.dataset.trained === '{count}'", 60)
            if count == 1:  # the same drawing cannot be both
                browser.until(f"{MESSAGE}.dataset.digit === '{digit}'")
        # What is saved is loaded.
        browser.send(
            "Runtime.evaluate",
            expression="page.bytes().then(page.load).then(() => window.again = true)",
            awaitPromise=True,
        )
        browser.until("window.again")
        # Nothing came from elsewhere.
        names = "performance.getEntriesByType('resource').map(e => e.name)"
        origin = page.rpartition("/")[0]
        assert all(name.startswith((origin, "blob:")) for name in browser.value(names))
        assert browser.errors == []


def test_functions_as_onnx(tmp_path):
    onnx = pytest.importorskip("onnx")
    path = programs.write(tmp_path / "model.fx", onnx=["step"])
    assert list(export.load(path).functions) == ["step", "swapped"]
    data = path.read_bytes()
    header = json.loads(data[48 : 48 + int.from_bytes(data[12:16], "little")])
    parts = {part["name"]: part for part in header["parts"]}
    assert list(parts) == ["program", "program:swapped", "onnx:step", "params", "table"]
    part = parts["onnx:step"]
    model = onnx.load_from_string(data[part["start"] : part["start"] + part["size"]])
    assert [given.name for given in model.graph.input] == ["state.b", "state.w", "x"]
    with pytest.raises(ArgumentError, match="onnx must be names of functions, of step"):
        programs.write(path, onnx=["stop"])
