"""How a bucket is reached: S3 and what speaks like it, or Google Cloud Storage, through fsspec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import fsspec


class NotReachable(Exception):
    """The bucket cannot be reached with what is known of it; the message says why, without the secret."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectAccess:
    #: s3 or gcs
    kind: str
    bucket: str
    #: files below it are all there is; without slashes at its ends
    prefix: str = ""
    #: None means the provider's own
    endpoint: str | None = None
    region: str = ""
    access_key: str = ""
    #: of S3 the secret key, of GCS the account's key as JSON; "" means without signing in
    secret: str = field(default="", repr=False)

    @property
    def root(self) -> str:
        return f"{self.bucket}/{self.prefix}" if self.prefix else self.bucket

    def to_words(self) -> dict[str, str]:
        """As plain words, the secret among them: for an order to an engine."""
        return {
            "kind": self.kind,
            "bucket": self.bucket,
            "prefix": self.prefix,
            "endpoint": self.endpoint or "",
            "region": self.region,
            "access_key": self.access_key,
            "secret": self.secret,
        }

    @classmethod
    def from_words(cls, words: Mapping[str, str]) -> ObjectAccess:
        return cls(**{**words, "endpoint": words.get("endpoint") or None})  # type: ignore[arg-type]


def open_filesystem(access: ObjectAccess) -> Any:
    """An fsspec filesystem of its own: nothing is shared with others, nor cached between processes."""
    try:
        if access.kind == "gcs":
            return fsspec.filesystem("gcs", skip_instance_cache=True, use_listings_cache=False, **_gcs_options(access))
        return fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False, **_s3_options(access))
    except ImportError as error:
        extra = "gcs" if access.kind == "gcs" else "s3"
        raise NotReachable(f"corral was installed without {extra}: pip install 'corral[{extra}]' ({error})") from error


def _s3_options(access: ObjectAccess) -> dict[str, Any]:
    options: dict[str, Any] = {"anon": not access.secret, "config_kwargs": {"retries": {"max_attempts": 3}}}
    if access.secret:
        options |= {"key": access.access_key, "secret": access.secret}
    if access.endpoint:
        # Servers of one's own have no host name for every bucket.
        options["endpoint_url"] = access.endpoint
        options["config_kwargs"]["s3"] = {"addressing_style": "path"}
    if access.region:
        options["client_kwargs"] = {"region_name": access.region}
    return options


def _gcs_options(access: ObjectAccess) -> dict[str, Any]:
    import json

    options: dict[str, Any] = {"token": json.loads(access.secret) if access.secret else "anon"}
    if access.endpoint:
        options["endpoint_url"] = access.endpoint
    return options
