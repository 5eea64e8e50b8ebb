"""Which buffers of a compiled program are live when it needs most memory.

The optimised HLO is in the order in which it runs. A buffer is live from the
instruction that makes it to the last one that reads it, also through tuples, bitcasts
and loops, or until another buffer takes its place in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fxflow.devices.assignment import Assigned
from fxflow.transforms.copies import HloInstruction, HloProgram

# What a value may be in: numbers of buffers; of a tuple, for each of its items.
_Value = frozenset[int] | list[frozenset[int]]
_SAME = {"bitcast", "copy-done", "copy-start", "optimization-barrier", "domain"}
_CALLED = ("condition", "body", "to_apply", "true_computation", "false_computation")


def live_at_peak(buffers: Sequence[Assigned], program: HloProgram) -> list[Assigned]:
    """Returns the buffers that make the peak, the largest first.

    Args:
      buffers: of the program.
      program: the optimised HLO.
    """
    walk = _Walk(buffers, program)
    walk.run(program.entry, [])
    temporary = [i for i, b in enumerate(buffers) if b.kind == "temporary"]
    spans = _spans(walk, buffers, temporary)
    changes: dict[int, int] = {}
    for i, (start, end) in spans.items():
        changes[start] = changes.get(start, 0) + buffers[i].nbytes
        changes[end + 1] = changes.get(end + 1, 0) - buffers[i].nbytes
    size = most = moment = 0
    for time in sorted(changes):
        size += changes[time]
        if size > most:
            most, moment = size, time
    found = [buffers[i] for i, (start, end) in spans.items() if start <= moment <= end]
    # Arguments, results and constants have memory of their own all the time; one
    # buffer stands for each, that which the whole program makes last.
    others: dict[int, tuple[bool, int, Assigned]] = {}
    for i, buffer in enumerate(buffers):
        if buffer.kind != "temporary":
            rank = buffer.computation == program.entry, walk.made.get(i, 0), buffer
            known = others.get(buffer.allocation)
            if known is None or rank[:2] >= known[:2]:
                others[buffer.allocation] = rank
    found += [buffer for *_, buffer in others.values()]
    return sorted(found, key=lambda b: -b.nbytes)


def _spans(
    walk: _Walk, buffers: Sequence[Assigned], numbers: Iterable[int]
) -> dict[int, tuple[int, int]]:
    """Returns when each buffer is live: until its place in memory is taken."""
    made = sorted((walk.made[i], i) for i in numbers if i in walk.made)
    spans = {}
    for position, (start, i) in enumerate(made):
        one, end = buffers[i], walk.used.get(i, start)
        for later, j in made[position + 1 :]:
            if later > end:
                break
            other = buffers[j]
            if (
                other.allocation == one.allocation
                and other.offset < one.offset + one.nbytes
                and one.offset < other.offset + other.nbytes
            ):
                end = later - 1
                break
        spans[i] = start, end
    return spans


class _Walk:
    """Goes through a program in the order of its run.

    Attributes:
      made: when each buffer is made.
      used: when each is read last.
    """

    def __init__(self, buffers: Sequence[Assigned], program: HloProgram) -> None:
        self.program = program
        self.made: dict[int, int] = {}
        self.used: dict[int, int] = {}
        self._clock = 0
        self._own: dict[tuple[str, str], list[int]] = {}
        self._items = [b.item for b in buffers]
        for i, buffer in enumerate(buffers):
            place = buffer.computation, buffer.instruction
            self._own.setdefault(place, []).append(i)

    def run(self, where: str, given: Sequence[_Value]) -> _Value:
        """Runs a computation; returns what its result is in."""
        values: dict[str, _Value] = {}
        result: _Value = frozenset()
        root = self.program.roots.get(where)
        for found in self.program.computations.get(where, {}).values():
            self._clock += 1
            values[found.name] = self._value(where, found, values, given)
            for operand in found.operands:
                self._use(values.get(operand, frozenset()))
            if root is found:
                result = values[found.name]
        self._use(result)
        return result

    def _use(self, value: _Value) -> None:
        for number in _all(value):
            self.used[number] = self._clock

    def _value(
        self,
        where: str,
        found: HloInstruction,
        values: dict[str, _Value],
        given: Sequence[_Value],
    ) -> _Value:
        operands = [values.get(name, frozenset()) for name in found.operands]
        own = self._own.get((where, found.name), [])
        for number in own:
            self.made.setdefault(number, self._clock)
        operation = found.operation
        value: _Value = frozenset(own)
        if operation == "parameter":
            value = given[found.number_of_parameter] if given else value
        elif operation in _SAME and operands:
            value = operands[0]
        elif operation == "tuple":
            value = [_all(operand) for operand in operands]
        elif operation == "get-tuple-element" and operands:
            whole = operands[0]
            value = whole[found.number] if isinstance(whole, list) else whole
        elif operation == "while":
            value = self._loop(found, operands)
        elif operation in ("call", "conditional"):
            for name in found.all_called(_CALLED):
                inner = self.run(
                    name, operands if operation == "call" else operands[1:]
                )
                value = _joined(value, inner)
        elif len(own) > 1:
            count = 1 + max((self._items[i] or 0) for i in own)
            value = [
                frozenset(i for i in own if self._items[i] == k) for k in range(count)
            ]
        return value

    def _loop(self, found: HloInstruction, operands: list[_Value]) -> _Value:
        carried = operands[0] if operands else frozenset()
        self.run(found.called("condition"), [carried])
        after = _joined(carried, self.run(found.called("body"), [carried]))
        self._clock += 1
        # All that goes round is there until the loop ends.
        self._use(after)
        return after


def _all(value: _Value) -> frozenset[int]:
    return frozenset().union(*value) if isinstance(value, list) else value


def _joined(one: _Value, other: _Value) -> _Value:
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [a | b for a, b in zip(one, other, strict=True)]
    if isinstance(other, list) and not one:
        return other
    return _all(one) | _all(other)
