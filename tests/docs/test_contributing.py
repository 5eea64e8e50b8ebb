"""The example of CONTRIBUTING is an operation that works."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

# In a process of its own, since a primitive stays in the table.
CHECK = """\
import math, sys
import numpy as np
import fxflow
from fxflow.core.runtime.lowering import Context
from fxflow.lax import elementwise, families, trigonometric
space = {**vars(families), **vars(elementwise), **vars(trigonometric)}
space.update(math=math, Context=Context)
exec(sys.stdin.read(), space)
x = np.float32([0.0, 0.5, 1.0, -0.25])
want = np.sin(np.pi * x)
for compute in space["sinpi"], fxflow.jit(space["sinpi"]):
    np.testing.assert_allclose(compute(fxflow.numpy.asarray(x)), want, atol=1e-6)
slope = fxflow.vmap(fxflow.grad(space["sinpi"]))(fxflow.numpy.asarray(x))
np.testing.assert_allclose(slope, np.pi * np.cos(np.pi * x), atol=1e-5)
"""


def python_blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)


def test_the_new_operation_works() -> None:
    (code,) = python_blocks(PAGE)
    names = re.findall(r"^(?:class|def) (\w+)", code, flags=re.M)
    assert names == ["SinPi", "sinpi"]
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        input=code,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr


def test_what_it_names_is_there() -> None:
    diff = PAGE[PAGE.index("```diff") :]
    removed = re.findall(r"^-( .*)$", diff[: diff.index("```\n")], flags=re.M)
    files = re.findall(r"^ (\S+\.py)$", diff, flags=re.M)
    assert len(files) == 3 and all((ROOT / file).exists() for file in files)
    calls = (ROOT / files[-1]).read_text(encoding="utf-8")
    assert removed and all(line.strip() in calls for line in removed)
