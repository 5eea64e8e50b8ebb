"""Programs whose sizes only a call says: `tensor<?x3xf32>` and the dynamic operations.

Lowering rules write an operation for sizes as for integers, and where a size comes to
stand in the text it is in brackets: `tensor<⟨b⟩x3xf32>`, `limits = [⟨b - 1⟩]`. Here the
types get their `?`, and the few operations whose result does not follow from the types
of their operands become those that take sizes as operands: `dynamic_reshape`,
`dynamic_broadcast_in_dim`, `real_dynamic_slice`, …. So no rule is written twice, and
what a rule decides by a size it decides by comparing `Size`s, which raises if not all
calls would answer alike.

`main` computes the names from the shapes of its arguments and asserts that these are as
they should be; private functions take the names as their first arguments. Sizes are
computed once for each function, at its start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.sizes.size import CLOSE, OPEN, Scope, Size, names_of
from fxflow.core.sizes.solving import Equation, solved
from fxflow.core.sizes.texts import parsed
from fxflow.errors import ExportError

_SIZE = re.compile(f"{OPEN}([^{CLOSE}]*){CLOSE}")
_TENSOR = r"tensor<[^<>]*(?:<[^<>]*>)?>"
_TYPE = re.compile(_TENSOR)
_DIM = re.compile(f"(?:{OPEN}([^{CLOSE}]*){CLOSE}|([0-9]+))x")
_HEAD = re.compile(r"func\.func (public|private) @(\w+)\((.*)\) -> (.*)$")
_CALLED = re.compile(r"(?:func\.call|decomposition =) @(\w+)")
_CALL = re.compile(r"func\.call @(\w+)\((.*?)\)( \{.*\})? : \((.*)$")
_LINE = re.compile(
    r'^(%\w+(?::\d+)?) = "?(stablehlo|chlo)\.(\w+)"?(.*?)( loc\("[^"]*"\))?$'
)
_COMPOSITE = re.compile(
    r'^(.*?)stablehlo\.composite "[^"]*" (.*?) '
    r"\{.*decomposition = @(\w+).*?\} : (\(.*)$"
)
_WINDOWS = re.compile(
    r'^(%\w+(?::\d+)?) = "stablehlo\.reduce_window"\((.*)\) \(\{\n\^bb0\((.*)\):\n'
    r"((?:.*\n)*?.*)\n\}\) \{(.*)\} : \((.*)\) -> (.*)$",
    re.M,
)
_SCALAR = "tensor<i32>"


def opened(text: str, labels: Sequence[str], scope: Scope | None) -> str:
    """Returns the module with sizes computed where they stand in brackets.

    Args:
      text: of a module, each function beginning with `func.func`.
      labels: what messages call the arguments of `main`.
      scope: what the sizes are known to be.

    Raises:
      ExportError: an operation has no dynamic form, or the arguments do not say what a
        name stands for.
    """
    start, *functions = re.split(r"(?m)^(?=func\.func )", text)
    names = sorted({n for t in _SIZE.findall(text) for n in names_of(parsed(t))})
    inside = {_name(f) for f in functions if OPEN in f}
    while True:
        # What calls a function that takes the names must have them.
        calling = {
            _name(f)
            for f in functions
            if any(name in inside for name in _CALLED.findall(f))
        }
        if calling <= inside:
            break
        inside |= calling
    for i, function in enumerate(functions):
        if _name(function) in inside:
            functions[i] = _Function(function, names, inside, labels, scope).written()
    return start + "".join(functions)


def _name(function: str) -> str:
    found = _HEAD.match(function.partition(" {\n")[0])
    assert found is not None, function[:200]
    return found[2]


class _Function:
    """One function that is being rewritten.

    Attributes:
      first: lines at its start, which compute sizes.
      known: names of the values of sizes, by their texts.
      reducers: functions that it calls by name, in place of regions.
    """

    def __init__(
        self,
        text: str,
        names: Sequence[str],
        inside: set[str],
        labels: Sequence[str],
        scope: Scope | None,
    ) -> None:
        self.text, self.names, self.inside = text, names, inside
        self.labels, self.scope = labels, scope
        self.first: list[str] = []
        self.known: dict[str, str] = {}
        self.count = 0
        self.reducers = ""

    def written(self) -> str:
        """Returns the function's text."""
        head, body = self.text.split(" {\n", 1)
        found = _HEAD.match(head)
        assert found is not None
        visibility, name, arguments, results = found.groups()
        if visibility == "public":
            self._solve(arguments)
        else:
            self.known = {n: f"%dim_{n}" for n in self.names}
            own = [
                f'%dim_{n}: {_SCALAR} {{jax.global_constant = "{n}"}}'
                for n in self.names
            ]
            arguments = ", ".join((*own, arguments) if arguments else own)
        body = _WINDOWS.sub(lambda found: self._window(name, found), body)
        lines: list[str] = []
        for line in body.split("\n"):
            lines += self._rewritten(line)
        top = "".join(f"{line}\n" for line in self.first)
        head = open_types(f"@{name}({arguments}) -> {results}")
        function = f"func.func {visibility} {head} {{\n{top}" + "\n".join(lines)
        return self.reducers + function

    # -- sizes as values ---------------------------------------------------------------

    def emit(self, text: str) -> str:
        """Writes an operation at the start; returns its result's name."""
        name = f"%z{self.count}"
        self.count += 1
        self.first.append(f"{name} = {text}")
        return name

    def scalar(self, value: int) -> str:
        """Returns an integer as a value."""
        key = str(value)
        if key not in self.known:
            self.known[key] = self.emit(
                f"stablehlo.constant dense<{value}> : {_SCALAR}"
            )
        return self.known[key]

    def binary(self, operation: str, a: str, b: str) -> str:
        """Returns what an operation of two integers gives."""
        key = f"{operation} {a} {b}"
        if key not in self.known:
            self.known[key] = self.emit(f"stablehlo.{operation} {a}, {b} : {_SCALAR}")
        return self.known[key]

    def value(self, size: Any) -> str:
        """Returns the value of a size or an integer."""
        if not isinstance(size, Size):
            return self.scalar(size)
        key = size.text()
        if key not in self.known:
            total = ""
            for monomial, count in size.terms.items():
                product = self.scalar(count) if count != 1 or not monomial else ""
                for atom, power in monomial:
                    factor = self._atom(atom)
                    for _ in range(power):
                        product = (
                            self.binary("multiply", product, factor)
                            if product
                            else factor
                        )
                total = self.binary("add", total, product) if total else product
            self.known[key] = total
        return self.known[key]

    def _atom(self, atom: Any) -> str:
        if isinstance(atom, str):
            return self.known[atom]
        operation, operands = atom
        a, b = map(self.value, operands)
        if operation in ("max", "min"):
            return self.binary(f"{operation}imum", a, b)
        # StableHLO rounds towards zero, and its remainder has the dividend's sign.
        rest = self.binary("remainder", a, b)
        rest = self.binary("remainder", self.binary("add", rest, b), b)
        if operation == "mod":
            return rest
        return self.binary("divide", self.binary("subtract", a, rest), b)

    def vector(self, sizes: Sequence[Any]) -> str:
        """Returns sizes as a vector."""
        key = f"[{', '.join(map(str, sizes))}]"
        if key not in self.known:
            one, kind = "tensor<1xi32>", f"tensor<{len(sizes)}xi32>"
            if not any(isinstance(n, Size) for n in sizes):
                text = f"stablehlo.constant dense<{key if sizes else ''}> : {kind}"
                self.known[key] = self.emit(text)
                return self.known[key]
            parts = [
                self.emit(f"stablehlo.reshape {self.value(n)} : ({_SCALAR}) -> {one}")
                for n in sizes
            ]
            self.known[key] = (
                self.emit(
                    f"stablehlo.concatenate {', '.join(parts)}, dim = 0 : "
                    f"({', '.join([one] * len(parts))}) -> {kind}"
                )
                if len(parts) > 1
                else parts[0]
            )
        return self.known[key]

    def pairs(self, sizes: Sequence[Sequence[Any]]) -> str:
        """Returns pairs of sizes as a matrix."""
        flat = self.vector([n for pair in sizes for n in pair])
        count = len(sizes)
        return self.emit(
            f"stablehlo.reshape {flat} : ({_vector_type(2 * count)}) -> "
            f"tensor<{count}x2xi32>"
        )

    # -- the arguments of `main` -------------------------------------------------------

    def _solve(self, arguments: str) -> None:
        """Writes what the names stand for, and asserts that the shapes are right."""
        equations = []
        given = re.findall(rf"(%\w+): ({_TENSOR})", arguments)
        labels = [*self.labels, *[""] * len(given)]
        for (name, kind), label in zip(given, labels, strict=False):
            for axis, size in enumerate(_dims(kind)):
                if isinstance(size, Size):
                    length = self.emit(
                        f"stablehlo.get_dimension_size {name}, dim = {axis} : "
                        f"({open_types(kind)}) -> {_SCALAR}"
                    )
                    what = f"axis {axis} of {label or name}"
                    equations.append(Equation(size, length, what))
        steps, missing = solved(equations)
        wanted = [n for n in self.names if n in missing]
        # A name that only occurs in types of arguments that nothing reads is no matter.
        if wanted:
            raise ExportError(
                f"export: no argument says what {', '.join(wanted)} is: each name must "
                "stand alone, or times a number and plus others that are known, on an "
                "axis of an argument"
            )
        for equation, name, factor, rest in steps:
            length, what = equation.length, equation.what
            size = equation.size.text()
            if name is None:
                have = self.value(equation.size)
                message = f"{what} is {{0}}, and {size} is {{1}}"
                self._assert("EQ", length, have, message, (length, have))
                continue
            left = self.binary("subtract", length, self.value(rest)) if rest else length
            if factor != 1:
                by = self.scalar(factor)
                over = self.binary("remainder", left, by)
                message = f"{what} is {{0}}, for which there is no {name} in {size}"
                self._assert("EQ", over, self.scalar(0), message, (length,))
                left = self.binary("divide", left, by)
            message = f"{what} is {{0}}, where {size} has {name} of at least 1"
            self._assert("GE", left, self.scalar(1), message, (length,))
            self.known[name] = left
        for text, size, exact in self.scope.checks if self.scope else ():
            if not names_of(size) <= self.known.keys():
                continue
            names = sorted(names_of(size))
            message = f"{text} does not hold for " + ", ".join(
                f"{n} = {{{i}}}" for i, n in enumerate(names)
            )
            self._assert(
                "EQ" if exact else "GE",
                self.value(size),
                self.scalar(0),
                message,
                [self.known[n] for n in names],
            )

    def _assert(
        self, comparison: str, a: str, b: str, message: str, values: Sequence[str]
    ) -> None:
        holds = self.emit(
            f"stablehlo.compare {comparison}, {a}, {b}, SIGNED : "
            f"({_SCALAR}, {_SCALAR}) -> tensor<i1>"
        )
        quoted = message.replace("\\", "\\\\").replace('"', '\\"')
        types = ", ".join(("tensor<i1>", *[_SCALAR] * len(values)))
        self.first.append(
            f"stablehlo.custom_call @shape_assertion({', '.join((holds, *values))}) "
            f'{{api_version = 2 : i32, error_message = "{quoted}", '
            f"has_side_effect = true}} : ({types}) -> ()"
        )

    # -- operations --------------------------------------------------------------------

    def _window(self, name: str, found: re.Match[str]) -> str:
        """Returns a `reduce_window` of sizes that only a call says, as one line."""
        result, operands, block, body, attributes, ins, outs = found.groups()
        if OPEN not in attributes or OPEN in body:
            return found[0]
        reducer = f"{name}_reducer_{self.count}"
        self.count += 1
        *lines, last = body.split("\n")
        last = last.removeprefix("stablehlo.")
        kinds = last.partition(" : ")[2]
        text = "\n".join((*lines, last))
        self.reducers += (
            f"func.func private @{reducer}({block}) -> ({kinds}) {{\n{text}\n}}\n"
        )
        lists = [
            _listed(n) for n in re.findall(r"array<i64: (.*?)>(?:,|$)", attributes)
        ]
        padding = re.search(r"padding = dense<\[(.*)\]>", attributes)
        assert padding is not None, attributes
        pairs = [_listed(n) for n in re.findall(r"\[(.*?)\]", padding[1])]
        vectors = [*map(self.vector, lists), self.pairs(pairs)]
        count = len(pairs)
        types = ", ".join([_vector_type(count)] * 4)
        return (
            f"{result} = stablehlo.custom_call @stablehlo.dynamic_reduce_window("
            f"{operands}, {', '.join(vectors)}) {{called_computations = [@{reducer}]}} "
            f": ({ins}, {types}, tensor<{count}x2xi32>) -> {outs}"
        )

    def _rewritten(self, line: str) -> list[str]:
        composite = _COMPOSITE.match(line)
        if composite and composite[3] in self.inside:
            # Refinement knows no composites; what they are made of, it does.
            result, operands, name, types = composite.groups()
            line = f"{result}func.call @{name}({operands}) : {types}"
        call = _CALL.search(line)
        if call and call[1] in self.inside:
            own = ", ".join(self.value(_named(n)) for n in self.names)
            types = ", ".join([_SCALAR] * len(self.names))
            more = ", " if call[2] else ""
            line = (
                f"{line[: call.start()]}func.call @{call[1]}({own}{more}{call[2]})"
                f"{call[3] or ''} : ({types}{more}{call[4]}"
            )
            return [open_types(line)]
        if OPEN not in line:
            return [line]
        found = _LINE.match(line)
        operation = found[3] if found else ""
        rule = _RULES.get(operation)
        if found and rule:
            new = rule(self, found[4])
            if new is not None:
                *before, last = new if isinstance(new, list) else [new]
                before.append(f"{found[1]} = {last}{found[5] or ''}")
                return [open_types(x) for x in before]
        opened_line = open_types(line)
        if OPEN in opened_line:
            shown = _SIZE.findall(line)
            where = (found[5] if found else "") or ""
            raise ExportError(
                f"export: {operation or line[:60]} has no form for the symbolic size "
                f"{shown[0]}{f' (at {where[6:-2]})' if where else ''}: export it for a "
                "fixed size there, or write that part with other operations"
            )
        return [opened_line]


def _named(name: str) -> Size:
    return parsed(name)  # type: ignore[no-any-return]


def open_types(text: str) -> str:
    """Returns the text of operations or types with the sizes in types left open.

    Args:
      text: as in `tensor<⟨b⟩x3xf32>`, of which it makes `tensor<?x3xf32>`.
    """
    return _TYPE.sub(lambda found: _SIZE.sub("?", found[0]), text)


def _dims(kind: str) -> list[Any]:
    """Returns the lengths in the text of a type."""
    return [
        parsed(found[1]) if found[1] is not None else int(found[2])
        for found in _DIM.finditer(kind)
    ]


def _listed(text: str) -> list[Any]:
    """Returns the lengths in the text of a list."""
    items = [item.strip() for item in text.split(",")] if text.strip() else []
    return [parsed(item.strip(OPEN + CLOSE)) for item in _whole(items)]


def _whole(items: Sequence[str]) -> list[str]:
    # A comma may stand within a size: floordiv(b, 2).
    joined: list[str] = []
    for item in items:
        if joined and joined[-1].count(OPEN) > joined[-1].count(CLOSE):
            joined[-1] += f", {item}"
        else:
            joined.append(item)
    return joined


def _vector_type(count: int) -> str:
    return f"tensor<{count}xi32>"


# -- rules: an operation's text behind its name, to that of the dynamic one ------------

_Rule = Callable[[_Function, str], "str | list[str] | None"]


def _types(text: str) -> tuple[list[str], str]:
    """Returns the types of operands and of the result."""
    found = _TYPE.findall(text[text.rindex(" : ") :])
    return found[:-1], found[-1]


def _broadcast(of: _Function, text: str) -> str | None:
    (operand,), result = _types(text)
    if OPEN not in result:
        return None
    dims = _dims(result)
    operation = text[: text.rindex(" : ")].strip()
    name, rest = operation.split(", ", 1)
    return (
        f"stablehlo.dynamic_broadcast_in_dim {name}, {of.vector(dims)}, {rest} : "
        f"({operand}, {_vector_type(len(dims))}) -> {result}"
    )


def _reshape(of: _Function, text: str) -> str | None:
    (operand,), result = _types(text)
    if OPEN not in result:
        return None
    dims = _dims(result)
    name = text[: text.rindex(" : ")].strip()
    return (
        f"stablehlo.dynamic_reshape {name}, {of.vector(dims)} : "
        f"({operand}, {_vector_type(len(dims))}) -> {result}"
    )


def _iota(of: _Function, text: str) -> str:
    _, result = _types(text)
    dims = _dims(result)
    axis = text[: text.rindex(" : ")].strip()
    return (
        f"stablehlo.dynamic_iota {of.vector(dims)}, {axis} : "
        f"({_vector_type(len(dims))}) -> {result}"
    )


def _constant(of: _Function, text: str) -> str | list[str] | None:
    _, result = _types(text)
    element, dims = _element(result), _dims(result)
    dense = re.match(r"\s*dense<(.*)> : ", text)
    if dense is None:
        return None
    if OPEN in dense[1]:
        if not dense[1].startswith(OPEN):
            return None
        name = of.value(parsed(dense[1].strip(OPEN + CLOSE)))
        convert = f"stablehlo.convert {name} : ({_SCALAR}) -> tensor<{element}>"
        if not dims:
            return convert
        scalar = of.emit(convert)
    else:
        scalar = of.emit(f"stablehlo.constant dense<{dense[1]}> : tensor<{element}>")
    return (
        f"stablehlo.dynamic_broadcast_in_dim {scalar}, {of.vector(dims)}, dims = [] : "
        f"(tensor<{element}>, {_vector_type(len(dims))}) -> {result}"
    )


def _element(kind: str) -> str:
    end = 0
    for found in _DIM.finditer(kind):
        end = found.end()
    return kind[end or 7 : -1]


def _slice(of: _Function, text: str) -> str | None:
    found = re.match(r"\s*(%[\w#]+) \[(.*)\] : ", text)
    if not found or OPEN not in found[2]:
        return None
    (operand,), result = _types(text)
    ranges = [part.split(":") for part in _whole(found[2].split(", "))]
    starts = [_listed(part[0])[0] for part in ranges]
    limits = [_listed(part[1])[0] for part in ranges]
    strides = [_listed(part[2])[0] if len(part) > 2 else 1 for part in ranges]
    return _real_slice(
        found[1], operand, result, *map(of.vector, (starts, limits, strides))
    )


def _real_slice(
    name: str, operand: str, result: str, starts: str, limits: str, strides: str
) -> str:
    vector = _vector_type(len(_dims(operand)))
    return (
        f"stablehlo.real_dynamic_slice {name}, {starts}, {limits}, {strides} : "
        f"({operand}, {vector}, {vector}, {vector}) -> {result}"
    )


def _dynamic_slice(of: _Function, text: str) -> list[str] | None:
    found = re.match(r"\s*(%[\w#]+)((?:, %[\w#]+)*), sizes = \[(.*)\] : ", text)
    if not found or OPEN not in found[3]:
        return None
    (operand, *kinds), result = _types(text)
    sizes, dims = _listed(found[3]), _dims(operand)
    names = found[2].split(", ")[1:]
    vector, one = _vector_type(len(dims)), "tensor<1xi32>"
    lines, parts = [], []

    def emit(operation: str) -> str:
        name = f"%z{of.count}"
        of.count += 1
        lines.append(f"{name} = {operation}")
        return name

    for name, kind in zip(names, kinds, strict=True):
        if kind != _SCALAR:
            name = emit(f"stablehlo.convert {name} : ({kind}) -> {_SCALAR}")
        parts.append(emit(f"stablehlo.reshape {name} : ({_SCALAR}) -> {one}"))
    start = parts[0]
    if len(parts) > 1:
        types = ", ".join([one] * len(parts))
        start = emit(
            f"stablehlo.concatenate {', '.join(parts)}, dim = 0 : ({types}) -> {vector}"
        )
    # As `dynamic_slice` does: a start from which too little follows is moved.
    least = of.vector([0] * len(dims))
    most = of.vector([n - size for n, size in zip(dims, sizes, strict=True)])
    start = emit(f"stablehlo.clamp {least}, {start}, {most} : {vector}")
    stop = emit(f"stablehlo.add {start}, {of.vector(sizes)} : {vector}")
    strides = of.vector([1] * len(dims))
    lines.append(_real_slice(found[1], operand, result, start, stop, strides))
    return lines


def _pad(of: _Function, text: str) -> str | None:
    found = re.match(
        r"\s*(%[\w#]+, %[\w#]+), low = \[(.*)\], high = \[(.*)\], interior = \[(.*)\] "
        r": ",
        text,
    )
    if not found or OPEN not in f"{found[2]}{found[3]}{found[4]}":
        return None
    operands, result = _types(text)
    lists = [of.vector(_listed(found[i])) for i in (2, 3, 4)]
    vector = _vector_type(len(_dims(result)))
    return (
        f"stablehlo.dynamic_pad {found[1]}, {', '.join(lists)} : "
        f"({', '.join(operands)}, {vector}, {vector}, {vector}) -> {result}"
    )


def _gather(of: _Function, text: str) -> str | None:
    found = re.match(
        r"\((%[\w#]+, %[\w#]+)\) <\{(.*), slice_sizes = array<i64: (.*)>\}> : ", text
    )
    if not found or OPEN not in found[3]:
        return None
    operands, result = _types(text)
    sizes = _listed(found[3])
    return (
        f'"stablehlo.dynamic_gather"({found[1]}, {of.vector(sizes)}) <{{{found[2]}}}> '
        f": ({', '.join(operands)}, {_vector_type(len(sizes))}) -> {result}"
    )


def _convolution(of: _Function, text: str) -> str | None:
    found = re.match(
        r"\((.*?)\) dim_numbers = (.*?), window = \{stride = (\[.*?\]), "
        r"pad = \[(.*)\], lhs_dilate = (\[.*?\]), rhs_dilate = (\[.*?\])\} \{(.*)\} : ",
        text,
    )
    if not found or OPEN not in found[4]:
        return None
    operands, result = _types(text)
    pairs = [_listed(pair) for pair in re.findall(r"\[(.*?)\]", found[4])]
    kind = f"tensor<{len(pairs)}x2xi32>"
    return (
        f'"stablehlo.dynamic_conv"({found[1]}, {of.pairs(pairs)}) <{{'
        f"dimension_numbers = #stablehlo.conv<{found[2]}>, "
        f"window_strides = array<i64: {found[3][1:-1]}>, "
        f"lhs_dilation = array<i64: {found[5][1:-1]}>, "
        f"rhs_dilation = array<i64: {found[6][1:-1]}>, {found[7]}}}> : "
        f"({', '.join(operands)}, {kind}) -> {result}"
    )


def _custom_call(of: _Function, text: str) -> str | None:
    head, signature = text[: text.rindex(" : (")], text[text.rindex(" : (") :]
    ins, outs = signature.removeprefix(" : (").split(") -> ", 1)
    if OPEN not in outs:
        return None
    found = re.match(r" @(.+?)\((.*?)\) \{(.*)\}$", head)
    assert found is not None, head
    target, operands, attributes = found.groups()
    # Each result's shape is an operand more, which the compiler takes away again.
    lengths = [_dims(kind) for kind in _TYPE.findall(outs)]
    count = len(_TYPE.findall(ins))
    indices = list(range(count, count + len(lengths)))
    layouts = ", ".join(["dense<0> : tensor<1xindex>"] * len(lengths))
    before = ", " if count else ""
    attributes = re.sub(
        r"(operand_layouts = \[(?:(?:, )?dense<[^>]*> : tensor<\w+>)*)\]",
        rf"\g<1>{before}{layouts}]",
        attributes,
        count=1,
    )
    shapes = ", ".join(map(of.vector, lengths))
    types = ", ".join(_vector_type(len(dims)) for dims in lengths)
    which = f"indices_of_shape_operands = dense<{indices}> : tensor<{len(indices)}xi64>"
    return (
        f"stablehlo.custom_call @{target}({operands}{before}{shapes}) "
        f"{{{', '.join(filter(None, (attributes, which)))}}} "
        f": ({ins}{before}{types}) -> {outs}"
    )


def _rng_bit_generator(of: _Function, text: str) -> str | None:
    found = re.match(r"\((%\w+)\) <\{(.*)\}> : \((.*)\) -> (.*)$", text)
    if not found or OPEN not in found[4]:
        return None
    dims = _dims(_TYPE.findall(found[4])[1])
    return (
        f"stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator({found[1]}, "
        f"{of.vector(dims)}) {{{found[2]}}} : ({found[3]}, {_vector_type(len(dims))}) "
        f"-> {found[4]}"
    )


def _top_k(of: _Function, text: str) -> str | None:
    found = re.match(rf"\((%\w+), k = {OPEN}(.*){CLOSE}\) : (.*) -> (.*)$", text)
    if not found:
        return None
    return (
        f"stablehlo.custom_call @stablehlo.dynamic_top_k({found[1]}, "
        f"{of.value(parsed(found[2]))}) : ({found[3]}, {_SCALAR}) -> {found[4]}"
    )


_RULES: dict[str, _Rule] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "iota": _iota,
    "constant": _constant,
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "pad": _pad,
    "gather": _gather,
    "convolution": _convolution,
    "custom_call": _custom_call,
    "rng_bit_generator": _rng_bit_generator,
    "top_k": _top_k,
}
