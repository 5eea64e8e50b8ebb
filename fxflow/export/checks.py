"""Checks the custom calls of exported programs.

A custom call names a function of the runtime, and only some are stable across versions:
those of the linear-algebra libraries, and the compiler's markers. The user has to allow
any other. Callbacks into Python are never exported: the function does not exist where
the program is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fxflow.errors import ExportError

_LAPACK = (
    r"lapack_[sdcz](potrf|geqrf|geqp3|orgqr|ungqr|ormqr|unmqr|syevd|heevd|geev|gesdd"
    r"|getrf|sytrd|hetrd|gehrd|gees|trsm|gtsv)_ffi"
)
_GPU = (
    r"(cusolver|hipsolver)_(getrf|geqrf|orgqr|ormqr|potrf|syevd|gesvd|gesvdj|gesvdp"
    r"|gesdd|sytrd|syrk|geev|csrlsvqr)_ffi"
    r"|cusparse_gtsv2_ffi|(cu|hip)_(lu_pivots_to_permutation|threefry2x32_ffi)"
)
_STABLE = frozenset(
    [
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "annotate_device_placement",
        "Eigh",
        "Qr",
        "ProductOfElementaryHouseholderReflectors",
        "LuDecomposition",
        "ApproxTopK",
        "stablehlo.dynamic_approx_top_k",
        "stablehlo.dynamic_reduce_window",
        "stablehlo.dynamic_rng_bit_generator",
        "stablehlo.dynamic_top_k",
        "AllocateBuffer",
        "shape_assertion",
        "tpu_custom_call",
    ]
)
#: Callbacks into Python, under any name.
_CALLBACK = r"(?i).*(callback|python).*"


class DisabledSafetyCheck:
    """A check that `export`, or the call of an exported function, skips.

    Args:
      check: text of the check; use `platform` or `custom_call` instead.

    Example:
      >>> DisabledSafetyCheck.custom_call("my_kernel")
      custom_call:my_kernel
      >>> DisabledSafetyCheck.custom_call("my_kernel").is_custom_call()
      'my_kernel'
    """

    __slots__ = ("_check",)

    def __init__(self, check: str) -> None:
        self._check = check

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Allows calls on platforms that the program was not exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Allows exporting a program with custom calls of one target.

        Args:
          target_name: the name under which the function is registered, here and
            wherever the program is loaded.
        """
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """Returns the target of an allowed custom call, or None for other checks."""
        kind, _, name = self._check.partition(":")
        return name if kind == "custom_call" and name else None

    def __repr__(self) -> str:
        return self._check

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._check == other._check

    def __hash__(self) -> int:
        return hash(self._check)


def require_known_calls(
    targets: Iterable[str], disabled: Iterable[DisabledSafetyCheck], name: str
) -> None:
    """Checks the custom calls of a program.

    Args:
      targets: targets of the custom calls.
      disabled: checks to skip.
      name: name of the program, for messages.

    Raises:
      ExportError: a target calls back into Python, or is not known to be stable across
        versions of the runtime.
    """
    allowed = {check.is_custom_call() for check in disabled}
    for target in sorted(targets):
        if re.fullmatch(_CALLBACK, target):
            raise ExportError(
                f"{name} calls back into Python ({target}), a function that does not "
                "exist where the program is loaded: remove callbacks and debug prints"
            )
        known = target in _STABLE or re.fullmatch(f"{_LAPACK}|{_GPU}", target)
        if not known and target not in allowed:
            raise ExportError(
                f"{name} calls {target!r}, which other versions of the runtime may "
                "lack or may have changed: if you make sure that they have it, give "
                f"disabled_checks=[DisabledSafetyCheck.custom_call({target!r})]"
            )
