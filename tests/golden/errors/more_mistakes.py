"""More mistakes, of users who come from PyTorch or guess: as in `mistakes.py`.

They are added to `MISTAKES`.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

from tests.golden.errors.mistakes import mistake


@mistake
def axis_called_dim(m: SimpleNamespace) -> None:
    m.np.sum(m.np.ones((3, 4)), dim=1)


@mistake
def keepdims_called_keepdim(m: SimpleNamespace) -> None:
    m.np.sum(m.np.ones((3, 4)), axis=1, keepdim=True)


@mistake
def lengths_not_a_tuple(m: SimpleNamespace) -> None:
    m.np.zeros(3, 4)


@mistake
def function_as_array(m: SimpleNamespace) -> None:
    m.np.mean(lambda x: x)


@mistake
def set_without_at(m: SimpleNamespace) -> None:
    m.np.zeros(3).set(1)


@mistake
def at_with_parentheses(m: SimpleNamespace) -> None:
    m.np.zeros(3).at(0).set(1)


@mistake
def append_method(m: SimpleNamespace) -> None:
    m.np.zeros(3).append(1)


@mistake
def fill_method(m: SimpleNamespace) -> None:
    m.np.arange(3.0).fill(0)


@mistake
def method_of_pytorch(m: SimpleNamespace) -> None:
    m.np.ones(3).unsqueeze(0)


@mistake
def numpy_method(m: SimpleNamespace) -> None:
    m.np.ones(3).numpy()


@mistake
def cuda_method(m: SimpleNamespace) -> None:
    m.np.ones(3).cuda()


@mistake
def view_with_lengths(m: SimpleNamespace) -> None:
    m.np.ones((2, 3)).view(-1)


@mistake
def unique_in_jit(m: SimpleNamespace) -> None:
    m.ap.jit(lambda x: m.np.unique(x))(m.np.arange(3))


@mistake
def number_of_points_in_jit(m: SimpleNamespace) -> None:
    m.ap.jit(lambda n: m.np.linspace(0.0, 1.0, n))(5)


@mistake
def reshape_in_jit(m: SimpleNamespace) -> None:
    m.ap.jit(lambda x, n: x.reshape(n, -1))(m.np.arange(6), 2)


@mistake
def identity_in_jit(m: SimpleNamespace) -> None:
    m.ap.jit(lambda x, n: m.np.eye(n)[x])(m.np.arange(3), 3)


@mistake
def axis_in_jit(m: SimpleNamespace) -> None:
    m.ap.jit(lambda x, a: m.np.sum(x, axis=a))(m.np.ones((2, 3)), 1)


@mistake
def number_of_keys_in_jit(m: SimpleNamespace) -> None:
    m.ap.jit(lambda k, n: m.ap.random.split(k, n))(m.random.key(0), 3)


@mistake
def grad_of_keywords(m: SimpleNamespace) -> None:
    def loss(w, x):
        return (w * x).sum()

    m.ap.grad(loss)(w=m.np.ones(3), x=m.np.ones(3))


@mistake
def grad_argnames(m: SimpleNamespace) -> None:
    m.ap.grad(lambda w: w, argnames="w")(1.0)


@mistake
def object_as_argument(m: SimpleNamespace) -> None:
    class Config:
        lr = 0.1

        def __repr__(self):
            return "Config()"

    def step(x, config):
        return x * config.lr

    m.ap.jit(step)(1.0, Config())


@mistake
def result_function(m: SimpleNamespace) -> None:
    m.ap.jit(lambda x: {"f": print})(1.0)


@mistake
def donated_in_a_loop(m: SimpleNamespace) -> None:
    @partial(m.ap.jit, donate_argnums=0)
    def step(params, x):
        return {"w": params["w"] + x}

    params = {"w": m.np.ones(4)}
    for _ in range(2):
        step(params, 1.0)


@mistake
def donated_twice(m: SimpleNamespace) -> None:
    x = m.np.ones(4)
    m.ap.jit(lambda a, b: a + b, donate_argnums=(0, 1))(x, x)


@mistake
def vmap_over_parameters(m: SimpleNamespace) -> None:
    def predict(p, x):
        return x @ p["w"] + p["b"]

    m.ap.vmap(predict)({"w": m.np.ones((4, 2)), "b": m.np.ones(2)}, m.np.ones((8, 4)))


@mistake
def vmap_over_one_key(m: SimpleNamespace) -> None:
    m.ap.vmap(lambda k, x: m.random.normal(k, x.shape))(
        m.random.key(0), m.np.ones((3, 2))
    )


@mistake
def cond_without_operands(m: SimpleNamespace) -> None:
    m.lax.cond(True, lambda x: x, lambda x: x)


@mistake
def scan_body_of_one(m: SimpleNamespace) -> None:
    m.lax.scan(lambda c: (c, None), 0.0, m.np.ones(3))


@mistake
def fori_body_of_one(m: SimpleNamespace) -> None:
    m.lax.fori_loop(0, 3, lambda c: c, 1.0)


@mistake
def while_body_of_two(m: SimpleNamespace) -> None:
    m.lax.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x), (0, 1.0))


@mistake
def mesh_names(m: SimpleNamespace) -> None:
    m.ap.make_mesh((2,), ("a", "b"))


@mistake
def shard_map_specs(m: SimpleNamespace) -> None:
    mesh = m.ap.make_mesh((2,), ("data",))
    m.ap.shard_map(
        lambda x, y: x + y,
        mesh=mesh,
        in_specs=(m.ap.P("data"),),
        out_specs=m.ap.P("data"),
    )(m.np.ones(4), m.np.ones(4))


@mistake
def arguments_on_different_devices(m: SimpleNamespace) -> None:
    a, b = (
        m.ap.NamedSharding(m.ap.make_mesh((1,), ("d",), devices=[dev]), m.ap.P("d"))
        for dev in m.ap.devices()[:2]
    )
    m.ap.jit(lambda x, y: x + y)(
        m.ap.device_put(m.np.ones(4), a), m.ap.device_put(m.np.ones(4), b)
    )


@mistake
def float_number_of_points(m: SimpleNamespace) -> None:
    m.np.linspace(0, 1, 10.0)


@mistake
def axis_as_text(m: SimpleNamespace) -> None:
    m.np.sum(m.np.ones((3, 4)), axis="rows")


@mistake
def axis_as_float(m: SimpleNamespace) -> None:
    m.np.sum(m.np.ones((3, 4)), axis=1.0)


@mistake
def scan_over_a_number(m: SimpleNamespace) -> None:
    m.lax.scan(lambda c, x: (c, x), 0.0, 10)


@mistake
def solve_of_a_rectangle(m: SimpleNamespace) -> None:
    m.np.linalg.solve(m.np.ones((3, 4)), m.np.ones(3))


@mistake
def tile_negative(m: SimpleNamespace) -> None:
    m.np.tile(m.np.ones(3), -1)


@mistake
def unknown_padding(m: SimpleNamespace) -> None:
    m.np.pad(m.np.ones((2, 3)), 1, mode="mirror")


@mistake
def callback_that_raises(m: SimpleNamespace) -> None:
    def load(i):
        raise FileNotFoundError("batch-3.npy")

    m.ap.block_until_ready(
        m.ap.jit(
            lambda i: m.ap.pure_callback(
                load, m.ap.ShapeDtypeStruct((2,), "float32"), i
            )
        )(3)
    )


@mistake
def map_swapped(m: SimpleNamespace) -> None:
    m.lax.map(m.np.ones(3), lambda x: x)


@mistake
def scan_other_carry(m: SimpleNamespace) -> None:
    def body(c, x):
        p, k = c
        return {"p": p, "k": k}, None

    m.lax.scan(body, (1.0, m.random.key(0)), m.np.ones(3))


@mistake
def fori_body_without_return(m: SimpleNamespace) -> None:
    def body(i, x):
        x = x.at[i].set(0)

    m.lax.fori_loop(0, 3, body, m.np.ones(3))


@mistake
def scan_none(m: SimpleNamespace) -> None:
    def body(c, x):
        return None, x

    m.lax.scan(body, 0.0, m.np.ones(3))


@mistake
def index_as_text(m: SimpleNamespace) -> None:
    m.np.ones(3)["x"]


@mistake
def item_deletion(m: SimpleNamespace) -> None:
    x = m.np.zeros(3)
    del x[0]


@mistake
def array_as_key(m: SimpleNamespace) -> None:
    {m.np.ones(3): 1}


@mistake
def random_rand(m: SimpleNamespace) -> None:
    m.random.rand(3)


@mistake
def random_weights(m: SimpleNamespace) -> None:
    m.random.choice(m.random.key(0), 3, p=m.np.ones(4) / 4)


@mistake
def slice_too_large(m: SimpleNamespace) -> None:
    m.lax.dynamic_slice(m.np.ones(4), (0,), (5,))


@mistake
def custom_vjp_cotangent_shape(m: SimpleNamespace) -> None:
    f = m.ap.custom_vjp(lambda x: (x**2).sum())
    f.defvjp(lambda x: ((x**2).sum(), x), lambda x, g: (g,))
    m.ap.grad(f)(m.np.ones(3))


@mistake
def integer_tangent(m: SimpleNamespace) -> None:
    m.ap.jvp(m.np.sin, (1.0,), (1,))
