"""The parameters of the four models, as NumPy arrays: the same for every server.

Images of 28 × 28 numbers; ten scores. What is served is what a class of model costs,
so the parameters are drawn, not learned.
"""

import itertools

import numpy as np

PIXELS, CLASSES, SUPPORT, HIDDEN = 784, 10, 16000, 1024
#: In a kernel exp(-GAMMA · distance²).
GAMMA = 0.01
MODELS = ("linear", "kernel", "mlp", "cnn")


def weights(name: str) -> dict[str, np.ndarray]:
    """The parameters of one of `MODELS`."""
    rng = np.random.default_rng(7)

    def drawn(*shape: int) -> np.ndarray:
        scale = np.prod(shape[:-1]) ** -0.5
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    match name:
        case "linear":
            return {"w": drawn(PIXELS, CLASSES), "b": drawn(CLASSES)}
        case "kernel":
            points = rng.random((PIXELS, SUPPORT), np.float32)
            norms = np.sum(points**2, axis=0)
            return {"points": points, "norms": norms, "w": drawn(SUPPORT, CLASSES)}
        case "mlp":
            sizes = (PIXELS, HIDDEN, HIDDEN, CLASSES)
            pairs = enumerate(itertools.pairwise(sizes))
            return {f"w{k}": drawn(n, m) for k, (n, m) in pairs}
        case "cnn":
            return {
                "c0": drawn(3, 3, 1, 16),
                "c1": drawn(3, 3, 16, 32),
                "w0": drawn(7 * 7 * 32, 128),
                "w1": drawn(128, CLASSES),
            }
    raise KeyError(name)


def images(count: int, seed: int = 0) -> np.ndarray:
    """What is asked about: float32[count, 784]."""
    return np.random.default_rng(seed).random((count, PIXELS), np.float32)
