"""The synchronous parameter server."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import lax, optim
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, as_array, dtypes, is_arraylike, typeof
from fxflow.devices import clients
from fxflow.devices.meshes import Mesh, PartitionSpec, current_mesh, make_mesh
from fxflow.devices.shardings import NamedSharding
from fxflow.distributed.compression import Code
from fxflow.distributed.parameter_server.synchronous import exchange as exchanging
from fxflow.distributed.parameter_server.synchronous.sharded_call import sharded_call
from fxflow.distributed.parameter_server.synchronous.shards import Servers, is_sharded
from fxflow.errors import ArgumentError
from fxflow.lax.global_arrays import make_array_from_process_local_data
from fxflow.lax.pytree_transfer import device_put
from fxflow.transforms.grad import value_and_grad
from fxflow.transforms.jit import jit
from fxflow.transforms.shard_map import shard_map


class ServerState(NamedTuple):
    """All that a step reads and renews: a pytree, donated by `step`.

    Attributes:
      params: the parameters, as `Sharded`s.
      optimizer: the optimizer's state, likewise.
      residual: what the coding of gradients lost so far (None where there is none).
    """

    params: Any
    optimizer: Any
    residual: Any


class Metrics(NamedTuple):
    """What a step tells.

    Attributes:
      loss: of the whole batch, before the step.
      aux: what the loss function returned besides, or None.
    """

    loss: Array
    aux: Any


def _require_axis(mesh: Mesh, axis_name: Any) -> None:
    if axis_name not in mesh.axis_names:
        raise ArgumentError(
            f"parameter_server: {mesh} has no axis {axis_name!r}: name one of "
            f"{', '.join(map(repr, mesh.axis_names))} as axis_name"
        )


# So that they forget their devices with the client.
_servers: weakref.WeakSet[ParameterServer] = weakref.WeakSet()


class ParameterServer:
    """Functions of the state of a parameter server. Made by `parameter_server`.

    In several processes each calls them with the same parameters and shared arguments,
    and with its own part of the batch.
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
                f"parameter_server: combine must be 'mean' or 'sum', got {combine!r}"
            )
        if mesh is not None:
            _require_axis(mesh, axis_name)
        self.axis_name, self.exchange = axis_name, exchange
        self._loss_fn, self._optimizer = loss_fn, optimizer
        self._mesh, self._has_aux, self._combine = mesh, has_aux, combine
        self._code = exchanging.code_of(exchange)
        _servers.add(self)

    def _forget(self) -> None:
        """Drops what belongs to devices that are gone."""
        for name in ("mesh", "_share_out", "_step", "_gather"):
            self.__dict__.pop(name, None)

    @functools.cached_property
    def mesh(self) -> Mesh:
        """The devices; decided at the first use."""
        if self._mesh is not None:
            return self._mesh
        current = current_mesh()
        if current is not None and self.axis_name in current.axis_names:
            return current
        return make_mesh((-1,), (self.axis_name,))

    @property
    def servers(self) -> Servers:
        """The devices along the axis."""
        return Servers(self.axis_name, self.mesh.shape[self.axis_name])

    def __repr__(self) -> str:
        optimizer = type(self._optimizer).__name__
        return (
            f"<parameter server of {optimizer}, axis {self.axis_name!r}, "
            f"exchange {self.exchange!r}>"
        )

    # -- public ------------------------------------------------------------------------

    def init(self, params: Any) -> ServerState:
        """Shares out parameters and makes the optimizer's state.

        Args:
          params: pytree of float arrays.

        Returns:
          The state of which each device has its piece.
        """
        strong = tree.map(_strong, params)
        state: ServerState = self._share_out(device_put((strong,), self._everywhere))
        return state

    def step(
        self, state: ServerState, batch: Any, *shared: Any
    ) -> tuple[ServerState, Metrics]:
        """Trains one step.

        Args:
          state: as `init` or `step` gave it; donated.
          batch: pytree of arrays whose first axis is divided over the devices. In
            several processes: this process's part.
          *shared: what every device gets whole, for `loss_fn`, such as a random key.

        Returns:
          The next state, and loss and aux of the batch.

        Raises:
          ShapeError: the first axis cannot be divided evenly.
          ArgumentError: the batch is committed to other devices.
        """
        if self.mesh.is_multi_process:
            batch = tree.map(self._divided, batch)
            shared = device_put(shared, self._everywhere)
        new: tuple[ServerState, Metrics] = self._step(state, batch, shared)
        return new

    def params(self, state: ServerState) -> Any:
        """Gathers the parameters.

        Args:
          state: as `init` or `step` gave it.

        Returns:
          The pytree that `init` got; every device has the whole.
        """
        return self._gather(state.params)

    def close(self) -> None:
        """Does nothing: there is no process to leave, as there is at one's own pace."""

    def whole(self, state: ServerState) -> tuple[Any, Any]:
        """Gathers parameters and the optimizer's state: to save, or for other devices.

        Args:
          state: as `init` or `step` gave it.

        Returns:
          Both as one device has them. What coded gradients lost so far is left out.
        """
        gathered: tuple[Any, Any] = self._gather((state.params, state.optimizer))
        return gathered

    def shared_out(self, params: Any, optimizer: Any) -> ServerState:
        """Shares out what `whole` gave, also that of another number of devices.

        Args:
          params: the parameters.
          optimizer: the optimizer's state.

        Returns:
          The state to go on with, of the same dtypes, also if NumPy's arrays are given.
        """
        strong = tree.map(
            lambda x: as_array(x, getattr(x, "dtype", None)), (params, optimizer)
        )
        given = device_put(strong, self._everywhere)
        state: ServerState = self._share_out(given)
        return state

    # -- programs ----------------------------------------------------------------------

    @property
    def _everywhere(self) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec())

    @property
    def _parted(self) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec(self.axis_name))

    def _divided(self, leaf: Any) -> Any:
        """Returns an array over all processes of which this one has the leaf."""
        if isinstance(leaf, Array) and leaf.sharding.device_set == set(self.mesh.flat):
            return leaf
        return make_array_from_process_local_data(self._parted, leaf)

    def _mapped(self, function: Any, in_specs: Any, out_specs: Any, name: str) -> Any:
        function.__name__ = f"parameter_server.{name}"  # in messages
        return shard_map(
            function,
            mesh=self.mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            axis_names=frozenset({self.axis_name}),
            # What the branches of a cond give alike would count as different.
            check=False,
        )

    def _specs(self, state: Any) -> Any:
        """Returns how a pytree of `Sharded`s and shared arrays is divided."""
        parted = PartitionSpec(self.axis_name)
        return tree.map(
            lambda x: parted if is_sharded(x) else PartitionSpec(),
            state,
            is_leaf=is_sharded,
        )

    @functools.cached_property
    def _share_out(self) -> Any:
        """From `(params,)` or `(params, optimizer)` to the state."""
        servers, code = self.servers, self._code

        def residual(leaf: Any) -> Any:
            aval = typeof(leaf)
            if servers.shares(aval) and exchanging.is_coded(aval, code):
                return exchanging.no_residual(servers, aval)
            return None

        def both(params: Any, *memory: Any) -> Any:
            return params, *(memory or (self._optimizer.init(params),))

        def share_out(given: tuple[Any, ...]) -> ServerState:
            specs: list[Any] = []  # known when `local` was traced

            def local(given: tuple[Any, ...]) -> ServerState:
                served, memory = sharded_call(both, servers, *given, name="optimizer")
                state = ServerState(served, memory, tree.map(residual, given[0]))
                specs.append(self._specs(state))
                return state

            mapped = self._mapped(local, PartitionSpec(), lambda: specs[0], "init")
            return mapped(given)  # type: ignore[no-any-return]

        return jit(share_out)

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
        gathered = self.servers.gather([leaves[i] for i in indices])
        for i, leaf in zip(indices, gathered):
            leaves[i] = leaf
        return treedef.unflatten(leaves)

    @functools.cached_property
    def _step(self) -> Any:
        gradient = value_and_grad(self._loss_fn, has_aux=self._has_aux)

        def local(state: ServerState, batch: Any, shared: Any) -> Any:
            params = self._whole(state.params)
            told, gradients = gradient(params, batch, *shared)
            loss, aux = told if self._has_aux else (told, None)
            (loss, aux), pushed, residual = self._pushed(
                (loss, aux), gradients, state.residual
            )

            def update(gradients: Any, memory: Any, params: Any) -> Any:
                updates, memory = self._optimizer.update(gradients, memory, params)
                return optim.apply_updates(params, updates), memory

            served, memory = sharded_call(
                update,
                self.servers,
                pushed,
                state.optimizer,
                state.params,
                name="optimizer",
            )
            return ServerState(served, memory, residual), Metrics(loss, aux)

        def step(state: ServerState, batch: Any, shared: Any) -> Any:
            specs = self._specs(state)
            mapped = self._mapped(
                local,
                (specs, PartitionSpec(self.axis_name), PartitionSpec()),
                (specs, PartitionSpec()),
                "step",
            )
            return mapped(state, batch, shared)

        shardings = None, self._parted, self._everywhere
        return jit(step, donate_argnums=0, in_shardings=shardings)

    def _pushed(self, told: Any, gradients: Any, residual: Any) -> tuple[Any, Any, Any]:
        """Combines what the devices have: loss and aux, and gradients in pieces."""
        servers = self.servers
        share = 1 / servers.count if self._combine == "mean" else 1
        leaves, treedef = tree.flatten(gradients)
        lost = tree.flatten_up_to(tree.structure(gradients), residual)
        shared_out = [servers.shares(typeof(g)) for g in leaves]
        indices = [i for i, s in enumerate(shared_out) if s]
        sums, kept = exchanging.push(
            servers,
            self._code,
            [leaves[i] for i in indices],
            [lost[i] for i in indices],
        )
        numbers, told_tree = tree.flatten(told)
        alone = [i for i, s in enumerate(shared_out) if not s]
        numbers = [lax.psum(self._number(as_array(x)), servers.axis) for x in numbers]
        for i in alone:
            total = lax.psum(exchanging.wide(leaves[i]), servers.axis)
            leaves[i] = (total * share).astype(typeof(leaves[i]).dtype)
        for i, total, rest in zip(indices, sums, kept):
            dtype = typeof(leaves[i]).dtype
            total.flat = (total.flat * share).astype(dtype)
            leaves[i], lost[i] = total, rest
        told = told_tree.unflatten([x * share for x in numbers])
        return told, treedef.unflatten(leaves), treedef.unflatten(lost)

    def _number(self, x: Any) -> Any:
        """Returns a part of loss or aux in a dtype that can be combined."""
        dtype = typeof(x).dtype
        if dtypes.is_bool(dtype):
            x = x.astype(dtypes.int32)
        if self._combine == "mean" and not dtypes.is_inexact(typeof(x).dtype):
            x = x.astype(dtypes.float32)
        return x


def _strong(leaf: Any) -> Any:
    """Returns a parameter of exactly its type, as steps give it back."""
    if is_arraylike(leaf) and typeof(leaf).weak_type:
        return fnp.asarray(leaf, typeof(leaf).dtype)
    return leaf


@clients.on_clear
def _forget_devices() -> None:
    for server in list(_servers):
        server._forget()
