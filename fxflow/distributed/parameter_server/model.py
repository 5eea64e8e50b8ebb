"""The model as servers know it: types and programs.

A worker makes a `Model` of its parameters, optimizer and consistency for each shard of
the plan, and offers it to the servers. They accept the first offer. Later ones must
have the same fingerprint: a worker with another model would corrupt the run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow import optim
from fxflow.core.arrays import Aval, typeof
from fxflow.core.arrays.aval import struct_of
from fxflow.distributed.parameter_server.consistency import Consistency
from fxflow.distributed.parameter_server.filters import (
    Filter,
    bytes_by_filter,
    coded_types,
    filter_of,
)
from fxflow.distributed.parameter_server.tables.remote import TableModel, table_model
from fxflow.distributed.parameter_server.tables.spec import TableSpec
from fxflow.distributed.program_text import (
    ProgramText,
    type_of_text,
    type_text,
    write,
)
from fxflow.distributed.serialization import HostLeaf

#: Describe at most this many parameters to a worker that has another model.
_MAX_DESCRIBED = 2000


class Model(NamedTuple):
    """One shard's part of the model.

    Attributes:
      consistency: the run's consistency.
      names: names of the pieces of parameters in the shard.
      params: their types.
      state: types of the optimizer's state for them.
      coded: types of an encoded gradient.
      programs: `init`: params → state; `begin`: (weight, coded, params, seen) → a
        weighted gradient; `add`: the same, added to a gradient, its first argument;
        `update`: (params, state, gradient) → params and state; `apply`: `begin` and
        `update` in one, without `seen` if delays are not compensated (`update` and
        `apply` overwrite params and state unless those may be `seen` later); `send`,
        unless parameters are sent unchanged: params → what workers pull, one array
        each.
      tables: models of the shard's tables, by name.
      filters: bytes of an encoded gradient (``"push"``) and of the encoded parameters
        (``"pull"``), by the name of the filter.
    """

    consistency: Consistency
    names: list[str]
    params: list[Aval]
    state: list[Aval]
    coded: list[Aval]
    programs: dict[str, ProgramText]
    tables: dict[str, TableModel]
    filters: dict[str, dict[str, int]]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of consistency, names, programs and tables; compares models."""
        digests = {name: p.digest for name, p in sorted(self._all_programs().items())}
        tables = {name: t.description for name, t in sorted(self.tables.items())}
        described = [self.consistency.to_json(), self.names, digests, tables]
        text = json.dumps(described)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def described(self) -> dict[str, str]:
        """What may differ between two workers' models, by name; limited in size."""
        found = {"the consistency": str(self.consistency)}
        for name, program in sorted(self._all_programs().items()):
            found[f"the program {name!r}"] = program.digest[:12]
        for name, table in self.tables.items():
            found[f"table {name!r}"] = json.dumps(table.description, sort_keys=True)
        for name, aval in zip(self.names[:_MAX_DESCRIBED], self.params, strict=False):
            found[f"parameter {name!r}"] = str(aval)
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of the parameters."""
        return sum(aval.size * aval.dtype.itemsize for aval in self.params)

    def to_message(self) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
        """Returns the model as JSON and arrays, for a message."""
        arrays: dict[str, np.ndarray[Any, Any]] = {}
        programs = {}
        for name, program in self._all_programs().items():
            arrays[f"text/{name}"] = np.frombuffer(program.text.encode(), np.uint8)
            for i, leaf in enumerate(program.constants):
                arrays[f"constant/{name}/{i}"] = np.ascontiguousarray(leaf.data)
            programs[name] = {
                "name": program.name,
                "constants": [leaf.key for leaf in program.constants],
                "inputs": [type_text(a) for a in program.inputs],
                "outputs": [type_text(a) for a in program.outputs],
                "donated": program.donated,
            }
        fields = {
            "consistency": self.consistency.to_json(),
            "names": self.names,
            "params": [type_text(a) for a in self.params],
            "state": [type_text(a) for a in self.state],
            "coded": [type_text(a) for a in self.coded],
            "programs": programs,
            "tables": {
                name: [table.description, table.fields]
                for name, table in self.tables.items()
            },
            "filters": self.filters,
        }
        return fields, arrays

    def _all_programs(self) -> dict[str, ProgramText]:
        """Returns all programs, those of tables under a prefixed name."""
        found = dict(self.programs)
        for table, model in self.tables.items():
            for name, program in model.programs.items():
                found[f"table/{table}/{name}"] = program
        return found

    @staticmethod
    def from_message(
        fields: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]]
    ) -> Model:
        """Returns what `to_message` was called on.

        Raises:
          ValueError: the fields are not those of a model.
        """
        try:
            programs = {}
            for name, given in fields["programs"].items():
                constants = [
                    HostLeaf(arrays[f"constant/{name}/{i}"], key)
                    for i, key in enumerate(given["constants"])
                ]
                programs[name] = ProgramText(
                    given["name"],
                    bytes(arrays[f"text/{name}"]).decode(),
                    constants,
                    [type_of_text(t) for t in given["inputs"]],
                    [type_of_text(t) for t in given["outputs"]],
                    int(given["donated"]),
                )
            tables = {}
            for name, (description, kept) in fields["tables"].items():
                prefix = f"table/{name}/"
                own = {
                    key.removeprefix(prefix): programs.pop(key)
                    for key in list(programs)
                    if key.startswith(prefix)
                }
                row = [(tuple(shape), dtype) for shape, dtype in kept]
                tables[name] = TableModel(description, row, own)
            return Model(
                Consistency.from_json(fields["consistency"]),
                list(fields["names"]),
                [type_of_text(t) for t in fields["params"]],
                [type_of_text(t) for t in fields["state"]],
                [type_of_text(t) for t in fields["coded"]],
                programs,
                tables,
                {
                    way: {
                        str(n): int(size) for n, size in fields["filters"][way].items()
                    }
                    for way in ("push", "pull")
                },
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a model: {error!r}") from error


def difference(mine: Mapping[str, str], run: Mapping[str, str]) -> str:
    """Describes the first difference between two models.

    Args:
      mine: `Model.described` of this worker's model.
      run: `Model.described` of the run's model.

    Example:
      >>> difference({"parameter 'w'": "f32[3]"}, {"parameter 'w'": "f32[4]"})
      "Here parameter 'w' is f32[3], in the run f32[4]"
    """
    # Types come first: if they differ, programs differ for that reason.
    names = sorted({*mine, *run}, key=lambda name: ("program" in name, name))
    for name in names:
        one, other = mine.get(name), run.get(name)
        if one == other:
            continue
        if name.startswith("the program"):
            return f"{name} differs: another optimizer, rate or filter".capitalize()
        if one is None or other is None:
            has, place = (other, "in the run") if one is None else (one, "here")
            return (
                f"This server has {name} ({has}) {place} only: the parameters differ, "
                "or their sizes, which moves the rest to other servers"
            )
        return f"Here {name} is {one}, in the run {other}"
    return f"They differ in parameters after the first {_MAX_DESCRIBED}"


def make_model(
    names: Sequence[str],
    params: Sequence[Any],
    optimizer: Any,
    consistency: Consistency,
    *,
    code: Filter | None = None,
    pull: Filter | None = None,
    tables: Sequence[TableSpec] = (),
) -> Model:
    """Makes one shard's part of a model.

    Args:
      names: names of its pieces, sorted like the leaves of a pytree.
      params: the pieces, or `ShapeDtypeStruct`s.
      optimizer: an optimizer of `fxflow.optim`; it sees only these pieces.
      consistency: the run's consistency.
      code: filter of gradients; None: they are sent unchanged.
      pull: filter of parameters for workers; None: they are sent unchanged.
      tables: specifications of the tables.

    Raises:
      DistributedError: the optimizer calls Python, or a library that is not XLA's.
    """
    types = [typeof(p) for p in params]
    trained = dict(zip(names, types, strict=True))
    like = {name: struct_of(aval) for name, aval in trained.items()}
    code = code or filter_of("f32")
    coded, coded_tree = coded_types(code, like)
    compensation = consistency.compensation

    def gradient_of(weight: Any, coded: Any, params: Any, seen: Any) -> list[Any]:
        named = code.decode(coded_tree.unflatten(coded), params)
        gradient = [named[name] for name in params]
        if compensation:
            gradient = [
                g + compensation * g * g * (now - then)
                for g, now, then in zip(gradient, params.values(), seen.values())
            ]
        return [(g * weight).astype(t.dtype) for g, t in zip(gradient, types)]

    def add(total: Any, weight: Any, coded: Any, params: Any, seen: Any) -> list[Any]:
        more = gradient_of(weight, coded, params, seen)
        return [a + b for a, b in zip(total, more, strict=True)]

    def update(params: Any, state: Any, gradient: Any) -> tuple[Any, Any]:
        if consistency.pushes == "changes":
            return {n: p + g for (n, p), g in zip(params.items(), gradient)}, state
        named = dict(zip(params, gradient, strict=True))
        updates, state = optimizer.update(named, state, params)
        return optim.apply_updates(params, updates), state

    def init(params: Any) -> Any:
        return () if consistency.pushes == "changes" else optimizer.init(params)

    def apply(
        params: Any, state: Any, weight: Any, coded: Any, *seen: Any
    ) -> tuple[Any, Any]:
        (then,) = seen or (params,)
        return update(params, state, gradient_of(weight, coded, params, then))

    def send(params: Any) -> Any:
        assert pull is not None
        return pull.encode(params, pull.init(params))[0]

    state_types, state_tree = _types_of(init, trained)
    state = state_tree.unflatten(state_types)
    weight = Aval((), np.dtype(np.float32))
    written: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "init": (init, (trained,)),
        "begin": (gradient_of, (weight, coded, trained, trained)),
        "add": (add, (types, weight, coded, trained, trained)),
        "update": (update, (trained, state, types)),
        "apply": (
            apply,
            (trained, state, weight, coded, *([trained] * bool(compensation))),
        ),
    }
    if pull is not None and coded_types(pull, like)[0] != types:
        written["send"] = send, (trained,)
    programs = {
        name: write(
            function,
            *args,
            name=f"parameter_server.{name}",
            # Compensation needs the parameters that a worker computed on.
            donated=2 if name in ("update", "apply") and not compensation else 0,
        )
        for name, (function, args) in written.items()
    }
    return Model(
        consistency,
        list(names),
        types,
        state_types,
        coded,
        {name: program for name, (program, _) in programs.items()},
        {spec.name: table_model(spec) for spec in tables},
        {
            "push": bytes_by_filter(code, like),
            "pull": bytes_by_filter(pull or filter_of("f32"), like),
        },
    )


def _types_of(function: Any, *args: Any) -> tuple[list[Aval], Any]:
    """Returns the types of a function's results, and their structure."""
    program, treedef = write(function, *args, name="types")
    return program.outputs, treedef
