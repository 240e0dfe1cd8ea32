"""Access to a bucket: S3 and compatible services, or Google Cloud Storage, through fsspec."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import fsspec

#: the fields that Google's two kinds of keys must have
_SERVICE_ACCOUNT = ("type", "client_email", "private_key", "token_uri")
_PERSON = ("type", "client_id", "client_secret", "refresh_token")


class NotReachable(Exception):
    """The bucket cannot be reached with these settings; the message gives the reason, without the secret."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectAccess:
    #: s3 or gcs
    kind: str
    bucket: str
    #: only files below it are visible; without slashes at its ends
    prefix: str = ""
    #: None means the provider's default
    endpoint: str | None = None
    region: str = ""
    access_key: str = ""
    #: for S3 the secret key, for GCS the account's key as JSON; "" means anonymous access
    secret: str = field(default="", repr=False)

    @property
    def root(self) -> str:
        return f"{self.bucket}/{self.prefix}" if self.prefix else self.bucket

    def to_dict(self) -> dict[str, str]:
        """Returns a dictionary of strings, including the secret, for an order to an engine."""
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
    def from_dict(cls, body: Mapping[str, str]) -> ObjectAccess:
        return cls(**{**body, "endpoint": body.get("endpoint") or None})  # type: ignore[arg-type]


def open_filesystem(access: ObjectAccess) -> Any:
    """An fsspec file system of its own: nothing is shared with other users, nor cached between processes."""
    fixed = {"skip_instance_cache": True, "use_listings_cache": False}
    try:
        if access.kind == "gcs":
            # Not the class that fsspec would choose: it queries a bucket's kind through gRPC before anything else, and
            # waits for minutes if only HTTP is supported.
            from gcsfs.core import GCSFileSystem

            return GCSFileSystem(**fixed, **_gcs_options(access))
        return fsspec.filesystem("s3", **fixed, **_s3_options(access))
    except ImportError as error:
        extra = "gcs" if access.kind == "gcs" else "s3"
        raise NotReachable(f"corral was installed without {extra}: pip install 'corral[{extra}]' ({error})") from error


@contextmanager
def reaching(access: ObjectAccess) -> Iterator[None]:
    """Errors inside are raised as NotReachable with one line, whichever library raised them, without the secret. A
    missing file stays a FileNotFoundError."""
    try:
        yield
    except (NotReachable, FileNotFoundError):
        raise
    except PermissionError as error:
        raise NotReachable(f"bucket {access.bucket} refuses the key: {_message(error, access)}") from error
    except Exception as error:  # each library below has dozens of its own errors
        raise NotReachable(f"bucket {access.bucket} cannot be reached: {_message(error, access)}") from error


def look(access: ObjectAccess, limit: int = 1000) -> int:
    """Try the bucket: the number of entries on the first level below the prefix, counted up to the limit. An empty
    prefix of an existing bucket has none. Raises NotReachable."""
    with reaching(access):
        filesystem = open_filesystem(access)
        try:
            return len(filesystem.ls(access.root, detail=False)[:limit])
        except FileNotFoundError:
            pass  # a prefix exists only if it has files; the bucket itself must exist
        try:
            filesystem.ls(access.bucket, detail=False)
        except FileNotFoundError as error:
            raise NotReachable(f"there is no bucket {access.bucket}: {_message(error, access)}") from error
        return 0


def _message(error: Exception, access: ObjectAccess) -> str:
    message = " ".join(str(error).split()) or type(error).__name__
    return message.replace(access.secret, "…")[:500] if access.secret else message[:500]


def _s3_options(access: ObjectAccess) -> dict[str, Any]:
    # Servers other than Amazon's return a part of an object with the checksum of the whole object, or refuse the newer
    # checksums of uploads.
    config = {
        "retries": {"max_attempts": 3},
        "connect_timeout": 10,
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
    }
    options: dict[str, Any] = {"anon": not access.secret, "config_kwargs": config}
    if access.secret:
        options |= {"key": access.access_key, "secret": access.secret}
    if access.endpoint:
        # Self-hosted servers have no host name for every bucket.
        options["endpoint_url"] = access.endpoint
        options["config_kwargs"]["s3"] = {"addressing_style": "path"}
    if access.region:
        options["client_kwargs"] = {"region_name": access.region}
    return options


def _gcs_options(access: ObjectAccess) -> dict[str, Any]:
    options: dict[str, Any] = {"token": _gcs_key(access.secret) if access.secret else "anon"}
    if access.endpoint:
        options["endpoint_url"] = access.endpoint
    return options


def _gcs_key(secret: str) -> dict[str, Any]:
    try:
        key = json.loads(secret)
    except ValueError:
        # Not the parser's own message: it would quote the secret.
        raise NotReachable("a GCS secret must be an account's key as JSON, and this is not JSON") from None
    known = key if isinstance(key, dict) else {}
    needed = _PERSON if known.get("type") == "authorized_user" else _SERVICE_ACCOUNT
    if missing := [name for name in needed if not known.get(name)]:
        raise NotReachable(f"the secret of a GCS bucket is an account's key as JSON, and lacks {', '.join(missing)}")
    return known
