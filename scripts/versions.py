"""Adds a built documentation to a site of several versions.

    python -m sphinx docs docs/_build
    python scripts/versions.py docs/_build SITE            # of a release
    python scripts/versions.py docs/_build SITE --name dev # of the main branch

Each version is a folder of the site. `SITE/versions.json` lists them, the newest first,
for the menu on every page (`docs/_static/versions.js`), in the form that other themes
of Sphinx read; `SITE/index.html` leads to the newest release.
"""

import argparse
import json
import re
import shutil
from pathlib import Path
from typing import Any

RELEASE = re.compile(r"\d+(\.\d+)+")
FRONT = """<!doctype html>
<meta charset="utf-8">
<title>fxflow</title>
<meta http-equiv="refresh" content="0; url={url}">
<a href="{url}">The documentation of fxflow {version}</a>
"""


def version_of(built: Path) -> str:
    """Returns the version that a documentation was built of."""
    # The third line of the inventory: `# Version: 0.1.0`.
    with (built / "objects.inv").open("rb") as file:
        head = [next(file) for _ in range(3)]
    return head[2].decode().partition(":")[2].strip()


def listed(folders: list[str]) -> list[dict[str, Any]]:
    """Returns the entries of `versions.json`: other names, then releases, newest first.

    Args:
      folders: names of versions.
    """

    def number(name: str) -> tuple[int, ...]:
        return tuple(map(int, name.split(".")))

    releases = sorted(filter(RELEASE.fullmatch, folders), key=number, reverse=True)
    others = sorted(set(folders) - set(releases), reverse=True)
    found: list[dict[str, Any]] = []
    for name in [*others, *releases]:
        entry: dict[str, Any] = {"name": name, "version": name, "url": f"{name}/"}
        if releases and name == releases[0]:
            entry |= {"name": f"{name} (newest)", "preferred": True}
        found.append(entry)
    return found


def add(built: Path, site: Path, name: str | None = None) -> str:
    """Adds a documentation to a site, in place of the same version; returns its name.

    Args:
      built: folder that Sphinx wrote.
      site: folder of the site; it is made if it is missing.
      name: of the version; None: of what was documented.
    """
    if not (built / "index.html").is_file():
        raise SystemExit(f"{built} holds no documentation: it has no index.html")
    name = name or version_of(built)
    if not re.fullmatch(r"[\w.+-]*\w[\w.+-]*", name):
        raise SystemExit(f"{name!r} cannot be the name of a folder")
    site.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(site / name, ignore_errors=True)
    left_out = shutil.ignore_patterns(".doctrees", ".buildinfo")
    shutil.copytree(built, site / name, ignore=left_out)
    versions = listed([path.parent.name for path in site.glob("*/objects.inv")])
    first = next((v for v in versions if v.get("preferred")), versions[0])
    text = json.dumps(versions, indent=2) + "\n"
    (site / "versions.json").write_text(text, encoding="utf-8")
    front = FRONT.format(**first)
    (site / "index.html").write_text(front, encoding="utf-8")
    return name


def main(arguments: list[str] | None = None) -> None:
    """Adds the version, and says where."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("built", type=Path, help="what Sphinx wrote")
    parser.add_argument("site", type=Path, help="folder of the site")
    parser.add_argument("--name", help="of the version (default: the built one)")
    given = parser.parse_args(arguments)
    name = add(given.built, given.site, given.name)
    print(f"{given.site / name} is listed in {given.site / 'versions.json'}")


if __name__ == "__main__":
    main()
