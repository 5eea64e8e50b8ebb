"""Writes `pytorch.tsv`: what PyTorch says to the mistakes that exist there, too.

Run it in an environment that has PyTorch:

    PYTHONPATH=. python tests/golden/errors/pytorch_facts.py

Each mistake is a function of PyTorch's module. Its name is that of ours.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


def sparse_assignment(t: Any) -> None:
    a = t.eye(3).to_sparse_csr()
    a[0, 1] = 2


def update_shape(t: Any) -> None:
    t.zeros(3, 4)[0] = t.ones(3)


def item_deletion(t: Any) -> None:
    x = t.zeros(3)
    del x[0]


def truth_of_many(t: Any) -> None:
    if t.arange(3) > 1:
        pass


def float_of_traced(t: Any) -> None:
    def loss(params, x):
        return float((params["w"] * x).sum())

    t.func.grad(loss)({"w": t.ones(3)}, t.ones(3))


def leaked_list(t: Any) -> None:
    kept = []
    t.func.vmap(lambda x: (kept.append(x * 2), x)[1])(t.ones(3))
    kept[0] + 1


def custom_vjp_count(t: Any) -> None:
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, ct):
            return ct

    one = t.ones((), requires_grad=True)
    F.apply(one, one).backward()


def custom_vjp_cotangent_shape(t: Any) -> None:
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.pow(2).sum()

        @staticmethod
        def backward(ctx, ct):
            return t.ones(2)

    F.apply(t.ones(3, requires_grad=True)).backward()


def custom_vjp_without_rules(t: Any) -> None:
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

    F.apply(t.ones((), requires_grad=True)).backward()


def restored_into_other_parameters(t: Any) -> None:
    saved = t.nn.Linear(3, 1, bias=False).state_dict()
    t.nn.Linear(4, 1).load_state_dict(saved)


def optimizer_state(t: Any) -> None:
    old, new = t.nn.Linear(2, 2, bias=False), t.nn.Linear(2, 2)
    saved = t.optim.Adam(new.parameters()).state_dict()
    t.optim.Adam(old.parameters()).load_state_dict(saved)


def nan_found(t: Any) -> None:
    with t.autograd.detect_anomaly():
        x = t.zeros((), requires_grad=True)
        (t.sqrt(x) * 0).backward()


def exported_for_another_shape(t: Any) -> None:
    class Model(t.nn.Module):
        def forward(self, x):
            return x + 1

    t.export.export(Model(), (t.ones(3),)).module()(t.ones(4))


def data_that_raises(t: Any) -> None:
    class Data(t.utils.data.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            return {"x": 1}["image"] / 255

    next(iter(t.utils.data.DataLoader(Data())))


def attention_mask_of_floats(t: Any) -> None:
    # PyTorch takes floats: it refuses integers.
    x, mask = t.ones(2, 4, 5, 8), t.ones(5, 5, dtype=t.int32)
    t.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)


def _grad(fun: Callable[..., Any], *of: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda t: t.func.grad(fun, **options)(*(t.tensor(x) for x in of))


def _ones(*lengths: int, call: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda t: call(t, t.ones(*lengths))


PYTORCH: dict[str, Callable[[Any], Any]] = {
    # shapes
    "add_shapes": lambda t: t.ones(3, 4) + t.ones(5, 6),
    "matmul_shapes": lambda t: t.ones(3, 4) @ t.ones(5, 6),
    "reshape_size": lambda t: t.arange(12).reshape(5, 3),
    "concatenate_shapes": lambda t: t.cat([t.ones(2, 3), t.ones(2, 4)]),
    "stack_shapes": lambda t: t.stack([t.ones(2), t.ones(3)]),
    "einsum_sizes": lambda t: t.einsum("ij,jk->ik", t.ones(3, 4), t.ones(5, 6)),
    "dot_general_sizes": lambda t: t.tensordot(
        t.ones(3, 4), t.ones(5, 6), dims=([1], [0])
    ),
    "conv_channels": lambda t: t.conv2d(t.ones(1, 3, 8, 8), t.ones(4, 2, 3, 3)),
    "axis_out_of_range": _ones(3, 4, call=lambda t, x: t.sum(x, dim=2)),
    "transpose_axes": _ones(3, 4, call=lambda t, x: x.permute(0, 1, 2)),
    "broadcast_to_shape": _ones(3, call=lambda t, x: t.broadcast_to(x, (4,))),
    "update_shape": update_shape,
    "solve_of_a_rectangle": _ones(3, 4, call=lambda t, x: t.linalg.solve(x, t.ones(3))),
    "tile_negative": _ones(3, call=lambda t, x: t.tile(x, (-1,))),
    "slice_too_large": _ones(4, call=lambda t, x: t.narrow(x, 0, 0, 5)),
    "random_shape": lambda t: t.randn(3, -1),
    # kinds of arguments
    "text_as_array": lambda t: t.sin("abc"),
    "list_as_array": lambda t: t.sin([1.0, 2.0]),
    "list_beside_array": _ones(3, call=lambda t, x: x + [1, 2, 3]),
    "ragged_list": lambda t: t.tensor([[1.0, 2.0], [3.0]]),
    "objects_as_array": lambda t: t.as_tensor(np.array([None, {}], dtype=object)),
    "none_as_operand": _ones(3, call=lambda t, x: x * None),
    "unknown_dtype": lambda t: t.zeros(3, dtype="float23"),
    "floats_in_bitwise": _ones(3, call=lambda t, x: x & 1),
    "foreign_array": lambda t: t.sin(np.ones(3)),
    "function_as_array": lambda t: t.mean(lambda x: x),
    "lengths_not_a_tuple": lambda t: t.full(3, 4),
    "float_number_of_points": lambda t: t.linspace(0, 1, 10.0),
    "axis_as_text": _ones(3, 4, call=lambda t, x: t.sum(x, dim="rows")),
    "axis_as_float": _ones(3, 4, call=lambda t, x: t.sum(x, dim=1.0)),
    "unknown_padding": _ones(
        1, 2, 3, call=lambda t, x: t.nn.functional.pad(x, (1, 1), mode="mirror")
    ),
    "concatenate_two_arguments": lambda t: t.cat(t.ones(3), t.ones(3)),
    "hstack_two_arguments": lambda t: t.hstack(t.ones(3), t.ones(3)),
    "shape_for_a_key": lambda t: t.randn((3,), generator=42),
    # indices
    "float_index": lambda t: t.arange(3)[1.0],
    "too_many_indices": lambda t: t.ones(2, 3)[0, 0, 0],
    "index_as_text": lambda t: t.ones(3)["x"],
    "item_deletion": item_deletion,
    "truth_of_many": truth_of_many,
    # names
    "axis_called_dim": _ones(3, 4, call=lambda t, x: t.sum(x, axes=1)),
    "softmax_dim": _ones(2, 3, call=lambda t, x: t.nn.functional.softmax(x, axis=1)),
    "set_without_at": lambda t: t.zeros(3).set(1),
    "append_method": lambda t: t.zeros(3).append(1),
    "method_of_pytorch": lambda t: t.zeros(3).astype("float32"),
    "numpy_method": lambda t: t.ones(3, requires_grad=True).numpy(),
    "cuda_method": lambda t: t.ones(3).cuda(),
    "view_with_lengths": lambda t: t.ones(2, 3).t().view(-1),
    "absent_name": lambda t: t.concat_all,
    "random_rand": lambda t: t.random.rand(3),
    "gradients_off": lambda t: t.stop_gradient(t.ones(3)),
    "option_mistyped": lambda t: setattr(t._dynamo.config, "verbos", True),
    "unknown_platform": lambda t: t.device("npu9"),
    # transformations
    "float_of_traced": float_of_traced,
    "item_in_scan": _ones(3, call=lambda t, x: t.func.vmap(lambda y: y.item())(x)),
    "formatted_traced": _ones(
        3, call=lambda t, x: t.func.vmap(lambda y: f"{y:.2f}")(x)
    ),
    "bool_of_argument": _ones(
        3, call=lambda t, x: t.func.vmap(lambda y: y if y > 0 else -y)(x)
    ),
    "boolean_index_in_jit": _ones(
        2, 3, call=lambda t, x: t.func.vmap(lambda y: y[y > 0])(x)
    ),
    "nonzero_in_jit": _ones(2, 3, call=lambda t, x: t.func.vmap(t.nonzero)(x)),
    "unique_in_jit": _ones(2, 3, call=lambda t, x: t.func.vmap(t.unique)(x)),
    "leaked_list": leaked_list,
    "text_argument": _ones(
        3, call=lambda t, x: t.func.vmap(lambda y, mode: y)(x, "train")
    ),
    "result_no_array": _ones(
        3, call=lambda t, x: t.func.vmap(lambda y: {"y": y, "name": "a"})(x)
    ),
    "grad_of_array": _grad(lambda x: x * 2, [1.0, 1.0, 1.0]),
    "grad_of_integers": _grad(lambda x: x * 2.0, 3),
    "grad_argnums": _grad(lambda x: x, 1.0, argnums=1),
    "grad_of_pair": _grad(lambda x: (x, x), 1.0),
    "grad_argnames": lambda t: t.func.grad(lambda w: w, argnames="w"),
    "grad_of_keywords": lambda t: t.func.grad(lambda w, x: (w * x).sum())(
        w=t.ones(3), x=t.ones(3)
    ),
    "jvp_tangent": lambda t: t.func.jvp(t.sin, (t.ones(3),), (t.ones(2),)),
    "integer_tangent": lambda t: t.func.jvp(t.sin, (t.ones(()),), (t.tensor(1),)),
    "vjp_cotangent": lambda t: t.func.vjp(t.sin, t.ones(3))[1](t.ones(2)),
    "custom_vjp_without_rules": custom_vjp_without_rules,
    "custom_vjp_count": custom_vjp_count,
    "custom_vjp_cotangent_shape": custom_vjp_cotangent_shape,
    "vmap_sizes": lambda t: t.func.vmap(t.add)(t.ones(3), t.ones(4)),
    "vmap_scalar": lambda t: t.func.vmap(t.add)(t.ones(3), t.ones(())),
    "vmap_in_axes_length": lambda t: t.func.vmap(t.add, in_dims=(0,))(
        t.ones(3), t.ones(3)
    ),
    "vmap_in_axes_tree": lambda t: t.func.vmap(
        lambda p, x: p["w"] * x, in_dims=({"v": 0}, 0)
    )({"w": t.ones(3)}, t.ones(3)),
    "vmap_over_parameters": lambda t: t.func.vmap(lambda p, x: x @ p["w"] + p["b"])(
        {"w": t.ones(4, 2), "b": t.ones(2)}, t.ones(8, 4)
    ),
    "map_swapped": _ones(3, call=lambda t, x: t.func.vmap(x)(lambda y: y)),
    "cond_predicate": _ones(
        2, call=lambda t, x: t.cond(x > 0, t.sin, t.cos, (t.ones(()),))
    ),
    "cond_branches": lambda t: t.cond(
        t.tensor(True), t.sin, lambda x: x.to(t.int32), (t.ones(()),)
    ),
    "tree_map_structures": lambda t: t.utils._pytree.tree_map(
        lambda x, y: x, {"a": 1, "b": 2}, {"a": 1, "c": 2}
    ),
    "tree_unflatten_leaves": lambda t: t.utils._pytree.tree_unflatten(
        [1], t.utils._pytree.tree_structure({"a": 1, "b": 2})
    ),
    "nan_found": nan_found,
    # layers, training, files, sparse and ragged arrays
    "layer_of_other_features": _ones(8, 5, call=lambda t, x: t.nn.Linear(4, 2)(x)),
    "layer_called_with_sizes": lambda t: t.nn.functional.linear(4, 2),
    "layer_in_features": lambda t: t.nn.Linear(inputs=4, units=2),
    "layer_as_a_class": lambda t: t.nn.linear(4, 2),
    "conv_channels_first": _ones(2, 8, 8, 3, call=lambda t, x: t.nn.Conv2d(3, 8, 3)(x)),
    "lstm_of_other_features": _ones(2, 7, 5, call=lambda t, x: t.nn.LSTM(4, 8)(x)),
    "attention_mask_of_floats": attention_mask_of_floats,
    "labels_as_floats": _ones(
        8, 10, call=lambda t, x: t.nn.functional.cross_entropy(x, t.ones(8))
    ),
    "labels_with_an_axis": _ones(
        8, 10, call=lambda t, x: t.nn.functional.cross_entropy(x, x[:, :1].long())
    ),
    "labels_not_one_hot": _ones(
        8, 10, call=lambda t, x: t.nn.functional.binary_cross_entropy(x, t.ones(8))
    ),
    "data_of_other_lengths": lambda t: t.utils.data.TensorDataset(
        t.ones(10, 2), t.ones(9)
    ),
    "data_of_ragged_rows": lambda t: next(
        iter(t.utils.data.DataLoader([t.ones(2), t.ones(3)], batch_size=2))
    ),
    "data_that_raises": data_that_raises,
    "restored_into_other_parameters": restored_into_other_parameters,
    "saved_with_arguments_swapped": lambda t: t.save("run", {"w": t.ones(3)}),
    "optimizer_lr": lambda t: t.optim.Adam([t.ones(3)], learning_rate=1e-3),
    "optimizer_arguments": lambda t: t.optim.Adam({"w": t.ones(3)}),
    "optimizer_state": optimizer_state,
    "exported_without_jit": lambda t: t.export.export(lambda x: x, (t.ones(3),)),
    "exported_for_another_shape": exported_for_another_shape,
    "sparse_product_shapes": lambda t: t.eye(3).to_sparse_csr() @ t.ones(4),
    "sparse_assignment": sparse_assignment,
    "sparse_in_a_dense_function": lambda t: t.exp(t.eye(3).to_sparse_csr()),
    "ragged_row_that_is_not_there": lambda t: t.nested.nested_tensor(
        [t.ones(2), t.ones(1)]
    )[5],
    "cho_solve_of_a_matrix": lambda t: t.cholesky_solve(t.ones(3), t.eye(3)),
    "sample_of_a_size": lambda t: t.distributions.Normal(0.0, 1.0).sample(size=3),
}


def main() -> None:
    warnings.simplefilter("ignore")
    torch = importlib.import_module("torch")
    rows = [f"# PyTorch {torch.__version__}: mistake, class, first line of the text"]
    for name, call in PYTORCH.items():
        try:
            call(torch)
        except Exception as error:
            first = next(iter(str(error).splitlines()), "")
            for place in (torch.__file__, torch.__path__[0]):
                first = first.replace(place, "torch")
            rows.append(f"{name}\t{type(error).__name__}\t{first[:300]}")
        else:
            rows.append(f"{name}\tnone\t")
    (HERE / "pytorch.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
