"""`install()`, the finder, the command line, the plug-in: in processes of their own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import fxflow

ROOT = Path(fxflow.__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def run(*arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=120,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def script(text: str, code: int = 0) -> str:
    return run("-c", textwrap.dedent(text), code=code)


def test_imports_find_fxflow():
    out = script("""
        import threading
        import fxflow.numpy as fnp
        before = fnp.ones(2)
        from fxflow.compat.jax import install, installed
        assert not installed()
        threads = [threading.Thread(target=install) for _ in range(4)]
        [t.start() for t in threads]; [t.join() for t in threads]
        install()
        assert installed()
        import jax, jax.numpy as jnp, jax.scipy.special, importlib.metadata
        from jax import lax, random, nn
        from jax.tree_util import tree_map
        import fxflow
        assert jax is fxflow.compat.jax and jax.numpy is jnp
        assert isinstance(before, jax.Array) and jax.jit(jnp.sum)(before) == 2
        assert jax.__version__ == importlib.metadata.version("jax") == "0.10.2"
        assert importlib.metadata.version("jaxlib") == importlib.metadata.distribution(
            "jaxlib").version
        import sys
        assert sum(type(f).__name__ == "Finder" for f in sys.meta_path) == 1
        assert jax.scipy.special.erf is fxflow.scipy.special.erf
        assert jax.devices()[0].platform == "cpu"
        assert sys.modules["jax.tree_util"] is jax.tree_util
        jax.ops
        assert sys.modules["jax.ops"] is jax.ops
        assert jnp.zeros(2, "float64").dtype == "float32"
        print("fine")
    """)
    assert "fine" in out


def test_the_real_jax_is_not_replaced():
    out = script("""
        import sys, types
        real = types.ModuleType("jax"); real.__file__ = "/somewhere/jax/__init__.py"
        sys.modules["jax"] = real
        from fxflow.compat.jax import install
        try:
            install()
        except RuntimeError as error:
            print(error)
        assert sys.modules["jax"] is real
    """)
    assert "loaded already, from /somewhere/jax" in out
    assert "python -m fxflow.compat.jax" in out


def test_a_part_of_the_real_jax_is_seen():
    out = script("""
        import sys, types
        part = types.ModuleType("jax._src"); part.__file__ = "/somewhere/jax/_src.py"
        sys.modules["jax._src"] = part
        from fxflow.compat.jax import install, installed
        try:
            install()
        except RuntimeError as error:
            print(error)
        assert not installed() and "jax" not in sys.modules
        del sys.modules["jax._src"]
        install()
        assert installed()
    """)
    assert "loaded already, from /somewhere/jax/_src.py" in out


def test_install_in_a_notebook_that_holds_arrays():
    pytest.importorskip("IPython")
    out = script("""
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        cells = [
            "import fxflow, fxflow.numpy as fnp",
            "x = fnp.arange(3.0); f = fxflow.jit(lambda x: x * 2); y = f(x)",
            "import fxflow.compat.jax; fxflow.compat.jax.install()",
            "fxflow.compat.jax.install(); import jax, jax.numpy as jnp",
            "assert isinstance(x, jax.Array) and isinstance(y, jnp.ndarray)",
            "g = jax.jit(jax.grad(lambda x: jnp.sum(f(x) * x)))",
            "assert g(x).tolist() == [0.0, 4.0, 8.0]",
            "assert jax.tree_util.tree_map(jnp.sum, {'y': y})['y'] == 6",
            "import threading",
            "t = threading.Thread(target=fxflow.compat.jax.install)",
            "t.start(); t.join(); from jax import lax; assert lax.sin(0.0) == 0",
        ]
        for cell in cells:
            shell.run_cell(cell).raise_error()
        print("fine")
    """)
    assert "fine" in out


def test_absent_names_say_which_and_the_importer(tmp_path):
    (tmp_path / "client.py").write_text(
        "import jax\n"
        "def attribute(): return jax.numpy.no_such_function\n"
        "def part():\n    from jax._src import no_such_module\n"
        "def module():\n    import jax.experimental.no_such_module\n"
        "def listed():\n    from jax.numpy.fft import no_such_transform\n"
    )
    out = script(f"""
        import sys; sys.path.insert(0, {str(tmp_path)!r})
        import fxflow.compat.jax; fxflow.compat.jax.install()
        import client, importlib.util
        for call in (client.attribute, client.part, client.module, client.listed):
            try:
                call()
            except (AttributeError, ImportError) as error:
                print(type(error).__name__, error)
        import jax
        assert not hasattr(jax, "nothing") and getattr(jax, "nothing", 3) == 3
        assert importlib.util.find_spec("jax.nothing") is None
    """)
    lines = out.splitlines()
    assert lines[0].startswith("AttributeError jax.numpy.no_such_function is not in")
    assert "client (line 2 of" in lines[0]
    assert "fxflow's issues" in lines[0]
    assert lines[1].startswith("ModuleNotFoundError jax._src.no_such_module")
    assert "client (line 4 of" in lines[1]
    assert lines[2].startswith("ModuleNotFoundError jax.experimental.no_such_module")
    assert lines[3].startswith("ModuleNotFoundError jax.numpy.fft.no_such_transform")


def test_command_line(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, jax, helper\nprint(__name__, sys.argv[1:], jax.__name__)\n"
    )
    (tmp_path / "helper.py").write_text("")
    out = run("-m", "fxflow.compat.jax", str(program), "a", "-b")
    assert out == "__main__ ['a', '-b'] fxflow.compat.jax\n"
    run("-m", "fxflow.compat.jax", "-m", "json.tool", "--help")
    out = run("-m", "fxflow.compat.jax", "-c", "import jax; print(jax.__version__)")
    assert out == "0.10.2\n"
    assert "usage" in run("-m", "fxflow.compat.jax", "--help")
    assert "no file" in run("-m", "fxflow.compat.jax", "nowhere.py", code=2)


def test_pytest_plugin(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import jax.numpy as jnp\ndef test_sum(): assert jnp.ones(3).sum() == 3\n"
    )
    plugin = "fxflow.compat.jax.pytest_plugin"
    out = run(
        "-m", "pytest", "-q", "-p", plugin, "--rootdir", str(tmp_path), str(tmp_path)
    )
    assert "1 passed" in out


def test_nothing_is_imported_before_it_is_used():
    out = script("""
        import sys
        import fxflow.compat.jax; fxflow.compat.jax.install()
        import jax
        parts = {"scipy", "experimental", "interpreters", "example_libraries", "nn"}
        print(sorted(m for m in parts if f"fxflow.compat.jax.{m}" in sys.modules))
    """)
    assert out == "[]\n"
