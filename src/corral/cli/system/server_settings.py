"""Options of commands that work on this machine's server files, not through the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.system.configuration import config_failure
from corral.cli.terminal.failures import Refused

if TYPE_CHECKING:
    from corral.server.settings.settings import Settings

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The configuration, as for `corral up`.")
]
HomeOption = Annotated[
    Path | None, typer.Option("--home", metavar="DIR", help="The server's home.  [env: CORRAL_HOME]")
]


def server_settings(config: Path | None, home: Path | None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """The settings that `corral up` would use."""
    from corral.server.settings.config_file import ConfigError
    from corral.server.settings.settings_sources import load_settings

    try:
        return load_settings(config=config, overrides={"home": home, **(overrides or {})})
    except ConfigError as error:
        raise config_failure(error) from error


@contextmanager
def refusals() -> Iterator[None]:
    """Errors of stores and archives as refusals of the command."""
    from corral.backup.errors import BackupError
    from corral.control.ports import StoreUnavailable
    from corral.stores import StoreError

    try:
        yield
    except (BackupError, StoreError, StoreUnavailable) as error:
        raise Refused(str(error)) from error
