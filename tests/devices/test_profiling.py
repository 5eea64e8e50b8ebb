"""The interface to the runtime's profiler."""

import fxflow
from fxflow import numpy as fnp
from fxflow.devices import profiling


def test_a_session_records_and_exports(tmp_path):
    options = profiling.ProfileOptions()
    options.python_tracer_level = 0
    session = profiling.ProfilerSession(options)
    with profiling.TraceMe("mine", kind="test"):
        fxflow.block_until_ready(fxflow.jit(lambda x: x @ x)(fnp.ones((8, 8))))
    recorded = session.stop()
    session.export(recorded, str(tmp_path))
    profile = profiling.ProfileData.from_serialized_xspace(recorded)
    host = profile.find_plane_with_name("/host:CPU")
    events = [event for line in host.lines for event in line.events]
    (mine,) = (event for event in events if event.name == "mine")
    assert dict(mine.stats) == {"kind": "test"} and mine.duration_ns > 0
    (path,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    assert profiling.ProfileData.from_file(str(path)).find_plane_with_name("/host:CPU")
