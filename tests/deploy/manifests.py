"""Renders the kustomizations of deploy/kubernetes as `kubectl kustomize` does."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from .checkout import DEPLOY

KUBERNETES = DEPLOY / "kubernetes"
SCHEMAS = json.loads(
    (Path(__file__).parent / "schemas" / "kubernetes.json").read_text()
)
OVERLAYS = ["run", "gpu", "elastic"]
#: All kustomizations; the last four have test files of their own.
FOLDERS = [*OVERLAYS, "dataflow", "parameter-server", "recommender", "serving"]
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
Manifest = dict[str, Any]


def load(path: Path) -> list[Manifest]:
    return list(yaml.safe_load_all(path.read_text()))


def errors(manifest: Manifest) -> list[str]:
    """What the schema says against a manifest."""
    kind = manifest.get("kind")
    assert kind in SCHEMAS["$defs"], f"no schema for {kind}"
    schema = {"$ref": f"#/$defs/{kind}", "$defs": SCHEMAS["$defs"]}
    checker = jsonschema.Draft202012Validator(schema)
    return [f"{e.json_path}: {e.message}" for e in checker.iter_errors(manifest)]


def key_of(item: Any) -> Any:
    return item.get("mountPath") or item.get("name") if isinstance(item, dict) else None


def merged(base: Any, patch: Any) -> Any:
    """`base` with a strategic merge patch over it."""
    if isinstance(base, dict) and isinstance(patch, dict):
        both = {k: merged(base[k], patch[k]) for k in base.keys() & patch.keys()}
        return base | patch | both
    if isinstance(patch, list) and patch and all(map(key_of, patch)):
        result = {key_of(item): item for item in base}
        for item in patch:
            if item.get("$patch") == "delete":
                del result[key_of(item)]
            else:
                result[key_of(item)] = merged(result.get(key_of(item), {}), item)
        return list(result.values())
    return patch


def rendered(folder: Path) -> list[Manifest]:
    """The manifests of a kustomization."""
    (plan,) = load(folder / "kustomization.yaml")
    assert not errors(plan), errors(plan)
    found: list[Manifest] = []
    for name in plan["resources"]:
        path = folder / name
        found += rendered(path.resolve()) if path.is_dir() else load(path)
    for entry in plan.get("patches", ()):
        for patch in load(folder / entry["path"]):
            (place,) = [
                k
                for k, m in enumerate(found)
                if (m["kind"], m["metadata"]["name"])
                == (patch["kind"], patch["metadata"]["name"])
            ]
            found[place] = merged(found[place], patch)
    text = json.dumps(found)
    for image in plan.get("images", ()):
        name = f'"image": "{image["name"]}"'
        text = text.replace(name, f'{name[:-1]}:{image["newTag"]}"')
    return json.loads(text)


RENDERED = {name: rendered(KUBERNETES / name) for name in FOLDERS}
