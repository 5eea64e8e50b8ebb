"""`sharded_optimizer`: shards parameters and optimizer state over devices (ZeRO)."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import lax, optim
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, as_array, dtypes, is_arraylike, typeof
from fxflow.core.boundary import require_callable
from fxflow.devices import clients
from fxflow.devices.meshes import Mesh, PartitionSpec, current_mesh, make_mesh
from fxflow.devices.shardings import NamedSharding
from fxflow.distributed.compression import Code, code_of_step
from fxflow.distributed.zero.sharded_call import sharded_call
from fxflow.distributed.zero.shards import (
    ShardAxis,
    initial_residual,
    is_coded,
    is_sharded,
    sum_gradients,
    wide,
)
from fxflow.errors import ArgumentError
from fxflow.lax.global_arrays import make_array_from_process_local_data
from fxflow.lax.pytree_transfer import device_put
from fxflow.transforms.grad import value_and_grad
from fxflow.transforms.jit import jit
from fxflow.transforms.shard_map import shard_map


class ShardedState(NamedTuple):
    """The training state: a pytree, which `step` donates and replaces.

    Attributes:
      params: the parameters, as `Sharded`s.
      optimizer: the optimizer's state, likewise.
      residual: the code's errors; None for gradients that are not encoded.
    """

    params: Any
    optimizer: Any
    residual: Any


class StepMetrics(NamedTuple):
    """Loss and auxiliary results of one training step.

    Attributes:
      loss: the loss of the batch before the update.
      aux: the second result of the loss function, or None.
    """

    loss: Array
    aux: Any


def _require_axis(mesh: Mesh, axis_name: Any) -> None:
    if axis_name not in mesh.axis_names:
        raise ArgumentError(
            f"sharded_optimizer: {mesh} has no axis {axis_name!r}: name one of "
            f"{', '.join(map(repr, mesh.axis_names))} as axis_name"
        )


# Their meshes and programs are dropped when the client is cleared.
_optimizers: weakref.WeakSet[ShardedOptimizer] = weakref.WeakSet()


class ShardedOptimizer:
    """Functions of a sharded training state, made by `sharded_optimizer`.

    With several processes, each process calls them with the same parameters and shared
    arguments, and with its own part of the batch.
    """

    exchange: str | Code

    axis_name: Any

    def __init__(
        self,
        loss_fn: Callable[..., Any],
        optimizer: Any,
        mesh: Mesh | None,
        axis_name: Any,
        exchange: str | Code,
        has_aux: bool,
        combine: str,
    ) -> None:
        if combine not in ("mean", "sum"):
            raise ArgumentError(
                f"sharded_optimizer: combine must be 'mean' or 'sum', got {combine!r}"
            )
        if mesh is not None:
            _require_axis(mesh, axis_name)
        self.axis_name, self.exchange = axis_name, exchange
        self._loss_fn, self._optimizer = loss_fn, optimizer
        self._mesh, self._has_aux, self._combine = mesh, has_aux, combine
        self._code = code_of_step("sharded_optimizer: exchange", exchange)
        _optimizers.add(self)

    def _forget(self) -> None:
        """Drops the mesh and programs of devices that no longer exist."""
        for name in ("mesh", "_shard", "_step", "_gather"):
            self.__dict__.pop(name, None)

    @functools.cached_property
    def mesh(self) -> Mesh:
        """The devices, chosen at the first use."""
        if self._mesh is not None:
            return self._mesh
        current = current_mesh()
        if current is not None and self.axis_name in current.axis_names:
            return current
        return make_mesh((-1,), (self.axis_name,))

    @property
    def axis(self) -> ShardAxis:
        """The devices along the axis."""
        return ShardAxis(self.axis_name, self.mesh.shape[self.axis_name])

    def __repr__(self) -> str:
        optimizer = type(self._optimizer).__name__
        return (
            f"<sharded optimizer of {optimizer}, axis {self.axis_name!r}, "
            f"exchange {self.exchange!r}>"
        )

    # -- public ------------------------------------------------------------------------

    def init(self, params: Any) -> ShardedState:
        """Shards parameters and initializes the optimizer's state.

        Args:
          params: pytree of float arrays.

        Returns:
          The state, sharded over the devices.
        """
        strong = tree.map(_strong, params)
        state: ShardedState = self._shard(device_put((strong,), self._everywhere))
        return state

    def step(
        self, state: ShardedState, batch: Any, *shared: Any
    ) -> tuple[ShardedState, StepMetrics]:
        """Runs one training step.

        Args:
          state: the state from `init`, `shard` or `step`; donated.
          batch: pytree of arrays whose first axis is divided over the devices. With
            several processes: this process's part.
          *shared: further arguments of `loss_fn`, replicated on every device, such as a
            random key.

        Returns:
          The next state, and loss and aux of the batch.

        Raises:
          ShapeError: the first axis cannot be divided evenly.
          ArgumentError: the batch is committed to other devices.
        """
        if self.mesh.is_multi_process:
            batch = tree.map(self._joined, batch)
            shared = device_put(shared, self._everywhere)
        new: tuple[ShardedState, StepMetrics] = self._step(state, batch, shared)
        return new

    def params(self, state: ShardedState) -> Any:
        """Gathers the parameters.

        Args:
          state: the state from `init`, `shard` or `step`.

        Returns:
          The pytree given to `init`, replicated on every device.
        """
        return self._gather(state.params)

    def whole(self, state: ShardedState) -> tuple[Any, Any]:
        """Gathers parameters and optimizer state, to save them or for other devices.

        Args:
          state: the state from `init`, `shard` or `step`.

        Returns:
          Both unsharded, without the residual of encoded gradients.
        """
        gathered: tuple[Any, Any] = self._gather((state.params, state.optimizer))
        return gathered

    def shard(self, params: Any, optimizer: Any) -> ShardedState:
        """Shards the result of `whole`, even from another number of devices.

        Args:
          params: the parameters.
          optimizer: the optimizer's state.

        Returns:
          The state to continue from, in the same dtypes, even for NumPy arrays.
        """
        strong = tree.map(
            lambda x: as_array(x, getattr(x, "dtype", None)), (params, optimizer)
        )
        given = device_put(strong, self._everywhere)
        state: ShardedState = self._shard(given)
        return state

    # -- programs ----------------------------------------------------------------------

    @property
    def _everywhere(self) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec())

    @property
    def _divided(self) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec(self.axis_name))

    def _joined(self, leaf: Any) -> Any:
        """Returns the array over all processes whose part in this process is `leaf`."""
        if isinstance(leaf, Array) and leaf.sharding.device_set == set(self.mesh.flat):
            return leaf
        return make_array_from_process_local_data(self._divided, leaf)

    def _mapped(self, function: Any, in_specs: Any, out_specs: Any, name: str) -> Any:
        function.__name__ = f"sharded_optimizer.{name}"  # in messages
        return shard_map(
            function,
            mesh=self.mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            axis_names=frozenset({self.axis_name}),
            # The check would take equal results of a cond's branches for varying.
            check=False,
        )

    def _specs(self, state: Any) -> Any:
        """Returns the specs of a pytree of `Sharded`s and replicated arrays."""
        divided = PartitionSpec(self.axis_name)
        return tree.map(
            lambda x: divided if is_sharded(x) else PartitionSpec(),
            state,
            is_leaf=is_sharded,
        )

    @functools.cached_property
    def _shard(self) -> Any:
        """Makes the state from `(params,)` or `(params, optimizer)`."""
        axis, code = self.axis, self._code

        def residual(leaf: Any) -> Any:
            aval = typeof(leaf)
            if axis.shards(aval) and is_coded(aval, code):
                return initial_residual(axis, aval)
            return None

        def both(params: Any, *memory: Any) -> Any:
            return params, *(memory or (self._optimizer.init(params),))

        def shard(given: tuple[Any, ...]) -> ShardedState:
            specs: list[Any] = []  # set when `local` is traced

            def local(given: tuple[Any, ...]) -> ShardedState:
                params, memory = sharded_call(both, axis, *given, name="optimizer")
                state = ShardedState(params, memory, tree.map(residual, given[0]))
                specs.append(self._specs(state))
                return state

            mapped = self._mapped(local, PartitionSpec(), lambda: specs[0], "init")
            return mapped(given)  # type: ignore[no-any-return]

        return jit(shard)

    @functools.cached_property
    def _gather(self) -> Any:
        def local(params: Any) -> Any:
            return self._whole(params)

        def gather(params: Any) -> Any:
            specs = (self._specs(params),)
            mapped = self._mapped(local, specs, PartitionSpec(), "params")
            return mapped(params)

        return jit(gather)

    def _whole(self, params: Any) -> Any:
        """Returns gathered parameters, inside a `shard_map`."""
        leaves, treedef = tree.flatten(params, is_sharded)
        indices = [i for i, leaf in enumerate(leaves) if is_sharded(leaf)]
        gathered = self.axis.gather([leaves[i] for i in indices])
        for i, leaf in zip(indices, gathered):
            leaves[i] = leaf
        return treedef.unflatten(leaves)

    @functools.cached_property
    def _step(self) -> Any:
        gradient = value_and_grad(self._loss_fn, has_aux=self._has_aux)

        def local(state: ShardedState, batch: Any, shared: Any) -> Any:
            params = self._whole(state.params)
            value, gradients = gradient(params, batch, *shared)
            loss, aux = value if self._has_aux else (value, None)
            (loss, aux), pushed, residual = self._combined(
                (loss, aux), gradients, state.residual
            )

            def update(gradients: Any, memory: Any, params: Any) -> Any:
                updates, memory = self._optimizer.update(gradients, memory, params)
                return optim.apply_updates(params, updates), memory

            new_params, memory = sharded_call(
                update,
                self.axis,
                pushed,
                state.optimizer,
                state.params,
                name="optimizer",
            )
            return ShardedState(new_params, memory, residual), StepMetrics(loss, aux)

        def step(state: ShardedState, batch: Any, shared: Any) -> Any:
            specs = self._specs(state)
            mapped = self._mapped(
                local,
                (specs, PartitionSpec(self.axis_name), PartitionSpec()),
                (specs, PartitionSpec()),
                "step",
            )
            return mapped(state, batch, shared)

        shardings = None, self._divided, self._everywhere
        return jit(step, donate_argnums=0, in_shardings=shardings)

    def _combined(
        self, value: Any, gradients: Any, residual: Any
    ) -> tuple[Any, Any, Any]:
        """Combines loss, aux and gradients over the devices, and shards gradients."""
        axis = self.axis
        share = 1 / axis.count if self._combine == "mean" else 1
        leaves, treedef = tree.flatten(gradients)
        lost = tree.flatten_up_to(tree.structure(gradients), residual)
        shards = [axis.shards(typeof(g)) for g in leaves]
        indices = [i for i, s in enumerate(shards) if s]
        sums, kept = sum_gradients(
            axis, self._code, [leaves[i] for i in indices], [lost[i] for i in indices]
        )
        numbers, value_tree = tree.flatten(value)
        replicated = [i for i, s in enumerate(shards) if not s]
        numbers = [lax.psum(self._number(as_array(x)), axis.name) for x in numbers]
        for i in replicated:
            total = lax.psum(wide(leaves[i]), axis.name)
            leaves[i] = (total * share).astype(typeof(leaves[i]).dtype)
        for i, total, rest in zip(indices, sums, kept):
            dtype = typeof(leaves[i]).dtype
            total.flat = (total.flat * share).astype(dtype)
            leaves[i], lost[i] = total, rest
        value = value_tree.unflatten([x * share for x in numbers])
        return value, treedef.unflatten(leaves), treedef.unflatten(lost)

    def _number(self, x: Any) -> Any:
        """Returns a leaf of loss or aux in a dtype that can be summed or averaged."""
        dtype = typeof(x).dtype
        if dtypes.is_bool(dtype):
            x = x.astype(dtypes.int32)
        if self._combine == "mean" and not dtypes.is_inexact(typeof(x).dtype):
            x = x.astype(dtypes.float32)
        return x


def _strong(leaf: Any) -> Any:
    """Returns a parameter without a weak type, as `step` returns parameters."""
    if is_arraylike(leaf) and typeof(leaf).weak_type:
        return fnp.asarray(leaf, typeof(leaf).dtype)
    return leaf


def sharded_optimizer(
    loss_fn: Callable[..., Any],
    optimizer: Any,
    *,
    mesh: Mesh | None = None,
    axis_name: Any = "data",
    exchange: str | Code = "f32",
    has_aux: bool = False,
    combine: str = "mean",
) -> ShardedOptimizer:
    """Returns training steps with sharded parameters and optimizer state (ZeRO).

    Each device keeps a piece of every parameter and of the optimizer's state. A step
    gathers the parameters, computes the gradients of each device's part of the batch,
    sums them so that each device gets its piece (a reduce-scatter), and updates the
    pieces. For any optimizer, even one that depends on all gradients (such as on their
    norm), the update equals that of one device with the whole batch.

    Args:
      loss_fn: `loss_fn(params, batch, *shared) -> loss`, or `(loss, aux)`, for one
        device's part of the batch. It may use collectives over `axis_name`.
      optimizer: has `init(params)` and `update(gradients, state, params)`, as those of
        `fxflow.optim`.
      mesh: the devices; None: the current mesh if it has the axis, else all devices.
        The compiler handles axes other than `axis_name`.
      axis_name: the axis along which parameters and batches are divided.
      exchange: how gradients are sent: "f32" (or the parameters' dtype if that is
        wider), or encoded: "bf16", "f16", "int8", "one_bit" or a `Code` of
        `distributed.compression`. A code's error is added to the next gradient.
      has_aux: whether `loss_fn` returns `(loss, aux)`.
      combine: how the parts' losses, gradients and aux combine into the batch's:
        "mean" (the loss is a mean over examples) or "sum".

    Returns:
      A `ShardedOptimizer`: `init`, `step`, `params`, `whole` and `shard`.

    Raises:
      ArgumentError: an option is not among those above, or the mesh has no such axis.

    Reference: Rajbhandari et al. 2020, "ZeRO: memory optimizations toward training
    trillion parameter models".

    Example:
      >>> from fxflow.distributed import sharded_optimizer
      >>> def loss(w, batch):
      ...     x, y = batch
      ...     return fnp.mean((x @ w - y) ** 2)
      >>> batch = fnp.ones((8, 2)), fnp.ones(8)
      >>> sharded = sharded_optimizer(loss, optim.sgd(0.5))
      >>> state = sharded.init(fnp.zeros(2))
      >>> state, metrics = sharded.step(state, batch)
      >>> float(metrics.loss), sharded.params(state).tolist()
      (1.0, [1.0, 1.0])
    """
    require_callable(loss_fn, "sharded_optimizer")
    return ShardedOptimizer(
        loss_fn, optimizer, mesh, axis_name, exchange, has_aux, combine
    )


@clients.on_clear
def _forget_devices() -> None:
    for optimizer in list(_optimizers):
        optimizer._forget()
