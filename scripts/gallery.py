"""Runs programs of the gallery, and writes the picture that each draws next to it.

`python scripts/gallery.py` runs all programs, `python scripts/gallery.py descent` some.
"""

import runpy
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "gallery"


def draw(program: Path, picture: Path) -> None:
    """Runs a program, and writes what it draws."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context({"figure.figsize": (4.8, 3.2), "font.size": 9}):
        runpy.run_path(str(program), run_name="__main__")
        plt.savefig(picture, dpi=90, bbox_inches="tight")
    plt.close("all")


def main(names: list[str]) -> None:
    """Draws the named programs, or all."""
    programs = [FOLDER / f"{name}.py" for name in names]
    for program in programs or sorted(FOLDER.glob("*.py")):
        start = time.perf_counter()
        draw(program, program.with_suffix(".png"))
        print(f"{program.stem}: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
