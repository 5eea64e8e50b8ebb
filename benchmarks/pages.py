"""Runs benchmarks, stores their output, and writes a page for each machine.

    python benchmarks/pages.py steps serving-sizes   # these sections, on this machine
    python benchmarks/pages.py kit -- --rounds 7     # with other options for the script
    python benchmarks/pages.py                       # only writes the pages again

A section is a script with its options (`sections.toml`). Its Markdown output is stored
in `results/MACHINE/SECTION.json` with the date, the command and the load of the machine
before it. `results/MACHINE.md` and `RESULTS.md` are generated from these files.
"""

import argparse
import itertools
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from fxflow.devices import process

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
INDEX = HERE / "RESULTS.md"


class Section(NamedTuple):
    """A part of a page.

    Attributes:
      title: of the part.
      command: the script and its options, from the folder `benchmarks`.
      about: what is measured, and how to read it.
      pictures: files in `benchmarks` that the script draws.
    """

    title: str
    command: str
    about: str
    pictures: Sequence[str] = ()


INTRODUCTION = """\
`python benchmarks/pages.py` generates a page for each machine from the scripts' last
output on it. [Experiments](../docs/design/0018-experiments.md) interprets the numbers,
and lists what was tried and left out.

*Load* is the load average of the machine before the script began. Compare numbers
that were measured on a busy machine only within their table."""
#: The sections, in order.
SECTIONS = {
    name: Section(**of)
    for name, of in tomllib.loads((HERE / "sections.toml").read_text("utf-8")).items()
}


# -- machines --------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """Returns what this machine is, without anything that names a person or host."""
    cpu = process.processor().get("model name") or platform.machine()
    about: dict[str, Any] = {"system": platform.system()}
    try:
        memory = Path("/proc/meminfo").read_text().split()[1]
        about["memory"] = f"{int(memory) / 2**20:.0f} GiB"
    except OSError:
        pass
    try:
        asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        shown = subprocess.run(asked, capture_output=True, text=True, check=True)
        about["gpu"] = ", ".join(shown.stdout.split("\n")).strip(", ")
    except (OSError, subprocess.CalledProcessError):
        pass
    return {"cpu": cpu, "cores": process.cores(), **about}


def described(about: dict[str, Any]) -> str:
    """Returns a machine in words."""
    parts = [about["cpu"], f"{about['cores']} cores"]
    parts += [f"{about['memory']} of memory"] if "memory" in about else []
    return ", ".join(([about["gpu"]] if "gpu" in about else []) + parts)


def folder(about: dict[str, Any]) -> str:
    """Returns the name of a machine's folder: `amd-epyc-2-cores`."""
    name = about.get("gpu", f"{about['cpu']} {about['cores']} cores")
    name = re.sub(r"\([A-Za-z]+\)|processor|cpu", " ", name.lower())
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")


# -- what is printed -------------------------------------------------------------------


def parsed(text: str) -> list[Any]:
    """Returns the blocks of Markdown: texts, and tables as head, alignment and rows."""
    blocks: list[Any] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        groups = itertools.groupby(block.splitlines(), lambda line: line[:1] == "|")
        for is_table, lines in groups:
            if not is_table:
                blocks.append("\n".join(lines))
                continue
            rows = [[c.strip() for c in s.strip()[1:-1].split("|")] for s in lines]
            blocks.append({"head": rows[0], "align": rows[1], "rows": rows[2:]})
    return blocks


def wrapped(text: str) -> str:
    """Returns a text in lines of at most 98 columns; lists keep their items."""
    items = re.split(r"\n(?=- )", text)
    return "\n".join(
        textwrap.fill(
            " ".join(item.split()),
            98,
            subsequent_indent="  " if item.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for item in items
    )


def shown(block: Any) -> str:
    """Returns a block as Markdown; headings are made to fit below a section's."""
    if isinstance(block, str):
        if block.startswith("#"):
            return f"### {block.lstrip('# ')}"
        return wrapped(block)
    rows = [block["head"], block["align"], *block["rows"]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


# -- pages -----------------------------------------------------------------------------


def kept() -> dict[str, dict[str, Any]]:
    """Returns what is stored: machine, then section."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(RESULTS.glob("*/*.json")):
        stored = json.loads(path.read_text("utf-8"))
        found.setdefault(path.parent.name, {})[path.stem] = stored
    return found


def page(sections: dict[str, Any]) -> str:
    """Returns the page of a machine."""
    known = [name for name in SECTIONS if name in sections]
    newest = max((sections[name] for name in known), key=lambda one: one["date"])
    parts = [
        f"# {described(newest['machine'])}",
        "Written by `python benchmarks/pages.py`; see [results](../RESULTS.md).",
    ]
    for name in known:
        section, stored = SECTIONS[name], sections[name]
        when = [
            stored["date"],
            *([f"load {stored['load']}"] if "load" in stored else []),
        ]
        parts += [
            f"## {section.title}",
            wrapped(f"`{stored['command']}` ({', '.join(when)}). {section.about}"),
            *map(shown, parsed("\n".join(stored["printed"]))),
            *(f"![{section.title}](../{path})" for path in section.pictures),
        ]
    return "\n\n".join(parts) + "\n"


def index(machines: dict[str, dict[str, Any]]) -> str:
    """Returns the list of what was measured where."""
    rows = []
    for name, section in SECTIONS.items():
        where = [
            f"[{described(of[name]['machine'])}]({RESULTS.name}/{key}.md), "
            f"{of[name]['date']}"
            for key, of in machines.items()
            if name in of
        ]
        command = f"`python benchmarks/pages.py {name}`"
        rows.append([section.title, command, "; ".join(where) or "not measured yet"])
    table = {"head": ["what", "command", "where and when"], "align": ["---"] * 3}
    return (
        "\n\n".join(["# Results", INTRODUCTION, shown(table | {"rows": rows})]) + "\n"
    )


def write() -> None:
    """Writes all pages."""
    machines = kept()
    for key, sections in machines.items():
        (RESULTS / f"{key}.md").write_text(page(sections), "utf-8")
    INDEX.write_text(index(machines), "utf-8")


def record(name: str, options: list[str]) -> None:
    """Runs the script of a section, shows what it prints, and keeps it."""
    command = [*shlex.split(SECTIONS[name].command), *options]
    about, load = machine(), os.getloadavg()[0]
    printed = []
    started = [sys.executable, str(HERE / command[0]), *command[1:]]
    # Scripts and the processes that they start measure this checkout.
    paths = [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(
        started, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            printed.append(line.rstrip())
    if process.returncode:
        raise SystemExit(f"{shlex.join(command)}: exit status {process.returncode}")
    stored = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": about,
        "load": f"{load:.1f}",
        "command": f"python benchmarks/{shlex.join(command)}",
        "printed": printed,
    }
    path = RESULTS / folder(about) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "sections", nargs="*", metavar="section", help=", ".join(SECTIONS)
    )
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    given = parser.parse_args(arguments[:cut])
    if unknown := set(given.sections) - SECTIONS.keys():
        parser.error(f"unknown sections: {', '.join(sorted(unknown))}")
    for name in given.sections:
        record(name, arguments[cut + 1 :])
    write()


if __name__ == "__main__":
    main(sys.argv[1:])
