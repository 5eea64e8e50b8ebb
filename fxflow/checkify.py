"""Checks of values in functions that are traced: errors as results.

`check` states a condition; `checkify` makes a function return what does not hold beside
its result, and can look for NaN, divisions by zero and indices out of bounds itself.
"""

from fxflow.core.boundary import public as _public
from fxflow.lax.checking import ErrorCategory, check, debug_check
from fxflow.transforms.checkify import (
    Error,
    all_checks,
    automatic_checks,
    check_error,
    checkify,
    div_checks,
    float_checks,
    index_checks,
    init_error,
    nan_checks,
    user_checks,
)

__all__ = [
    "Error",
    "ErrorCategory",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]

_public(globals(), __all__)
