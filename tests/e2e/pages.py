"""Every page of the console, for the tests that hold for all of them: screenshots, accessibility, no errors."""

from __future__ import annotations

import re
from pathlib import Path

REGISTRY = Path(__file__).parents[2] / "console" / "src" / "app" / "pages.ts"

#: what a page shows under another address than its own, by the name of the screenshot
VIEWS = {
    "object-stores": "/volumes?tab=object-stores",
    "volume-files": "/volumes/$volume?tab=files",
    "dataset-files": "/datasets/$dataset?tab=files",
    "dataset-compare": "/datasets/$dataset?tab=compare",
    "dataset-lineage": "/datasets/$dataset?tab=lineage",
    "dataset-targets": "/datasets?tab=targets",
    "jobs-new-storage": "/jobs/new?step=storage&dataset=road-scenes",
    "quotas-storage": "/quotas?of=storage",
    "what-if-shadow": "/what-if?tab=shadow",
    "receipts": "/queue?tab=receipts",
    "job-past": "/jobs/$job?at=$past",
    "overview-cluster": "/?cluster=hpc",
}


def registered_paths() -> list[str]:
    """The addresses in the console's own registry; those with a placeholder end in `$…`."""
    return re.findall(r'(?:everyone|operator)\(\s*"([^"]+)"', REGISTRY.read_text(encoding="utf-8"))


def concrete(path: str, *, gpu: str, **places: str) -> str:
    """A registered address with something real in its place: `job`, `node`, `volume` … as the address calls it."""
    if path == "/gpus/$":
        return f"/gpus/{gpu}"
    return re.sub(r"\$(\w+)", lambda found: places[found[1]], path)
