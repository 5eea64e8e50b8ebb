"""Writes the golden programs anew: `python tests/golden/update.py [name ...]`.

Look at the difference before you commit it: each line is a program that every user
compiles again.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.golden.programs import PROGRAMS, text  # noqa: E402


def main(names: list[str]) -> None:
    for name in names or PROGRAMS:
        path = HERE / f"{name}.mlir"
        new = text(name)
        if not path.exists() or path.read_text(encoding="utf-8") != new:
            path.write_text(new, encoding="utf-8")
            print(f"wrote {path.name}")
    if not names:
        for path in sorted(HERE.glob("*.mlir")):
            if path.stem not in PROGRAMS:
                path.unlink()
                print(f"removed {path.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
