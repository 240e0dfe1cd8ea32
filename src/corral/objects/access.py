"""How a bucket is reached: S3 and what speaks like it, or Google Cloud Storage, through fsspec."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import fsspec

#: what Google's two kinds of keys cannot do without
_SERVICE_ACCOUNT = ("type", "client_email", "private_key", "token_uri")
_PERSON = ("type", "client_id", "client_secret", "refresh_token")


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
    fixed = {"skip_instance_cache": True, "use_listings_cache": False}
    try:
        if access.kind == "gcs":
            # Not the class that fsspec would choose: it asks for a bucket's kind through gRPC before anything else,
            # and waits for minutes where only HTTP is spoken.
            from gcsfs.core import GCSFileSystem

            return GCSFileSystem(**fixed, **_gcs_options(access))
        return fsspec.filesystem("s3", **fixed, **_s3_options(access))
    except ImportError as error:
        extra = "gcs" if access.kind == "gcs" else "s3"
        raise NotReachable(f"corral was installed without {extra}: pip install 'corral[{extra}]' ({error})") from error


@contextmanager
def reaching(access: ObjectAccess) -> Iterator[None]:
    """What goes wrong inside is told as NotReachable in one line, whichever library said it, without the secret.
    What is not there stays a FileNotFoundError."""
    try:
        yield
    except (NotReachable, FileNotFoundError):
        raise
    except PermissionError as error:
        raise NotReachable(f"bucket {access.bucket} refuses the key: {_in_words(error, access)}") from error
    except Exception as error:  # each library below has dozens of its own
        raise NotReachable(f"bucket {access.bucket} cannot be reached: {_in_words(error, access)}") from error


def look(access: ObjectAccess, limit: int = 1000) -> int:
    """Try the bucket: how many entries its first level has below the prefix, counted up to the limit.
    An empty prefix of a bucket that is there has none. Raises NotReachable."""
    with reaching(access):
        filesystem = open_filesystem(access)
        try:
            return len(filesystem.ls(access.root, detail=False)[:limit])
        except FileNotFoundError:
            pass  # prefixes are not made, they appear with the first file; the bucket itself must be there
        try:
            filesystem.ls(access.bucket, detail=False)
        except FileNotFoundError as error:
            raise NotReachable(f"there is no bucket {access.bucket}: {_in_words(error, access)}") from error
        return 0


def _in_words(error: Exception, access: ObjectAccess) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    return words.replace(access.secret, "…")[:500] if access.secret else words[:500]


def _s3_options(access: ObjectAccess) -> dict[str, Any]:
    # Servers other than Amazon's answer a part of an object with the checksum of all of it, or refuse the newer
    # checksums of what is sent.
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
        # Servers of one's own have no host name for every bucket.
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
        # Not the parser's own words: they would quote the secret.
        raise NotReachable("a GCS secret must be an account's key as JSON, and this is not JSON") from None
    known = key if isinstance(key, dict) else {}
    needed = _PERSON if known.get("type") == "authorized_user" else _SERVICE_ACCOUNT
    if missing := [name for name in needed if not known.get(name)]:
        raise NotReachable(f"the secret of a GCS bucket is an account's key as JSON, and lacks {', '.join(missing)}")
    return known
