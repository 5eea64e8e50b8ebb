"""``fxflow simulate``."""

from pathlib import Path

import pytest

from fxflow.distributed.parameter_server import ssp
from fxflow.distributed.parameter_server.simulator import Compute, simulate
from fxflow.distributed.parameter_server.simulator_command import main

Capture = pytest.CaptureFixture[str]


def lines(capsys: Capture, *arguments: str) -> list[list[str]]:
    assert main(arguments) == 0
    return [
        [cell.strip() for cell in line.split("  ") if cell.strip()]
        for line in capsys.readouterr().out.splitlines()
    ]


def test_each_consistency_has_a_line_with_what_simulate_finds(capsys: Capture) -> None:
    options = ("--workers", "4", "--sigma", "0.5", "--slow", "0:2", "--steps", "20")
    head, bsp, bound, free = lines(capsys, *options)
    assert head[0] == "consistency" and "steps/s" in head
    names = [line[0] for line in (bsp, bound, free)]
    assert names == ["bsp", "ssp(4)", "asynchronous"]
    compute = Compute(0.1, "lognormal", sigma=0.5, slow={0: 2.0})
    expected = simulate(ssp(4), workers=4, compute=compute, steps=20)
    assert bound[1] == f"{expected.throughput:.4g}"


def test_measured_steps_and_bytes_affect_the_throughput(
    capsys: Capture, tmp_path: Path
) -> None:
    path = tmp_path / "steps.txt"
    path.write_text("1.0\n1.0\n2.0\n")
    options = ["asynchronous", "--workers", "2", "--servers", "2", "--step", "0.01"]
    _, small = lines(capsys, *options, "--measured", str(path))
    _, large = lines(capsys, *options, "--measured", str(path), "--megabytes", "100")
    assert float(small[1]) > 5 * float(large[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sync"], "'sync': the kinds are bsp, ssp"),
        (["ssp(-1)"], "ssp"),
        (["ssp(open('x'))"], "malformed node"),
        (["bsp", "--slow", "3"], "two numbers with a colon"),
        (["--measured", "/nowhere"], "No such file"),
        (["--workers", "0"], "workers must be 1 or more, got 0"),
    ],
)
def test_invalid_arguments_exit_with_a_message(
    capsys: Capture, arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2 and message in capsys.readouterr().err
