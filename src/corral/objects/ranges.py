"""A part of an object together with its version, in one request: each provider reports the version in its own way."""

from __future__ import annotations

from typing import Any

from fsspec.asyn import sync


def fetch_range(filesystem: Any, kind: str, key: str, start: int, end: int) -> tuple[bytes, str]:
    """The bytes, and their version as in listings; "" if the answer lacks it. Raises the library's errors."""
    fetch = _from_gcs if kind == "gcs" else _from_s3
    data, version = sync(filesystem.loop, fetch, filesystem, key, start, end)
    return data, version


async def _from_s3(filesystem: Any, whole_key: str, start: int, end: int) -> tuple[bytes, str]:
    bucket, key, _ = filesystem.split_path(whole_key)
    answer = await filesystem._call_s3("get_object", Bucket=bucket, Key=key, Range=f"bytes={start}-{end - 1}")
    try:
        data = await answer["Body"].read()
    finally:
        answer["Body"].close()
    return data, str(answer.get("ETag") or "").strip('"')


async def _from_gcs(filesystem: Any, whole_key: str, start: int, end: int) -> tuple[bytes, str]:
    range_asked = {"Range": f"bytes={start}-{end - 1}"}
    headers, data = await filesystem._call("GET", filesystem.url(whole_key), headers=range_asked)
    return data, str(headers.get("x-goog-generation") or "")
