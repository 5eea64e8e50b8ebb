"""Finds wordings for which this project has plainer ones.

    python scripts/words.py                # the files that CI checks
    python scripts/words.py fxflow/serve   # other files and folders

Prints a line `file:line: “wording”: what to write` for each, and exits with 1
if there are any. The patterns may miss a wording, but do not report a plain one.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: The places that CI checks, as Git names them.
CHECKED = [
    *(":(glob)*.md", ".github", "benchmarks", "deploy", "docs", "examples"),
    *("notebooks", "scripts", "fxflow", "tests"),
]
#: These files contain the wordings on purpose.
EXCEPT = {"scripts/words.py", "tests/docs/test_words.py", "tests/test_tests.py"}
SUFFIXES = {".md", ".py", ".sh", ".yaml", ".yml", ".toml", ".sbatch", ".html", ".txt"}

BE = r"\b(?:is|are|was|were|be|been|being)"
COUNT = (
    r"(?:`?\d[\w.,`]*|one|two|three|four|five|six|seven|eight|nine|ten|a hundred"
    r"|a thousand|a million)"
)
# Words after which "who" is right: "the reader who knows NumPy".
PERSONS = (
    "anyone|author|authors|developer|developers|everyone|maintainer|maintainers|man"
    "|people|person|programmer|programmers|reader|readers|reviewer|someone|those|user"
    "|users|woman|writer|writers|and|or"
)

#: The advice for each wording, and its pattern.
HABITS = {
    "write “is not a Y” for “is no Y”": (
        rf"(?<![Tt]here )(?<!what there ){BE} no(?! (?:longer|more|less|fewer|later"
        r"|earlier|sooner|matter|help|way|different|problem|\w+er)\b)(?= \S)"
    ),
    "write “is not”, “is not one of” for “is none”": rf"(?<![Tt]here ){BE} none\b",
    "begin with the subject instead of “Of X that …”": r"\bOf (?!course\b)(?=[`\w])",
    "name the parameter: “at most `n`” for “at most so many”": (
        r"\bso (?:many|long|much|few|often)\b(?! as\b)(?!(?: [\w`]+){0,6} that\b)"
    ),
    "a process is not a person: write “no server”, “the client”, “learns”": (
        rf"\b(?:[Nn]obody|[Ww]hoever|[Ss]omebody|[Aa]nybody|[Ww]homever)\b|{BE} told\b"
    ),
    "a process is not a person: write “that” for “who”": (
        r"(?<=[a-z`] )who\b(?! (?:am|I)\b)"
    ),
    "write “at least N”, “N and above” for “from N on”": (
        rf"\bfrom (?:(?:about|version|step|Python|the) )?{COUNT}(?: \w+){{0,2}} on"
        r"(?=[,.;:)]|$| (?:is|are|it|they|has|have|takes?)\b)"
    ),
    "write “finished”, “exited”, “lost”, “joined” for “is through”, “gone”, “come”": (
        rf"{BE} (?:all )?through(?! (?:an?|the|its|this|that|which|`\w+`) )"
        rf"|(?:{BE}|\b(?:has|have|had)) (?:all |not )?gone\b"
        r"|\b(?:has|have|had) (?:all |not )?come\b(?! from\b)"
    ),
}
PATTERNS = {advice: re.compile(pattern, re.M) for advice, pattern in HABITS.items()}
PERSON = re.compile(rf"(?:{PERSONS}),? $")


def flat(text: str) -> tuple[str, list[int]]:
    """Returns the paragraphs of `text`, one per line, and the line of each character.

    Comment marks and the quotes of continued strings are removed.
    """
    parts, lines = [], []
    for number, line in enumerate(text.splitlines(), 1):
        words = re.sub(
            r"""^\s*(?:#+|//|>|\*|-|f?"+|f?'+)?\s*|\s*["'\\]*\s*$""", "", line
        )
        part = words + " " if words else "\n"
        parts.append(part)
        lines += [number] * len(part)
    return "".join(parts), lines


def prose(markdown: str) -> str:
    """Returns a page without its programs, outputs and messages."""
    markdown = re.sub(
        r"^```.*?^```$", lambda m: "\n" * m[0].count("\n"), markdown, flags=re.M | re.S
    )
    return re.sub(r"`[^`]+`", lambda m: "`x`" + "\n" * m[0].count("\n"), markdown)


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields the line, the words and the advice of each finding in `text`, in order."""
    words, lines = flat(text)
    found = []
    for advice, pattern in PATTERNS.items():
        for match in pattern.finditer(words):
            start = match.start()
            if match[0] == "who" and PERSON.search(words[max(0, start - 16) : start]):
                continue
            found.append((start, words[start : match.end() + 20].strip(), advice))
    for start, wording, advice in sorted(found):
        yield lines[start], wording, advice


def files(places: list[str]) -> Iterator[Path]:
    """Yields the text files under version control in `places`."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--", *places]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in listed.split("\0"):
        if Path(name).suffix in SUFFIXES and name not in EXCEPT:
            yield ROOT / name


def main(arguments: list[str]) -> int:
    """Prints the findings in the named places; returns 1 if there are any."""
    places = [str(Path(place).resolve()) for place in arguments] or CHECKED
    count = 0
    for path in files(places):
        if not path.exists():  # deleted, and not yet committed
            continue
        text = path.read_text("utf-8")
        if path.suffix == ".md":
            text = prose(text)
        for line, wording, advice in findings(text):
            print(f"{path.relative_to(ROOT)}:{line}: “{wording}”: {advice}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
