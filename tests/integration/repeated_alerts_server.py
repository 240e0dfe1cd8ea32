"""A server that may notify about the same alert rule again after two seconds instead of a minute."""

from __future__ import annotations

from corral.cli.main import main
from corral.core.alerts import notices

notices.QUIET_SECONDS = 2.0

if __name__ == "__main__":
    main()
