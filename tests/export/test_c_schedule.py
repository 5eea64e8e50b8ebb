"""Parsing the schedules that IREE's compiler writes."""

import re
from typing import Any

import numpy as np
import pytest

from fxflow import errors
from fxflow.export.c_schedule import CopyStep, Dispatch, Fill, Schedule, Span, bytes_of

TEXT = """module {
  util.initializer {
    %buffer_cst = util.buffer.constant <alignment = 64> : !util.buffer = #util.parts<12xi8, [
    dense<"0x01020304"> : tensor<4xi8>,
    dense<0> : vector<4xi8>,
    dense<1.0> : tensor<1xf32>,
]>
    %c12 = arith.constant 12 : index
    util.global.store %2, @weights : !hal.buffer
    util.return
  }
  util.func public @main(%arg0: !hal.buffer_view) -> !hal.buffer_view {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c12 = arith.constant 12 : index
    %c-1_i32 = arith.constant -1 : i32
    %c7_i16 = arith.constant 7 : i16
    %weights = util.global.load immutable @weights : !hal.buffer
    %part = hal.buffer.subspan<%weights : !hal.buffer>[%c4, %c8] : !hal.buffer
    %buffer = hal.buffer_view.buffer<%arg0 : !hal.buffer_view> : !hal.buffer
    %work = hal.device.queue.alloca<%dev : !hal.device> wait(%0) : !hal.buffer{%c12}
    hal.command_buffer.fill_buffer<%cmd : !hal.command_buffer> target(%work : !hal.buffer)[%c0, %c8] pattern(%c7_i16 : i16) flags("None")
    hal.command_buffer.copy_buffer<%cmd : !hal.command_buffer> source(%buffer : !hal.buffer)[%c4] target(%work : !hal.buffer)[%c8] length(%c4) flags("None")
    %f = hal.executable.lookup.function target(%e : !hal.executable) function(@a::@b::@add) : i64
    hal.command_buffer.dispatch<%cmd : !hal.command_buffer> target(%e : !hal.executable)[%f] workgroups([%c4, %c8, %c12]) constants([%c-1_i32]) bindings([
      (%part : !hal.buffer)[%c4, %c4],
      (%work : !hal.buffer)[%c0, %c12]
    ]) flags("None")
    %view = hal.buffer_view.create buffer(%work : !hal.buffer)[%c8, %c4] shape([%c4]) type(%t) : !hal.buffer_view
    util.return %view, %arg0 : !hal.buffer_view, !hal.buffer_view
  }
}
"""  # noqa: E501


def test_a_program_is_parsed_into_steps() -> None:
    found = Schedule(TEXT, "f")
    assert found.constants == {
        "constants0": b"\1\2\3\4\0\0\0\0" + np.float32(1).tobytes()
    }
    assert found.work == {"work0": 12}
    assert found.steps == [
        Fill(Span("work0", 0, 8), 7, 2),
        CopyStep(Span("input0", 4, 4), Span("work0", 8, 4)),
        Dispatch(
            "add",
            (4, 8, 12),
            (-1,),
            (Span("constants0", 8, 4), Span("work0", 0, 12)),
        ),
    ]
    assert found.outputs == [Span("work0", 8, 4), Span("input0", 0, -1)]
    unknown = re.sub(r"hal\.command_buffer\.fill_buffer", "scf.while", TEXT)
    with pytest.raises(errors.CompileError, match=r"cannot have scf\.while"):
        Schedule(unknown, "f")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("dense<2> : tensor<3xi32>", np.full(3, 2, np.int32)),
        ("dense<-1> : tensor<2x2xi64>", np.full(4, -1, np.int64)),
        ("dense<true> : tensor<2xi1>", np.ones(2, bool)),
        ("dense<1.500000e+00> : tensor<2xf16>", np.full(2, 1.5, np.float16)),
        ("dense<0xFF800000> : tensor<f32>", np.float32(-np.inf)),
        ('dense<"0x0000803F"> : tensor<1xf32>', np.float32(1)),
    ],
)
def test_constants_become_bytes(text: str, want: Any) -> None:
    assert bytes_of(text, "f") == want.tobytes()
    with pytest.raises(errors.CompileError, match="that C cannot express"):
        bytes_of("dense_resource<a> : tensor<3xi32>", "f")
