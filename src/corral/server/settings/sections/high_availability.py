"""The section of `corral.yaml` about several servers over one PostgreSQL."""

from __future__ import annotations

import re
import socket
from typing import Annotated

from pydantic import AfterValidator, Field

from corral.server.settings.sections.section_base import Section
from corral.server.settings.sections.section_rules import matching, public_address

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EVERY_ADDRESS = frozenset({"0.0.0.0", "::", ""})


class HighAvailabilitySettings(Section):
    #: several servers share a PostgreSQL and a home directory: one leads, the others stand by
    enabled: bool = False
    #: unique among them; null: host name and port
    name: Annotated[str, Field(max_length=63), matching(_NAME, "corral-1")] | None = None
    #: the address at which the other servers reach this one; null: http, with the host and port that it listens on
    url: Annotated[str, AfterValidator(public_address)] | None = None
    #: a leader that is frozen or cut off is replaced after this time; one that died after a fifth of it
    lease_seconds: Annotated[float, Field(ge=1, le=300)] = 4.0

    def name_at(self, port: int) -> str:
        return self.name or f"{socket.gethostname()}-{port}"

    def url_at(self, host: str, port: int) -> str:
        """The address for the other servers, of a server that listens on a host and port."""
        if self.url is not None:
            return self.url.rstrip("/")
        reached = socket.getfqdn() if host in _EVERY_ADDRESS else host
        return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"
