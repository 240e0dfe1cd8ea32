"""The section of `corral.yaml` about several servers over one PostgreSQL."""

from __future__ import annotations

import re
import socket
from typing import Annotated

from pydantic import AfterValidator, Field

from corral.server.settings.sections.section_base import Section
from corral.server.settings.sections.section_rules import matching, public_address, whole_path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EVERY_ADDRESS = frozenset({"0.0.0.0", "::", ""})


class HighAvailabilitySettings(Section):
    #: several servers share a PostgreSQL and a home directory: one leads, the others stand by
    enabled: bool = False
    #: unique among them; null: host name and port
    name: Annotated[str, Field(max_length=63), matching(_NAME, "corral-1")] | None = None
    #: the address at which the other servers reach this one; null: the host and port that it listens on, with https if
    #: it has a certificate
    url: Annotated[str, AfterValidator(public_address)] | None = None
    #: a PEM file of the authorities that have issued the certificates of the other servers; null: those of this machine
    ca: Annotated[str, AfterValidator(whole_path)] | None = None
    #: a leader that is frozen or cut off is replaced after this time; one that died after a fifth of it
    lease_seconds: Annotated[float, Field(ge=1, le=300)] = 4.0

    def name_at(self, port: int) -> str:
        return self.name or f"{socket.gethostname()}-{port}"

    def url_at(self, host: str, port: int, *, has_tls: bool) -> str:
        """The address for the other servers, of a server that listens on a host and port."""
        if self.url is not None:
            return self.url.rstrip("/")
        reached = socket.getfqdn() if host in _EVERY_ADDRESS else host
        scheme = "https" if has_tls else "http"
        return f"{scheme}://[{reached}]:{port}" if ":" in reached else f"{scheme}://{reached}:{port}"
