"""Counts words that docs/glossary.md replaces, in identifiers, comments, texts and file names.

Also counts docstrings that begin with a clause ("What is pulled", "Of one cluster") instead of a noun or a verb, and
comments of fields that begin with "of" (`#: of the hottest GPU`); and tests that are named by a clause or a pronoun
(`test_what_is_missing_is_named`) instead of their subject (`test_missing_parameters_are_named`); and variables that
are named by a pronoun (`for one in volumes`) instead of a noun (`for volume in volumes`).

    python scripts/check_words.py [-v]

Fails if a folder has more of them than `ALLOWED`. With -v, prints every place. Identifiers are read as words:
`gives_way`, `givesWay` and "gives way" are the same. Names that stay for compatibility (API paths, JSON keys, stored
values) and words that have another meaning in a file are listed in `EXCEPTIONS` with the reason.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
FOLDERS = ("src/corral", "console/src", "docs", "tests")
# fmt: off
SUFFIXES = {
    ".css", ".html", ".js", ".json", ".md", ".mjs", ".py", ".sh", ".toml", ".ts", ".tsx", ".txt", ".typ", ".yaml",
    ".yml",
}
# fmt: on

#: Patterns of banned words, and what to write instead.
BANNED = {
    "told|tells": "reported, shown, stored, sent, notified",
    "whoever|somebody|anybody|nobody": "the noun: the user, the owner, no job",
    "errands?": "operation",
    "kin": "jobs of the same shape",
    "(?:give|gives|given|giving|gave) way": "preempt, is preempted, victim",
    "protected starts?": "planned start",
    "pictures?": "snapshot",
    "courses?": "rollout, history, time series",
    "lasting": "remaining time",
}

#: Docstrings may not begin with these: `"""The nodes of a job"""` instead of `"""Those of a job"""`.
OPENINGS = "what|which|who|whose|whom|whoever|whatever|of|those|its|nothing|until|to|from|none|one's|there is|as"
#: where openings are checked
WITH_OPENINGS = ("src/corral/", "console/src/", "tests/")


#: Names of tests may not begin with these.
TEST_OPENINGS = "what|which|who|whose|whoever|whatever|how|of|those|that|they|it|its|both|neither|one(?!_of_|_time_)"


class Exempt(NamedTuple):
    #: glob of paths below the repository; `*` also stands for slashes
    files: str
    #: regular expression over the text as it is written
    pattern: str
    reason: str


EXCEPTIONS = (
    # Public names.
    Exempt("*", r"\bprotected_starts\b", "key of the configuration and of the API"),
    Exempt("*", r"""["'`]errand["'`]""", "name of a parameter and of a key in the audit log"),
    Exempt("*", r"\bdataset-errands\b", "name of a directory"),
    Exempt("*", r"\bjob\.gave-way\b", "name of an event"),
    Exempt("*", r"""["'`]giving-way["'`]""", "name of a rule in `why`"),
    Exempt("*", r"\{errand\}", "parameter in an API path"),
    Exempt("*", r"""["']errand["']""", "parameter in an API path, and key in the audit log"),
    Exempt("*", r"\berrand: ", "parameter in an API path"),
    Exempt("src/*", r"\bdataset-errands\b", "name of a directory"),
    Exempt("*", r"--(allow-)?nobody\b", "command-line option"),
    Exempt("*", r"""["']course["']""", "JSON key of simulations"),
    Exempt("console/src/*", r"\.course\b", "JSON key of simulations"),
    Exempt("src/corral/*/*", r"\bcourse: ", "JSON key of simulations"),
    Exempt("*", r"\b([pfi][kx]_)?dataset_errands?(_not_over|_dataset)?\b", "name of a table and of a counter"),
    Exempt("*", r"RUN_DIR/told\b", "file in a run directory"),
    Exempt("*slurm*", r"""["']told["']""", "file in a run directory"),
    Exempt("*/engines/slurm/*", r"/told\b", "file in a run directory"),
    Exempt("docs/reference/seeds/*", r"::test_\w+", "name of a test"),
    # Other meanings.
    Exempt("*", r"(?i)\bof course\b|\bin the course of\b", "an ordinary phrase"),
    Exempt("src/*", r"""["'`]nobody["'`]""", "the account of the operating system"),
    Exempt("docs/*", r"""["'`]nobody["'`]""", "the account of the operating system"),
    Exempt(
        "tests/*", r"""["'`]nobody["'`]|\bas nobody\b|\bnobody has no account""", "the account of the operating system"
    ),
    Exempt("tests/contract/engines/*", r"\bnobody\b", "the account of the operating system"),
    Exempt("docs/reference/configuration-jobs.md", r"\bnobody\b", "the account of the operating system"),
    Exempt("docs/reference/configuration.md", r"\bnobody\b", "the account of the operating system"),
    Exempt("*presets*", r"(?i)pictures?", "images that the presets train on"),
    Exempt("*", r"make-terminal-picture", "draws an image file"),
    Exempt("docs/how-to/simulate.md", r"(?i)pictures", "plots in image files"),
)

#: Files that are not read.
SKIPPED = {
    "console/src/api/schema.d.ts": "generated from the API description",
    "docs/glossary.md": "names the replaced words",
    "docs/reference/cli.md": "generated from the commands",
    "docs/reference/openapi.json": "generated from the routes and schemas",
    "docs/reference/seeds.md": "generated from docs/reference/seeds",
    "tests/unit/test_word_check.py": "tests this script",
}

#: By folder, how many places are left. Lower a number when it has become smaller.
ALLOWED: dict[str, int] = {}

_ANY = re.compile(rf"\b(?:{'|'.join(BANNED)})\b")
_CASE_CHANGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[_-]+")
_OPENING = re.compile(rf'^\s*(?:r?"""|/\*\*\s*)({OPENINGS})\s|^\s*#: (of)\s', re.IGNORECASE)

_TEST = re.compile(rf"^\s*(?:async )?def test_({TEST_OPENINGS})_")

#: Variables may not have these names. (`one` and `other` are two things of the same kind.)
PRONOUNS = "it|one|what|who"
_VARIABLE = re.compile(
    rf"\bfor ({PRONOUNS})(?:, (?!other\b)\w+)* in |\blambda ({PRONOUNS})[:,=]|^\s*({PRONOUNS})(?:: [^=]+)? = "
)


class Place(NamedTuple):
    file: str
    #: 0: the file's own name
    line: int
    word: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.word} (write: {instead_of(self.word)}): {self.text.strip()}"


def instead_of(word: str) -> str:
    return next((other for pattern, other in BANNED.items() if re.fullmatch(pattern, word)), "a noun or a verb first")


def folder_of(file: str) -> str:
    """The folder that a file is counted in: a layer of the source, a kind of tests, else the top folder."""
    parts = file.split("/")
    depth = {"src": 3, "console": 2, "tests": 2}.get(parts[0], 1)
    return "/".join(parts[: min(depth, len(parts) - 1)])


def banned_in(text: str, file: str) -> list[str]:
    """The banned words of one line of a file."""
    if not _ANY.search(_words(text)):
        return []
    for exempt in EXCEPTIONS:
        if fnmatch(file, exempt.files):
            text = re.sub(exempt.pattern, " ", text)
    return _ANY.findall(_words(text))


def banned_opening(line: str, file: str) -> list[str]:
    """The first word of a docstring if it is in `OPENINGS`, `of` in the comment of a field, the first word of a test's
    name if it is in `TEST_OPENINGS`, and variables whose names are in `PRONOUNS`."""
    if (
        file.startswith("src/corral/")
        and file.endswith(".py")
        and (variable := _VARIABLE.search(line.partition("#")[0]))
    ):
        return [word for word in variable.groups() if word]
    found = _OPENING.match(line) if file.startswith(WITH_OPENINGS) else None
    if found:
        return [found[1] or found[2]]
    return _TEST.findall(line) if file.startswith("tests/") else []


def _words(text: str) -> str:
    return _SEPARATORS.sub(" ", _CASE_CHANGE.sub(" ", text)).lower()


def openings(root: Path = ROOT) -> Iterator[Place]:
    """Docstrings and names of tests that begin with a clause or a pronoun, and variables that are named by one."""
    for file in _files(root):
        lines = (root / file).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            yield from (Place(file, number, word, line) for word in banned_opening(line, file))


def places(root: Path = ROOT) -> Iterator[Place]:
    """File names and lines with words that the glossary replaces."""
    for file in _files(root):
        name = file.rpartition("/")[2]
        yield from (Place(file, 0, word, name) for word in banned_in(name, file))
        lines = (root / file).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            yield from (Place(file, number, word, line) for word in banned_in(line, file))


def _files(root: Path) -> Iterator[str]:
    """Files below FOLDERS, without built and installed ones."""
    built = root / "src" / "corral" / "server" / "console"
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            is_installed = built in path.parents or "node_modules" in path.parts
            file = path.relative_to(root).as_posix()
            if path.suffix in SUFFIXES and file not in SKIPPED and not is_installed and path.is_file():
                yield file


def problems(found: Mapping[str, list[Place]], allowed: Mapping[str, int]) -> Iterator[str]:
    for folder in sorted(found):
        count, limit = len(found[folder]), allowed.get(folder, 0)
        if count > limit:
            yield f"{folder}: {count} places with words that the glossary replaces, {limit} are allowed"
            # Those over the limit cannot be known: some of them, as an example.
            yield from (f"  {place}" for place in found[folder][: count - limit][:10])


def main(arguments: list[str]) -> int:
    found = defaultdict(list)
    for place in places():
        found[folder_of(place.file)].append(place)
    if "-v" in arguments:
        for folder in sorted(found):
            sys.stdout.writelines(f"{place}\n" for place in found[folder])
        sys.stdout.writelines(f"{folder}: {len(found[folder])}\n" for folder in sorted(found))
    begun = list(openings())
    if "-v" in arguments:
        sys.stdout.writelines(f"{place}\n" for place in begun)
    too_many = [*problems(found, ALLOWED), *map(str, begun)]
    sys.stdout.writelines(f"{problem}\n" for problem in too_many)
    if too_many:
        sys.stdout.write("every place: python scripts/check_words.py -v\n")
    for folder, limit in ALLOWED.items():
        if len(found[folder]) < limit:
            sys.stdout.write(f"{folder}: {len(found[folder])} places are left: lower its {limit} in ALLOWED\n")
    return 1 if too_many else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
