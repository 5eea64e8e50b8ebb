"""The models of `pipelines.py`, once for fxflow and JAX and once for PyTorch.

A model is a list of parts, `(weights, function)`: blocks, and for the transformer an
embedding before them and a head after them. A stage is some consecutive parts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

STAGES, MICROBATCHES = 2, 8


class Shape(NamedTuple):
    """The size of a model.

    Attributes:
      kind: "mlp" or "transformer".
      width: of the activations.
      blocks: number of equal parts.
      rows: of a batch.
      length: of a text.
      symbols: of the embedding and the head, 0 for none.
      cut: how many blocks are in the first stage.
    """

    kind: str
    width: int
    blocks: int
    rows: int
    length: int
    symbols: int
    cut: int


SHAPES = {
    "mlp": Shape("mlp", 512, 8, 1024, 0, 0, 4),
    "transformer": Shape("transformer", 128, 4, 32, 64, 64, 2),
    # The head is as much work as about two blocks: the first stage has more of them.
    "unequal": Shape("transformer", 128, 5, 32, 64, 2048, 3),
}
HEADS = 4


def weights(shape: Shape) -> dict[str, Any]:
    """Returns the parameters: blocks, and the table of the embedding and the head."""
    rng = np.random.default_rng(0)

    def matrix(n: int, m: int) -> Any:
        return rng.normal(0, n**-0.5, (n, m)).astype(np.float32)

    width = shape.width
    if shape.kind == "mlp":
        blocks = [{"w": matrix(width, width)} for _ in range(shape.blocks)]
        return {"blocks": blocks}
    blocks = [
        {
            "qkv": matrix(width, 3 * width),
            "out": matrix(width, width),
            "up": matrix(width, 4 * width),
            "down": matrix(4 * width, width),
        }
        for _ in range(shape.blocks)
    ]
    table = matrix(shape.symbols, width) * shape.symbols**0.5
    return {"blocks": blocks, "table": table, "head": matrix(width, shape.symbols)}


def batch(shape: Shape) -> tuple[Any, Any]:
    """Returns inputs and targets."""
    rng = np.random.default_rng(1)
    if shape.kind == "mlp":
        x = rng.normal(size=(shape.rows, shape.width)).astype(np.float32)
        return x, np.roll(x, 1, axis=1)
    tokens = rng.integers(0, shape.symbols, (shape.rows, shape.length + 1))
    tokens = tokens.astype(np.int32)
    return tokens[:, :-1], tokens[:, 1:]


class Parts:
    """The parts of a model as functions of NumPy's interface.

    Args:
      shape: of the model.
      xp: `fxflow.numpy` or `jax.numpy`.
    """

    def __init__(self, shape: Shape, xp: Any) -> None:
        self.shape, self.xp = shape, xp

    def embed(self, table: Any, x: Any) -> Any:
        """The first stage's beginning."""
        return x if self.shape.kind == "mlp" else table[x]

    def norm(self, x: Any) -> Any:
        """Mean 0 and variance 1 along the last axis."""
        xp = self.xp
        x = x - xp.mean(x, -1, keepdims=True)
        return x / xp.sqrt(xp.mean(x * x, -1, keepdims=True) + 1e-5)

    def softmax(self, x: Any) -> Any:
        """Along the last axis."""
        e = self.xp.exp(x - self.xp.max(x, -1, keepdims=True))
        return e / self.xp.sum(e, -1, keepdims=True)

    def block(self, w: Any, x: Any) -> Any:
        """One of the equal parts."""
        xp = self.xp
        if self.shape.kind == "mlp":
            return x + xp.tanh(x @ w["w"])
        n, length, width = x.shape
        qkv = (self.norm(x) @ w["qkv"]).reshape(n, length, 3, HEADS, -1)
        q, k, v = (xp.swapaxes(qkv[:, :, i], 1, 2) for i in range(3))
        scores = q @ xp.swapaxes(k, 2, 3) / (width / HEADS) ** 0.5
        seen = self.softmax(xp.where(xp.tri(length, dtype=bool), scores, -1e9)) @ v
        x = x + xp.swapaxes(seen, 1, 2).reshape(n, length, width) @ w["out"]
        return x + xp.tanh(self.norm(x) @ w["up"]) @ w["down"]

    def loss(self, head: Any, x: Any, y: Any) -> Any:
        """The last stage's end."""
        xp = self.xp
        if self.shape.kind == "mlp":
            return xp.mean((x - y) ** 2)
        scores = self.norm(x) @ head
        top = xp.max(scores, -1, keepdims=True)
        total = xp.log(xp.sum(xp.exp(scores - top), -1)) + top[..., 0]
        right = xp.take_along_axis(scores, y[..., None], -1)[..., 0]
        return xp.mean(total - right)


def staged(shape: Shape, params: dict[str, Any], cut: int) -> list[dict[str, Any]]:
    """Returns the parameters of each stage."""
    blocks = params["blocks"]
    first, last = {"blocks": blocks[:cut]}, {"blocks": blocks[cut:]}
    if shape.kind != "mlp":
        first["table"], last["head"] = params["table"], params["head"]
    return [first, last]


def torch_stages(shape: Shape) -> list[Any]:
    """Returns the stages as PyTorch modules, with the same weights."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Mlp(nn.Module):
        def __init__(self, w: Any) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.from_numpy(w["w"]))

        def forward(self, x: Any) -> Any:
            return x + torch.tanh(x @ self.w)

    class Block(nn.Module):
        def __init__(self, w: Any) -> None:
            super().__init__()
            for name, value in w.items():
                setattr(self, name, nn.Parameter(torch.from_numpy(value)))

        def norm(self, x: Any) -> Any:
            return F.layer_norm(x, x.shape[-1:])

        def forward(self, x: Any) -> Any:
            n, length, width = x.shape
            qkv = (self.norm(x) @ self.qkv).reshape(n, length, 3, HEADS, -1)
            q, k, v = (qkv[:, :, i].transpose(1, 2) for i in range(3))
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + seen.transpose(1, 2).reshape(n, length, width) @ self.out
            return x + torch.tanh(self.norm(x) @ self.up) @ self.down

    class Head(nn.Module):
        def __init__(self, w: Any) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.from_numpy(w))

        def forward(self, x: Any) -> Any:
            return F.layer_norm(x, x.shape[-1:]) @ self.w

    params = weights(shape)
    make = Mlp if shape.kind == "mlp" else Block
    blocks = [make(w) for w in params["blocks"]]
    first, last = blocks[: shape.cut], blocks[shape.cut :]
    if shape.kind != "mlp":
        table = torch.from_numpy(params["table"])
        first.insert(0, nn.Embedding.from_pretrained(table, freeze=False))
        last.append(Head(params["head"]))
    return [nn.Sequential(*first), nn.Sequential(*last)]


def torch_loss(shape: Shape) -> Any:
    """Returns the loss of outputs and targets."""
    from torch.nn import functional as F

    if shape.kind == "mlp":
        return F.mse_loss
    return lambda x, y: F.cross_entropy(x.flatten(0, 1), y.flatten().long())


def chain(parts: Parts, stages: Any, x: Any, y: Any, scopes: Any) -> Any:
    """Returns the loss of one microbatch, each stage in its scope."""
    first, last = stages
    with scopes[0]():
        x = parts.embed(first.get("table"), x)
        for w in first["blocks"]:
            x = parts.block(w, x)
    with scopes[1]():
        for w in last["blocks"]:
            x = parts.block(w, x)
        return parts.loss(last.get("head"), x, y)


def micro(array: Any) -> Any:
    """Returns an array with an axis of microbatches in front."""
    return array.reshape(MICROBATCHES, -1, *array.shape[1:])


assert all(s.rows % MICROBATCHES == 0 for s in SHAPES.values())
