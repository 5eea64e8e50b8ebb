"""For those who extend fxflow: own operations with their rules, and graphs as data.

An operation is a class derived from `Primitive`, whose methods are its rules, and
`register` makes it known. Most derive from a family, which gives rules that are true
of many operations: `Elementwise`, `Linear`, `Structural`, `Bilinear`, `Reduction`,
`HigherOrder`. `docs/extending.md` has examples.

`fxflow.make_graph` gives a `FunctionGraph`, whose `.graph` is a `Graph` of `Node`s,
`Var`s and `Literal`s; `interpret` walks it with values of any kind.
"""

from fxflow.core.arrays import Aval
from fxflow.core.boundary import public as _public
from fxflow.core.ir.arith import instantiate
from fxflow.core.ir.graph import Graph, Literal, Node, Var, interpret, subgraphs
from fxflow.core.ir.higher_order import HigherOrder
from fxflow.core.ir.primitive import (
    AxisRules,
    GraphRules,
    HostRules,
    MemoryRules,
    MultipleResults,
    Primitive,
    Zero,
    register,
)
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.lowering import Context, register_lowering
from fxflow.lax.families import (
    ANY,
    BITS,
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMERIC,
    ORDERED,
    REAL,
    Bilinear,
    Elementwise,
    Linear,
    Structural,
)
from fxflow.lax.reduction import Reduction
from fxflow.transforms.inspection import FunctionGraph

__all__ = [
    # operations
    "Primitive",
    "MultipleResults",
    "HigherOrder",
    "Elementwise",
    "Linear",
    "Structural",
    "Bilinear",
    "Reduction",
    "register",
    "register_lowering",
    # rules that few operations have
    "HostRules",
    "GraphRules",
    "AxisRules",
    "MemoryRules",
    # what rules are given
    "Aval",
    "Context",
    "Tracer",
    "Zero",
    "instantiate",
    # kinds of dtypes, for `Elementwise` and `Reduction`
    "ANY",
    "BITS",
    "COMPLEX",
    "FLOAT",
    "INEXACT",
    "INTEGER",
    "NUMERIC",
    "ORDERED",
    "REAL",
    # graphs
    "FunctionGraph",
    "Graph",
    "Literal",
    "Node",
    "Var",
    "interpret",
    "subgraphs",
]

_public(globals(), __all__)
