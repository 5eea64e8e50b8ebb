"""Invalid requests get errors, and the server answers others in time."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fxflow.serve.protocol.rpc import SERVICE, classes
from tests.serve.protocol.fuzzing import grpc_message, http_request
from tests.serve.server import Running, running

for _module in ("uvicorn", "starlette"):
    pytest.importorskip(_module, reason="pip install 'fxflow[serve]'")
grpc = pytest.importorskip("grpc", reason="pip install 'fxflow[serve]'")

#: Seconds within which a good client is to be answered, whatever others send.
OBJECTIVE = 0.5
#: What gRPC may say of a wrong message; some give the server 5 µs.
CODES = (
    *("INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED", "UNAVAILABLE"),
    "DEADLINE_EXCEEDED",
)
CONFIG = f"""
slo = "{OBJECTIVE}s"
max_body = "64KiB"
[models.linear]
source = "tests.serve.zoo:doubling"
max_batch = 8
[models.shouting]
source = "tests.serve.zoo:shouting"
inputs = {{text = "bytes[b]"}}
"""


class Good:
    """A client that sends 20 valid requests per second."""

    def __init__(self, server: Running) -> None:
        self.taken: list[float] = []
        self.wrong: list[Any] = []
        self._server = server
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        while not self._over.wait(0.05):
            begun = time.monotonic()
            found = self._server.ask("POST", "/predict/linear", [[1, 2, 3]])
            self.taken.append(time.monotonic() - begun)
            if found != (200, {"y": [[2.0, 4.0, 6.0]]}):
                self.wrong.append(found)

    def close(self) -> None:
        self._over.set()
        self._thread.join()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path: Path = tmp_path_factory.mktemp("fuzz") / "serving.toml"
    path.write_text(CONFIG)
    with running(str(path), "--grpc-port", "0", "--log-requests", "failed") as found:
        yield found


@contextlib.contextmanager
def served_well(server: Running) -> Iterator[None]:
    """Checks that other requests are answered and that the server did not fail."""
    good = Good(server)
    try:
        yield
    finally:
        good.close()
    assert server.process.poll() is None
    assert not good.wrong, good.wrong[:3]
    late = [t for t in good.taken if t > OBJECTIVE]
    assert len(late) <= 0.01 * len(good.taken), (len(good.taken), sorted(late))
    assert server.ask("GET", "/v2/health/ready") == (200, {"ready": True})
    text = "".join(server.lines)
    assert "Traceback" not in text, text[text.index("Traceback") :][:3000]


def exchange(port: int, request: bytes, wait: float) -> bytes:
    """Returns the reply; empty if the server closes the connection without one.

    A second reply is left out, to what follows the request because its length is wrong.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as connection:
        got = b""
        try:
            connection.sendall(request)
            while part := connection.recv(1 << 16):
                got += part
                head, end, body = got.partition(b"\r\n\r\n")
                at = head.lower().find(b"\r\ncontent-length:")
                length = int(head[at + 17 :].split(b"\r\n")[0]) if at >= 0 else 0
                # A reply to HEAD has the length of a reply to GET.
                if end and (request.startswith(b"HEAD") or len(body) >= length):
                    return head + end + body[:length]
        except ConnectionError:
            pass
        except TimeoutError:
            got = got or b"timeout"
        return got


def check_http(server: Running, seed: int, count: int) -> Counter[int]:
    rng = random.Random(seed)
    statuses: Counter[int] = Counter()
    for number in range(count):
        request, sure = http_request(rng)
        got = exchange(server.port, request, 5.0 if sure else 0.05)
        said = f"seed {seed}, request {number}: {request[:400]!r} → {got[:400]!r}"
        if not sure and (not got or got == b"timeout"):
            continue
        head, _, body = got.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 "), said
        status = int(head[9:12])
        statuses[status] += 1
        assert status < 500 or status in (503, 504), said  # some have a timeout of 3 µs
        if status >= 400 and not request.startswith(b"HEAD"):
            words = body.decode()
            if b"application/json" in head.lower():
                words = json.loads(body)["error"]
            assert len(words) > 5, said
    return statuses


def check_grpc(server: Running, seed: int, count: int) -> Counter[str]:
    port = int(server.until(r"gRPC at 127\.0\.0\.1:(\d+)")[1])
    messages = classes()
    rng = random.Random(seed)
    codes: Counter[str] = Counter()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(f"/{SERVICE}/ModelInfer")
        for number in range(count):
            data = grpc_message(rng, messages)
            said = f"seed {seed}, message {number}: {data[:200]!r}"
            try:
                answer = call(data, timeout=5.0)
                assert messages["ModelInferResponse"].FromString(answer).outputs, said
                codes["OK"] += 1
            except grpc.RpcError as error:
                codes[error.code().name] += 1
                assert error.code().name in CODES, (said, error)
                assert len(error.details()) > 5, said
        for name in ("Nothing", "ModelMetadata", "RepositoryIndex", "ServerLive"):
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(f"/{SERVICE}/{name}")(b"\xff\xff\xff", timeout=5.0)
            assert caught.value.code().name in ("UNIMPLEMENTED", "INVALID_ARGUMENT")
    for _ in range(count // 100 + 3):  # not even HTTP/2
        exchange(port, rng.randbytes(rng.randint(1, 500)), 0.05)
    return codes


def test_http(server: Running) -> None:
    with served_well(server):
        statuses = check_http(server, seed=0, count=300)
    assert {200, 400, 404, 405, 413} <= statuses.keys()


def test_grpc(server: Running) -> None:
    with served_well(server):
        codes = check_grpc(server, seed=0, count=300)
    assert {"OK", "INVALID_ARGUMENT", "NOT_FOUND"} <= codes.keys()


def test_half_open_connections_do_not_delay_others(server: Running) -> None:
    """Hundreds of idle connections; other requests are answered."""
    opened = []
    with served_well(server):
        for number in range(200):
            connection = socket.create_connection(("127.0.0.1", server.port))
            text = b"POST /predict/linear HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n"
            connection.sendall(text[: 20 + number] + b"\r\n" * (number % 2) + b"[[1")
            opened.append(connection)
        time.sleep(0.5)
        for connection in opened:
            connection.close()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 26))
def test_soak(server: Running, seed: int) -> None:
    """100,000 requests, half of them over gRPC."""
    with served_well(server):
        check_http(server, seed, 2000)
        check_grpc(server, seed, 2000)
