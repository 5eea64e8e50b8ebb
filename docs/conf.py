"""Sphinx configuration: `python -m sphinx docs docs/_build` with the `docs` extra."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx import addnodes

sys.path.insert(0, str(Path(__file__).parent))
import pages
import spellings

import fxflow

project = "fxflow"
author = copyright = "The fxflow authors"
version = release = fxflow.__version__
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
smartquotes = False
python_maximum_signature_line_length = 88
html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"fxflow {release}"
html_copy_source = False
html_static_path = ["_static"]
html_js_files = [("versions.js", {"defer": "defer"})]
html_css_files = ["versions.css"]

targets: dict[str, str] = {}


def target(text: str, docname: str) -> str | None:
    """Returns the page of a name in code: `lax.scan`, `fxflow.jit(f)`, `dot`."""
    name = text.partition("(")[0]
    head, dot, rest = name.partition(".")
    candidates = [spellings.SHORT.get(head, head) + dot + rest, f"fxflow.{name}"]
    if docname.startswith("reference/"):
        parts = docname.split("/")[1].split(".")
        candidates[:0] = [
            ".".join([*parts[:n], name]) for n in range(len(parts), 0, -1)
        ]
    for candidate in candidates if name.isidentifier() or dot else ():
        if candidate in targets:
            page = f"reference/{targets[candidate]}"
            return None if page == docname else page
    return None


def link(page: str, docname: str, *content: nodes.Node) -> nodes.Node:
    """Returns a link to a page; Sphinx warns if the page is missing."""
    return addnodes.pending_xref(
        "",
        *content,
        refdomain="std",
        reftype="doc",
        reftarget=f"/{page}",
        refexplicit=True,
        refwarn=True,
        refdoc=docname,
    )


def link_names(app: Any, tree: nodes.document) -> None:
    """Links public names in code, and types, to their pages.

    Sphinx would search all names for each type in a signature, which takes a third of
    the build; this is one lookup in a table.
    """
    docname = app.env.docname
    for node in list(tree.findall(addnodes.pending_xref)):
        if node.get("refdomain") == "py":
            page = target(node["reftarget"], docname)
            node.replace_self(
                [link(page, docname, *node.children)] if page else node.children
            )
    for literal in list(tree.findall(nodes.literal)):
        parents = (nodes.reference, addnodes.pending_xref, nodes.title)
        if isinstance(literal.parent, parents):
            continue
        text = literal.astext()
        page = target(text, docname)
        if page:
            linked = link(page, docname)
        elif text.startswith("docs/guides/") and ".md" in text:  # as in docstrings
            uri = text.removeprefix("docs/").replace(".md", ".html")
            up = "../" * docname.count("/")
            linked = nodes.reference("", "", refuri=up + uri)
        else:
            continue
        literal.replace_self(linked)
        linked += literal


# -- sources ---------------------------------------------------------------------------


def source_role(
    role: Any, raw: str, text: str, line: int, inliner: Any, *_: Any
) -> tuple[list[nodes.Node], list[Any]]:
    """Returns a link to a line of a source file, whose page `source_pages` makes."""
    path, _, number = text.partition(":")
    depth = inliner.document.settings.env.docname.count("/")
    uri = f"{'../' * depth}source/{path}.html#line-{number}"
    return [nodes.reference(raw, "", nodes.literal(text, text), refuri=uri)], []


def source_pages(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yields a page for each source file, with line numbers as link targets."""
    if app.builder.format != "html":
        return
    formatter = HtmlFormatter(
        linenos="inline", lineanchors="line", cssclass="highlight"
    )
    for path in sorted((pages.ROOT / "fxflow").rglob("*.py")):
        name = path.relative_to(pages.ROOT).as_posix()
        body = highlight(path.read_text("utf-8"), PythonLexer(), formatter)
        context = {"title": name, "body": f"<h1>{name}</h1>{body}", "toc": ""}
        yield f"source/{name}", context, "page.html"


def share_navigation(
    app: Any, name: str, template: str, context: dict[str, Any], tree: Any
) -> None:
    """Computes the navigation once for all pages that it does not contain.

    For these pages it depends only on the depth of their folder. Sphinx would compute
    it for each of a thousand pages, which took most of the build.
    """
    if "toctree" in context and (tree is None or "orphan" in app.env.metadata[name]):
        compute = context["toctree"]

        def toctree(**options: Any) -> Any:
            top = name.partition("/")[0]
            key = top, name.count("/"), *sorted(options.items())
            if key not in navigation:
                navigation[key] = compute(**options)
            return navigation[key]

        context["toctree"] = toctree


navigation: dict[tuple[Any, ...], Any] = {}


# -- formulas --------------------------------------------------------------------------


def inline_formula(translator: Any, node: nodes.math) -> None:
    """Writes a formula as MathML, which browsers show without a script or a network."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def block_formula(translator: Any, node: nodes.math_block) -> None:
    """Writes a formula on lines of its own as MathML."""
    translator.body.append('<div class="math">')
    translator.body.append(tex2mathml(node.astext(), as_block=True))
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Writes the generated pages, and links them."""

    def write(app: Any) -> None:
        targets.update(pages.write_pages(Path(app.srcdir)))

    app.add_role("source", source_role)
    formulas = (inline_formula, None), (block_formula, None)
    app.add_html_math_renderer("mathml", *formulas)
    app.connect("builder-inited", write)
    app.connect("doctree-read", link_names)
    app.connect("html-collect-pages", source_pages)
    app.connect("html-page-context", share_navigation, priority=100)  # before the theme
