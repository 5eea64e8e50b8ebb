"""Converts each `notebooks/*.py` (py:percent) to an executed `.ipynb` next to it.

    python scripts/notebooks.py            # execute and write
    python scripts/notebooks.py --check    # execute; fail if the .ipynb has other cells

The `.py` file is the source, which can be reviewed, linted and run. An error in a cell
ends the script with a non-zero status.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).parent.parent / "notebooks"
MARKER = re.compile(r"^# %%(?P<markdown> \[markdown\])?.*$", re.M)
CELL_SECONDS = 300


def parse(source: str) -> Any:
    """Returns the notebook that a py:percent text describes, not executed."""
    markers = list(MARKER.finditer(source))
    if not markers or source[: markers[0].start()].strip():
        raise ValueError("a py:percent file begins with a line `# %%`")
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    ends = [marker.start() for marker in markers[1:]] + [len(source)]
    for number, (marker, end) in enumerate(zip(markers, ends, strict=True)):
        text = source[marker.end() : end].strip()
        if marker["markdown"]:
            text = re.sub(r"^# ?", "", text, flags=re.M)
            cell = nbformat.v4.new_markdown_cell(text)
        else:
            cell = nbformat.v4.new_code_cell(text)
        cell["id"] = f"cell-{number:02}"  # equal runs write equal files
        notebook.cells.append(cell)
    return notebook


def execute(notebook: Any, folder: Path) -> None:
    """Runs all cells in a fresh kernel whose working directory is `folder`."""
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    )
    client.execute()
    notebook.metadata.pop("language_info", None)  # it names the Python that ran it


def cells(notebook: Any) -> list[tuple[str, str]]:
    """Returns the types and sources of the cells, without outputs."""
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def process(path: Path, check: bool) -> str | None:
    """Executes one notebook; returns an error message or None."""
    notebook = parse(path.read_text(encoding="utf-8"))
    target = path.with_suffix(".ipynb")
    if check:
        if not target.exists():
            return f"{target.name} is missing: run scripts/notebooks.py"
        kept = nbformat.read(target, as_version=4)
        if cells(kept) != cells(notebook):
            return f"{target.name} differs from its source: run scripts/notebooks.py"
    try:
        execute(notebook, path.parent)
    except CellExecutionError as error:
        return f"{path.name}: {error}"
    if not check:
        nbformat.validate(notebook)
        nbformat.write(notebook, target)
    return None


def main(arguments: list[str] | None = None) -> int:
    """Processes the named notebooks, or all; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("sources", nargs="*", type=Path, help="default: all")
    given = parser.parse_args(arguments)
    sources = given.sources or sorted(FOLDER.glob("*.py"))
    errors = [process(path.resolve(), given.check) for path in sources]
    for error in filter(None, errors):
        print(error, file=sys.stderr)
    return int(any(errors))


if __name__ == "__main__":
    sys.exit(main())
