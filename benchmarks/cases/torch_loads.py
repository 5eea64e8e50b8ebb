"""The steps of `loads.py` in PyTorch, with the same sizes."""

from collections.abc import Callable
from typing import Any

from .loads import DRAWN, WORDS


def softmax(torch: Any) -> Any:
    module = torch.nn.Linear(784, 10)
    x, labels = torch.randn(128, 784), torch.randint(10, (128,))
    return module, lambda: torch.nn.functional.cross_entropy(module(x), labels)


def lstm_layer(torch: Any) -> Any:
    parts = torch.nn.ParameterDict({"xs": torch.randn(20, 16, 512)})
    parts.add_module("lstm", torch.nn.LSTM(512, 512))
    return parts, lambda: (parts.lstm(parts["xs"])[0] ** 2).sum()


def language_parts(torch: Any, size: int = 128, units: int = 256) -> Any:
    nn = torch.nn
    return nn.ModuleDict(
        {
            "embedding": nn.Embedding(WORDS, size),
            "lstm": nn.LSTM(size, units),
            "out": nn.Embedding(WORDS, units),
        }
    )


def language_model(torch: Any) -> Any:
    parts, tokens = language_parts(torch), torch.randint(WORDS, (21, 16))

    def loss() -> Any:
        hidden, _ = parts["lstm"](parts["embedding"](tokens[:-1]))
        logits = (hidden @ parts["out"].weight.T).reshape(-1, WORDS)
        return torch.nn.functional.cross_entropy(logits, tokens[1:].reshape(-1))

    return parts, loss


def sampled_language_model(torch: Any) -> Any:
    parts, tokens = language_parts(torch), torch.randint(WORDS, (21, 16))
    drawn = torch.randint(WORDS, (DRAWN,))

    def loss() -> Any:
        hidden, _ = parts["lstm"](parts["embedding"](tokens[:-1]))
        right = (hidden * parts["out"](tokens[1:])).sum(-1, keepdim=True)
        logits = torch.cat([right, hidden @ parts["out"](drawn).T], -1)
        return -torch.log_softmax(logits, -1)[..., 0].mean()

    return parts, loss


def word2vec_rows(torch: Any) -> Callable[[], Any]:
    words, size, batch = 50_000, 128, 128
    centre, context = torch.randn(words, size), torch.randn(words, size)
    centres, contexts = torch.randint(words, (batch,)), torch.randint(words, (batch,))
    others = torch.randint(words, (DRAWN,))
    logsigmoid = torch.nn.functional.logsigmoid

    def step() -> Any:
        rows = centre[centres], context[contexts], context[others]
        a, b, c = (row.requires_grad_() for row in rows)
        right = logsigmoid((a * b).sum(-1))
        value = -(right + logsigmoid(-(a @ c.T)).sum(-1)).mean()
        slopes = torch.autograd.grad(value, (a, b, c))
        centre.index_add_(0, centres, slopes[0], alpha=-0.1)
        context.index_add_(0, contexts, slopes[1], alpha=-0.1)
        context.index_add_(0, others, slopes[2], alpha=-0.1)
        return value

    return step


def k_means(torch: Any) -> Callable[[], Any]:
    x, count = torch.randn(10_000, 64), 100
    held = [x[:count].clone()]

    def step() -> Any:
        centres = held[0]
        far = (centres**2).sum(1) - 2 * (x @ centres.T)
        least, nearest = far.min(1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, x)
        counts = torch.bincount(nearest, minlength=count)[:, None]
        held[0] = torch.where(counts > 0, sums / counts.clamp(min=1), centres)
        return least.sum()

    return step


MODELS = {
    "softmax": softmax,
    "LSTM layer": lstm_layer,
    "language model": language_model,
    "sampled language model": sampled_language_model,
}
STEPS = {"word2vec by rows": word2vec_rows, "k-means": k_means}
