"""The process that prepares the storage of an attempt, where that takes long: mounts or fetches buckets, checks out
versions of datasets. One per instance, started by its supervisor while the attempt is starting.

It reads its orders from standard input and reports in lines of JSON: `say` for the job's log, `progress` for the
attempt's message, `sources` when all storage is ready, `error` when it cannot be prepared. It may be killed at any time
and started again: providers are idempotent. Each kind of storage has a provider in the registry below.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from corral.engines.storage.buckets import BucketProvider
from corral.engines.storage.datasets import DatasetProvider
from corral.engines.storage.provider import CannotProvide, StorageProvider, Surroundings
from corral.files.memory_limit import limit_memory

#: One line per kind of storage that takes long.
PROVIDERS: dict[str, StorageProvider] = {
    "dataset": DatasetProvider(),
    "object": BucketProvider(),
}


def main() -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(name)s: %(message)s")
    # The server's own files are private; files that are fetched here are for jobs' accounts.
    os.umask(0o022)
    limit_memory()
    # Output of a library must not be taken for a report.
    reports = os.dup(1)
    os.dup2(2, 1)
    try:
        sources = provide_all(json.load(sys.stdin), lambda body: _report(reports, body))
        _report(reports, {"sources": sources})
    except CannotProvide as error:
        _report(reports, {"error": str(error)})
        sys.exit(1)
    except Exception as error:
        _report(reports, {"error": f"storage could not be prepared: {error!r}"})
        raise


def provide_all(orders: Mapping[str, Any], report: Callable[[Mapping[str, Any]], None]) -> dict[str, str]:
    around = Surroundings(
        attempt_id=orders["attempt_id"],
        rank_dir=orders["rank_dir"],
        scratch=orders["scratch"],
        places=orders["places"],
        say=lambda text: report({"say": text}),
        progress=lambda text: report({"progress": text}),
    )
    sources = {}
    for index, spec in enumerate(orders["storage"]):
        if spec["source"]:
            continue
        provider = PROVIDERS.get(spec["kind"])
        if provider is None:
            raise CannotProvide(f"{spec['name']}: this node cannot mount a {spec['kind']}")
        try:
            sources[str(index)] = provider.provide(spec, around)
        except CannotProvide as error:
            raise CannotProvide(f"{spec['kind']} {spec['name']}: {error}") from error
    return sources


def _report(reports: int, body: Mapping[str, Any]) -> None:
    os.write(reports, json.dumps(body).encode() + b"\n")
