"""Packages that belong to an extra of the installation, and the message if one is missing."""

from __future__ import annotations

from corral.cli.terminal.failures import Refused

#: By extra, the modules that only it installs.
EXTRAS: dict[str, tuple[str, ...]] = {
    "server": (
        "alembic",
        "apprise",
        "argon2",
        "authlib",
        "cryptography",
        "fastapi",
        "httpcore",
        "joserfc",
        "pydantic",
        "sansldap",
        "sqlalchemy",
        "starlette",
        "uvicorn",
    ),
    "exporter": ("psutil", "pynvml"),
    "postgres": ("psycopg",),
    "reports": ("typst",),
    "s3": ("s3fs",),
    "gcs": ("gcsfs",),
    "fuse": ("mfusepy",),
    "mcp": ("mcp",),
}


def missing_part(error: ModuleNotFoundError) -> Refused | None:
    """The refusal for a missing package of an extra; None for any other module."""
    module = (error.name or "").partition(".")[0]
    for extra, modules in EXTRAS.items():
        if module in modules:
            return Refused(
                f"this needs a part of corral that is not installed: {extra} (no module {module})",
                hint=f"pip install 'corral[{extra}]'",
            )
    return None
