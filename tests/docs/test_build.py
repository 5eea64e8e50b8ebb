"""The site builds without a warning: markup, links, every public docstring."""

import functools
import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.mark.slow
def test_no_warnings(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the docs extra is not installed")
    # Pages of the reference are written beside the sources.
    source = tmp_path / "docs"
    copy_sources(source)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    # A plain theme, which is faster to render.
    command += ["-D", "html_theme=basic", "-D", "html_copy_source=0"]
    done = subprocess.run(
        [*command, str(source), str(tmp_path / "built")],
        capture_output=True,
        text=True,
        cwd=DOCS.parent,
    )
    assert done.returncode == 0, done.stderr
    assert (source / "reference" / "fxflow.numpy" / "dot.rst").exists()
    assert (source / "notebooks" / "01-quickstart.md").exists()
    assert not broken_links(tmp_path / "built")


class Page:
    """The links of a page, and what links may name in it."""

    def __init__(self, path: Path) -> None:
        # Sphinx writes all attributes in double quotes, and none in text.
        given = re.findall(r' (href|src|id|name)="([^"]*)"', path.read_text("utf-8"))
        self.links = {unescape(value) for key, value in given if key in ("href", "src")}
        self.names = {unescape(value) for key, value in given if key in ("id", "name")}


def broken_links(site: Path) -> list[str]:
    """Returns the links within a site that lead nowhere, each after its page."""
    pages = {str(path): Page(path) for path in site.rglob("*.html")}
    # Thousands of pages have the same navigation: each target is looked up once.
    exists = functools.cache(os.path.exists)
    broken = []
    for path, page in pages.items():
        for link in page.links:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            given = os.path.join(os.path.dirname(path), unquote(url.path))
            target = os.path.normpath(given) if url.path else path
            there = pages.get(target)
            missing = there and url.fragment and url.fragment not in there.names
            if missing or not exists(target):
                broken.append(f"{os.path.relpath(path, site)}: {link}")
    return sorted(broken)


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a id="here" href="b.html#there"></a><a href="#here"></a><a href="c.html"></a>'
        '<a href="b.html#gone"></a><a href="https://a.org/x"></a><img src="d.png">'
    )
    (tmp_path / "b.html").write_text('<p id="there"></p>')
    links = ["b.html#gone", "c.html", "d.png"]
    assert broken_links(tmp_path) == [f"a.html: {link}" for link in links]


def copy_sources(target: Path) -> None:
    """Copies the documentation without what a build writes."""
    written = {"_build", "benchmarks", "notebooks", "reference"}
    for path in DOCS.rglob("*"):
        place = path.relative_to(DOCS)
        if path.is_file() and place.parts[0] not in written:
            (target / place).parent.mkdir(parents=True, exist_ok=True)
            (target / place).write_bytes(path.read_bytes())
