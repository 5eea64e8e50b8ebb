"""Clients that are generated from the descriptions of a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fxflow.serve.protocol import proto, rpc
from tests.frontends.building import compiler, run

from ..clients import FOLDER
from .serving import both_protocols

pytest.importorskip("starlette", reason="pip install 'fxflow[serve]'")
pytest.importorskip("grpc", reason="pip install 'fxflow[serve]'")
pytest.importorskip("uvicorn", reason="pip install 'fxflow[serve]'")

CLIENTS = Path(__file__).parents[3] / "examples" / "serving" / "clients"
ROW = ("1.5", "2", "-3")


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, int]]:
    """A server in a thread, with a port for each protocol."""
    with both_protocols() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the `.proto` file."""
    made = tmp_path_factory.mktemp("proto")
    (made / "inference.proto").write_text(proto.proto())
    return made


def test_the_file_has_all_messages(folder: Path) -> None:
    text = (folder / "inference.proto").read_text()
    for name, fields in rpc.MESSAGES.items():
        assert f"message {name.rpartition('.')[2]} {{" in text
        for field in filter(None, fields.split(", ")):
            number, _, label = field.split()
            assert f" {label} = {number};" in text
    assert "map<string, InferParameter> parameters = 4;" in text
    assert "oneof parameter_choice {" in text


def test_curl(ports: dict[str, int]) -> None:
    compiler("curl")
    address = f"http://127.0.0.1:{ports['http']}"
    text = run(["bash", CLIENTS / "client.sh", address, "linear", *ROW]).stdout
    assert "[[3.0,4.0,-6.0]]" in text.replace(" ", "")


def test_python(ports: dict[str, int], folder: Path) -> None:
    path = os.pathsep.join((str(folder), str(FOLDER), *sys.path))
    if not (FOLDER / "grpc_tools").exists():
        pytest.skip("tests/serve/clients.txt lists grpcio-tools")
    options = [f"-I{folder}", f"--python_out={folder}", f"--grpc_python_out={folder}"]
    file = folder / "inference.proto"
    run([sys.executable, "-m", "grpc_tools.protoc", *options, file], PYTHONPATH=path)
    command = [sys.executable, CLIENTS / "client.py", f"127.0.0.1:{ports['grpc']}"]
    text = run([*command, "linear", *ROW], PYTHONPATH=path).stdout
    assert text.split() == ["3.0", "4.0", "-6.0"]


def test_node(ports: dict[str, int], folder: Path) -> None:
    packages = Path(sys.prefix) / "clients-node"
    if not (packages / "node_modules" / "@grpc").exists():
        pytest.skip("tests/frontends/node_packages.txt lists the packages")
    command = [compiler("node"), CLIENTS / "client.mjs"]
    command += [f"http://127.0.0.1:{ports['http']}", f"127.0.0.1:{ports['grpc']}"]
    command += [folder / "inference.proto", "linear", *ROW]
    over_http, over_grpc = run(command, NODE_PACKAGES=str(packages)).stdout.splitlines()
    assert over_http.startswith("http") and "[[3,4,-6]]" in over_http
    assert over_grpc == "grpc 3 4 -6"


@pytest.mark.soak  # gRPC's headers take a minute to compile
def test_cpp(ports: dict[str, int], folder: Path) -> None:
    protoc, plugin = compiler("protoc"), compiler("grpc_cpp_plugin")
    cpp, config = compiler("g++"), compiler("pkg-config")
    generate = [f"-I{folder}", f"--cpp_out={folder}", f"--grpc_out={folder}"]
    plug = f"--plugin=protoc-gen-grpc={plugin}"
    run([protoc, *generate, plug, folder / "inference.proto"])
    flags = run([config, "--cflags", "--libs", "grpc++", "protobuf"]).stdout.split()
    sources = [folder / "inference.pb.cc", folder / "inference.grpc.pb.cc"]
    sources.insert(0, CLIENTS / "client.cc")
    made = folder / "client"
    command = [cpp, "-std=c++17", f"-I{folder}", *sources, *flags, "-o", made]
    run(command, timeout=600)
    text = run([made, f"127.0.0.1:{ports['grpc']}", "linear", *ROW]).stdout
    assert text.split() == ["3", "4", "-6"]
