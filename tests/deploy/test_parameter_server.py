"""The manifests of deploy/kubernetes/parameter-server say what fxflow reads."""

import re
import shlex
from typing import Any

import pytest

from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.parameter_server import cluster_of
from fxflow.distributed.parameter_server.command import _parser

from .checkout import check_command, check_program, known_variables
from .manifests import CONTAINERFILE, INDEX, KUBERNETES, RENDERED, Manifest

README = (KUBERNETES / "parameter-server" / "README.md").read_text()
PORT = 7000
KEYS = Keys("a" * 40, "b" * 40, "c" * 40, "d" * 40)
COMPONENTS = ["ps", "chief", "worker", "tensorboard", "jupyter"]


def of(component: str, *kinds: str) -> Manifest:
    (found,) = [
        m
        for m in RENDERED["parameter-server"]
        if m["metadata"]["labels"].get("app.kubernetes.io/component") == component
        and m["kind"] in (kinds or ("Job", "StatefulSet", "Deployment"))
    ]
    return found


def pod(component: str) -> Any:
    return of(component)["spec"]["template"]["spec"]


def box(component: str) -> Any:
    (found,) = pod(component)["containers"]
    return found


def variables(component: str, index: int = 0) -> dict[str, str]:
    """A pod's variables, as Kubernetes makes them."""
    found: dict[str, str] = {}
    for entry in box(component).get("env", ()):
        source = entry.get("valueFrom", {})
        if ref := source.get("secretKeyRef"):
            keys = {"server": KEYS, "client": KEYS.for_clients()}
            text = keys[ref["key"]].to_text() if ref["name"] == "train-keys" else "x"
            value = text + "\n"
        elif ref := source.get("fieldRef"):
            stateful = "metadata.labels['apps.kubernetes.io/pod-index']"
            assert ref["fieldPath"] == (stateful if component == "ps" else INDEX)
            value = str(index)
        else:
            value = re.sub(r"\$\((\w+)\)", lambda m: found[m[1]], entry["value"])
        found[entry["name"]] = value
    return found


@pytest.mark.parametrize("component", ["chief", "worker", "jupyter"])
def test_trainers_know_the_cluster(component: str) -> None:
    count = of("worker")["spec"]["completions"]
    assert of("worker")["spec"]["parallelism"] == count
    replicas = of("ps")["spec"]["replicas"]
    for index in range(count if component == "worker" else 1):
        given = variables(component, index)
        assert {n for n in given if n.startswith("FXFLOW_")} <= known_variables()
        cluster = cluster_of(None, given)
        assert cluster is not None
        name, service = of("ps")["metadata"]["name"], of("ps", "Service")["metadata"]
        assert cluster.servers == tuple(
            f"{name}-{i}.{service['name']}:{PORT}" for i in range(replicas)
        )
        assert of("ps")["spec"]["serviceName"] == service["name"]
        assert cluster.keys == KEYS.for_clients()
        assert len(cluster.trainers) == count + 1
        expected = {"chief": 0, "worker": index + 1, "jupyter": count + 1}[component]
        assert cluster.rank == expected


def test_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables("ps", 1).items():
        monkeypatch.setenv(name, value)
    program, *command = box("ps")["args"]
    assert (program, command[0]) == ("fxflow", "parameter-server")
    options = _parser().parse_args(command[1:])
    assert (options.number, len(options.servers.split(","))) == (1, 2)
    assert options.listen == f"*:{PORT}"
    paths = {mount["name"]: mount["mountPath"] for mount in box("ps")["volumeMounts"]}
    (claim,) = of("ps")["spec"]["volumeClaimTemplates"]
    assert paths[claim["metadata"]["name"]] == str(options.folder)
    assert [p["containerPort"] for p in box("ps")["ports"]] == [PORT]
    joined = box("worker")["readinessProbe"]["exec"]["command"][2]
    assert joined == f":{PORT:04X} 01 "


@pytest.mark.parametrize("component", ["chief", "worker"])
def test_programs_are_in_the_image(component: str) -> None:
    pytest.importorskip("tqdm", reason="pip install fxflow[examples]")
    first, *command = box(component)["args"]
    assert first == "python"
    check_program(command)


@pytest.mark.parametrize("component", ["ps", "tensorboard", "jupyter"])
def test_services_find_pods(component: str) -> None:
    service = of(component, "Service")["spec"]
    labels = of(component)["spec"]["template"]["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()
    assert of(component)["spec"]["selector"]["matchLabels"] == service["selector"]
    ports = {p["name"]: p["containerPort"] for p in box(component)["ports"]}
    (port,) = service["ports"]
    assert ports[port["name"]] == port["port"]
    assert (service.get("clusterIP") == "None") == (component == "ps")


@pytest.mark.parametrize("component", COMPONENTS)
def test_pods(component: str) -> None:
    spec, container = pod(component), box(component)
    assert not spec["automountServiceAccountToken"] and not spec["enableServiceLinks"]
    user = re.search(r"^USER (\d+):(\d+)$", CONTAINERFILE, re.MULTILINE)
    assert user and spec["securityContext"]["runAsUser"] == int(user[1])
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["image"] == "fxflow:ps"
    assert container["livenessProbe"] and container["readinessProbe"]
    resources = container["resources"]
    assert resources["limits"]["memory"] == resources["requests"]["memory"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    claims = of(component)["spec"].get("volumeClaimTemplates", ())
    volumes = [*spec["volumes"], *(claim["metadata"] for claim in claims)]
    assert mounted == {volume["name"] for volume in volumes}


def test_readme() -> None:
    blocks = re.findall(r"^```bash\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    commands = [shlex.split(line) for text in blocks for line in text.splitlines()]
    for words in commands:
        if words[0] == "fxflow":
            check_command(words[1:])
    (build,) = [words for words in commands if words[:2] == ["docker", "build"]]
    for argument in re.findall(r"--build-arg (\w+)=", " ".join(build)):
        assert f"ARG {argument}=" in CONTAINERFILE
    secrets = {
        (words[4], word.partition("=")[2].partition("=")[0])
        for words in commands
        if words[:3] == ["kubectl", "create", "secret"]
        for word in words
        if word.startswith("--from-file")
    }
    used = {
        (
            entry["valueFrom"]["secretKeyRef"]["name"],
            entry["valueFrom"]["secretKeyRef"]["key"],
        )
        for component in COMPONENTS
        for entry in box(component).get("env", ())
        if "secretKeyRef" in entry.get("valueFrom", {})
    }
    assert used == secrets
    for name in re.findall(r"`(\w+\.yaml)`", README):
        assert (KUBERNETES / "parameter-server" / name).is_file()
