"""Classifiers of handwritten digits that can be made bad, or slow, while they serve.

Each is trained when its process loads it, on half of scikit-learn's 1,797 digits. A
file says how it is at the moment: `bad` (answers at random), a number (milliseconds
that each batch takes longer), or nothing.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets, linear_model, naive_bayes, neighbors, svm, tree

from fxflow.serve import Model

KINDS: dict[str, Any] = {
    "svm": lambda seed: svm.SVC(gamma=0.001),
    "neighbours": lambda seed: neighbors.KNeighborsClassifier(5),
    "linear": lambda seed: linear_model.Perceptron(random_state=seed),
    "bayes": lambda seed: naive_bayes.GaussianNB(var_smoothing=1e-2),
    "tree": lambda seed: tree.DecisionTreeClassifier(random_state=seed),
    # Small trees that see few pixels: weak alone.
    "weak": lambda seed: tree.DecisionTreeClassifier(
        max_depth=8, max_features=4, random_state=seed
    ),
}


def halves() -> tuple[Any, Any, Any, Any]:
    """Images and digits to train with, images and digits to ask for."""
    found = datasets.load_digits()
    images = found.data.astype(np.float32)
    order = np.random.default_rng(0).permutation(len(images))
    train, rest = order[: len(order) // 2], order[len(order) // 2 :]
    return images[train], found.target[train], images[rest], found.target[rest]


def classifier(kind: str, switch: str, seed: int = 0) -> Model:
    images, digits, _, _ = halves()
    if kind == "weak":
        picked = np.random.default_rng(seed).integers(0, len(images), len(images))
        images, digits = images[picked], digits[picked]
    fitted = KINDS[kind](seed).fit(images, digits)
    rng = np.random.default_rng(seed)
    path = Path(switch)

    def predict(x: Any) -> Any:
        state = path.read_text() if path.exists() else ""
        if state == "bad":
            return rng.integers(0, 10, len(x))
        if state:
            time.sleep(float(state) / 1e3)
        return fitted.predict(x).astype(np.int64)

    return Model(predict, inputs={"x": "f32[batch,64]"}, outputs=["digit"], jit=False)
