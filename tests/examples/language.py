"""Texts of a made-up language, in which it is known which words are alike."""

import numpy as np


def language(texts: int, seed: int = 0) -> list[list[str]]:
    """Texts on one of four subjects each, of ten words, after a common one each."""
    rng = np.random.default_rng(seed)
    return [
        [
            word
            for number in rng.integers(0, 10, 20)
            for word in (f"{'abcd'[subject]}{number}", f"c{rng.integers(0, 5)}")
        ]
        for subject in rng.integers(0, 4, texts)
    ]
