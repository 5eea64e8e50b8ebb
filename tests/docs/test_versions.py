"""The site has a menu of versions, which `scripts/versions.py` lists."""

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
MENU = ROOT / "docs" / "_static" / "versions.js"


@pytest.fixture(scope="module")
def versions() -> ModuleType:
    path = ROOT / "scripts" / "versions.py"
    spec = importlib.util.spec_from_file_location("scripts_versions", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built(folder: Path, version: str, *pages: str) -> Path:
    """Writes what Sphinx would."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / ".doctrees").mkdir(parents=True)
    for page in ("index", *pages):
        (folder / f"{page}.html").write_text(version)
    head = f"# Sphinx inventory version 2\n# Project: fxflow\n# Version: {version}\n"
    (folder / "objects.inv").write_bytes(head.encode() + b"# zlib\n\0")
    return folder


def test_versions_are_added(versions: ModuleType, tmp_path: Path) -> None:
    site = tmp_path / "site"
    for version in ("0.9.0", "0.10.0", "0.2.1"):
        versions.main([str(built(tmp_path / "new", version)), str(site)])
    versions.add(built(tmp_path / "new", "0.11.0.dev0"), site, "dev")
    found = json.loads((site / "versions.json").read_text())
    assert [one["version"] for one in found] == ["dev", "0.10.0", "0.9.0", "0.2.1"]
    assert [one.get("preferred", False) for one in found] == [False, True, False, False]
    assert found[1] == {
        "name": "0.10.0 (newest)",
        "version": "0.10.0",
        "url": "0.10.0/",
        "preferred": True,
    }
    assert 'url=0.10.0/"' in (site / "index.html").read_text()
    assert (site / "0.9.0" / "index.html").read_text() == "0.9.0"
    assert not (site / "0.9.0" / ".doctrees").exists()


def test_a_version_is_replaced(versions: ModuleType, tmp_path: Path) -> None:
    site = tmp_path / "site"
    versions.add(built(tmp_path / "new", "0.1.0", "old"), site)
    versions.add(built(tmp_path / "new", "0.1.0", "other"), site)
    assert (site / "0.1.0" / "other.html").exists()
    assert not (site / "0.1.0" / "old.html").exists()
    assert len(json.loads((site / "versions.json").read_text())) == 1


def test_folders_without_documentation_are_refused(
    versions: ModuleType, tmp_path: Path
) -> None:
    with pytest.raises(SystemExit, match=r"has no index\.html"):
        versions.add(tmp_path, tmp_path / "site")
    for name in ("../up", "a/b", ".."):
        with pytest.raises(SystemExit, match="name of a folder"):
            versions.add(built(tmp_path / "new", "0.1.0"), tmp_path / "site", name)


#: A page without a browser: `fetch` knows the list and the pages that exist.
BROWSER = """
const [, , menu, list, href, root, ...pages] = process.argv;
const made = [];
const element = (tag) => ({
  tag, children: [], listeners: {},
  setAttribute(name, value) { this[name] = value; },
  append(...nodes) { this.children.push(...nodes); },
  prepend(...nodes) { this.children.unshift(...nodes); },
  after(node) { this.next = node; },
  addEventListener(name, run) { this.listeners[name] = run; },
});
const brand = element("a"), article = element("article");
globalThis.location = { href };
globalThis.document = {
  documentElement: { dataset: { content_root: root } },
  createElement: element,
  querySelector: (name) => ({ ".sidebar-brand": brand, article })[name],
};
globalThis.fetch = async (url) => {
  if (String(url) === "https://x.org/versions.json" && list)
    return { ok: true, json: async () => JSON.parse(list) };
  if (pages.includes(String(url))) return { ok: true };
  if (String(url).endsWith(".json")) throw new Error("no list");
  return { ok: false };
};
(0, eval)(require("fs").readFileSync(menu, "utf8"));
setTimeout(async () => {
  const options = brand.next?.children.map((o) => [o.textContent, o.value, o.selected]);
  const note = article.children[0]?.children.map((c) => c.textContent ?? c).join("");
  const went = [];
  for (const [, value] of options ?? []) {
    brand.next.value = value;
    await brand.next.listeners.change();
    went.push(location.href);
    location.href = href;
  }
  console.log(JSON.stringify({ options, note, went }));
}, 50);
"""


def shown(list_: str, href: str, root: str, *pages: str) -> dict[str, object]:
    """Returns the menu's options, the note and where choosing each option leads."""
    command = ["node", "-e", BROWSER, "--", str(MENU), list_, href, root, *pages]
    # `node -e` has no script in its arguments.
    command[2] = BROWSER.replace("[, , menu", "[, menu")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


needs_node = pytest.mark.skipif(not shutil.which("node"), reason="node is missing")


@needs_node
def test_the_menu_leads_to_the_same_page(versions: ModuleType) -> None:
    entries = json.dumps(versions.listed(["0.1.0", "0.2.0", "dev"]))
    page = "reference/fxflow/jit.html#arguments"
    found = shown(
        entries,
        f"https://x.org/0.1.0/{page}",
        "../../",
        f"https://x.org/0.2.0/{page}",
        f"https://x.org/0.1.0/{page}",
    )
    assert found["options"] == [
        ["dev", "https://x.org/dev/", False],
        ["0.2.0 (newest)", "https://x.org/0.2.0/", False],
        ["0.1.0", "https://x.org/0.1.0/", True],
    ]
    assert found["went"] == [
        "https://x.org/dev/",  # which has no such page
        f"https://x.org/0.2.0/{page}",
        f"https://x.org/0.1.0/{page}",
    ]
    assert found["note"] == "This page is about 0.1.0; the newest release is 0.2.0."


@needs_node
def test_the_newest_version_has_no_note(versions: ModuleType) -> None:
    entries = json.dumps(versions.listed(["0.1.0", "0.2.0"]))
    found = shown(entries, "https://x.org/0.2.0/index.html", "./")
    assert "note" not in found and found["options"]


@needs_node
def test_a_copy_without_the_list_has_no_menu() -> None:
    found = shown("", "https://x.org/0.2.0/index.html", "./")
    assert "options" not in found and "note" not in found


def test_the_release_says_how() -> None:
    text = (ROOT / "RELEASING.md").read_text(encoding="utf-8")
    assert "python scripts/versions.py docs/_build SITE" in text
    assert '"versions.js"' in (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
