"""How a module under JAX's name is made of one of fxflow's.

`mirror` copies the public names of fxflow's module into the namespace of the one that
calls it; what JAX spells another way is a table there, what means something else is
written out. A name that stays absent is answered here: which, who asked.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from types import FrameType, ModuleType
from typing import Any

HERE = __package__  # fxflow.compat.jax
#: Modules that cannot be here, and why.
_REFUSED = {
    "jax.experimental.pallas.mosaic_gpu": "it programs one generation of GPUs by "
    "barriers and registers: write jax.experimental.pallas.triton, or fxflow.kernels",
    "jax.experimental.pallas.tpu_sc": "it programs the SparseCores of TPUs: write "
    "jax.experimental.pallas",
    "jax.experimental.pallas.fuser": "it fuses operations into kernels for TPUs: call "
    "them in the kernel",
}


def mirror(
    namespace: dict[str, Any],
    *sources: str,
    renamed: Mapping[str, str] | None = None,
) -> list[str]:
    """Fills a module with the names of others.

    What the module defines itself, before or after the call, stays.

    Args:
      namespace: its `globals()`, which gets the names, `__getattr__` and `__dir__`.
      *sources: modules of fxflow whose public names it has.
      renamed: name there -> name in the first source.

    Returns:
      The names that were copied.
    """
    modules = [importlib.import_module(source) for source in sources]
    found: dict[str, Any] = {}
    for module in modules:
        found.update((name, getattr(module, name)) for name in _public(module))
    for name, source in (renamed or {}).items():
        found[name] = getattr(modules[0], source)
    for name, value in found.items():
        namespace.setdefault(name, value)
    listen(namespace)
    return list(found)


def _public(module: ModuleType) -> list[str]:
    return list(getattr(module, "__all__", ()))


def listen(namespace: dict[str, Any]) -> None:
    """Makes a module import its parts when they are used, and answer absent names.

    Args:
      namespace: its `globals()`.
    """
    module = namespace["__name__"]
    # Without a path, Python would not ask the finder about `from module import name`.
    namespace.setdefault("__path__", [])

    def __getattr__(name: str) -> Any:
        part = None if name.startswith("__") else target(f"{module}.{name}")
        if part is not None:
            return importlib.import_module(part)
        raise AttributeError(absent(f"{jax_name(module)}.{name}"), name=name)

    def __dir__() -> list[str]:
        return sorted(n for n in namespace if n.startswith("__") or n[0] != "_")

    namespace["__getattr__"], namespace["__dir__"] = __getattr__, __dir__
    # Packages look up in `sys.modules` what they know to be loaded.
    if sys.modules.get("jax") is sys.modules.get(HERE) and module in sys.modules:
        sys.modules.setdefault(jax_name(module), sys.modules[module])


def target(module: str) -> str | None:
    """Returns which module stands for one of JAX, without importing it, or None.

    Args:
      module: its name below this package.
    """
    if _is_there(module):
        return module
    below = module.removeprefix(HERE)
    # SciPy's functions mean the same in both.
    same = f"fxflow{below}" if below.split(".")[1:2] == ["scipy"] else ""
    return same if same and _is_there(same) else None


def _is_there(module: str) -> bool:
    if module in sys.modules:
        return True
    try:
        found = importlib.util.find_spec(module) is not None
        # The import of its package may have put it there: a distribution has no file.
        return found or module in sys.modules
    except ModuleNotFoundError:  # its parent is not a package
        return False


def jax_name(module: str) -> str:
    """Returns what JAX calls a module of this package."""
    return "jax" + module.removeprefix(HERE)


def absent(name: str) -> str:
    """Returns what is said about a name of JAX that is not here.

    Args:
      name: in full, `jax.numpy.nothing`.
    """
    for module, why in _REFUSED.items():
        if name == module or name.startswith(f"{module}."):
            return f"{name} is not in fxflow.compat.jax: {why} (docs/compat.md)"
    return (
        f"{name} is not in fxflow.compat.jax, which {asker()} uses as jax: it is not a "
        "name of JAX 0.10.2, or one that fxflow does not have yet. If JAX has it, that "
        "is for fxflow's issues, not the package's: report this line (docs/compat.md "
        "has what is known)"
    )


def asker() -> str:
    """Returns the module and line that asked, outside of this package and Python's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "?")
        file = frame.f_code.co_filename
        if (
            not name.startswith((HERE, "importlib", "contextlib", "runpy"))
            and "<frozen" not in file
        ):
            return f"{name} (line {frame.f_lineno} of {file})"
        frame = frame.f_back
    return "this program"
