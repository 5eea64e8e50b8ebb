"""Mistakes that users of an array library make, each a function that ends in an error.

They run under fxflow and under JAX alike: `m.ap` is the package, `m.np` its NumPy,
`m.lax`, `m.random`, `m.tree` its modules, `m.optim` fxflow's or optax. Two devices are
enough.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

MISTAKES: dict[str, Callable[[Any], Any]] = {}


def mistake(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    MISTAKES[function.__name__] = function
    return function


# -- shapes ----------------------------------------------------------------------------


@mistake
def add_shapes(m: SimpleNamespace) -> None:
    m.np.ones((3, 4)) + m.np.ones((5, 6))


@mistake
def matmul_shapes(m: SimpleNamespace) -> None:
    m.np.ones((3, 4)) @ m.np.ones((5, 6))


@mistake
def matmul_in_jit(m: SimpleNamespace) -> None:
    def layer(w, x):
        return x @ w

    m.ap.jit(layer)(m.np.ones((3, 4)), m.np.ones((5, 6)))


@mistake
def lax_add_shapes(m: SimpleNamespace) -> None:
    m.lax.add(m.np.ones((3, 4)), m.np.ones((4,)))


@mistake
def reshape_size(m: SimpleNamespace) -> None:
    m.np.arange(12).reshape(5, 3)


@mistake
def concatenate_shapes(m: SimpleNamespace) -> None:
    m.np.concatenate([m.np.ones((2, 3)), m.np.ones((2, 4))])


@mistake
def stack_shapes(m: SimpleNamespace) -> None:
    m.np.stack([m.np.ones(2), m.np.ones(3)])


@mistake
def einsum_sizes(m: SimpleNamespace) -> None:
    m.np.einsum("ij,jk->ik", m.np.ones((3, 4)), m.np.ones((5, 6)))


@mistake
def dot_general_sizes(m: SimpleNamespace) -> None:
    dims = (((1,), (0,)), ((), ()))
    m.lax.dot_general(m.np.ones((3, 4)), m.np.ones((5, 6)), dims)


@mistake
def conv_channels(m: SimpleNamespace) -> None:
    m.lax.conv(m.np.ones((1, 3, 8, 8)), m.np.ones((4, 2, 3, 3)), (1, 1), "SAME")


@mistake
def axis_out_of_range(m: SimpleNamespace) -> None:
    m.np.sum(m.np.ones((3, 4)), axis=2)


@mistake
def transpose_axes(m: SimpleNamespace) -> None:
    m.np.transpose(m.np.ones((3, 4)), (0, 1, 2))


@mistake
def squeeze_axis(m: SimpleNamespace) -> None:
    m.np.squeeze(m.np.ones((3, 4)), 1)


@mistake
def broadcast_to_shape(m: SimpleNamespace) -> None:
    m.np.broadcast_to(m.np.ones(3), (4,))


@mistake
def update_shape(m: SimpleNamespace) -> None:
    m.np.zeros((3, 4)).at[0].set(m.np.ones(3))


# -- dtypes and kinds ------------------------------------------------------------------


@mistake
def text_as_array(m: SimpleNamespace) -> None:
    m.np.sin("abc")


@mistake
def list_as_array(m: SimpleNamespace) -> None:
    m.np.sin([1.0, 2.0])


@mistake
def list_beside_array(m: SimpleNamespace) -> None:
    m.np.ones(3) + [1, 2, 3]


@mistake
def ragged_list(m: SimpleNamespace) -> None:
    m.np.array([[1.0, 2.0], [3.0]])


@mistake
def objects_as_array(m: SimpleNamespace) -> None:
    m.np.asarray(np.array([None, {}], dtype=object))


@mistake
def none_as_operand(m: SimpleNamespace) -> None:
    m.np.ones(3) * None


@mistake
def unknown_dtype(m: SimpleNamespace) -> None:
    m.np.zeros(3, dtype="float23")


@mistake
def floats_in_bitwise(m: SimpleNamespace) -> None:
    m.np.ones(3) & 1


@mistake
def lax_add_dtypes(m: SimpleNamespace) -> None:
    m.lax.add(m.np.ones(3), m.np.ones(3, "int32"))


@mistake
def integer_too_large(m: SimpleNamespace) -> None:
    m.np.array(3, "int8") + 1000


# -- indices, immutability -------------------------------------------------------------


@mistake
def float_index(m: SimpleNamespace) -> None:
    m.np.arange(3)[1.0]


@mistake
def too_many_indices(m: SimpleNamespace) -> None:
    m.np.ones((2, 3))[0, 0, 0]


@mistake
def list_index(m: SimpleNamespace) -> None:
    m.np.arange(3)[[0, 2]]


@mistake
def item_assignment(m: SimpleNamespace) -> None:
    x = m.np.zeros(3)
    x[0] = 1.0


@mistake
def boolean_index_in_jit(m: SimpleNamespace) -> None:
    m.ap.jit(lambda x: x[x > 0])(m.np.arange(3.0))


@mistake
def slice_bound_in_jit(m: SimpleNamespace) -> None:
    m.ap.jit(lambda x, n: x[:n])(m.np.arange(3.0), 2)


@mistake
def truth_of_many(m: SimpleNamespace) -> None:
    if m.np.arange(3) > 1:
        pass


# -- values that are traced ------------------------------------------------------------


@mistake
def bool_of_argument(m: SimpleNamespace) -> None:
    def relu(x, slope):
        return x if x > 0 else slope * x

    m.ap.jit(relu)(1.0, 0.1)


@mistake
def loop_over_argument(m: SimpleNamespace) -> None:
    def power(x, n):
        out = 1.0
        for _ in range(n):
            out = out * x
        return out

    m.ap.jit(power)(2.0, 3)


@mistake
def float_of_traced(m: SimpleNamespace) -> None:
    def loss(params, x):
        total = (params["w"] * x).sum()
        return float(total)

    m.ap.grad(loss)({"w": m.np.ones(3)}, m.np.ones(3))


@mistake
def numpy_of_traced(m: SimpleNamespace) -> None:
    m.ap.jit(lambda x: np.sum(np.asarray(x)))(m.np.ones(3))


@mistake
def length_from_argument(m: SimpleNamespace) -> None:
    m.ap.jit(lambda n: m.np.arange(n))(3)


@mistake
def shape_from_argument(m: SimpleNamespace) -> None:
    m.ap.jit(lambda n: m.np.zeros((n, 2)))(3)


@mistake
def item_in_scan(m: SimpleNamespace) -> None:
    def step(carry, x):
        return carry + x.item(), x

    m.lax.scan(step, 0.0, m.np.ones(3))


@mistake
def while_in_grad(m: SimpleNamespace) -> None:
    def halve(x):
        while x > 1:
            x = x / 2
        return x

    m.ap.jit(m.ap.grad(halve))(5.0)


@mistake
def leaked_list(m: SimpleNamespace) -> None:
    kept = []

    def f(x):
        kept.append(x * 2)
        return x

    m.ap.jit(f)(1.0)
    kept[0] + 1


@mistake
def leaked_from_scan(m: SimpleNamespace) -> None:
    kept = []

    def step(carry, x):
        kept.append(carry)
        return carry + x, x

    m.lax.scan(step, 0.0, m.np.ones(3))
    kept[0] + 1


@mistake
def nonzero_in_jit(m: SimpleNamespace) -> None:
    m.ap.jit(m.np.nonzero)(m.np.arange(3))


# -- jit -------------------------------------------------------------------------------


@mistake
def text_argument(m: SimpleNamespace) -> None:
    def run(x, mode):
        return x

    m.ap.jit(run)(1.0, "train")


@mistake
def static_list(m: SimpleNamespace) -> None:
    m.ap.jit(lambda x, shape: x.reshape(shape), static_argnums=1)(m.np.ones(4), [2, 2])


@mistake
def static_dict(m: SimpleNamespace) -> None:
    def run(x, options):
        return x * options["scale"]

    m.ap.jit(run, static_argnames="options")(1.0, options={"scale": 2})


@mistake
def static_array(m: SimpleNamespace) -> None:
    m.ap.jit(lambda x, y: x + y, static_argnums=1)(1.0, m.np.ones(2))


@mistake
def result_no_array(m: SimpleNamespace) -> None:
    def predict(x):
        return {"y": x, "name": "linear"}

    m.ap.jit(predict)(1.0)


@mistake
def donated_reused(m: SimpleNamespace) -> None:
    x = m.np.ones(4)
    m.ap.jit(lambda x: x + 1, donate_argnums=0)(x)
    x + 1


@mistake
def unknown_static_name(m: SimpleNamespace) -> None:
    m.ap.jit(lambda x, n: x, static_argnames="m")


@mistake
def dict_keys_mixed(m: SimpleNamespace) -> None:
    m.ap.jit(lambda d: d)({"a": 1.0, 2: 1.0})


# -- derivatives -----------------------------------------------------------------------


@mistake
def grad_of_array(m: SimpleNamespace) -> None:
    m.ap.grad(lambda x: x * 2)(m.np.ones(3))


@mistake
def grad_of_integers(m: SimpleNamespace) -> None:
    m.ap.grad(lambda x: x * 2.0)(3)


@mistake
def grad_argnums(m: SimpleNamespace) -> None:
    m.ap.grad(lambda x: x, argnums=1)(1.0)


@mistake
def grad_of_pair(m: SimpleNamespace) -> None:
    m.ap.grad(lambda x: (x, x))(1.0)


@mistake
def jvp_tangent(m: SimpleNamespace) -> None:
    m.ap.jvp(m.np.sin, (m.np.ones(3),), (m.np.ones(2),))


@mistake
def vjp_cotangent(m: SimpleNamespace) -> None:
    m.ap.vjp(m.np.sin, m.np.ones(3))[1](m.np.ones(2))


@mistake
def custom_vjp_without_rules(m: SimpleNamespace) -> None:
    f = m.ap.custom_vjp(lambda x: x)
    m.ap.grad(f)(1.0)


@mistake
def custom_vjp_count(m: SimpleNamespace) -> None:
    @m.ap.custom_vjp
    def f(x, y):
        return x * y

    f.defvjp(lambda x, y: (x * y, (x, y)), lambda saved, ct: (ct,))
    m.ap.grad(f)(1.0, 2.0)


@mistake
def grad_through_while(m: SimpleNamespace) -> None:
    m.ap.grad(lambda x: m.lax.while_loop(lambda x: x < 9, lambda x: x * 2, x))(1.0)


# -- vmap ------------------------------------------------------------------------------


@mistake
def vmap_sizes(m: SimpleNamespace) -> None:
    m.ap.vmap(lambda x, y: x + y)(m.np.ones(3), m.np.ones(4))


@mistake
def vmap_scalar(m: SimpleNamespace) -> None:
    m.ap.vmap(lambda x, y: x + y)(m.np.ones(3), 1.0)


@mistake
def vmap_in_axes_length(m: SimpleNamespace) -> None:
    m.ap.vmap(lambda x, y: x + y, in_axes=(0,))(m.np.ones(3), m.np.ones(3))


@mistake
def vmap_in_axes_tree(m: SimpleNamespace) -> None:
    def apply(params, x):
        return params["w"] * x

    m.ap.vmap(apply, in_axes=({"v": 0}, 0))({"w": m.np.ones(3)}, m.np.ones(3))


@mistake
def axis_name_unbound(m: SimpleNamespace) -> None:
    m.lax.psum(1.0, "batch")


# -- control flow ----------------------------------------------------------------------


@mistake
def scan_carry_dtype(m: SimpleNamespace) -> None:
    m.lax.scan(lambda c, x: (c + x, None), m.np.zeros((), "int32"), m.np.ones(3))


@mistake
def scan_carry_structure(m: SimpleNamespace) -> None:
    m.lax.scan(lambda c, x: ((c, c), x), 0.0, m.np.ones(3))


@mistake
def scan_no_pair(m: SimpleNamespace) -> None:
    m.lax.scan(lambda c, x: c + x, 0.0, m.np.ones(3))


@mistake
def scan_lengths(m: SimpleNamespace) -> None:
    m.lax.scan(lambda c, x: (c, x), 0.0, (m.np.ones(3), m.np.ones(4)))


@mistake
def cond_branches(m: SimpleNamespace) -> None:
    m.lax.cond(True, lambda x: x, lambda x: x.astype("int32"), 1.0)


@mistake
def cond_structures(m: SimpleNamespace) -> None:
    m.lax.cond(True, lambda x: (x, x), lambda x: x, 1.0)


@mistake
def cond_predicate(m: SimpleNamespace) -> None:
    m.lax.cond(m.np.ones(2) > 0, lambda x: x, lambda x: x, 1.0)


@mistake
def while_condition(m: SimpleNamespace) -> None:
    m.lax.while_loop(lambda x: x, lambda x: x + 1, 1.0)


@mistake
def while_carry(m: SimpleNamespace) -> None:
    m.lax.while_loop(lambda x: x < 3, lambda x: m.np.ones(2) * x, 1.0)


# -- trees, keys, optimizers -----------------------------------------------------------


@mistake
def tree_map_structures(m: SimpleNamespace) -> None:
    m.tree.map(lambda x, y: x, {"a": 1, "b": 2}, {"a": 1, "c": 2})


@mistake
def tree_unflatten_leaves(m: SimpleNamespace) -> None:
    m.tree.unflatten(m.tree.structure({"a": 1, "b": 2}), [1])


@mistake
def seed_as_key(m: SimpleNamespace) -> None:
    m.random.normal(42, (3,))


@mistake
def key_arithmetic(m: SimpleNamespace) -> None:
    m.random.key(0) + 1


@mistake
def keys_not_one(m: SimpleNamespace) -> None:
    m.random.normal(m.random.split(m.random.key(0)), (3,))


@mistake
def random_shape(m: SimpleNamespace) -> None:
    m.random.normal(m.random.key(0), (3, -1))


@mistake
def optimizer_state(m: SimpleNamespace) -> None:
    old, new = {"w": m.np.ones(3)}, {"w": m.np.ones(3), "b": m.np.ones(1)}
    tx = m.optim.adam(1e-3)
    tx.update(new, tx.init(old), new)


# -- debugging, devices, sharding ------------------------------------------------------


@mistake
def nan_found(m: SimpleNamespace) -> None:
    with m.ap.debug_nans(True):
        m.ap.jit(lambda x: m.np.log(x))(-1.0)


@mistake
def unknown_platform(m: SimpleNamespace) -> None:
    m.ap.devices("npu")


@mistake
def sharding_divides(m: SimpleNamespace) -> None:
    mesh = m.ap.make_mesh((2,), ("data",))
    spec = m.ap.sharding.PartitionSpec("data")
    m.ap.device_put(m.np.ones(3), m.ap.sharding.NamedSharding(mesh, spec))


@mistake
def sharding_axis(m: SimpleNamespace) -> None:
    mesh = m.ap.make_mesh((2,), ("data",))
    m.ap.sharding.NamedSharding(mesh, m.ap.sharding.PartitionSpec("model"))


@mistake
def mesh_too_large(m: SimpleNamespace) -> None:
    m.ap.make_mesh((64,), ("data",))


@mistake
def pmap_sizes(m: SimpleNamespace) -> None:
    m.ap.pmap(lambda x: x)(m.np.ones((64, 2)))


@mistake
def callback_shape(m: SimpleNamespace) -> None:
    shape = m.ap.ShapeDtypeStruct((3,), "float32")
    m.ap.block_until_ready(
        m.ap.pure_callback(lambda x: np.ones(4, "float32"), shape, m.np.ones(3))
    )


@mistake
def foreign_array(m: SimpleNamespace) -> None:
    class Tensor:
        shape, dtype = (3,), np.dtype("float32")

        def __dlpack__(self, **options):
            raise BufferError("no memory to share")

        def __repr__(self):
            return "tensor([1., 2., 3.])"

    Tensor.__module__ = "torch"
    m.np.sin(Tensor())


@mistake
def side_effect(m: SimpleNamespace) -> None:
    class Layer:
        total = 0.0

    layer = Layer()

    def call(x):
        layer.total = layer.total + x
        return x

    m.ap.jit(call)(1.0)
    m.ap.jit(lambda x: x + layer.total)(2.0)


@mistake
def absent_name(m: SimpleNamespace) -> None:
    m.np.concat_all


@mistake
def option_mistyped(m: SimpleNamespace) -> None:
    m.ap.config.update("debug_nan", True)


# -- habits ----------------------------------------------------------------------------


@mistake
def concatenate_two_arguments(m: SimpleNamespace) -> None:
    m.np.concatenate(m.np.ones(3), m.np.ones(3))


@mistake
def hstack_two_arguments(m: SimpleNamespace) -> None:
    m.np.hstack(m.np.ones(3), m.np.ones(3))


@mistake
def fori_loop_structure(m: SimpleNamespace) -> None:
    m.lax.fori_loop(0, 3, lambda i, c: (c, c), m.np.ones(3))


@mistake
def fori_loop_dtype(m: SimpleNamespace) -> None:
    def body(i, c):
        return c.astype("int32")

    m.lax.fori_loop(0, 3, body, m.np.ones(3))


@mistake
def traced_fori_loop_structure(m: SimpleNamespace) -> None:
    def body(i, c):
        return c, c

    m.ap.jit(lambda n: m.lax.fori_loop(0, n, body, m.np.ones(3)))(3)


@mistake
def at_in_place(m: SimpleNamespace) -> None:
    x = m.np.ones(3)
    x.at[0] += 1


@mistake
def at_assigned(m: SimpleNamespace) -> None:
    x = m.np.ones(3)
    x.at[0] = 1


@mistake
def jitted_method(m: SimpleNamespace) -> None:
    class Layer:
        def __repr__(self):
            return "Layer()"

        @m.ap.jit
        def call(self, x):
            return x

    Layer().call(m.np.ones(3))


@mistake
def method_of_grad(m: SimpleNamespace) -> None:
    class Layer:
        def __repr__(self):
            return "Layer()"

        def loss(self, x):
            return x.sum()

        gradient = m.ap.grad(loss)

    Layer().gradient(m.np.ones(3))


@mistake
def formatted_traced(m: SimpleNamespace) -> None:
    m.ap.jit(lambda x: f"{x:.2f}")(1.0)


@mistake
def optimizer_arguments(m: SimpleNamespace) -> None:
    optimizer = m.optim.adam(1e-3)
    params = {"w": m.np.ones(3)}
    optimizer.update(params, params)


@mistake
def shape_for_a_key(m: SimpleNamespace) -> None:
    m.random.normal((3,))


@mistake
def conv_channels_last(m: SimpleNamespace) -> None:
    images, kernel = m.np.ones((1, 28, 28, 3)), m.np.ones((3, 3, 3, 8))
    m.lax.conv_general_dilated(images, kernel, (1, 1), "SAME")


@mistake
def imported_name(m: SimpleNamespace) -> None:
    exec(f"from {m.np.__name__} import concat_all")


def outcome(name: str, m: SimpleNamespace) -> Exception | None:
    """Returns the error that a mistake ends in."""
    try:
        MISTAKES[name](m)
    except Exception as error:
        return error
    return None


def printed(error: Exception) -> int:
    """Returns how many lines an error prints, without those that mark code (~~^~~).

    Which code is marked differs between versions of Python.
    """
    lines = "".join(traceback.format_exception(error)).splitlines()
    return sum(not re.fullmatch(r"\s*[~^]+", line) for line in lines)
