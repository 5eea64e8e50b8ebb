"""The manifests of deploy/kubernetes/dataflow say what fxflow reads."""

import re
from typing import Any

import pytest

from fxflow.distributed.clusters import detect
from fxflow.distributed.clusters.kubernetes import Kubernetes
from fxflow.distributed.launch import _parser

from .checkout import check_program, known_variables
from .manifests import CONTAINERFILE, RENDERED, Manifest

SERVICE, JOB = RENDERED["dataflow"]
POD = JOB["spec"]["template"]["spec"]
(BOX,) = POD["containers"]
PORTS = {p["name"]: p["containerPort"] for p in BOX["ports"]}


def variables(index: int) -> dict[str, str]:
    """A pod's variables, as Kubernetes makes them."""
    found = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": f"train-task-{index}"}
    found["JOB_COMPLETION_INDEX"] = str(index)
    for entry in BOX["env"]:
        if "valueFrom" in entry:
            ref = entry["valueFrom"]["secretKeyRef"]
            assert ref == {"name": "train", "key": "token"}
        found[entry["name"]] = entry.get("value", "secret")
    return found


def options() -> Any:
    program, command, *arguments = BOX["args"]
    assert (program, command) == ("fxflow", "launch")
    return _parser().parse_args(arguments)


def test_each_pod_is_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    def full_name(self: Kubernetes, host: str) -> str:
        return f"{host}.{POD['subdomain']}.default.svc"

    monkeypatch.setattr(Kubernetes, "full_name", full_name)
    spec = JOB["spec"]
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"] == 3
    for index in range(3):
        given = variables(index)
        assert {n for n in given if n.startswith("FXFLOW_")} <= known_variables()
        found = detect(environment=given)
        assert found is not None and not found.hosted and found.token == "secret"
        assert (found.num_processes, found.process_id) == (3, index)
        assert found.host == f"train-task-{index}.train.default.svc"
        address = f"train-task-0.train.default.svc:{PORTS['coordinator']}"
        assert found.coordinator_address == address


def test_the_command_runs_a_program_of_the_image() -> None:
    given = options()
    assert given.tasks == "auto" and given.port == PORTS["task"]
    check_program([given.program, *given.arguments])
    assert re.search(r"^COPY examples examples$", CONTAINERFILE, re.MULTILINE)


def test_the_service_names_pods_before_they_are_ready() -> None:
    service = SERVICE["spec"]
    assert service["clusterIP"] == "None" and service["publishNotReadyAddresses"]
    labels = JOB["spec"]["template"]["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()
    assert POD["subdomain"] == SERVICE["metadata"]["name"]
    assert {p["name"]: p["port"] for p in service["ports"]} == PORTS
    ready = BOX["readinessProbe"]["exec"]["command"][2]
    assert ready == f":{PORTS['coordinator']:04X} 01 "


def test_the_job_ends_with_the_program() -> None:
    assert JOB["spec"]["successPolicy"] == {"rules": [{"succeededIndexes": "0"}]}
    for rule in JOB["spec"]["podFailurePolicy"]["rules"]:
        if "onExitCodes" in rule:
            assert rule["onExitCodes"]["containerName"] == BOX["name"]


def test_pods() -> None:
    same = ("automountServiceAccountToken", "enableServiceLinks", "restartPolicy")
    worker: Manifest = RENDERED["run"][2]["spec"]["template"]["spec"]
    assert [POD[key] for key in same] == [worker[key] for key in same]
    assert POD["securityContext"] == worker["securityContext"]
    (other,) = worker["containers"]
    for key in ("securityContext", "livenessProbe", "volumeMounts"):
        assert BOX[key] == other[key]
    assert (
        BOX["resources"]["limits"]["memory"] == BOX["resources"]["requests"]["memory"]
    )
    mounted = {mount["name"] for mount in BOX["volumeMounts"]}
    assert mounted == {volume["name"] for volume in POD["volumes"]}
