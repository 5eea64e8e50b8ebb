"""The configuration of `fxflow serve`: a TOML file, or a model and options.

port = 8000
slo = "20ms"                       # of models without their own

[models.digits]
source = "models.py:digits"
replicas = 2

[selectors.best]                   # models under one name, chosen by feedback
models = ["digits", "others"]

[rollouts.next]                    # a candidate next to the stable version
stable = "digits"
candidate = "digits-2"
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import math
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fxflow.errors import ServeError
from fxflow.serve.containers.replica import ModelSource, placement_of
from fxflow.serve.protocol.front import ClientLimits, RequestLimits
from fxflow.serve.repository import GroupConfig
from fxflow.serve.selection import ensembles, losses
from fxflow.serve.selection.policies import POLICIES, selection_policy
from fxflow.serve.selector import SelectorConfig
from fxflow.serve.service import ModelConfig
from fxflow.serve.store import RedisStore
from fxflow.serve.versions import RolloutPlan, VersionsConfig

_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "": 1.0}
_BYTES = dict.fromkeys(("", "B"), 1) | {
    f"{prefix}{unit}": base**power
    for unit, base in (("B", 1000), ("iB", 1024))
    for power, prefix in enumerate("kMG" if base == 1000 else "KMG", 1)
}
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Zµ]*)\s*")


def _parse(value: Any, units: Mapping[str, float], what: str) -> float:
    match = _NUMBER.fullmatch(str(value))
    if isinstance(value, bool) or not match or match[2] not in units:
        known = ", ".join(unit for unit in units if unit)
        raise ServeError(f"{what} must be a number with one of {known}, got {value!r}")
    return float(match[1]) * units[match[2]]


def seconds(value: Any) -> float:
    """Returns the seconds in a time such as ``20ms``.

    Args:
      value: a string, or a number of seconds.

    Returns:
      Seconds.

    Raises:
      ServeError: `value` is not a time.

    Example:
      >>> seconds("20ms"), seconds(1.5), seconds("2m")
      (0.02, 1.5, 120.0)
    """
    return _parse(value, _SECONDS, "a time")


def size(value: Any) -> int:
    """Returns the bytes in a size such as ``2GiB``.

    Args:
      value: a string, or a number of bytes.

    Returns:
      Bytes.

    Raises:
      ServeError: `value` is not a size.

    Example:
      >>> size("2GiB"), size(100)
      (2147483648, 100)
    """
    return int(_parse(value, _BYTES, "a size"))


@dataclass(frozen=True)
class ServerConfig:
    """Configures a server: its models, addresses and limits.

    Attributes:
      models: configuration of each model.
      groups: configuration of each group of models.
      host, port: the HTTP address; port 0 picks a free port.
      grpc_port: the gRPC port; 0 picks a free port, None disables gRPC.
      keys: file of API keys, one ``client key`` per line; None: no authentication.
      tls_cert, tls_key: PEM files; None: no TLS.
      control: whether requests may load and unload models.
      max_body: most bytes of one request.
      rate, burst: token bucket of each client, in requests per second and requests at
        once; rate 0: unlimited.
      log: log format, ``text`` or ``json``.
      log_requests: requests to log, ``all`` or ``failed``.
      traces: URL of a collector that receives OTLP over HTTP; None: no traces.
      static: folder to serve without a key under ``/app/``; None: no folder.
    """

    models: tuple[ModelConfig, ...] = ()
    groups: tuple[GroupConfig, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8000
    grpc_port: int | None = None
    keys: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    control: bool = False
    max_body: int = 64 << 20
    rate: float = 0.0
    burst: int = 10
    log: str = "text"
    log_requests: str = "all"
    traces: str | None = None
    static: str | None = None

    def request_limits(self) -> RequestLimits:
        """Returns the limits of requests, with all token buckets full."""
        clients = ClientLimits(self.rate, self.burst)
        return RequestLimits(self.max_body, 8 * self.max_body, clients=clients)


#: Parsers of the options that have a unit.
_PARSERS: dict[str, Callable[[Any], float]] = {
    **dict.fromkeys(("slo", "deadline", "delay", "hang", "load_timeout"), seconds),
    **dict.fromkeys(("slow", "store_timeout", "within", "duration"), seconds),
    **dict.fromkeys(("cache", "memory", "max_body", "max_batch_bytes"), size),
}
_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "float": (int, float),
    "tuple[str, ...]": (list, tuple),
    "tuple[float, ...]": (list, tuple),
    # A file names a function as module:name.
    "str | ensembles.Combine": (str,),
    "str | losses.Loss": (str,),
    "Mapping[str, Any]": (dict,),
    "Mapping[str, str]": (dict,),
}


def _fields(kind: Any, without: tuple[str, ...] = ()) -> dict[str, str]:
    return {
        f.name: str(f.type) for f in dataclasses.fields(kind) if f.name not in without
    }


_MODEL_FIELDS = _fields(ModelConfig, ("name", "source"))
_SOURCE_FIELDS = _fields(ModelSource)
_SERVER_FIELDS = _fields(ServerConfig, ("models", "groups"))
_SELECTOR_FIELDS = _fields(SelectorConfig, ("name", "policy")) | {"policy": "str"}
#: Options of a selector that belong to its policy.
_POLICY_FIELDS = {
    k: v for policy in POLICIES.values() for k, v in _fields(policy).items()
}
_VERSIONS_FIELDS = _fields(VersionsConfig, ("name", "plan"))
_PLAN_FIELDS = _fields(RolloutPlan)
#: Options of a model that a file may set at the top level, as defaults of all models.
_SHARED = (
    *(_MODEL_FIELDS.keys() - {"version"}),
    *("max_batch", "memory", "load_timeout"),
)


def _checked(place: str, name: str, value: Any, kind: str) -> Any:
    if name in _PARSERS:
        try:
            return _PARSERS[name](value)
        except ServeError as error:
            raise ServeError(f"{place}{name}: {error}") from None
    kind = kind.removesuffix(" | None")
    kinds: Any = _KINDS[kind]
    if not isinstance(value, kinds) or (bool not in kinds and isinstance(value, bool)):
        raise ServeError(f"{place}{name} must be {kind}, got {value!r}")
    if not kind.startswith("tuple"):
        return value
    item = _KINDS[kind[6:].partition(",")[0]]
    for found in value:
        if not isinstance(found, item) or isinstance(found, bool):
            raise ServeError(f"{place}{name} must be {kind}, got {found!r} in it")
    return tuple(value)


def _options(
    place: str, given: Mapping[str, Any], *tables: Mapping[str, str]
) -> tuple[dict[str, Any], ...]:
    """Returns the options, checked and divided among the tables of known options."""
    found: tuple[dict[str, Any], ...] = tuple({} for _ in tables)
    for option, value in given.items():
        for kinds, values in zip(tables, found, strict=True):
            if option in kinds:
                values[option] = _checked(place, option, value, kinds[option])
                break
        else:
            near = difflib.get_close_matches(option, {k for t in tables for k in t}, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ServeError(f"{place}{option}: unknown option{hint}")
    return found


def _check_name(kind: str, name: str) -> None:
    if not re.fullmatch(r"[\w.-]+", name):
        raise ServeError(
            f"a {kind}'s name may have only letters, digits and '._-', got {name!r}"
        )


def _ranges(place: str, config: Any, least: Mapping[str, float]) -> None:
    for option, bound in least.items():
        found = getattr(config, option)
        if found is not None and not bound < found < math.inf:
            raise ServeError(f"{place}{option} must be above {bound:g}, got {found}")


def _one_of(place: str, config: Any, option: str, *names: str) -> None:
    found = getattr(config, option)
    if found not in names:
        *most, last = map(repr, names)
        raise ServeError(
            f"{place}{option} must be {', '.join(most)} or {last}, got {found!r}"
        )


def _function(place: str, name: str, text: str, names: tuple[str, ...]) -> Any:
    """Returns `text` if it is in `names`, else the function ``module:name``."""
    if text in names:
        return text
    module, _, attribute = text.rpartition(":")
    if not module:
        raise ServeError(
            f"{place}{name} must be {', '.join(map(repr, names))} or a function as "
            f"'module:name', got {text!r}"
        )
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError as error:
        raise ServeError(f"{place}{name}: {error}") from None
    if not callable(found):
        raise ServeError(f"{place}{name}: there is no function {text!r}")
    return found


def _check_models(place: str, models: Collection[str], known: Collection[str]) -> None:
    if len(models) < 2 or len(set(models)) != len(models):
        raise ServeError(
            f"{place}models must be at least two different models, got {list(models)}"
        )
    if unknown := [m for m in models if m not in known]:
        raise ServeError(
            f"{place}models: unknown model {unknown[0]!r}; models: "
            f"{', '.join(map(repr, known))}"
        )


def selector_config(
    name: str, options: Mapping[str, Any], models: Collection[str]
) -> SelectorConfig:
    """Returns the configuration of a selector.

    Args:
      name: the selector's name in requests.
      options: its table in the file.
      models: names of the server's models.

    Returns:
      The configuration.

    Raises:
      ServeError: an option is unknown, of another type or out of range.

    Example:
      >>> config = selector_config("m", {"models": ["a", "b"]}, ["a", "b", "c"])
      >>> config.policy, config.models
      (Exp4(window=1000.0, rate=None), ('a', 'b'))
    """
    place = f"selectors.{name}."
    _check_name("selector", name)
    found, of_policy = _options(place, options, _SELECTOR_FIELDS, _POLICY_FIELDS)
    found.setdefault("models", ())
    try:
        policy = selection_policy(found.pop("policy", "exp4"), **of_policy)
    except ValueError as error:
        raise ServeError(f"{place[:-1]}: {error}") from None
    for option, names in (("combine", ensembles.NAMES), ("loss", losses.NAMES)):
        if option in found:
            found[option] = _function(place, option, found[option], names)
    config = SelectorConfig(name, policy=policy, **found)
    _check_models(place, config.models, models)
    above = ("slo", "deadline", "contexts", "journal", "within", "store_timeout")
    _ranges(place, config, dict.fromkeys(above, 0) | {"tolerance": -1e-300})
    _one_of(place, config, "stragglers", "drop", "substitute")
    if config.store:
        RedisStore(config.store, "", (), 1, 1.0)  # raises if redis or the URL is wrong
    return config


def rollout_config(
    name: str, options: Mapping[str, Any], models: Collection[str]
) -> VersionsConfig:
    """Returns the configuration of a rollout.

    Args:
      name: the rollout's name in requests.
      options: its table in the file, including the options of `RolloutPlan`.
      models: names of the server's models.

    Returns:
      The configuration.

    Raises:
      ServeError: an option is unknown, of another type or out of range.

    Example:
      >>> options = {"stable": "a", "candidate": "b", "shares": [0.5, 1]}
      >>> rollout_config("m", options, ["a", "b"]).plan.shares
      (0.5, 1)
    """
    place = f"rollouts.{name}."
    _check_name("rollout", name)
    own, plan = _options(place, options, _VERSIONS_FIELDS, _PLAN_FIELDS)
    own = {"stable": "", "candidate": ""} | own
    config = VersionsConfig(name, plan=RolloutPlan(**plan), **own)
    _check_models(place, config.models, models)
    shares = config.plan.shares
    if (
        not shares
        or not all(0 <= s <= 1 for s in shares)
        or list(shares) != sorted(shares)
    ):
        raise ServeError(
            f"{place}shares must be from 0 (shadow) to 1, and rise; got {list(shares)}"
        )
    least = dict.fromkeys(("least", "window", "hold", "slow", "least_labels"), 0.0)
    _ranges(place, config.plan, {**least, "labels": 0, "max_auc_loss": -1e-300})
    least = dict.fromkeys(("copies", "deadline", "journal", "within"), 0.0)
    _ranges(place, config, {**least, "tolerance": -1e-300})
    if config.plan.window < config.plan.least:
        raise ServeError(f"{place}window must be at least {config.plan.least}, 'least'")
    _one_of(place, config, "by", "request", "client")
    return config


def model_config(name: str, options: Mapping[str, Any]) -> ModelConfig:
    """Returns the configuration of a model.

    Args:
      name: the model's name.
      options: its table in the file.

    Returns:
      The configuration.

    Raises:
      ServeError: an option is unknown, of another type or out of range.

    Example:
      >>> config = model_config("m", {"source": "numpy:sin", "slo": "20ms"})
      >>> config.slo, config.source.source
      (0.02, 'numpy:sin')
    """
    place = f"models.{name}."
    _check_name("model", name)
    of_model, of_source = _options(place, options, _MODEL_FIELDS, _SOURCE_FIELDS)
    if "source" not in of_source:
        raise ServeError(f"{place}source is missing, such as 'models.py:digits'")
    config = ModelConfig(name, ModelSource(**of_source), **of_model)
    above = ("replicas", "capacity", "slo", "duration", "deadline", "hang")
    _ranges(place, config, dict.fromkeys((*above, "journal", "within"), 0))
    _ranges(place, config.source, {"max_batch": 0, "streams": 0})
    for device in config.devices:
        try:
            placement_of(device)
        except ServeError as error:
            raise ServeError(f"{place}devices: {error}") from None
    _one_of(place, config, "batching", "aimd", "quantile", "fixed", "none")
    return config


def server_config(options: Mapping[str, Any]) -> ServerConfig:
    """Returns the configuration of a server.

    Args:
      options: the tables of the file.

    Returns:
      The configuration.

    Raises:
      ServeError: an option is unknown or of another type, or there is no model.
    """
    rest = dict(options)
    models = rest.pop("models", {})
    selectors, rollouts = rest.pop("selectors", {}), rest.pop("rollouts", {})
    if not isinstance(models, dict) or not models:
        raise ServeError("no models: the file needs a table [models.NAME]")
    shared = {name: rest.pop(name) for name in _SHARED if name in rest}
    (found,) = _options("", rest, _SERVER_FIELDS)
    tables = {"models": models, "selectors": selectors, "rollouts": rollouts}
    seen: dict[str, str] = {}
    for kind, named in tables.items():
        if not isinstance(named, dict):
            raise ServeError(f"{kind} must be tables by name, got {named!r}")
        for name, table in named.items():
            if not isinstance(table, dict):
                raise ServeError(f"{kind}.{name} must be a table, got {table!r}")
            if name in seen:
                raise ServeError(f"{kind}.{name}: {seen[name]}.{name} has this name")
            seen[name] = kind
    config = ServerConfig(
        models=tuple(model_config(n, shared | table) for n, table in models.items()),
        groups=(
            *(selector_config(n, t, models) for n, t in selectors.items()),
            *(rollout_config(n, t, models) for n, t in rollouts.items()),
        ),
        **found,
    )
    _one_of("", config, "log", "text", "json")
    _one_of("", config, "log_requests", "all", "failed")
    if bool(config.tls_cert) != bool(config.tls_key):
        raise ServeError("TLS needs both tls_cert and tls_key")
    return config


def read_config(path: Path) -> dict[str, Any]:
    """Returns the tables of a configuration file.

    Args:
      path: a TOML file.

    Returns:
      Its tables.

    Raises:
      ServeError: the file cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ServeError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ServeError(f"{path}: {error}") from None


def read_keys(path: str | None) -> dict[str, str]:
    """Returns the API keys in a file of lines ``client key``.

    Args:
      path: the file; None: no keys.

    Returns:
      Client → key.

    Raises:
      ServeError: the file cannot be read, has no key, or has a malformed line.
    """
    if path is None:
        return {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ServeError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ServeError(f"{path}: {error}") from None
    keys: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or len(words[1]) < 16:
            raise ServeError(
                f"{path}:{number}: a line must be 'client key', with a key of at "
                "least 16 characters"
            )
        keys[words[0]] = words[1]
    if not keys:
        raise ServeError(f"{path}: no key in this file")
    return keys
