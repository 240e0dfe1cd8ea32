"""The server, but for one thing: it may tell of the same rule again after two seconds, not after a minute."""

from __future__ import annotations

from corral.cli.main import main
from corral.core.alerts import notices

notices.QUIET_SECONDS = 2.0

if __name__ == "__main__":
    main()
