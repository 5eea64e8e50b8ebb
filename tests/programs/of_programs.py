"""Operations that run a program of their own: calls, loops, branches, derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

from tests.programs.operations import Api, Parameters, Rng, Type, add, full_rank


def _custom_jvp(api: Api) -> Callable[[Any], Any]:
    soft = api.custom_jvp(lambda x: api.np.log1p(api.np.exp(-x * x)))

    @soft.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return soft(x), -2 * x * t / (1 + api.np.exp(x * x))

    return soft


def _custom_vjp(api: Api) -> Callable[[Any], Any]:
    wave = api.custom_vjp(lambda x: api.np.sin(x) * x)
    wave.defvjp(
        lambda x: (wave(x), x),
        lambda x, g: (g * (api.np.cos(x) * x + api.np.sin(x)),),
    )
    return wave


#: Functions of one array that keep its type: bodies of loops and branches.
BODIES: dict[str, Callable[[Api, Any], Any]] = {
    "sin": lambda api, x: api.np.sin(x),
    "halve": lambda api, x: x * 0.5 - 1,
    "center": lambda api, x: x - api.np.mean(x, dtype=x.dtype),
    "flip": lambda api, x: api.np.flip(x),
    "identity": lambda api, x: x,
    "constant": lambda api, x: api.np.full(x.shape, 0.25, x.dtype),
    "softsign": lambda api, x: x / (1 + api.np.abs(x)),
    "jitted": lambda api, x: api.jit(lambda v: api.np.cos(v) + v)(x),
    "checkpointed": lambda api, x: api.checkpoint(lambda v: api.np.sin(v * v))(x),
    "branching": lambda api, x: api.lax.cond(
        api.np.sum(x) > 0, lambda v: v * 2, lambda v: api.np.tanh(v), x
    ),
    "looping": lambda api, x: api.lax.fori_loop(
        0, 3, lambda i, v: api.np.sin(v) + i * 0.1, x
    ),
    "sorted": lambda api, x: api.np.sort(x.ravel()).reshape(x.shape),
    "cumulated": lambda api, x: api.np.cumsum(x.ravel()).reshape(x.shape) / 4,
    "slope": lambda api, x: api.grad(lambda v: api.np.sum(api.np.sin(v) * v))(x),
    "pushed": lambda api, x: api.jvp(api.np.tanh, (x,), (x,))[1],
    "custom forwards": lambda api, x: _custom_jvp(api)(x),
    "custom backwards": lambda api, x: _custom_vjp(api)(x),
    "updated": lambda api, x: x.ravel().at[:1].multiply(2.0).reshape(x.shape),
}


#: Bodies without a derivative forwards.
BACKWARD_ONLY = {"custom backwards"}


def _bodies(count: int, without: Set[str]) -> Parameters:
    names = sorted(set(BODIES) - without)

    def draw(rng: Rng, *types: Type) -> dict[str, Any]:
        return {"bodies": [str(b) for b in rng.choice(names, count)]}

    return draw


def _body(api: Api, names: Sequence[str]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for name in names:
            x = BODIES[name](api, x)
        return x

    return run


def _nested(
    name: str,
    apply: Callable[..., Any],
    bodies: int,
    least: int = 0,
    without: Set[str] = frozenset(),
) -> None:
    draw = _bodies(bodies, without)
    add(name, "control flow", apply, full_rank(least, "f"), draw)


_nested("jit", lambda api, x, bodies: api.jit(_body(api, bodies))(x), 2)
_nested("checkpoint", lambda api, x, bodies: api.checkpoint(_body(api, bodies))(x), 2)
_nested("vmap", lambda api, x, bodies: api.vmap(_body(api, bodies))(x), 2, 1)
_nested(
    "vmap_out",
    lambda api, x, bodies: api.vmap(_body(api, bodies), in_axes=-1, out_axes=-1)(x),
    2,
    1,
)
_nested(
    "cond",
    lambda api, x, bodies: api.lax.cond(
        api.np.max(x) > 1, _body(api, bodies[:1]), _body(api, bodies[1:]), x
    ),
    3,
)
_nested(
    "switch",
    lambda api, x, bodies: api.lax.switch(
        api.np.sum(api.np.where(x > 0, 1, 0)) % 3, [_body(api, [b]) for b in bodies], x
    ),
    3,
)
_nested(
    "vmap_cond",
    lambda api, x, bodies: api.vmap(
        lambda v: api.lax.cond(
            api.np.sum(v) > 0, _body(api, bodies[:1]), _body(api, bodies[1:]), v
        )
    )(x),
    2,
    1,
)
_nested(
    "fori_loop",
    lambda api, x, bodies: api.lax.fori_loop(
        0, 3, lambda i, v: _body(api, bodies)(v) + api.np.asarray(i, x.dtype), x
    ),
    1,
)
_nested(
    "while_loop",
    lambda api, x, bodies: api.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, _body(api, bodies)(c[1])), (0, x)
    )[1],
    1,
)
_nested(
    "scan_carry",
    lambda api, x, bodies: api.lax.scan(
        lambda c, v: (_body(api, bodies)(c) + v, c), x[0], x
    )[0],
    1,
    1,
)
_nested(
    "scan_stack",
    lambda api, x, bodies: api.lax.scan(
        lambda c, v: (c * 0.5 + v, _body(api, bodies)(v) * c), x[0], x, reverse=True
    )[1],
    1,
    1,
)
_nested(
    "scan_grad",
    lambda api, x, bodies: api.lax.scan(
        lambda c, v: (
            c - 0.1 * api.grad(lambda u: api.np.sum(_body(api, bodies)(u) * v))(c),
            c,
        ),
        x[0],
        x,
    )[1],
    1,
    1,
)
_nested("map", lambda api, x, bodies: api.lax.map(_body(api, bodies), x), 2, 1)
_nested(
    "associative_scan",
    lambda api, x, bodies: api.lax.associative_scan(
        api.np.maximum, _body(api, bodies)(x)
    ),
    1,
    1,
)
_nested(
    "linearize",
    lambda api, x, bodies: api.linearize(_body(api, bodies), x)[1](x),
    2,
    without=BACKWARD_ONLY,
)
_nested("vjp", lambda api, x, bodies: api.vjp(_body(api, bodies), x)[1](x)[0], 2)
_nested(
    "jacfwd",
    lambda api, x, bodies: api.jacfwd(
        lambda v: api.np.sum(_body(api, bodies)(v), axis=0)
    )(x[:2]).sum(0),
    1,
    1,
    BACKWARD_ONLY,
)
_nested(
    "hessian",
    lambda api, x, bodies: api.grad(
        lambda u: api.np.sum(
            api.grad(lambda v: api.np.sum(_body(api, bodies)(v) * v))(u)
        )
    )(x),
    1,
)
_nested(
    "apply_along_axis",
    lambda api, x, bodies: api.np.apply_along_axis(_body(api, bodies), -1, x),
    1,
    1,
)
