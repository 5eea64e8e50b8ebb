"""SciPy's functions on fxflow arrays: `from fxflow.scipy import special, linalg`."""

# fmt: off
from fxflow._names import answer as _answer

_answer(
    globals(),
    (),
    lazy=(
        "cluster", "differentiate", "fft", "integrate", "interpolate", "linalg",
        "ndimage", "optimize", "signal", "sparse", "spatial", "special", "stats",
    ),
)
# fmt: on
