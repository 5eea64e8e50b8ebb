"""``fxflow serve``: serves models over HTTP and gRPC until a signal stops it.

    fxflow serve models.py:digits --slo 20ms
    fxflow serve serving.toml

On SIGTERM and Ctrl-C the server answers the requests it has accepted, then exits. On
SIGHUP it reads its file again and reloads all models while the old ones serve. The exit
status is 0 after a signal, 1 if it cannot serve, 2 for a wrong command line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import json
import logging
import re
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fxflow.devices.clients import run_in_callers
from fxflow.distributed.processes import require_posix
from fxflow.errors import ServeError
from fxflow.serve.config import ServerConfig, read_config, read_keys, server_config
from fxflow.serve.containers.worker import freeze_heap
from fxflow.serve.metrics import Metrics
from fxflow.serve.protocol.connections import bounded_protocol
from fxflow.serve.protocol.front import Front
from fxflow.serve.protocol.http import application
from fxflow.serve.protocol.rpc import start_grpc
from fxflow.serve.ray import run_on_ray
from fxflow.serve.repository import Repository
from fxflow.serve.telemetry import Tracing, exporting

_log = logging.getLogger("fxflow.serve")
#: Connections waiting to be accepted; uvicorn's default.
_BACKLOG = 2048
#: Command-line options that set the server's options, and those that set the model's.
_SERVER_OPTIONS = (
    *("host", "port", "grpc_port", "keys", "tls_cert", "tls_key", "control", "rate"),
    *("log", "log_requests", "traces", "static"),
)
_MODEL_OPTIONS = (
    *("slo", "deadline", "batching", "max_batch", "delay", "replicas", "memory"),
    *("cache", "factory", "inline"),
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fxflow serve",
        description="Serve models over HTTP by the Open Inference Protocol v2.",
        epilog="Exit status: 0 if a signal stopped it, 1 if it cannot serve, 2 for a "
        "wrong command line.",
    )
    add = parser.add_argument
    add(
        "what",
        metavar="CONFIG|MODEL",
        help="serving.toml, model.fx, models.py:name, module:name, a folder",
    )
    add("--name", metavar="NAME", help="model name in requests (default: from MODEL)")
    add("--slo", metavar="TIME", help="latency objective (default 100ms)")
    add("--deadline", metavar="TIME", help="time limit of a request (default 5 × slo)")
    add(
        "--batching",
        choices=["aimd", "quantile", "fixed", "none"],
        help="policy for batch sizes (default aimd: as large as the objective allows)",
    )
    add("--max-batch", type=int, metavar="ROWS", help="rows in a batch (default 64)")
    add("--delay", metavar="TIME", help="how long a small batch waits for more rows")
    add("--replicas", type=int, metavar="N", help="processes per model (default 1)")
    add("--cache", metavar="SIZE", help="size of the prediction cache, such as 64MiB")
    add(
        "--inline",
        action="store_true",
        default=None,
        help="run the model in the server's process: for models that take microseconds",
    )
    add("--memory", metavar="SIZE", help="memory limit of a process, such as 2GiB")
    add(
        "--factory",
        action="store_true",
        default=None,
        help="MODEL names a function that returns the model",
    )
    add(
        "--input",
        action="append",
        default=[],
        metavar="NAME=TYPE",
        help="an input of a plain callable, such as x=f32[batch,4]; repeatable",
    )
    add(
        "--servers",
        metavar="HOST:PORT,...",
        help="parameter servers with the tables of MODEL, a folder",
    )
    add("--host", help="address to listen on (default 127.0.0.1: this machine only)")
    add("--port", type=int, help="HTTP port (default 8000; 0: any free port)")
    add(
        "--grpc-port",
        type=int,
        metavar="PORT",
        help="gRPC port (default: no gRPC; 0: any free port)",
    )
    add("--keys", metavar="FILE", help="API keys, one 'client key' per line")
    add("--tls-cert", metavar="FILE", help="TLS certificate (PEM)")
    add("--tls-key", metavar="FILE", help="TLS private key (PEM)")
    add("--rate", type=float, metavar="N", help="requests per second and client")
    add(
        "--control",
        action="store_true",
        default=None,
        help="let requests load and unload models",
    )
    add("--ray", metavar="ADDRESS", help="serve on a Ray cluster: auto, local, …")
    add("--log", choices=["text", "json"], help="log format (default text)")
    add(
        "--log-requests",
        choices=["all", "failed"],
        help="requests to log (default all)",
    )
    add("--traces", metavar="URL", help="collector that receives OTLP over HTTP")
    add("--static", metavar="FOLDER", help="files to serve without a key, at /app/")
    return parser


def config_of(options: argparse.Namespace) -> ServerConfig:
    """Returns the configuration that a command line describes.

    Args:
      options: the parsed command line.

    Returns:
      The configuration; command-line options override the file's.

    Raises:
      ServeError: the configuration is invalid.
    """
    given = {k: v for k, v in vars(options).items() if v is not None}
    model = {name: given[name] for name in _MODEL_OPTIONS if name in given}
    for text in options.input:
        name, equals, kind = text.partition("=")
        if not equals:
            raise ServeError(f"--input must be NAME=TYPE, got {text!r}")
        model.setdefault("inputs", {})[name] = kind
    if options.servers:
        model["arguments"] = {"servers": options.servers}
    tables: dict[str, Any]
    if options.what.endswith(".toml"):
        if model.keys() & {"inputs", "factory", "arguments"} or options.name:
            raise ServeError(
                "--name, --input, --factory and --servers are for a model, not a file"
            )
        tables = read_config(Path(options.what))
        for name, table in dict(tables.get("models") or {}).items():
            if isinstance(table, dict):
                tables["models"][name] = table | model
    else:
        name = options.name or _name_of(options.what)
        tables = {"models": {name or "model": {"source": options.what, **model}}}
    tables |= {name: given[name] for name in _SERVER_OPTIONS if name in given}
    return server_config(tables)


def _name_of(source: str) -> str:
    """Returns the default name of a model."""
    if source.endswith(".fx"):
        return re.sub(r"[^\w.]*\*.*", "", Path(source).stem)
    if Path(source).is_dir():
        return Path(source).resolve().name
    return source.rpartition(":")[2].rpartition(".")[2]


class _LogFormatter(logging.Formatter):
    """Formats each record as a line of text, or of JSON with the details as members."""

    def __init__(self, kind: str) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._json = kind == "json"

    def format(self, record: logging.LogRecord) -> str:
        details = getattr(record, "details", {})
        if not self._json:
            words = "".join(f" {name}={value!r}" for name, value in details.items())
            return super().format(record) + words
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **details,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _certificate(config: ServerConfig) -> tuple[bytes, bytes] | None:
    """Returns the key and the certificate after loading them; None without TLS."""
    if config.tls_cert is None or config.tls_key is None:
        return None
    pair = []
    for path in (config.tls_key, config.tls_cert):
        try:
            pair.append(Path(path).read_bytes())
        except OSError as error:
            raise ServeError(f"{path}: {error.strerror}") from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a password OpenSSL would prompt for one at the terminal.
        context.load_cert_chain(config.tls_cert, config.tls_key, password="")
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise ServeError(
            f"{config.tls_cert} and {config.tls_key} are not a PEM certificate and its "
            f"unencrypted key: {why}"
        ) from None
    return pair[0], pair[1]


def listeners(host: str, port: int, option: str) -> list[socket.socket]:
    """Returns sockets that listen at all addresses of a host.

    Args:
      host: a name or an address.
      port: 0 picks a free port.
      option: the command-line option for the port, named in errors.

    Raises:
      ServeError: a socket cannot listen; the message says why and what to do.
    """
    found: list[socket.socket] = []
    try:
        infos = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, address in dict.fromkeys(infos):
            made = socket.socket(family, kind, protocol)
            found.append(made)
            if sys.platform != "win32":
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # All addresses use the port that the first one got.
            made.bind((address[0], port, *address[2:]))
            made.listen(_BACKLOG)
            port = made.getsockname()[1]
    except OSError as error:
        for made in found:
            made.close()
        words = {
            errno.EADDRINUSE: f"another process listens there: give another port by "
            f"{option}, or 0 for any free port",
            errno.EACCES: f"this user lacks permission: give a port from 1024 to "
            f"65535 by {option}",
            errno.EADDRNOTAVAIL: "this machine does not have that address (--host)",
        }
        why = words.get(error.errno or 0, error.strerror or str(error))
        raise ServeError(f"cannot listen at {host}:{port}: {why}") from None
    return found


async def serve(config: ServerConfig, options: argparse.Namespace) -> int:
    """Serves until a signal stops it.

    Args:
      config: the server's configuration.
      options: the parsed command line, from which SIGHUP rebuilds the configuration.

    Returns:
      The exit status.

    Raises:
      ServeError: uvicorn is not installed, or the server cannot listen.
    """
    return await _Serving(config, options).run()


class _Serving:
    """The process of `fxflow serve`: models, HTTP, gRPC and signals."""

    def __init__(self, config: ServerConfig, options: argparse.Namespace) -> None:
        self._config, self._options = config, options
        metrics = Metrics()
        self._repository = Repository(config.models, metrics)
        keys, self._certificate = read_keys(config.keys), _certificate(config)
        self._spans: Any = None
        tracer: Any = None
        if config.traces:
            self._spans, tracer = exporting(config.traces)
        self._front = Front(
            self._repository,
            metrics,
            limits=config.request_limits(),
            keys=keys,
            control=config.control,
            tracing=Tracing(tracer),
        )
        self._http = self._uvicorn()
        self._stopping = asyncio.Event()
        self._reloads: set[asyncio.Task[None]] = set()

    def _uvicorn(self) -> Any:
        try:
            import uvicorn
        except ImportError:
            raise ServeError(
                "serving needs uvicorn: pip install 'fxflow[serve]'"
            ) from None

        class Server(uvicorn.Server):
            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield  # `_Serving.run` handles signals, to drain the models too

        config = self._config
        app = application(self._front, config.static)
        return Server(
            uvicorn.Config(
                app,
                host=config.host,
                port=config.port,
                loop="asyncio",
                lifespan="off",
                ws="none",
                http=bounded_protocol(prepare=app.prepare),
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=30,
                ssl_certfile=config.tls_cert,
                ssl_keyfile=config.tls_key,
            )
        )

    async def run(self) -> int:
        """Serves until a signal stops it, and returns the exit status."""
        require_posix("fxflow serve")
        run_in_callers()  # for models in this process
        loop = asyncio.get_running_loop()
        handlers: dict[int, Callable[[], None]] = {
            signal.SIGTERM: self._stopping.set,
            signal.SIGINT: self._stopping.set,
            signal.SIGHUP: self._begin_reload,
        }
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            return await self._serve()
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)

    async def _serve(self) -> int:
        config, loop = self._config, asyncio.get_running_loop()
        sockets = listeners(config.host, config.port, "--port")
        try:
            rpc = await self._start_grpc()
        except BaseException:
            for made in sockets:
                made.close()
            raise
        listening = loop.create_task(self._http.serve(sockets))
        stop = loop.create_task(self._stopping.wait())
        loading = loop.create_task(
            self._repository.configure(config.models, config.groups)
        )
        status = 0
        try:
            # While models load, the server answers only health checks.
            await asyncio.wait(
                [loading, stop, listening], return_when=asyncio.FIRST_COMPLETED
            )
            if loading.done() and not self._stopping.is_set():
                faults = loading.result()
                for fault in faults:
                    _log.error("%s", fault)
                if faults:
                    status = 1
                else:
                    freeze_heap()
                    await self._announce(sockets, listening)
                    await asyncio.wait(
                        [stop, listening], return_when=asyncio.FIRST_COMPLETED
                    )
        finally:
            loading.cancel()
            stop.cancel()
            if not await self._stop(listening, rpc):
                status = 1
        return status

    async def _start_grpc(self) -> Any:
        """Starts gRPC if the configuration has a port for it."""
        config = self._config
        if config.grpc_port is None:
            return None
        # grpcio does not say why it cannot listen.
        for made in listeners(config.host, config.grpc_port, "--grpc-port"):
            made.close()
        rpc, port = await start_grpc(
            self._front,
            f"{config.host}:{config.grpc_port}",
            certificate=self._certificate,
        )
        _log.info("gRPC at %s:%d", config.host, port)
        return rpc

    async def _announce(
        self, sockets: list[socket.socket], listening: asyncio.Task[None]
    ) -> None:
        """Logs the models and their address once HTTP has started."""
        while not self._http.started and not listening.done():
            await asyncio.sleep(0.01)
        if self._http.started:
            kind = "https" if self._config.tls_cert else "http"
            port = sockets[0].getsockname()[1]
            names = ", ".join((*self._repository.configs, *self._repository.groups))
            _log.info("%s at %s://%s:%d", names, kind, self._config.host, port)

    async def _stop(self, listening: asyncio.Task[None], rpc: Any) -> bool:
        """Drains and stops everything; returns whether HTTP had started."""
        started = True
        if self._stopping.is_set():
            _log.info("draining")
        self._http.should_exit = True
        # uvicorn exits the process itself if it cannot listen.
        with contextlib.suppress(SystemExit, asyncio.CancelledError):
            await listening
            started = self._http.started
        if rpc is not None:
            await rpc.stop(30)
        for task in self._reloads:
            task.cancel()
        await self._repository.drain()
        if self._spans is not None:
            await asyncio.to_thread(self._spans.shutdown)
        return started

    def _begin_reload(self) -> None:
        task = asyncio.get_running_loop().create_task(self._reload())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def _reload(self) -> None:
        try:
            new = config_of(self._options)
            faults = await self._repository.configure(new.models, new.groups)
        except ServeError as error:
            faults = [str(error)]
        for fault in faults:
            _log.error("not reloaded: %s", fault)
        if not faults:
            freeze_heap()
            _log.info("all models were reloaded")


def _serve_on_ray(config: ServerConfig, address: str) -> int:
    ended = threading.Event()

    def wait() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ended.set())
        names = ", ".join(model.name for model in config.models)
        _log.info("%s on Ray at http://%s:%d", names, config.host, config.port)
        ended.wait()
        _log.info("draining")

    run_on_ray(config, address, wait)
    return 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Returns uvloop's event loop factory, or None if uvloop is not installed."""
    try:
        import uvloop
    except ImportError:
        return None
    made: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``fxflow serve``.

    Args:
      argv: the arguments; None: those of the process.

    Returns:
      The exit status.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        config = config_of(options)
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_LogFormatter(config.log))
        for name in ("fxflow.serve", "uvicorn.error"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [handler], False
            # `_announce` and `_stop` log what uvicorn would at INFO.
            logger.setLevel(logging.INFO if name[0] == "f" else logging.WARNING)
        # Logging a request takes as long as the rest of its handling.
        logging.getLogger("fxflow.serve.requests").setLevel(
            logging.INFO if config.log_requests == "all" else logging.WARNING
        )
        if options.ray:
            return _serve_on_ray(config, options.ray)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(serve(config, options))
    except ServeError as error:
        print(f"fxflow serve: {error}", file=sys.stderr)
        return 1
