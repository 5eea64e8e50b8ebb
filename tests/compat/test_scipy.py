"""`fxflow.compat.scipy.install()`: SciPy computes with fxflow arrays."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("scipy", "1.17")

START = """
import json, sys, traceback
import fxflow, numpy as np, fxflow.numpy as fnp
import fxflow.compat.scipy
fxflow.compat.scipy.install()
fxflow.compat.scipy.install()
x = fnp.asarray(np.random.default_rng(0).normal(size=12))
errors = {}
for name, program in json.load(sys.stdin).items():
    try:
        exec(program, dict(globals()))
    except Exception:
        errors[name] = traceback.format_exc()
print(json.dumps(errors))
"""

PROGRAMS = {
    "functions can be traced": """
import scipy.stats
from scipy.spatial.transform import Rotation

for f in (
    lambda x: scipy.stats.kurtosis(x),
    lambda x: Rotation.from_rotvec(x[:3]).as_matrix(),
):
    expected = f(np.asarray(x, "f8"))
    for found in (f(x), fxflow.jit(f)(x), fxflow.vmap(f)(x[None])[0]):
        assert type(found) is fxflow.Array and found.dtype == "float32"
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5)
    slope = fxflow.jvp(f, (x,), (x,))[1]
    near = f(np.asarray(x, "f8") * (1 + 1e-6)), f(np.asarray(x, "f8") * (1 - 1e-6))
    np.testing.assert_allclose(slope, (near[0] - near[1]) / 2e-6, rtol=3e-3, atol=1e-4)
""",
    "special functions are ours": """
import scipy.special, fxflow.scipy.special as sp
found = fxflow.jit(scipy.special.entr)(x)
np.testing.assert_array_equal(found, fxflow.jit(sp.entr)(x))
""",
    "compiled code runs in a callback": """
from scipy.spatial.distance import pdist
points = fnp.asarray(np.asarray(x).reshape(6, 2), "float64")
expected = pdist(np.asarray(points))
found = fxflow.jit(pdist)(points)
assert found.dtype == "float64"
np.testing.assert_allclose(found, expected, rtol=1e-15)
batch = fxflow.vmap(pdist)(fnp.stack([points, 2 * points]))
np.testing.assert_allclose(batch, [expected, 2 * expected], rtol=1e-15)
""",
    "lists are taken, arrays of NumPy are refused": """
import scipy.signal
found = scipy.signal.lfilter([1.0, 0.5], [1.0, -0.2], x)
assert isinstance(found, fxflow.Array)
expected = scipy.signal.lfilter([1.0, 0.5], [1.0, -0.2], np.asarray(x))
np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
try:
    scipy.signal.fftconvolve(x, np.ones(3))
except TypeError as error:
    assert "Multiple namespaces" in str(error)
else:
    raise AssertionError
""",
    "arrays are written out of place": """
from scipy._lib._array_api import is_jax, is_lazy_array, xp_device_type, xpx

y = xpx.at(x)[2:4].add(1.0)
np.testing.assert_allclose(y - x, [0, 0, 1, 1] + 8 * [0], atol=1e-6)
masked = fxflow.jit(lambda x: xpx.at(x, x > 0).set(0.0))(x)
np.testing.assert_array_equal(masked, np.minimum(x, 0))
assert is_jax(fnp) and not is_jax(np)
assert not is_lazy_array(x) and xp_device_type(x) == "cpu"
assert fxflow.jit(lambda x: fnp.asarray(is_lazy_array(x)))(x)
halved = fxflow.jit(lambda x: xpx.apply_where(x > 0, x, lambda x: x / 2, lambda x: -x))
np.testing.assert_allclose(halved(x), np.where(x > 0, x / 2, -x))
# Arrays of others are as they were.
z = np.zeros(3)
assert xpx.at(z)[0].set(1.0) is z
""",
}


def run(program: str, **options: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own: SciPy stays as it was loaded."""
    environment = {k: v for k, v in os.environ.items() if k != "SCIPY_ARRAY_API"}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        **options,
    )


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    done = run(START, input=json.dumps(PROGRAMS))
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_scipy_takes_our_arrays(name: str, errors: dict[str, str]) -> None:
    assert name not in errors, errors[name]


def test_scipy_loaded_without_its_variable_is_refused() -> None:
    done = run("import scipy, fxflow.compat.scipy\nfxflow.compat.scipy.install()")
    assert "SciPy is loaded already" in done.stderr
    assert "set SCIPY_ARRAY_API=1 before Python starts" in done.stderr
