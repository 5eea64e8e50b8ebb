"""Profiles: what the host and the devices do, and where a step's time goes.

`report` says in a table what a function spends its time on, by the scopes and lines of
the user's program. `trace` writes all that happens for TensorBoard (with xprof) and
Perfetto; annotations name stretches of the host's time in it.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.devices.profiling import (
    ProfileData, ProfileEvent, ProfileOptions, ProfilePlane,
)
from fxflow.profiler.comparison import Comparison, compare
from fxflow.profiler.compiling import CompileReport, CompileRow, compile_report
from fxflow.profiler.programs import Operation
from fxflow.profiler.report import Report, Row, Spent, report
from fxflow.profiler.tracing import (
    StepTraceAnnotation, TraceAnnotation, annotate_function, device_memory_profile,
    register_subprocess, save_device_memory_profile, start_server, start_trace,
    stop_server, stop_trace, trace,
)

__all__ = [
    # where a step's time goes
    "report", "Report", "Row", "Spent", "Operation",
    # two runs compared
    "compare", "Comparison",
    # where the time before the first step goes
    "compile_report", "CompileReport", "CompileRow",
    # profiles in files
    "trace", "start_trace", "stop_trace", "ProfileOptions",
    "TraceAnnotation", "StepTraceAnnotation", "annotate_function",
    "start_server", "stop_server", "register_subprocess",
    "ProfileData", "ProfileEvent", "ProfilePlane",
    # memory
    "device_memory_profile", "save_device_memory_profile",
]

_public(globals(), __all__)
# fmt: on
