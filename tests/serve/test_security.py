"""Attacks: each gets an error or no reply, and costs few resources."""

from __future__ import annotations

import ast
import datetime
import hmac
import http.client
import ipaddress
import json
import os
import pickle
import socket
import ssl
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from fxflow.errors import ServeError
from fxflow.serve.protocol.front import key_checker
from fxflow.serve.protocol.tensors import parse_infer, parse_plain
from fxflow.serve.signatures import ModelSignature, TensorSpec, from_bytes

from .server import ROOT, running

SIGNATURE = ModelSignature(
    (TensorSpec("x", "FP32", ("b", "n")), TensorSpec("s", "BYTES", ("b",))), (), True
)


def body(**changes: Any) -> bytes:
    x = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}
    s = {"name": "s", "datatype": "BYTES", "shape": [1], "data": ["a"]}
    return json.dumps({"inputs": [x | changes, s]}).encode()


HUGE = [1 << 30, 1 << 9]
BOMBS = {
    "shape": body(shape=HUGE, data=[1]),
    "beyond": body(shape=[1 << 62, 1 << 62]),
    "binary": body(shape=HUGE, parameters={"binary_data_size": 1 << 41}),
    "negative": body(shape=[-1, -1]),
    "nested": b"[" * 1_000_000,
    "objects": b'{"inputs":' * 100_000,
    "digits": b'{"inputs": [' + b"9" * 1_000_000 + b"]}",
    "exponent": b'{"inputs": [{"name": "x", "shape": [1e400]}]}',
}


@pytest.mark.parametrize("name", BOMBS)
def test_huge_declared_shapes_allocate_nothing(name: str) -> None:
    text = BOMBS[name]
    tracemalloc.start()
    try:
        for parse in (lambda: parse_infer(text, None, SIGNATURE),
                      lambda: parse_plain(text, SIGNATURE)):  # fmt: skip
            with pytest.raises(ServeError) as caught:
                parse()
            assert caught.value.status == 400 and len(str(caught.value)) < 500
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A few times the bytes that were sent, whatever they declare.
    assert most < 30 * len(text) + (1 << 20)


def test_huge_declared_string_lengths_are_refused() -> None:
    for data in (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7fabc", b""):
        with pytest.raises(ServeError):
            from_bytes(data, "BYTES", (1,))
    with pytest.raises(ServeError, match="cannot hold the lengths"):
        from_bytes(b"abcd", "BYTES", (1 << 40,))


def test_all_keys_are_compared_whichever_matches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = []
    real = hmac.compare_digest

    def counting(a: Any, b: Any) -> bool:
        compared.append(len(a) == len(b) == 32)  # digests: no length shows
        return real(a, b)

    monkeypatch.setattr(hmac, "compare_digest", counting)
    check = key_checker({"a": "first-key-0123456", "b": "second-key-01234"})
    for key, client in (("first-key-0123456", "a"), ("second-key-01234", "b"),
                        ("", None), ("x" * 100_000, None)):  # fmt: skip
        compared.clear()
        assert check(key) == client and compared == [True, True]


def test_no_module_unpickles_or_evaluates_bytes() -> None:
    never = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
    for path in (ROOT / "fxflow" / "serve").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names: set[str] = set()
            if isinstance(node, ast.Import):
                names = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names = {(node.module or "").partition(".")[0]}
            assert not names & never, path
            if isinstance(node, ast.Call):
                called = getattr(node.func, "id", "")
                assert called not in ("eval", "exec", "compile"), path


class Bomb:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self._path),)


def certificate(folder: Path) -> tuple[Path, Path]:
    """Creates a key and a certificate for this machine, in PEM."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), address])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    paths = folder / "key.pem", folder / "cert.pem"
    paths[0].write_bytes(private)
    paths[1].write_bytes(made.public_bytes(pem))
    return paths


def other_address() -> str:
    """Returns an external address of this machine, if there is one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        try:
            found.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            return ""
        address: str = found.getsockname()[0]
        return "" if address.startswith("127.") else address


@pytest.mark.slow
def test_a_server_with_keys_and_tls(tmp_path: Path) -> None:
    for module in ("uvicorn", "starlette", "grpc"):
        pytest.importorskip(module, reason="pip install 'fxflow[serve]'")
    key, cert = certificate(tmp_path)
    (tmp_path / "keys").write_text("alice 0123456789abcdef\n")
    with running(
        *("tests.serve.zoo:shouting", "--input=text=bytes[b]", "--slo=2s"),
        *(f"--tls-key={key}", f"--tls-cert={cert}", f"--keys={tmp_path / 'keys'}"),
        *("--grpc-port=0", "--name=m"),
    ) as server:
        trusted = ssl.create_default_context(cafile=str(cert))

        def ask(data: bytes, token: str, **headers: str) -> tuple[int, Any]:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", server.port, timeout=30, context=trusted
            )
            try:
                given = {"Authorization": f"Bearer {token}", **headers}
                connection.request("POST", "/v2/models/m/infer", data, given)
                reply = connection.getresponse()
                return reply.status, reply.read()
            finally:
                connection.close()

        def strings(data: bytes) -> tuple[bytes, str]:
            size = len(data) + 4
            x = {"name": "text", "datatype": "BYTES", "shape": [1]}
            x["parameters"] = {"binary_data_size": size}
            options = {"binary_data_output": True}
            head = json.dumps({"inputs": [x], "parameters": options}).encode()
            return head + len(data).to_bytes(4, "little") + data, str(len(head))

        # Bytes that would run code if unpickled stay bytes.
        bomb = tmp_path / "bomb"
        data, size = strings(pickle.dumps(Bomb(bomb)))
        token = "0123456789abcdef"
        status, found = ask(data, token, **{"Inference-Header-Content-Length": size})
        assert status == 200 and b"MKDIR" in found
        for kind, refused in (
            ("application/x-pickle", 415),
            ("application/octet-stream", 400),
        ):
            raw = pickle.dumps(Bomb(bomb))
            assert ask(raw, token, **{"Content-Type": kind})[0] == refused
        assert not bomb.exists()

        for wrong in ("", "0123456789abcdeF", "0123456789abcde", "é" * 9):
            token = wrong.encode().decode("latin-1")
            assert (
                ask(data, token, **{"Inference-Header-Content-Length": size})[0] == 401
            )

        # Clients without TLS, or with an old version, get no reply.
        with socket.create_connection(("127.0.0.1", server.port), 10) as plain:
            plain.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"HTTP/1.1" not in plain.recv(1000)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        with pytest.warns(DeprecationWarning):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with (
            socket.create_connection(("127.0.0.1", server.port), 10) as plain,
            pytest.raises((ssl.SSLError, OSError)),
        ):
            old.wrap_socket(plain)

        # gRPC with the same certificate and keys.
        import grpc

        from fxflow.serve.protocol.rpc import SERVICE, classes

        port = server.until(r"gRPC at 127\.0\.0\.1:(\d+)")[1]
        made = classes()
        credentials = grpc.ssl_channel_credentials(cert.read_bytes())
        with grpc.secure_channel(f"localhost:{port}", credentials) as channel:
            ready = channel.unary_unary(
                f"/{SERVICE}/ModelReady",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=made["ModelReadyResponse"].FromString,
            )
            asked = made["ModelReadyRequest"](name="m")
            with pytest.raises(grpc.RpcError, match="an API key is required"):
                ready(asked, timeout=20)
            bearer = (("authorization", "Bearer 0123456789abcdef"),)
            assert ready(asked, metadata=bearer, timeout=20).ready
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            ready = channel.unary_unary(f"/{SERVICE}/ServerLive")
            with pytest.raises(grpc.RpcError):
                ready(b"", timeout=5)

        # By default, other machines cannot connect.
        if address := other_address():
            for number in (server.port, int(port)):
                with pytest.raises(OSError):
                    socket.create_connection((address, number), 3).close()
