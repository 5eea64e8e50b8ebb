"""The gRPC service as a `.proto` file, from which clients are generated.

    python -m fxflow.serve.protocol.proto > inference.proto
    protoc --cpp_out=. --grpc_out=. --plugin=protoc-gen-grpc=… inference.proto

It has the messages and fields that the server uses, with the numbers of the protocol's
own file.
"""

from __future__ import annotations

from fxflow.serve.protocol.rpc import ENUMS, MESSAGES

_HEAD = """\
// The Open Inference Protocol v2, with Triton's extensions, as `fxflow serve` has them.
syntax = "proto3";

package inference;
"""


def proto() -> str:
    """Returns the text of the file."""
    methods = [name[:-7] for name in MESSAGES if name.endswith("Request")]
    calls = [
        f"  rpc {name}({name}Request) returns ({name}Response);"
        for name in methods
        if f"{name}Response" in MESSAGES
    ]
    calls.append(
        "  rpc ModelStreamInfer(stream ModelInferRequest)\n"
        "      returns (stream ModelStreamInferResponse);"
    )
    service = "\n".join(("service GRPCInferenceService {", *calls, "}\n"))
    enums = [_enum(name, "") for name in ENUMS if "." not in name]
    messages = [_message(name, "") for name in MESSAGES if "." not in name]
    return "\n".join((_HEAD, service, *enums, *messages))


def _enum(full: str, margin: str) -> str:
    rows = [
        f"{margin}  {name} = {number};"
        for number, name in enumerate(ENUMS[full].split())
    ]
    opening = f"{margin}enum {full.rpartition('.')[2]} {{"
    return "\n".join((opening, *rows, f"{margin}}}\n"))


def _message(full: str, margin: str) -> str:
    lines = [f"{margin}message {full.rpartition('.')[2]} {{"]
    inside = margin + "  "
    lines += [_enum(n, inside) for n in ENUMS if n.rpartition(".")[0] == full]
    lines += [_message(n, inside) for n in MESSAGES if n.rpartition(".")[0] == full]
    chosen = []
    for field in filter(None, MESSAGES[full].split(", ")):
        number, kind, name = field.split()
        if kind[0] == "|":
            chosen.append(f"{inside}  {kind[1:]} {name} = {number};")
        elif kind.startswith("map:"):
            lines.append(f"{inside}map<string, {kind[4:]}> {name} = {number};")
        else:
            repeated = "repeated " if kind[0] == "*" else ""
            lines.append(f"{inside}{repeated}{kind.lstrip('*')} {name} = {number};")
    if chosen:
        lines += [f"{inside}oneof parameter_choice {{", *chosen, f"{inside}}}"]
    return "\n".join((*lines, f"{margin}}}\n"))


if __name__ == "__main__":
    print(proto(), end="")
