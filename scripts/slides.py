"""Makes slides of the lessons of the course: an HTML file beside each notebook.

`python scripts/slides.py` makes those of all lessons, `python scripts/slides.py
notebooks/course/1-arrays.ipynb` those of one. A heading begins a slide. The file needs
no network; the keys for a page down and up move between slides.
"""

import json
import sys
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

FOLDER = Path(__file__).parent.parent / "notebooks" / "course"
STYLE = """
html { scroll-snap-type: y mandatory; color-scheme: light dark; }
body { margin: 0; font: 1.5rem/1.45 system-ui, sans-serif; }
section { min-height: 100vh; scroll-snap-align: start; box-sizing: border-box;
  padding: 5vh 8vw; overflow: auto; }
section > * { max-width: 60rem; }
pre { font-size: 1.05rem; line-height: 1.35; padding: .6em 1em; overflow-x: auto;
  border-left: .2em solid #8888; }
.highlight { background: none; }
img { max-height: 60vh; background: white; }
"""
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")


def slides(notebook: dict[str, Any]) -> list[str]:
    """Returns the HTML of each slide."""
    found: list[str] = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            if text.startswith("#"):
                found.append("")
            found[-1] += MARKDOWN.render(text)
            continue
        found[-1] += highlight(text, PythonLexer(), HtmlFormatter())
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                picture = data["image/png"].replace("\n", "")
                found[-1] += f'<img alt="" src="data:image/png;base64,{picture}">'
            else:
                shown = "".join(data.get("text/plain") or output.get("text", ""))
                found[-1] += MARKDOWN.render(f"```\n{shown.rstrip()}\n```")
    return found


def page(path: Path) -> str:
    """Returns the HTML file with the slides of a notebook."""
    parts = slides(json.loads(path.read_text("utf-8")))
    style = STYLE + HtmlFormatter(style="friendly").get_style_defs(".highlight")
    body = "\n".join(f"<section>{part}</section>" for part in parts)
    head = f'<meta charset="utf-8"><title>{path.stem}</title><style>{style}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head>\n{body}</html>\n'


def main(names: list[str]) -> None:
    """Writes the slides of the named notebooks, or of all lessons."""
    for path in [Path(name) for name in names] or sorted(FOLDER.glob("*.ipynb")):
        target = path.with_suffix(".slides.html")
        target.write_text(page(path), encoding="utf-8")
        print(target)


if __name__ == "__main__":
    main(sys.argv[1:])
