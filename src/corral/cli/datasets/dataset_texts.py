"""The texts that `corral dataset` prints: pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from corral.cli.terminal import formats
from corral.core.counts import counted

if TYPE_CHECKING:
    from corral.client.views import (
        DatasetView,
        JobDatasetView,
        JobLineageView,
        LineageJobView,
        LineageView,
        VersionFileView,
        VersionView,
    )


def first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""


def described(view: DatasetView) -> str:
    latest = view["latest"]
    lines = [
        ("Dataset", f"{view['name']} ({view['id']})"),
        ("Owner", view["owner"]),
        ("Target", view["target"]),
        ("Description", view["description"]),
        ("Versions", str(view["versions"])),
        ("Latest", f"{latest['short']}  {latest['message']}" if latest else "none yet"),
        ("Size", f"{counted(latest['files'], 'file')}, {formats.size(latest['bytes'])}" if latest else ""),
        ("Stored", formats.size(view["size_bytes"])),
        ("Tags", formats.listed([f"{tag}={version[:12]}" for tag, version in sorted(view["tags"].items())])),
        (
            "Shared with",
            formats.listed([f"{share['kind']} {share['name']} ({share['mode']})" for share in view["shares"]]),
        ),
    ]
    return "\n".join(f"{label + ':':<13} {value}" for label, value in lines if value)


def version_described(view: DatasetView, version: VersionView) -> str:
    lines = [
        ("Version", version["id"]),
        ("Dataset", f"{view['owner']}/{view['name']}"),
        ("Author", f"{version['author']}, {formats.local_time(version['at'])}"),
        ("Message", version["message"]),
        ("Parent", version["parent"] or "none"),
        ("Made by", version["produced_by"] or ""),
        (
            "Size",
            f"{formats.count(version['files'], 'file')}, {formats.size(version['bytes'])}, "
            f"{formats.size(version['new_bytes'])} new",
        ),
        ("Tags", formats.listed(version["tags"])),
    ]
    return "\n".join(f"{label + ':':<9} {value}" for label, value in lines if value)


def size_of(file: VersionFileView) -> str:
    return formats.size(file["size"]) if file["kind"] == "file" else f"{file['kind']}"


def lineage_lines(found: LineageView) -> Iterator[str]:
    for version in found["versions"]:
        tags = f" ({', '.join(version['tags'])})" if version["tags"] else ""
        yield f"{found['name']}@{version['short']}{tags}  {first_line(version['message'])}"
        if version["produced_by"]:
            yield f"  made by {_job_text(version['produced_by'])}"
        for job in version["used_by"]:
            yield f"  used by {_job_text(job)}, attempts {formats.listed([str(number) for number in job['attempts']])}"


def _job_text(job: LineageJobView) -> str:
    return f"{job['id']} {job['name']} of {job['user']}" if job["name"] else str(job["id"])


def of_job(found: JobLineageView) -> str:
    lines = [
        f"used {_dataset_text(use)}, attempts {formats.listed(list(map(str, use['attempts'])))}"
        for use in found["used"]
    ]
    lines += [f"made {_dataset_text(version)}" for version in found["produced"]]
    return "\n".join(lines) or f"{found['job']} used and made no version"


def _dataset_text(dataset: JobDatasetView) -> str:
    return (
        f"{dataset['owner']}/{dataset['name']}@{dataset['short']}"
        if dataset["name"]
        else f"{dataset['dataset']}@{dataset['short']}"
    )


def damages(result: dict[str, Any]) -> Iterator[str]:
    yield f"{formats.count(result['damaged'], 'object is', 'objects are')} damaged:"
    for damage in result["damages"]:
        yield f"  {damage['object']}: {damage['reason']}"
        for file in damage["files"]:
            yield f"    {file}"


def collected(target: str, result: dict[str, Any]) -> str:
    kept = f"{counted(result['packs'], 'pack')}, {formats.size(result['bytes'])} in {target}"
    garbage = f"{counted(result['garbage_packs'], 'pack')}, {formats.size(result['garbage_bytes'])}"
    newer = f"; {formats.size(result['fresh_bytes'])} are not needed, but newer than the grace time"
    newer = newer if result["fresh_bytes"] else ""
    if result["dry_run"]:
        return f"{kept}; would remove {garbage}{newer}. Remove it: corral dataset gc --target {target} --yes"
    waiting = f"; {result['waiting_packs']} wait for commits that run now" if result["waiting_packs"] else ""
    return (
        f"{kept}; removed {counted(result['removed_packs'], 'pack')}, "
        f"{formats.size(result['removed_bytes'])}{waiting}{newer}"
    )
