"""Functions of rows and blocks, for which fxflow has kernels; written alike for JAX."""

from collections.abc import Callable
from typing import Any

import numpy

from .library import STEP_SECONDS, Case, Cases, Library, timed

ROWS, FEATURES = 4096, 512
TOKENS, WORDS = 320, 10_000
HEADS, LENGTH, HEAD_SIZE = 8, 1024, 64
BAGS, IDS, TABLE, ROW = 4096, 20, 100_000, 64
POINTS, CENTRES = 20_000, 256
LONG, PLACES = 5_000_000, 1_000_000
WIDE, GROUP = 4096, 128


def numbers(*shape: int) -> Any:
    return numpy.random.default_rng(0).normal(size=shape).astype(numpy.float32)


def integers(high: int, *shape: int) -> Any:
    return numpy.random.default_rng(1).integers(0, high, shape, numpy.int32)


def layer_norm(library: Library, x: Any, scale: Any, bias: Any) -> Any:
    np = library.np
    centred = x - np.mean(x, -1, keepdims=True)
    variance = np.mean(centred**2, -1, keepdims=True)
    return centred * library.lax.rsqrt(variance + 1e-5) * scale + bias


def rms_norm(library: Library, x: Any, scale: Any) -> Any:
    mean = library.np.mean(x**2, -1, keepdims=True)
    return x * library.lax.rsqrt(mean + 1e-5) * scale


def attention(library: Library, q: Any, k: Any, v: Any) -> Any:
    return library.nn.dot_product_attention(q, k, v, is_causal=True)


def chain(np: Any, x: Any) -> Any:
    return np.sin(x) * np.exp(-(x**2)) + np.arctan2(x, 1 + np.cos(x) ** 2)


def cases(library: Library) -> Cases:
    np, nn, root = library.np, library.nn, library.root
    x, slopes = np.asarray(numbers(ROWS, FEATURES)), np.asarray(numbers(ROWS, FEATURES))
    scale, bias = np.ones(FEATURES), np.zeros(FEATURES)
    logits = np.asarray(numbers(TOKENS, WORDS))
    labels = np.asarray(integers(WORDS, TOKENS))
    heads = [np.asarray(numbers(1, LENGTH, HEADS, HEAD_SIZE)) for _ in range(3)]

    def pulled(f: Callable[..., Any], slopes: Any, *args: Any) -> tuple[Any, ...]:
        return tuple(root.vjp(f, *args)[1](slopes))

    def cross_entropy(logits: Any, labels: Any) -> Any:
        rows = np.take_along_axis(nn.log_softmax(logits), labels[:, None], axis=-1)
        return -np.mean(rows)

    def bag(ids: Any, table: Any) -> Any:
        if library.name == "fxflow":
            return nn.embedding_bag({"w": table}, ids, mode="sum")
        return np.sum(table[ids], axis=1)

    def nearest(points: Any, centres: Any) -> Any:
        products = np.dot(points, centres.T, precision="highest")
        return np.argmin(np.sum(centres**2, axis=1) - 2 * products, axis=1)

    def quantized(packed: Any, scale: Any, x: Any) -> Any:
        if library.name == "fxflow":
            return nn.quantized_linear({"w": packed, "scale": scale}, x)
        codes = np.stack([(packed << 4) >> 4, packed >> 4], axis=1)
        codes = codes.reshape(scale.shape[0], -1, WIDE)
        return x @ (codes * scale[:, None]).reshape(-1, WIDE)

    def case(f: Callable[..., Any], *args: Any) -> Case:
        args = tuple(map(np.asarray, args))

        def prepare() -> Callable[[], float]:
            jitted = root.jit(f)
            return timed(lambda: jitted(*args), root.block_until_ready, STEP_SECONDS)

        return Case("ms", prepare)

    return {
        "kernel softmax, 4,096 × 512": case(nn.softmax, x),
        "kernel layer norm, 4,096 × 512": case(
            lambda *a: layer_norm(library, *a), x, scale, bias
        ),
        "kernel gradients of layer norm": case(
            lambda *a: pulled(lambda *b: layer_norm(library, *b), *a),
            slopes,
            x,
            scale,
            bias,
        ),
        "kernel gradients of RMS norm": case(
            lambda *a: pulled(lambda *b: rms_norm(library, *b), *a), slopes, x, scale
        ),
        "kernel cross entropy and gradient, 320 × 10,000": case(
            root.value_and_grad(cross_entropy), logits, labels
        ),
        "kernel causal attention, 8 × 1,024 × 64": case(
            lambda *a: attention(library, *a), *heads
        ),
        "kernel gradients of causal attention": case(
            root.grad(lambda *a: np.sum(attention(library, *a)), argnums=(0, 1, 2)),
            *heads,
        ),
        "kernel embedding bag, 4,096 × 20 of 100,000 × 64": case(
            bag, integers(TABLE, BAGS, IDS), numbers(TABLE, ROW)
        ),
        "kernel nearest of 256 centres, 20,000 × 64": case(
            nearest, numbers(POINTS, ROW), numbers(CENTRES, ROW)
        ),
        "kernel product with weights of 4 bits, 4,096 × 4,096": case(
            quantized,
            integers(256, WIDE // 2, WIDE).astype(numpy.int8),
            numbers(WIDE // GROUP, WIDE),
            numbers(1, WIDE),
        ),
        "kernel sin, exp and arctan2 of 5,000,000": case(
            lambda x: chain(np, x), numbers(LONG)
        ),
        "kernel sort of rows, 4,096 × 512": case(lambda x: np.sort(x, -1), x),
        "kernel argsort of 1,000,000": case(np.argsort, numbers(PLACES)),
    }


def torch_cases() -> Cases:
    import torch

    functional = torch.nn.functional
    x, slopes = (torch.tensor(numbers(ROWS, FEATURES)) for _ in range(2))
    scale, bias = torch.ones(FEATURES), torch.zeros(FEATURES)
    logits = torch.tensor(numbers(TOKENS, WORDS))
    labels = torch.tensor(integers(WORDS, TOKENS)).long()
    heads = [torch.tensor(numbers(1, HEADS, LENGTH, HEAD_SIZE)) for _ in range(3)]
    ids = torch.tensor(integers(TABLE, BAGS, IDS))
    table, points = (
        torch.tensor(numbers(TABLE, ROW)),
        torch.tensor(numbers(POINTS, ROW)),
    )
    centres = torch.tensor(numbers(CENTRES, ROW))
    long, places = torch.tensor(numbers(LONG)), torch.tensor(numbers(PLACES))

    def pulled(f: Callable[..., Any], *args: Any) -> Any:
        leaves = [a.detach().requires_grad_() for a in args]
        out = f(*leaves)
        seeds = slopes if out.shape == slopes.shape else torch.ones_like(out)
        return torch.autograd.grad(out, leaves, seeds)

    def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
        return functional.layer_norm(x, (FEATURES,), scale, bias)

    def attention(q: Any, k: Any, v: Any) -> Any:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def case(call: Callable[[], Any]) -> Case:
        return Case("ms", lambda: timed(call, lambda _: None, STEP_SECONDS))

    return {
        "kernel softmax, 4,096 × 512": case(lambda: torch.softmax(x, -1)),
        "kernel layer norm, 4,096 × 512": case(lambda: layer_norm(x, scale, bias)),
        "kernel gradients of layer norm": case(
            lambda: pulled(layer_norm, x, scale, bias)
        ),
        "kernel gradients of RMS norm": case(
            lambda: pulled(
                lambda x, scale: functional.rms_norm(x, (FEATURES,), scale), x, scale
            )
        ),
        "kernel cross entropy and gradient, 320 × 10,000": case(
            lambda: pulled(lambda z: functional.cross_entropy(z, labels), logits)
        ),
        "kernel causal attention, 8 × 1,024 × 64": case(lambda: attention(*heads)),
        "kernel gradients of causal attention": case(lambda: pulled(attention, *heads)),
        "kernel embedding bag, 4,096 × 20 of 100,000 × 64": case(
            lambda: functional.embedding_bag(ids, table, mode="sum")
        ),
        "kernel nearest of 256 centres, 20,000 × 64": case(
            lambda: ((centres**2).sum(1) - 2 * points @ centres.T).argmin(1)
        ),
        "kernel sin, exp and arctan2 of 5,000,000": case(
            lambda: (
                torch.sin(long) * torch.exp(-(long**2))
                + torch.arctan2(long, 1 + torch.cos(long) ** 2)
            )
        ),
        "kernel sort of rows, 4,096 × 512": case(lambda: torch.sort(x, -1)[0]),
        "kernel argsort of 1,000,000": case(lambda: torch.argsort(places, stable=True)),
    }
