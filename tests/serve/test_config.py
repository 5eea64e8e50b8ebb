"""Files and options of `fxflow serve`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.config import (
    read_config,
    read_keys,
    seconds,
    server_config,
    size,
)
from fxflow.serve.selector import SelectorConfig
from fxflow.serve.versions import VersionsConfig

FILE = """
port = 0
slo = "20ms"
rate = 5

[models.a]
source = "m.py:a"
replicas = 2
memory = "2GiB"
outputs = ["y"]

[models.b]
source = "m:b"
slo = 1.5
factory = true
arguments = {depth = 3}
"""


TWO = {"a": {"source": "m:a"}, "b": {"source": "m:b"}}


def group(**options: Any) -> dict[str, Any]:
    return {"models": TWO, "selectors": {"g": {"models": ["a", "b"], **options}}}


def rollout(**options: Any) -> dict[str, Any]:
    table = {"stable": "a", "candidate": "b", **options}
    return {"models": TWO, "rollouts": {"g": table}}


def test_tables_of_groups_are_read() -> None:
    config = server_config(
        group(slo="20ms", within="1m", combine="numpy:max", loss="squared")
        | {"rollouts": {"r": {"stable": "a", "candidate": "b", "slow": "50ms"}}}
    )
    selector, versions = config.groups
    assert isinstance(selector, SelectorConfig) and isinstance(versions, VersionsConfig)
    assert (selector.name, selector.models, selector.slo) == ("g", ("a", "b"), 0.02)
    assert (selector.within, selector.combine, selector.loss) == (60, np.max, "squared")
    assert versions.models == ("a", "b") and versions.plan.slow == 0.05


def test_a_file_configures_models_and_server(tmp_path: Path) -> None:
    path = tmp_path / "serving.toml"
    path.write_text(FILE)
    config = server_config(read_config(path))
    a, b = config.models
    assert (config.port, config.rate, config.host) == (0, 5, "127.0.0.1")
    assert (a.slo, a.replicas, a.source.memory) == (0.02, 2, 2 << 30)
    assert a.source.outputs == ("y",)
    assert (b.slo, b.source.factory, b.source.arguments) == (1.5, True, {"depth": 3})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs a table"),
        ({"models": {"a": {}}}, r"models\.a\.source is missing"),
        ({"models": {"a": 3}}, "must be a table, got 3"),
        ({"models": {"a b": {}}}, "letters, digits"),
        ({"models": {"a": {"source": "m:a"}}, "prot": 1}, "prot: unknown option"),
        (
            {"models": {"a": {"source": "m:a", "sol": 1}}},
            r"a\.sol: unknown option; did you mean 'slo'\?",
        ),
        ({"models": {"a": {"source": "m:a", "slo": "20 mins"}}}, r"a\.slo: a time"),
        ({"models": {"a": {"source": "m:a", "replicas": "2"}}}, "must be int, got '2'"),
        ({"models": {"a": {"source": "m:a", "replicas": True}}}, "must be int"),
        ({"models": {"a": {"source": "m:a", "replicas": 0}}}, "must be above 0"),
        ({"models": {"a": {"source": "m:a", "streams": 0}}}, "must be above 0"),
        ({"models": {"a": {"source": "m:a", "duration": "0s"}}}, "must be above 0"),
        ({"models": {"a": {"source": "m:a", "batching": "best"}}}, "got 'best'"),
        ({"models": {"a": {"source": "m:a", "devices": ["gpu"]}}}, "got 'gpu'"),
        ({"models": {"a": {"source": "m:a"}}, "log": "xml"}, "'text' or 'json'"),
        ({"models": {"a": {"source": "m:a"}}, "log_requests": "no"}, "'failed', got"),
        ({"models": {"a": {"source": "m:a"}}, "tls_key": "k"}, "needs both"),
        (group(models=["a"]), r"selectors\.g\.models must be at least two different"),
        (group(models=["a", "z"]), "unknown model 'z'; models: 'a', 'b'"),
        (group(models=["a", 3]), r"must be tuple\[str, ...\], got 3 in it"),
        (group(models="ab"), "must be tuple"),
        (group(policy="best"), r"selectors\.g: policy must be .* got 'best'"),
        (
            group(plicy="exp3"),
            r"selectors\.g\.plicy: unknown option; did you mean 'policy'",
        ),
        (group(policy="exp3", explore=3), "explore must be from 0"),
        (
            group(explore=0.1),
            "'exp4' has no option 'explore'; options: 'rate', 'window'",
        ),
        (group(policy="thompson", rate=1), "has no option 'rate'; options: 'window'"),
        (group(window=0), "window must be at least 1 loss"),
        (group(deadline="0s"), "deadline must be above 0"),
        (group(contexts=0), r"selectors\.g\.contexts must be above 0, got 0"),
        (group(slo="0s"), "slo must be above 0"),
        (group(tolerance=float("nan")), "tolerance must be above"),
        (group(combine="best"), r"combine must be 'vote', 'mean' or a function as"),
        (group(combine="none_such:f"), "No module named 'none_such'"),
        (group(loss="math:none"), "there is no function 'math:none'"),
        (group(stragglers="wait"), "'drop' or 'substitute'"),
        (group(store="http://x"), "store: Redis URL"),
        (
            {"models": TWO, "selectors": {"a": {}}},
            r"selectors\.a: models\.a has this",
        ),
        ({"models": TWO, "selectors": {"g h": {}}}, "letters, digits"),
        ({"models": TWO, "selectors": []}, "selectors must be tables by name"),
        ({"models": TWO, "rollouts": {"g": 3}}, r"rollouts\.g must be a table"),
        (rollout(candidate="z"), "unknown model 'z'"),
        (rollout(candidate="a"), "two different models"),
        (rollout(shares=[0.5, 0.1]), "and rise; got"),
        (rollout(shares=[]), "shares must be"),
        (rollout(shares=[float("nan")]), "shares must be"),
        (rollout(by="moon"), "'request' or 'client', got 'moon'"),
        (rollout(least=0), "least must be above 0"),
        (rollout(window=3), "window must be at least 20"),
        (rollout(speed=3), r"rollouts\.g\.speed: unknown option"),
    ],
)
def test_invalid_options_are_refused_by_name(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ServeError, match=words):
        server_config(options)


def test_times_and_sizes_have_units() -> None:
    assert [seconds(t) for t in ("20ms", "1 s", 2)] == [0.02, 1.0, 2.0]
    assert [size(t) for t in ("3kB", "3KiB", "1.5MiB", "7")] == [3000, 3072, 1572864, 7]
    for bad in ("", "ms", "-1s", "1h", True, None):
        with pytest.raises(ServeError, match="a time must be"):
            seconds(bad)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="No such file"):
        read_config(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = ")
    with pytest.raises(ServeError, match=r"bad\.toml"):
        read_config(tmp_path / "bad.toml")


def test_files_of_keys_are_read(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("# who may ask\nalice 0123456789abcdef\n\nbob  fedcba9876543210\n")
    assert read_keys(str(path)) == {
        "alice": "0123456789abcdef",
        "bob": "fedcba9876543210",
    }
    assert read_keys(None) == {}
    path.write_text("alice short\n")
    with pytest.raises(ServeError, match="keys:1: a line must be 'client key'"):
        read_keys(str(path))
    path.write_text("\n")
    with pytest.raises(ServeError, match="no key in this file"):
        read_keys(str(path))
