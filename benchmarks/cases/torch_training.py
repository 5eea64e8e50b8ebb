"""The training steps in PyTorch, with the sizes of `models.py`."""

from collections.abc import Callable
from typing import Any

from . import convnets, torch_loads
from .library import STEP_SECONDS, Case, Cases, timed
from .training import RATE


def stepping(build: Callable[[Any], tuple[Any, Callable[[], Any]]]) -> Any:
    """Measures a step of gradient descent on `(module, loss)`."""
    import torch

    torch.manual_seed(0)
    module, loss = build(torch)
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)

    def call() -> Any:
        optimizer.zero_grad(set_to_none=True)
        value = loss()
        value.backward()
        optimizer.step()
        return value

    return timed(call, lambda value: value.item(), STEP_SECONDS)


def classifier(torch: Any, module: Any, x: Any, classes: int = 10) -> Any:
    labels = torch.randint(classes, (len(x),))
    return module, lambda: torch.nn.functional.cross_entropy(module(x), labels)


def mlp(torch: Any) -> Any:
    nn = torch.nn
    module = nn.Sequential(
        nn.Linear(784, 256),
        nn.ReLU(),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )
    return classifier(torch, module, torch.randn(128, 784))


def cnn(torch: Any) -> Any:
    nn = torch.nn
    module = nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2, padding=2, bias=False),
        nn.ReLU(),
        nn.Conv2d(16, 32, 5, stride=2, padding=2, bias=False),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(7 * 7 * 32, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )
    return classifier(torch, module, torch.randn(64, 1, 28, 28))


def lstm(torch: Any) -> Any:
    nn, symbols, size = torch.nn, 64, 128
    parts = nn.ModuleDict(
        {
            "embedding": nn.Embedding(symbols, size),
            "lstm": nn.LSTM(size, size),
            "out": nn.Linear(size, symbols),
        }
    )
    tokens = torch.randint(symbols, (33, 32))

    def loss() -> Any:
        hidden, _ = parts["lstm"](parts["embedding"](tokens[:-1]))
        logits = parts["out"](hidden).reshape(-1, symbols)
        return nn.functional.cross_entropy(logits, tokens[1:].reshape(-1))

    return parts, loss


def transformer(
    torch: Any,
    layers: int = 4,
    size: int = 128,
    heads: int = 4,
    batch: int = 8,
    length: int = 64,
) -> Any:
    nn, symbols = torch.nn, 256

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
            self.qkv, self.proj = nn.Linear(size, 3 * size), nn.Linear(size, size)
            self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

        def forward(self, x: Any) -> Any:
            split = self.qkv(self.norm1(x)).reshape(batch, length, 3, heads, -1)
            q, k, v = (split[:, :, i].transpose(1, 2) for i in range(3))
            attend = nn.functional.scaled_dot_product_attention
            mixed = attend(q, k, v, is_causal=True).transpose(1, 2)
            x = x + self.proj(mixed.reshape(batch, length, size))
            hidden = nn.functional.gelu(self.up(self.norm2(x)), approximate="tanh")
            return x + self.down(hidden)

    parts = nn.ModuleDict(
        {
            "embedding": nn.Embedding(symbols, size),
            "positions": nn.Embedding(length, size),
            "blocks": nn.Sequential(*(Block() for _ in range(layers))),
            "norm": nn.LayerNorm(size),
            "out": nn.Linear(size, symbols),
        }
    )
    tokens, places = torch.randint(symbols, (batch, length + 1)), torch.arange(length)

    def loss() -> Any:
        x = parts["embedding"](tokens[:, :-1]) + parts["positions"](places)
        logits = parts["out"](parts["norm"](parts["blocks"](x)))
        return nn.functional.cross_entropy(
            logits.reshape(-1, symbols), tokens[:, 1:].reshape(-1)
        )

    return parts, loss


def word2vec(torch: Any) -> Any:
    words, size, batch, negatives = 10_000, 64, 256, 5
    parts = torch.nn.ModuleDict(
        {
            "centre": torch.nn.Embedding(words, size),
            "context": torch.nn.Embedding(words, size),
        }
    )
    centres, contexts = torch.randint(words, (batch,)), torch.randint(words, (batch,))
    others = torch.randint(words, (batch, negatives))
    logsigmoid = torch.nn.functional.logsigmoid

    def loss() -> Any:
        centre = parts["centre"](centres)
        near = (centre * parts["context"](contexts)).sum(-1)
        far = torch.einsum("bd,bnd->bn", centre, parts["context"](others))
        return -(logsigmoid(near) + logsigmoid(-far).sum(-1)).mean()

    return parts, loss


def convnet(name: str) -> Callable[[Any], tuple[Any, Callable[[], Any]]]:
    def build(torch: Any) -> Any:
        size, layers = convnets.NETS[name]
        module = convnets.torch_modules(torch, layers, (size, size, 3))
        images = torch.randn(convnets.BATCH, 3, size, size)
        return classifier(torch, module, images, convnets.CLASSES)

    return build


BUILDERS = {
    "MLP": mlp,
    "CNN": cnn,
    "LSTM": lstm,
    "transformer": transformer,
    "word2vec": word2vec,
    **torch_loads.MODELS,
    **{name: convnet(name) for name in convnets.NETS},
}


def stepping_itself(build: Callable[[Any], Callable[[], Any]]) -> Any:
    """Measures a step other than gradient descent of a module."""
    import torch

    torch.manual_seed(0)
    return timed(build(torch), lambda value: value.item(), STEP_SECONDS)


def cases() -> Cases:
    found = {
        f"step {name}": Case("ms", lambda build=build: stepping(build))
        for name, build in BUILDERS.items()
    }
    for name, own in torch_loads.STEPS.items():
        found[f"step {name}"] = Case("ms", lambda own=own: stepping_itself(own))
    return found
