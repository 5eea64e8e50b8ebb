"""One array `X`, and indices into it of every kind that NumPy has."""

from typing import Any

import numpy as np

A = np.array
S = np.s_
SHAPE = (4, 5, 6)
X = np.arange(120, dtype=np.float32).reshape(SHAPE)
MASK = (X.astype(int) * 7) % 5 > 2
INDICES: list[Any] = [
    *(
        1,
        -1,
        (1, 2),
        (1, 2, 3),
        (),
        ...,
        None,
        S[1:3],
        S[::-1],
        S[:, 4:0:-2],
        S[..., 0],
    ),
    *(S[None, 1], S[1, None, 1:4], S[..., None, 2], S[2:2], S[:, 3:1], np.int64(1)),
    *(
        A([0, 2]),
        A([[0, 2], [1, -1]]),
        S[A([0, 2]), A([1, 3])],
        S[A([0, 2]), :, A([1, 3])],
    ),
    *(S[:, A([0, 2]), A([1, 3])], S[1:3, A([0, 2]), ::2], S[0, :, A([1, 3])]),
    *(S[:, 0, A([1, 3])], S[A([0, 2]), None, A([1, 3])], S[A([[0], [2]]), A([1, 3])]),
    *(S[..., A([1, 3])], S[0, ..., A([1, 3])], S[A([1, 3]), ..., A([1, 3])]),
    *(S[A([1, 3]), 4::-2], S[::2, A([1, 3]), 4:0:-3], S[1:4, A([[0, 1]]), None, 0:3]),
    *(A([True, False, True, False]), S[:, A([True, False, True, False, True])]),
    *(MASK[:, :, 0], MASK, S[1, MASK[1]], True, False, S[True, 1], S[:, True]),
    *(S[A(True), A([0, 1])], A([], dtype=int), A(2), S[A(1), 0:2]),
    *(S[A(1), A([0, 1])], S[np.uint8(1), A([0, 1], np.uint8)], S[A([-1], np.int8)]),
    *(S[..., :, 1], S[:, ..., 1, :], S[A([0, 1]), :, :], S[MASK[:, 0, 0], ..., 1]),
]
