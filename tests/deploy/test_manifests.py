"""The manifests of deploy/kubernetes are valid, and say what fxflow reads.

`manifests.py` renders the overlays, so they are checked on every machine; where kubectl
is installed, its result is compared too.
"""

import copy
import re
import shutil
import subprocess
from typing import Any

import jsonschema
import pytest
import yaml

from fxflow.distributed.clusters import detect

from .checkout import ROOT, check_command, check_program, known_variables
from .manifests import (
    CONTAINERFILE,
    FOLDERS,
    INDEX,
    KUBERNETES,
    OVERLAYS,
    RENDERED,
    SCHEMAS,
    Manifest,
    errors,
    key_of,
    load,
)

# -- overlays --------------------------------------------------------------------------


def ordered(value: Any) -> Any:
    """A value whose named lists are in the order of names."""
    if isinstance(value, dict):
        return {k: ordered(v) for k, v in value.items()}
    if isinstance(value, list):
        result = [ordered(v) for v in value]
        return sorted(result, key=key_of) if all(map(key_of, result)) else result
    return value


def from_jobset() -> list[Manifest]:
    """What the controller makes of the JobSet."""
    (jobset,) = load(KUBERNETES / "jobset.yaml")
    name, spec = jobset["metadata"]["name"], jobset["spec"]
    subdomain = spec["network"]["subdomain"]
    made: list[Manifest] = []
    for job in spec["replicatedJobs"]:
        full = f"{name}-{job['name']}-0"
        template = copy.deepcopy(job["template"])
        pod = template["spec"]["template"]["spec"]
        pod |= {"subdomain": subdomain, "hostname": f"{full}-0"}
        template |= {"apiVersion": "batch/v1", "kind": "Job"}
        template["metadata"]["name"] = full
        made.append(template)
    return made


RUNS = {name: RENDERED[name] for name in OVERLAYS}
RUNS["jobset"] = from_jobset()


def job(run: str, component: str) -> Manifest:
    (found,) = [
        m
        for m in RUNS[run]
        if m["metadata"]["labels"].get("app.kubernetes.io/component") == component
    ]
    return found


def pod(run: str, component: str) -> Manifest:
    return job(run, component)["spec"]["template"]["spec"]


def container(run: str, component: str) -> Manifest:
    (found,) = pod(run, component)["containers"]
    assert found["name"] == component
    return found


def variables(run: str, component: str = "worker") -> dict[str, Any]:
    return {
        entry["name"]: entry.get("value", entry.get("valueFrom"))
        for entry in container(run, component)["env"]
    }


def option(run: str, name: str) -> str:
    """The value of an option of the coordinator."""
    given = dict(
        a.removeprefix("--").split("=")
        for a in container(run, "coordinator")["args"]
        if a.startswith("--")
    )
    return given[name]


# -- the schema ------------------------------------------------------------------------


def test_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS)


@pytest.mark.parametrize("run", RENDERED | RUNS)
def test_valid(run: str) -> None:
    found = (RENDERED | RUNS)[run]
    assert found
    for manifest in found:
        assert not errors(manifest), errors(manifest)


def test_jobset_is_valid() -> None:
    (manifest,) = load(KUBERNETES / "jobset.yaml")
    assert not errors(manifest), errors(manifest)
    names = [job["name"] for job in manifest["spec"]["replicatedJobs"]]
    assert manifest["spec"]["successPolicy"]["targetReplicatedJobs"] == ["worker"]
    assert names == ["coordinator", "worker"]


def test_every_file_is_checked() -> None:
    used = {KUBERNETES / "jobset.yaml", KUBERNETES / "parameter-server/README.md"}
    used |= {KUBERNETES / "serving/README.md"}
    used |= {KUBERNETES / "serving/prometheus-adapter.yaml"}  # of a chart
    for name in FOLDERS:
        folder = KUBERNETES / name
        (plan,) = load(folder / "kustomization.yaml")
        used |= {folder / "kustomization.yaml"}
        used |= {folder / r for r in plan["resources"]}
        used |= {folder / p["path"] for p in plan.get("patches", ())}
    assert {p for p in KUBERNETES.rglob("*") if p.is_file()} <= used


def broken(path: str, value: Any) -> Manifest:
    manifest = copy.deepcopy(job("run", "worker"))
    *outer, last = path.split("/")
    place: Any = manifest
    for part in outer:
        place = place[int(part) if part.isdigit() else part]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return manifest


POD = "spec/template/spec"


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("spec/paralellism", 2, "paralellism"),
        ("spec/completionMode", "Index", "Indexed"),
        ("spec/completionMode", "NonIndexed", "Indexed"),  # backoffLimitPerIndex
        ("spec/backoffLimitPerIndex", None, "backoffLimitPerIndex"),
        ("spec/completions", "2", "integer"),
        ("spec/podFailurePolicy/rules/0/action", "Retry", "FailJob"),
        ("spec/podFailurePolicy/rules/0/onPodConditions/0/status", None, "status"),
        (f"{POD}/restartPolicy", "OnFailure", "Never"),  # podFailurePolicy
        (f"{POD}/restartPolicy", "Always", "OnFailure"),
        (f"{POD}/containers/0/image", None, "image"),
        (f"{POD}/containers/0/env/2/value", 2, "string"),
        (f"{POD}/containers/0/resources/limits/memory", "2GB", "not valid"),
        (f"{POD}/containers/0/livenessProbe/exec", None, "not valid"),
        ("metadata/name", "Train_worker", "does not match"),
    ],
)
def test_schema_finds(path: str, value: Any, words: str) -> None:
    found = errors(broken(path, value))
    assert any(words in line for line in found), found


@pytest.mark.skipif(not shutil.which("kubectl"), reason="there is no kubectl here")
@pytest.mark.parametrize("name", FOLDERS)
def test_kustomize_agrees(name: str) -> None:
    shown = subprocess.run(
        ["kubectl", "kustomize", str(KUBERNETES / name)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert shown.returncode == 0, shown.stderr
    theirs = list(yaml.safe_load_all(shown.stdout))

    def by_name(manifests: list[Manifest]) -> dict[Any, Any]:
        return {(m["kind"], m["metadata"]["name"]): ordered(m) for m in manifests}

    assert by_name(theirs) == by_name(RENDERED[name])


@pytest.mark.parametrize("name", FOLDERS)
def test_published_schema_agrees(name: str) -> None:
    """Kubernetes' own schema accepts each manifest, where that schema is installed."""
    published = pytest.importorskip(
        "kubernetes_validate", reason="pip install kubernetes-validate"
    )
    for manifest in RENDERED[name]:
        if manifest["kind"] == "PodMonitor":
            continue  # of the Prometheus operator
        published.validate(manifest, "1.33", strict=True)


# -- what fxflow reads -----------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("component", ["coordinator", "worker"])
def test_variables_are_read(run: str, component: str) -> None:
    names = {n for n in variables(run, component) if n.startswith("FXFLOW_")}
    assert names and names <= known_variables()
    secret = variables(run, component)["FXFLOW_TOKEN"]["secretKeyRef"]
    assert secret == {"name": "train", "key": "token"}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("component", ["coordinator", "worker"])
def test_programs_are_in_the_image(run: str, component: str) -> None:
    first, *command = container(run, component)["args"]
    if component == "coordinator":
        assert (first, command[0]) == ("fxflow", "coordinator")
        check_command(command)
        assert re.search(r"^fxflow = ", (ROOT / "pyproject.toml").read_text(), re.M)
        assert re.search(r"^ENV PATH=/opt/fxflow/bin:", CONTAINERFILE, re.MULTILINE)
        return
    assert first == "python"
    pytest.importorskip("tqdm", reason="pip install fxflow[examples]")
    check_program(command)
    copied = re.findall(r"^COPY (\S+) (\S+)$", CONTAINERFILE, re.MULTILINE)
    assert any(source == to and command[0].startswith(source) for source, to in copied)


@pytest.mark.parametrize("run", RUNS)
def test_port_and_address(run: str) -> None:
    assert option(run, "address") == "0.0.0.0"  # pods reach it from other machines
    port = option(run, "port")
    (declared,) = container(run, "coordinator")["ports"]
    assert port == str(declared["containerPort"])
    spec = pod(run, "coordinator")
    elastic = run == "elastic"
    name = "FXFLOW_ELASTIC_ADDRESS" if elastic else "FXFLOW_COORDINATOR_ADDRESS"
    address = variables(run)[name]
    assert address == f"{spec['hostname']}.{spec['subdomain']}:{port}"
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        of = container(run, "coordinator")[probe]["tcpSocket"]["port"]
        assert of == declared["name"]
    # /proc/net/tcp has ports in hexadecimal, then the state: 01 is a connection.
    joined = container(run, "worker")["readinessProbe"]["exec"]["command"][2]
    assert joined == f":{int(port):04X} 01 "


@pytest.mark.parametrize("run", OVERLAYS)
def test_service_finds_pods(run: str) -> None:
    (service,) = [m for m in RUNS[run] if m["kind"] == "Service"]
    spec = service["spec"]
    assert spec["clusterIP"] == "None" and spec["publishNotReadyAddresses"]
    assert [p["port"] for p in spec["ports"]] == [int(option(run, "port"))]
    for component in ("coordinator", "worker"):
        labels = job(run, component)["spec"]["template"]["metadata"]["labels"]
        assert spec["selector"].items() <= labels.items()
        assert pod(run, component)["subdomain"] == service["metadata"]["name"]


@pytest.mark.parametrize("run", ["run", "gpu", "jobset"])
def test_number_of_processes(run: str) -> None:
    spec = job(run, "worker")["spec"]
    count = int(option(run, "num-processes"))
    assert spec["completionMode"] == "Indexed"
    assert count == spec["completions"] == spec["parallelism"]
    for index in range(count):
        plain = {k: v for k, v in variables(run).items() if isinstance(v, str)}
        found = detect(
            environment={
                "KUBERNETES_SERVICE_HOST": "10.0.0.1",
                "JOB_COMPLETION_INDEX": str(index),
                "HOSTNAME": f"train-worker-{index}",
                "FXFLOW_TOKEN": "secret",
                **plain,
            }
        )
        assert found is not None and found.source == "Kubernetes"
        assert (found.num_processes, found.process_id) == (count, index)
        assert found.coordinator_address == plain["FXFLOW_COORDINATOR_ADDRESS"]
        assert found.hosted and found.token == "secret"


def test_number_of_elastic_workers() -> None:
    spec, given = job("elastic", "worker")["spec"], variables("elastic")
    low, high = map(int, option("elastic", "elastic").split(":"))
    assert low < high == spec["completions"] == spec["parallelism"]
    assert given["FXFLOW_PROCESS_ID"] == {"fieldRef": {"fieldPath": INDEX}}
    assert "FXFLOW_NUM_PROCESSES" not in given
    folder = next(
        a.partition("=")[2]
        for a in container("elastic", "worker")["args"]
        if a.startswith("--checkpoints=")
    )
    mounts = container("elastic", "worker")["volumeMounts"]
    (volume,) = [m["name"] for m in mounts if m["mountPath"] == folder]
    (claim,) = [m for m in RUNS["elastic"] if m["kind"] == "PersistentVolumeClaim"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert {
        "name": volume,
        "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]},
    } in pod("elastic", "worker")["volumes"]


# -- that it runs as it should ---------------------------------------------------------


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("component", ["coordinator", "worker"])
def test_pod(run: str, component: str) -> None:
    spec, box = pod(run, component), container(run, component)
    assert spec["restartPolicy"] == "Never"
    assert not spec["automountServiceAccountToken"]
    assert not spec["enableServiceLinks"]  # a service named fxflow would set FXFLOW_…
    user = re.search(r"^USER (\d+):(\d+)$", CONTAINERFILE, re.MULTILINE)
    assert user, "the image must not run as root"
    security = spec["securityContext"]
    assert security["runAsNonRoot"]
    assert security["runAsUser"] == int(user[1])
    assert security["runAsGroup"] == int(user[2])
    assert box["securityContext"]["readOnlyRootFilesystem"]
    assert not box["securityContext"]["allowPrivilegeEscalation"]
    assert box["resources"]["requests"].keys() >= {"cpu", "memory"}
    assert (
        box["resources"]["limits"]["memory"] == box["resources"]["requests"]["memory"]
    )
    assert box["livenessProbe"] and box["readinessProbe"]
    mounted = {mount["name"] for mount in box.get("volumeMounts", ())}
    assert mounted == {volume["name"] for volume in spec.get("volumes", ())}
    if component == "worker":
        cache = re.search(r"FXFLOW_CACHE_DIR=(\S+)", CONTAINERFILE)
        paths = {mount["mountPath"] for mount in box["volumeMounts"]}
        assert cache and {cache[1], "/tmp"} <= paths
    for rule in job(run, component)["spec"]["podFailurePolicy"]["rules"]:
        if "onExitCodes" in rule:
            assert rule["onExitCodes"]["containerName"] == box["name"]


def test_gpu() -> None:
    box = container("gpu", "worker")
    count = box["resources"]["limits"]["nvidia.com/gpu"]
    assert f"--devices={count}" in box["args"]
    assert box["image"] == "fxflow:cuda12"
    extras = re.findall(r"^\w+(?= = \[)", (ROOT / "pyproject.toml").read_text(), re.M)
    assert {"examples", "cuda12"} <= set(extras)


def test_probes_see_what_they_are_for() -> None:
    """The commands of the worker's probes, tried on files like those of /proc."""
    alive = container("run", "worker")["livenessProbe"]["exec"]["command"]
    joined = container("run", "worker")["readinessProbe"]["exec"]["command"]
    pattern = alive[2].split("'")[1]
    table = "  0: 0100007F:E01A 0100007F:211C {} 00000000:00000000 00\n"

    def grep(pattern: str, text: str) -> bool:
        done = subprocess.run(["grep", "-qs", pattern], input=text, text=True)
        return done.returncode == 0

    assert grep(pattern, "Name:\tpython\nState:\tT (stopped)\n")
    assert not grep(pattern, "Name:\tState: T\nState:\tS (sleeping)\nTgid:\t1\n")
    assert grep(joined[2], table.format("01")) and not grep(
        joined[2], table.format("06")
    )


def test_containerfile_copies_what_is_there() -> None:
    for line in re.findall(r"^COPY (?!--from)(.*)$", CONTAINERFILE, re.MULTILINE):
        *sources, _ = line.split()
        for source in sources:
            assert (ROOT / source).exists(), source
