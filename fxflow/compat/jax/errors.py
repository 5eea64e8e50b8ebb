"""`jax.errors`: fxflow's errors under JAX's names."""

from fxflow.compat.jax._mirror import listen
from fxflow.devices import RuntimeFailure as JaxRuntimeError
from fxflow.errors import (
    ArgumentError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from fxflow.errors import (
    BooleanIndexError as NonConcreteBooleanIndexError,
)
from fxflow.errors import (
    ConcretizationError as ConcretizationTypeError,
)
from fxflow.errors import (
    DtypeError as TypePromotionError,
)
from fxflow.errors import GraphError as JaxprTypeError
from fxflow.errors import (
    InconclusiveSizeError as InconclusiveDimensionOperation,
)
from fxflow.errors import (
    LeakedTracerError as UnexpectedTracerError,
)
from fxflow.errors import (
    OutOfRangeError as JAXIndexError,
)


class KeyReuseError(RuntimeError):
    """A key was used twice; fxflow does not look for that, and never raises it."""


JAXTypeError = ArgumentError

__all__ = [
    "ConcretizationTypeError",
    "InconclusiveDimensionOperation",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KeyReuseError",
    "NonConcreteBooleanIndexError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TypePromotionError",
    "UnexpectedTracerError",
]

listen(globals())
