import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fxflow.distributed.launch import Host, main, parse_hosts

from .conftest import Run

Launch = Callable[..., Run]
Write = Callable[..., str]


# -- the command line ------------------------------------------------------------------


def test_host_files_are_parsed() -> None:
    text = "# comment\nnode1 slots=2\n\nuser@node2  # the other\n10.0.0.3\n"
    assert parse_hosts(text) == [
        Host("node1", 2),
        Host("user@node2", 1),
        Host("10.0.0.3", 1),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node1 slot=2", "line 1: expected 'host' or"),
        ("a\nb c", "line 2"),
        ("-oProxyCommand=x", "line 1"),
        ("a slots=0", "line 1"),
        ("# nothing", "names no host"),
    ],
)
def test_invalid_hosts_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_hosts(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x.py"], "give the number of processes"),
        (["-n", "2"], "no program given"),
        (["--elastic", "3:2", "x.py"], "MIN:MAX with 1 <= MIN <= MAX, got '3:2'"),
        (["--elastic", "2", "x.py"], "got '2'"),
        (["-n", "5", "--elastic", "2:4", "x.py"], "-n 5 is not within"),
        (["-n", "1", "--env", "A", "x.py"], "--env takes K=V, got 'A'"),
        (["--hosts", "/no/such", "x.py"], "No such file"),
    ],
)
def test_invalid_arguments_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


# -- runs ------------------------------------------------------------------------------

TELL = """
import os
for name in ("PROCESS_ID", "NUM_PROCESSES", "LOCAL_PROCESS_ID", "NUM_CPU_DEVICES"):
    print(name, os.environ.get("FXFLOW_" + name))
print(os.environ["A"])
"""


def test_processes_get_their_ranks_and_variables(launch: Launch, write: Write) -> None:
    run = launch(
        *("-n", "2", "--devices-per-process", "3", "--env", "A=b=c"), write(TELL)
    )
    assert run.end() == 0, run.text
    for number in range(2):
        assert [x for x in run.out if x.startswith(f"[{number}]")] == [
            f"[{number}] PROCESS_ID {number}",
            f"[{number}] NUM_PROCESSES 2",
            f"[{number}] LOCAL_PROCESS_ID {number}",
            f"[{number}] NUM_CPU_DEVICES 3",
            f"[{number}] b=c",
        ]


def test_modules_and_commands_are_run(
    launch: Launch, write: Write, tmp_path: Path
) -> None:
    write("import sys; print('module', sys.argv[1:])", "tool.py")
    run = launch("-n", "1", "-m", "tool", "-x", "1")
    assert run.end() == 0, run.text
    assert run.out == ["[0] module ['-x', '1']"]
    run = launch("-n", "2", "echo", "a", "-n")
    assert run.end() == 0, run.text
    assert sorted(run.out) == ["[0] a -n", "[1] a -n"]


def test_the_first_failure_ends_all_processes(launch: Launch, write: Write) -> None:
    code = (
        "import os, sys, time\n"
        "if os.environ['FXFLOW_PROCESS_ID'] == '1': time.sleep(0.2); sys.exit(7)\n"
        "time.sleep(60)\n"
    )
    started = time.monotonic()
    run = launch("-n", "3", write(code))
    assert run.end() == 7, run.text
    assert "process 1 ended with status 7; ending the others" in run.text
    assert time.monotonic() - started < 10


def test_death_by_a_signal_is_a_failure(launch: Launch, write: Write) -> None:
    code = "import os; os.kill(os.getpid(), 9)"
    run = launch("-n", "1", write(code))
    assert run.end() == 137, run.text


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_signals_are_forwarded(
    launch: Launch, write: Write, number: int, status: int
) -> None:
    code = (
        "import signal, sys, time\n"
        "def hear(n, f): print('heard', n, flush=True); sys.exit(0)\n"
        f"signal.signal({int(number)}, hear)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    run = launch("-n", "2", write(code))
    run.wait_for(r"\[0\] ready")
    run.wait_for(r"\[1\] ready")
    run.process.send_signal(number)
    assert run.end() == status, run.text
    for process in range(2):
        assert f"[{process}] heard {int(number)}" in run.out


def test_the_second_signal_kills(launch: Launch, write: Write) -> None:
    code = (
        "import signal, time\n"
        "signal.signal(15, signal.SIG_IGN)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    run = launch("-n", "1", write(code))
    run.wait_for("ready")
    run.process.terminate()
    time.sleep(0.2)
    assert run.process.poll() is None
    run.process.terminate()
    assert run.end(10) == 143, run.text
    assert "killing all processes" in run.text


def test_the_time_is_up(launch: Launch) -> None:
    run = launch("-n", "2", "--timeout", "0.5", "sleep", "60")
    assert run.end() == 124, run.text
    assert "0.5 s have passed" in run.text


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's kernel")
def test_killing_the_launcher_kills_all_processes(launch: Launch, write: Write) -> None:
    """The fixture checks that no process is left."""
    run = launch(
        "-n", "2", write("print('on', flush=True)\nimport time; time.sleep(60)")
    )
    run.wait_for(r"\[0\] on")
    run.wait_for(r"\[1\] on")
    run.process.kill()
    assert run.end() == -signal.SIGKILL


def test_port_in_use(launch: Launch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        run = launch("-n", "1", "--port", port, "echo", "a")
        assert run.end() == 1
    assert f"127.0.0.1:{port}: the port is in use" in run.text


def test_processes_on_hosts_are_started_by_ssh(
    launch: Launch, write: Write, tmp_path: Path
) -> None:
    """A script that runs the command on this machine replaces ssh."""
    ssh = tmp_path / "ssh"
    ssh.write_text(
        '#!/bin/sh\necho "$@" >> "$(dirname "$0")/asked"\n'
        'for last; do :; done\nexec sh -c "$last"\n'
    )
    ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
    hosts = write("127.0.0.1 slots=2\n", "hosts")
    code = (
        "import fxflow\n"
        "from fxflow import distributed\n"
        "distributed.initialize()\n"
        "from fxflow.distributed.session import local_process_id\n"
        "print('devices', fxflow.device_count(), local_process_id())\n"
    )
    run = launch("--hosts", hosts, "--ssh", str(ssh), write(code))
    assert run.end() == 0, run.text
    found = sorted(line for line in run.out if "devices" in line)
    assert found == ["[0] devices 2 0", "[1] devices 2 1"], run.text
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 2
    assert all(line.startswith("-o BatchMode=yes -o Server") for line in asked)
    assert all(" 127.0.0.1 exec " in line for line in asked)
    assert not any("TOKEN" in line for line in asked)
    # A failure also ends the processes on other hosts.
    code = (
        "import os, sys, time\n"
        "if os.environ['FXFLOW_PROCESS_ID'] == '0': time.sleep(60)\n"
        "sys.exit(3)\n"
    )
    run = launch("--hosts", hosts, "--ssh", str(ssh), write(code))
    assert run.end(20) == 3, run.text
    assert os.path.exists(hosts)


# -- with a real OpenSSH server on this machine ----------------------------------------


class Server:
    """An ``sshd`` for this user, and the command that connects to it."""

    def __init__(self, folder: Path, port: int, program: str) -> None:
        for name in ("host", "key"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name],
                check=True,
            )
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)  # sshd requires it
        (folder / "server").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\n"
            f"AuthorizedKeysFile {folder}/key.pub\nPidFile none\nUsePAM no\n"
            "StrictModes no\nPasswordAuthentication no\n"
            "PermitRootLogin prohibit-password\n"
            "SetEnv SHLVL=5\n"  # so that bash does not read the user's .bashrc
        )
        (folder / "client").write_text(
            f"Host *\nPort {port}\nIdentityFile {folder}/key\nIdentitiesOnly yes\n"
            "UserKnownHostsFile /dev/null\nStrictHostKeyChecking no\n"
            "LogLevel ERROR\n"
        )
        self.command = f"ssh -F {folder}/client"
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [program, "-D", "-e", "-f", folder / "server"], stderr=log
            )

    def sessions(self) -> str:
        pid = self.process.pid
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().strip()


@pytest.fixture
def sshd(tmp_path: Path, free_port: int) -> Iterator[Server]:
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None or sys.platform != "linux":
        pytest.skip("no OpenSSH server is installed (sshd)")
    server = Server(tmp_path, free_port, program)
    reached = [*server.command.split(), "-o", "BatchMode=yes", "127.0.0.1", "true"]
    end = time.monotonic() + 5
    while subprocess.run(reached, capture_output=True).returncode:
        if time.monotonic() > end or server.process.poll() is not None:
            server.process.kill()
            server.process.wait()
            pytest.skip(f"sshd refuses every login: {(tmp_path / 'log').read_text()}")
        time.sleep(0.05)
    yield server
    server.process.terminate()
    server.process.wait(10)


HOSTS = "127.0.0.1\nlocalhost\n"


def test_a_real_sshd_starts_processes(
    launch: Launch, write: Write, sshd: Server
) -> None:
    code = (
        "import os, sys, fxflow\n"
        "from fxflow import distributed\n"
        "distributed.initialize()\n"
        "assert 'SSH_CONNECTION' in os.environ\n"
        "assert fxflow.config.collective_timeout == 7\n"
        "print('devices', fxflow.device_count(), flush=True)\n"
        "distributed.multihost.sync_global_devices('here')\n"
        "sys.exit(3 * fxflow.process_index())\n"
    )
    hosts = write(HOSTS, "hosts")
    run = launch(
        *("--hosts", hosts, "--ssh", sshd.command, write(code)),
        FXFLOW_COLLECTIVE_TIMEOUT="7",
    )
    assert run.end() == 3, run.text
    assert sorted(run.out) == ["[0] devices 2", "[1] devices 2"], run.text
    run = launch("--hosts", hosts, "--ssh", sshd.command, "/no/such/command")
    assert run.end(20) == 127, run.text
    assert "/no/such/command: No such file" in run.text
    (unknown := Path(hosts)).write_text("127.0.0.1\nnowhere.invalid\n")
    run = launch("--hosts", hosts, "--ssh", sshd.command, "sleep", "60")
    assert run.end(30) == 255, run.text
    assert unknown.exists() and not sshd.sessions()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_signals_are_forwarded_by_a_real_sshd(
    launch: Launch, write: Write, sshd: Server, number: int, status: int
) -> None:
    """The programs ignore signals; the fixture checks that no process is left."""
    code = (
        "import signal, subprocess, time\n"
        "def hear(n, f): print('heard', n, flush=True)\n"
        "signal.signal(signal.SIGTERM, hear)\n"
        "child = subprocess.Popen(['sh', '-c', 'trap \"\" TERM; sleep 60'])\n"
        "time.sleep(0.2)\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(1)\n"
    )
    hosts = write(HOSTS, "hosts")
    run = launch("--hosts", hosts, "--ssh", sshd.command, write(code))
    for process in range(2):
        run.wait_for(rf"\[{process}\] ready")
    run.process.send_signal(number)
    if number == signal.SIGTERM:
        for process in range(2):
            run.wait_for(rf"\[{process}\] heard 15")
        run.process.send_signal(number)  # the second signal kills
    assert run.end(20) == status, run.text
    end = time.monotonic() + 10  # what ignores signals is killed after 5 s
    while sshd.sessions() and time.monotonic() < end:
        time.sleep(0.05)
    assert not sshd.sessions()


@pytest.mark.parametrize("ignored", [False, True])
def test_an_interrupt_is_reported_in_one_line(
    launch: Launch, write: Write, ignored: bool
) -> None:
    """This includes a launcher that `nohup`, or `&` in a script, started."""
    code = "import time\nprint('ready', flush=True)\ntime.sleep(60)\n"
    before = signal.getsignal(signal.SIGINT)
    try:
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        run = launch("-n", "2", write(code))
    finally:
        signal.signal(signal.SIGINT, before)
    run.wait_for(r"\[0\] ready")
    run.wait_for(r"\[1\] ready")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130, run.text
    assert run.err == [
        "fxflow launch: interrupted; forwarding the signal to all processes"
    ]


BAR = """\
import os, sys, time
number = os.environ["FXFLOW_PROCESS_ID"]
for percent in range(0, 101, 25):
    sys.stderr.write(f"\\r{percent}% of {number}")
    time.sleep(0.02)
    if percent == 50:
        print("half", flush=True)
sys.stderr.write("\\n")
"""


def test_progress_bars_are_live(start: Launch, write: Write, tmp_path: Path) -> None:
    """A terminal shows one process's bar at the bottom, other lines above it."""
    command = shlex.join(
        [sys.executable, "-m", "fxflow", "launch", "-n", "2", write(BAR)]
    )
    terminal = (
        "import os, pty\n"
        "def read(fd):\n"
        "    data = os.read(fd, 1024)\n"
        "    open('said', 'ab').write(data)\n"
        "    return data\n"
        f"assert pty.spawn(['sh', '-c', {command!r}], read) == 0"
    )
    run = start(sys.executable, "-c", terminal, NO_COLOR="1")
    assert run.end() == 0, run.text
    said = (tmp_path / "said").read_bytes().decode()
    states = re.findall(r"\r\x1b\[K\[(\d)\] (\d+)% of (\d)(?=\r)", said)
    assert len(states) >= 3 and all(a == b for a, _, b in states), said
    shown = [line.rpartition("\x1b[K")[2] for line in said.split("\r\n")]
    for line in ("[0] half", "[1] half", "[0] 100% of 0", "[1] 100% of 1"):
        assert line in shown, said


def test_the_process_that_failed_first_is_named(launch: Launch, write: Write) -> None:
    """Another process that fails because of it may end first."""
    code = (
        "import os, sys, time\n"
        "from fxflow import distributed\n"
        "distributed.initialize()\n"
        "from fxflow.distributed.session import current\n"
        "if os.environ['FXFLOW_PROCESS_ID'] == '1':\n"
        "    current().coordination.connection.channel.close()\n"
        "    time.sleep(1)\n"
        "    os._exit(9)\n"
        "try: current().coordination.barrier('b', 60)\n"
        "except distributed.DistributedError: os._exit(5)\n"
    )
    run = launch("-n", "2", write(code))
    assert run.end() == 9, run.text
    assert not re.search("process 0 ended", run.text)
