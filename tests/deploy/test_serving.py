"""The manifests of deploy/kubernetes/serving say what the server has and does."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

from fxflow.serve.command import _parser, config_of
from fxflow.serve.protocol.endpoints import _OPEN

from .checkout import DEPLOY, ROOT, check_program
from .manifests import KUBERNETES, RENDERED, Manifest, load

FOLDER = KUBERNETES / "serving"
README = (FOLDER / "README.md").read_text()
CONTAINERFILE = (DEPLOY / "Serving.Containerfile").read_text()


def of(kind: str) -> Manifest:
    (found,) = [m for m in RENDERED["serving"] if m["kind"] == kind]
    return found


POD = of("Deployment")["spec"]["template"]["spec"]
(BOX,) = POD["containers"]


def served(command: list[str], folder: Path) -> Any:
    """The configuration that a command line of `fxflow serve` stands for."""
    assert command[:3] == ["fxflow", "serve", "serving.toml"]
    path = folder / "serving.toml"
    path.write_text('[models.m]\nsource = "m.fx"\n')
    return config_of(_parser().parse_args([str(path), *command[3:]]))


def test_the_server_is_as_the_probes_and_ports_say(tmp_path: Path) -> None:
    config = served(BOX["args"], tmp_path)
    ports = {port["name"]: port["containerPort"] for port in BOX["ports"]}
    assert ports == {"http": config.port, "grpc": config.grpc_port}
    assert config.host == "0.0.0.0" and config.log == "json"
    # What others reach asks for a key.
    mounts = {mount["mountPath"]: mount for mount in BOX["volumeMounts"]}
    assert mounts[str(Path(config.keys).parent)]["readOnly"]
    (secret,) = [v["secret"]["secretName"] for v in POD["volumes"] if "secret" in v]
    (line,) = re.findall(r"^kubectl create secret generic (.*)$", README, re.MULTILINE)
    name, *files = line.split()
    assert (name, f"--from-file={Path(config.keys).name}") == (secret, files[0])
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = BOX[probe]["httpGet"]
        assert asked["port"] == "http" and asked["path"] in _OPEN  # without a key
    assert BOX["readinessProbe"]["httpGet"]["path"] == "/v2/health/ready"
    assert BOX["livenessProbe"]["httpGet"]["path"] == "/v2/health/live"
    # The wait before, then the server's own 30 s.
    wait = int(BOX["lifecycle"]["preStop"]["exec"]["command"][1])
    assert POD["terminationGracePeriodSeconds"] >= wait + 30


def test_the_pod_may_do_little() -> None:
    user = re.search(r"^USER (\d+):(\d+)$", CONTAINERFILE, re.MULTILINE)
    assert user, "the image must not run as root"
    security = POD["securityContext"]
    assert security["runAsNonRoot"] and security["runAsUser"] == int(user[1]) > 0
    assert security["seccompProfile"]["type"] == "RuntimeDefault"
    assert BOX["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not POD["automountServiceAccountToken"] and not POD["enableServiceLinks"]
    assert BOX["resources"]["limits"].keys() >= {"cpu", "memory"}
    cache = re.search(r"FXFLOW_CACHE_DIR=(\S+)", CONTAINERFILE)
    written = {m["mountPath"] for m in BOX["volumeMounts"] if not m.get("readOnly")}
    assert cache and written == {cache[1], "/tmp"}
    assert all("sizeLimit" in v["emptyDir"] for v in POD["volumes"] if "emptyDir" in v)


def test_pods_are_found_and_counted() -> None:
    labels = of("Deployment")["spec"]["template"]["metadata"]["labels"]
    names = {port["name"] for port in BOX["ports"]}
    service, monitor = of("Service")["spec"], of("PodMonitor")["spec"]
    assert service["selector"] == labels
    assert {port["targetPort"] for port in service["ports"]} == names
    for kind in ("Deployment", "PodDisruptionBudget", "PodMonitor"):
        assert of(kind)["spec"]["selector"]["matchLabels"] == labels
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["port"] in names and endpoint["path"] == "/metrics"
    credentials = endpoint["authorization"]["credentials"]
    assert f"--from-file={credentials['key']}" in README


def test_pods_are_as_many_as_queues_need() -> None:
    from fxflow.serve.metrics import Metrics
    from fxflow.serve.repository import Repository

    scaler, deployment = of("HorizontalPodAutoscaler")["spec"], of("Deployment")
    assert scaler["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert "replicas" not in deployment["spec"]  # else applying would undo scaling
    assert 2 <= scaler["minReplicas"] < scaler["maxReplicas"]
    (metric,) = scaler["metrics"]
    (adapter,) = load(FOLDER / "prometheus-adapter.yaml")
    (rule,) = adapter["rules"]["custom"]
    assert metric["pods"]["metric"]["name"] == rule["name"]["as"]
    series = rule["seriesQuery"].partition("{")[0]
    text, _ = Metrics().exposition(Repository([]))
    assert f"# TYPE {series} gauge" in text.decode()
    # With a budget that lets one go, two pods leave one.
    assert of("PodDisruptionBudget")["spec"]["maxUnavailable"] < scaler["minReplicas"]
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_the_image(tmp_path: Path) -> None:
    for line in re.findall(r"^COPY (?!--from)(.*)$", CONTAINERFILE, re.MULTILINE):
        *sources, _ = line.split()
        for source in sources:
            assert source == "${MODELS}" or (ROOT / source).exists(), source
    (extras,) = re.findall(r"^ARG EXTRAS=(\S+)$", CONTAINERFILE, re.MULTILINE)
    known = re.findall(r"^\w+(?= = \[)", (ROOT / "pyproject.toml").read_text(), re.M)
    assert {"serve"} < set(extras.split(",")) <= set(known)
    (command,) = re.findall(r"^CMD (.*)$", CONTAINERFILE, re.MULTILINE)
    config = served(json.loads(command), tmp_path)
    exposed = re.findall(r"^EXPOSE (.*)$", CONTAINERFILE, re.MULTILINE)
    assert exposed == [f"{config.port} {config.grpc_port}"]
    assert (DEPLOY / "Serving.Containerfile.dockerignore").exists()


def test_what_the_readme_says_to_type() -> None:
    blocks = re.findall(r"^```bash\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    for words in map(shlex.split, "".join(blocks).splitlines()):
        if words[0] == "python":
            check_program(words[1:])
        elif words[0] == "docker":
            assert (ROOT / words[words.index("-f") + 1]).is_file()
        elif words[:2] == ["kubectl", "apply"]:
            assert (ROOT / words[3] / "kustomization.yaml").is_file()
    for name in re.findall(r"`([\w-]+\.yaml)`", README):
        assert (FOLDER / name).is_file(), name
