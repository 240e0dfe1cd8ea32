"""Checks the folders of `src/corral` and `console/src/pages` against docs/architecture.md: layers × areas.

    python scripts/check_layout.py

1. A folder has at most `MOST_MODULES` modules, not counting `__init__.py` and, in the console, tests.
2. The folders of a layer are areas (`AREAS`), which have the same names in every layer, or machinery of that layer
   (`MACHINERY`). The folders of `server/routes`, `server/schemas` and `console/src/pages` are areas.
3. Two modules of a layer have the same name only if they are about the same thing: they lie in different `VIEWS` of it
   (its route and its schema, its record and its table) and not in different areas, or `SAME_NAMES` lists them.

An exception that is no longer needed is an error too.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path, PurePosixPath

REPOSITORY = Path(__file__).parent.parent
ROOT = REPOSITORY / "src" / "corral"
PAGES = "console/src/pages"
MOST_MODULES = 15

# fmt: off
AREAS = {
    "jobs", "scheduling", "fleet", "people", "workbenches", "storage", "datasets", "monitoring", "alerts", "reports",
    "whatif", "system",
}
#: By layer, the folders beside the areas.
MACHINERY: dict[str, set[str]] = {
    "core": {"model", "snapshot"},
    "control": {"launch", "live", "ports", "records", "standby"},
    "stores": {"copying", "database", "migrations", "schema"},
    "server": {"auth", "demo", "events", "http", "routes", "schemas", "settings", "wiring", "workers"},
    "client": {"functions", "http", "notebook", "views"},
    "cli": {"assistant", "habits", "slurm", "terminal"},
    "engines": {"attempts", "kubernetes", "local", "shells", "slurm"},
    "telemetry": {"amd", "history"},
    "simulator": {"traces"},
    "datasets": {"content", "history", "work"},
    "backup": set(), "checkpoint": set(), "files": set(), "objects": set(), "presets": {"numeric"}, "reporting": set(),
}
# fmt: on
#: Folders whose folders are areas only.
BY_AREA = ("server/routes", "server/schemas")
#: Folders that hold one view of many things, with the name of the thing: values, requests, rows.
VIEWS = (
    "client/views",
    "control/ports",
    "control/ports/store",
    "control/records",
    "core/model",
    "server/routes",
    "server/schemas",
    "stores/schema",
)

#: Folders that may have more modules, with the reason.
MANY_MODULES: dict[str, str] = {"stores/migrations/versions": "one module per change of the schema, in one sequence"}
#: The same, in the console.
MANY_PAGE_MODULES: dict[str, str] = {}
#: Names that two modules of a layer may have (layer/name), with the reason.
SAME_NAMES: dict[str, str] = {
    "control/errors": "errors that use cases raise, and those that the store raises",
    "core/fragmentation": "the same measure: as a placement policy, and as a finding of the analysis",
    "core/model": "the values of a part of the core, beside its rules",
    "core/xid": "the driver's error codes, and the health sign that reads them",
    "engines/engine": "each engine implements the port in its `engine`",
    "engines/factory": "each engine is made by its `factory`",
    "engines/drains": "cordons and drains of nodes in the system of each cluster",
    "engines/ends": "how instances ended, from the system of each cluster",
    "engines/nodes": "nodes of each cluster's system as corral's",
    "engines/occupancy": "what others hold in each cluster's system",
    "engines/storage": "the storage of an attempt, in the terms of each cluster's system",
    "engines/tracking": "attempts followed in the system of each cluster",
    "engines/preparation": "storage of an attempt, prepared by each engine before the program starts",
    "engines/watcher": "the thread of each engine that reports changes of attempts",
    "server/settings": "the settings, their route and their schema",
}


def problems(root: Path = ROOT) -> Iterator[str]:
    modules = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py") if path.name != "__init__.py")
    yield from large_folders(modules)
    yield from unknown_folders(modules)
    yield from same_names(modules)


def page_problems(repository: Path = REPOSITORY, exceptions: Mapping[str, str] = MANY_PAGE_MODULES) -> Iterator[str]:
    found = [
        path for kind in ("*.ts", "*.tsx") for path in (repository / PAGES).rglob(kind) if ".test." not in path.name
    ]
    modules = sorted(path.relative_to(repository).as_posix() for path in found)
    yield from large_folders(modules, exceptions)
    yield from unknown_pages(modules)


def large_folders(modules: list[str], exceptions: Mapping[str, str] = MANY_MODULES) -> Iterator[str]:
    counts: dict[str, int] = defaultdict(int)
    for module in modules:
        counts[PurePosixPath(module).parent.as_posix()] += 1
    large = {folder for folder, count in counts.items() if count > MOST_MODULES}
    for folder in sorted(large - exceptions.keys()):
        yield f"{folder} has {counts[folder]} modules, more than {MOST_MODULES}: divide it by topic"
    yield from _unused("the exceptions for many modules", exceptions.keys() - large)


def unknown_folders(modules: list[str]) -> Iterator[str]:
    folders = {parent.as_posix() for module in modules for parent in PurePosixPath(module).parents}
    for folder in sorted(folders - {"."}):
        parent, _, name = folder.rpartition("/")
        if not parent and name not in MACHINERY:
            yield f"{folder} is no known layer: add it to MACHINERY and to docs/architecture.md"
        elif parent in MACHINERY and name not in AREAS | MACHINERY[parent]:
            yield f"{folder}: {name} is neither an area nor machinery of {parent}"
        elif parent in BY_AREA and name not in AREAS:
            yield f"{folder}: {name} is no area"


def unknown_pages(modules: list[str]) -> Iterator[str]:
    parts = {PurePosixPath(module).relative_to(PAGES).parts for module in modules}
    for area in sorted({names[0] for names in parts} - AREAS):
        yield f"{PAGES}/{area}: {area.partition('.')[0]} is no area"


def same_names(modules: list[str], exceptions: Mapping[str, str] = SAME_NAMES) -> Iterator[str]:
    by_name: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        layer, _, rest = module.partition("/")
        if rest:
            by_name[f"{layer}/{PurePosixPath(module).stem}"].append(module)
    needed = set()
    for name, group in sorted(by_name.items()):
        for one, other in combinations(group, 2):
            if _are_about_the_same(one, other):
                continue
            needed.add(name)
            if name not in exceptions:
                yield f"{one} and {other} have the same name: rename one, or list {name} in SAME_NAMES"
    yield from _unused("SAME_NAMES", exceptions.keys() - needed)


def _are_about_the_same(one: str, other: str) -> bool:
    if _view(one) == _view(other):
        return False
    areas = {_area(one), _area(other)}
    # A module without an area, in a folder that is no view, is about something of its own.
    if any(not _area(module) and not _view(module) for module in (one, other)):
        return False
    return len(areas - {""}) <= 1


def _view(module: str) -> str:
    """The innermost view that the module lies in, else ""."""
    folders = [parent.as_posix() for parent in PurePosixPath(module).parents]
    return next((folder for folder in folders if folder in VIEWS), "")


def _area(module: str) -> str:
    return next((part for part in PurePosixPath(module).parts[1:-1] if part in AREAS), "")


def _unused(table: str, names: set[str]) -> Iterator[str]:
    for name in sorted(names):
        yield f"{name} is no exception any more: remove it from {table} in {Path(__file__).name}"


def main() -> int:
    found = [*problems(), *page_problems()]
    for problem in found:
        sys.stdout.write(f"{problem}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
