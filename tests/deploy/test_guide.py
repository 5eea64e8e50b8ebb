"""The guides to several processes: what they say to type exists and works."""

import ast
import functools
import itertools
import re
import shlex
import sys
from collections.abc import Iterator

import pytest

from fxflow.distributed import launch

from .checkout import (
    DEPLOY,
    GUIDES,
    ROOT,
    check_command,
    check_program,
    known_variables,
    options_of_command,
    run,
)

TEXT = "\n".join(path.read_text(encoding="utf-8") for path in GUIDES)
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
#: What needs no check here: the system's commands, with a file's content taken out.
SYSTEM = {"cat", ".", "pip", "python3", "export"}
#: Commands of fxflow other than `launch`.
COMMANDS = ("coordinator", "parameter-server", "simulate")


def commands() -> Iterator[list[str]]:
    """The command lines of the guides, as lists of words."""
    for language, text in BLOCKS:
        if language == "bash":
            text = re.sub(
                r"<<'END'\n.*?^END$", "", text, flags=re.DOTALL | re.MULTILINE
            )
            for line in text.replace("\\\n", " ").splitlines():
                if words := shlex.split(line):
                    yield words


def launched(words: list[str]) -> tuple[object, list[str]]:
    """The options of a `fxflow launch`, and the program with its arguments."""
    options = launch._parser().parse_args(words[2:])  # it exits if one is unknown
    return options, [options.program, *options.arguments]


def check(words: list[str]) -> None:
    while re.fullmatch(r"[A-Z_]+=.*", words[0]):
        assert words[0].partition("=")[0] in known_variables(), words[0]
        words = words[1:]
    name = words[0]
    if words[:2] == ["fxflow", "launch"]:
        check_program(launched(words)[1])
    elif words[0] == "fxflow" and words[1] in COMMANDS:
        check_command(words[1:])
    elif name == "python" and words[1] != "-c":
        check_program(words[1:])
    elif name in ("mpirun", "torchrun") and "fxflow" in words:
        check(words[words.index("fxflow") :])
    elif name in ("mpirun", "torchrun"):
        check_program(words[words.index("python") + 1 :])
    elif name == "sbatch":
        path = next(k for k, w in enumerate(words) if w.endswith(".sbatch"))
        assert (ROOT / words[path]).is_file(), words[path]
        check_program(words[path + 1 :])
    elif name == "docker":
        given = (DEPLOY / "Containerfile").read_text()
        assert (ROOT / words[words.index("-f") + 1]).is_file()
        for argument in re.findall(r"--build-arg (\w+)", " ".join(words)):
            assert f"ARG {argument}=" in given
    elif name == "kubectl":
        for flag, what in (("-k", "kustomization.yaml"), ("-f", "")):
            if flag in words and words[1] in ("apply", "delete"):
                assert (ROOT / words[words.index(flag) + 1] / what).is_file(), words
    else:
        assert name in SYSTEM, f"what is {name}?"


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_command_exists(words: list[str]) -> None:
    if any("mnist" in word for word in words):
        pytest.importorskip("tqdm", reason="pip install fxflow[examples]")
    check(words)


def test_what_does_not_exist_is_found() -> None:
    assert len(list(commands())) > 25
    with pytest.raises(AssertionError, match="no option --stepps"):
        check(shlex.split("python examples/multi_host/survive.py --stepps 2"))
    with pytest.raises(SystemExit):
        check(shlex.split("fxflow launch --processes 2 examples/multi_host/hello.py"))
    with pytest.raises(AssertionError, match="there is no"):
        check(shlex.split("fxflow launch -n 2 examples/multi_host/none.py"))


def test_hosts_file() -> None:
    (text,) = re.findall(r"<<'END'\n(.*?)^END$", TEXT, re.DOTALL | re.MULTILINE)
    assert [host.slots for host in launch.parse_hosts(text)] == [1, 1]


def test_python_is_python() -> None:
    found = [text for language, text in BLOCKS if language == "python"]
    assert len(found) > 5
    for text in found:
        if not text.startswith(">>> "):  # the others are run as doctests
            ast.parse(text)


def test_names_exist() -> None:
    assert set(re.findall(r"FXFLOW_[A-Z_]+", TEXT)) <= known_variables()
    for path in re.findall(r"`((?:examples|deploy|docs)/[\w./-]+)`", TEXT):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"`(\w+\.yaml)`", TEXT):
        assert list((DEPLOY / "kubernetes").rglob(name)), name
    known = set(launch._parser()._option_string_actions)
    for name in (
        *("coordinator", "simulate"),
        *("parameter-server", "parameter-server watch"),
    ):
        known |= options_of_command(name)
    for option in re.findall(r"`(--[a-z-]+)`", TEXT):
        assert option in known, option


@functools.cache
def spoken() -> str:
    """All text of the package's sources; where a value goes in there is a new line."""
    found = []
    for path in ROOT.glob("fxflow/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [
                    v.value if isinstance(v, ast.Constant) else "\n"
                    for v in node.values
                ]
                found.append("".join(map(str, parts)))
    return "\n\n".join(found)


WRONG = TEXT.partition("## When something goes wrong")[2].partition("\n## ")[0]
ERRORS = re.findall(r"^- `([^`]+)`:$", WRONG, re.M)


@pytest.mark.parametrize("message", ERRORS)
def test_error_is_said_so(message: str) -> None:
    # Numbers, names, lists and what is left out are values.
    values = r"\d+(?:, \d+)*|'[^']*'|\bhost:(?:port|pid)\b|…|[();:]|coordinator (?=ans)"
    values += r"|the coordinator (?=cannot listen)"
    parts = re.split(values, message)
    parts = [part.strip(" ,") for part in parts if len(part.split()) > 1]
    parts = [
        re.sub(r"^(coordinator_address, num_processes, process_id) ", "", p)
        for p in parts
    ]
    assert parts, message
    for part in parts:
        assert part in spoken(), part


def test_errors_are_found() -> None:
    assert len(ERRORS) > 10


def shown_after(command: str) -> list[str]:
    """The output that a guide shows for a command."""
    for (_, first), (language, second) in itertools.pairwise(BLOCKS):
        if first.strip() == command and language == "text":
            return sorted(second.splitlines())
    raise AssertionError(f"no output of {command}")


@pytest.mark.parametrize("name", ["hello", "sharded", "mapped"])
def test_output_is_as_shown(name: str) -> None:
    program = f"examples/multi_host/{name}.py"
    options = ["-n", "2", "--devices-per-process", "2"]
    shown = shown_after(" ".join(["fxflow launch", *options, program]))
    done = run([sys.executable, "-m", "fxflow", "launch", *options, program])
    assert done.returncode == 0, done.stderr

    def rounded(lines: list[str]) -> list[str]:
        # The last bits of the loss, and the sign of what is nearly 0, may differ.
        return [
            re.sub(r"loss [\d.e-]+", "loss", x).replace("-0.0", "0.0") for x in lines
        ]

    assert rounded(sorted(done.stdout.splitlines())) == rounded(shown)


@pytest.mark.slow
def test_elastic_part() -> None:
    command = next(
        w
        for w in commands()
        if w[1] == "launch" and "--elastic" in w and "--checkpoints" not in w
    )
    words = [w if w != "3000" else "60" for w in command[2:]]
    done = run([sys.executable, "-m", "fxflow", "launch", *words])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done: 60 steps") == 3
