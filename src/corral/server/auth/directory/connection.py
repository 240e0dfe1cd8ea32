"""A connection to a directory: encrypted before anything is said, with limits on time and size, without referrals.

Filters and names are sent as values of the protocol and are never put together as text. Runs on a thread of its own.
"""

from __future__ import annotations

import math
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from corral.control.records import DirectoryRecord
from corral.server.auth.outside import MAX_ANSWER_BYTES, ProviderFailed

if TYPE_CHECKING:
    from sansldap import LDAPClient, LDAPFilter, LDAPMessage, LDAPResult

CONNECT_SECONDS = 5.0
PAGE = 500
#: What all answers over one connection may have together.
MAX_BYTES = 16 * MAX_ANSWER_BYTES
_READ_BYTES = 64 * 1024
_PORTS = {"ldap": 389, "ldaps": 636}

# Result codes of RFC 4511.
_SUCCESS = 0
_SIZE_LIMIT = 4
_REFERRAL = 10
#: The name or the password is not accepted, or this account may not sign in.
_REFUSED = frozenset({32, 34, 48, 49, 50, 53})
_HINTS = {
    8: "It wants an encrypted connection: use ldaps:// or StartTLS.",
    13: "It wants an encrypted connection: use ldaps:// or StartTLS.",
    32: "Check the names of the places that are searched.",
    50: "Give the service account the right to read there.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    name: str
    #: by attribute, in small letters and without options
    values: Mapping[str, Sequence[bytes]] = field(default_factory=dict)

    def texts(self, attribute: str) -> list[str]:
        return [value.decode("utf-8", "replace") for value in self.values.get(attribute.casefold(), ())]

    def text(self, attribute: str) -> str:
        """The first value; "" without one."""
        return next(iter(self.texts(attribute)), "")


class DirectoryConnection:
    """Raises ProviderFailed for everything that goes wrong, except a name or password that is not accepted."""

    def __init__(self, line: socket.socket, deadline: float, *, monotonic: Callable[[], float]) -> None:
        self._line = line
        self._deadline = deadline
        self._monotonic = monotonic
        self._session: LDAPClient = _new_session()
        self._received = 0
        self._waiting: list[LDAPMessage] = []

    def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        from sansldap import ExtendedOperations

        result = self._answer(self._session.extended_request(ExtendedOperations.LDAP_START_TLS.value))[-1].result
        if int(result.result_code) != _SUCCESS:
            raise _failed("refuses StartTLS", result)
        # What came before the handshake may have been put in by others: it is dropped with its session.
        self._session, self._waiting = _new_session(), []
        self._line = context.wrap_socket(self._line, server_hostname=host)

    def bind(self, name: str, password: str) -> bool:
        """Whether the directory accepts the password. An empty one is never sent: directories answer that it is right
        and treat the caller as anonymous (RFC 4513, 5.1.2). So is one that a directory in C could take for empty."""
        if not name or not password or "\0" in password or "\0" in name:
            return False
        result = self._answer(self._session.bind_simple(name, password))[-1].result
        code = int(result.result_code)
        if code == _SUCCESS:
            return True
        if code in _REFUSED:
            return False
        raise _failed("cannot check the password", result)

    def search(
        self, base: str, chosen: LDAPFilter, attributes: Sequence[str], *, most: int, is_base_only: bool = False
    ) -> list[Entry]:
        """At most `most` entries. Raises ProviderFailed if the answer is not complete for another reason: who is
        missing in it might be taken for gone. References to other servers are not followed."""
        from sansldap import PagedResultControl, SearchScope

        found: list[Entry] = []
        cookie = b""
        pages = most > PAGE
        while True:
            number = self._session.search_request(
                base,
                scope=SearchScope.BASE if is_base_only else SearchScope.SUBTREE,
                size_limit=0 if pages else most,
                time_limit=max(1, math.ceil(self._left())),
                filter=chosen,
                attributes=list(attributes),
                controls=[PagedResultControl(critical=False, size=PAGE, cookie=cookie)] if pages else [],
            )
            *entries, done = self._answer(number, most=most + PAGE)
            found += [_entry(message) for message in entries if hasattr(message, "attributes")]
            code = int(done.result.result_code)
            if len(found) > most or (code == _SIZE_LIMIT and len(found) == most):
                return found[:most]
            if code != _SUCCESS:
                raise _failed(f"cannot be searched at {base or 'its root'}", done.result)
            cookie = next((item.cookie for item in done.controls if isinstance(item, PagedResultControl)), b"")
            if not cookie:
                return found

    def close(self) -> None:
        try:
            if self._session.state.name != "CLOSED":
                self._session.unbind()
                self._line.settimeout(1.0)
                self._line.sendall(self._session.data_to_send())
        except (OSError, ValueError):
            pass  # the directory has closed it
        finally:
            self._line.close()

    def _answer(self, number: int, *, most: int = 1) -> list[Any]:
        """Sends what is waiting; the messages with this number up to the last one of the answer."""
        from sansldap import LDAPError, SearchResultEntry, SearchResultReference

        collected: list[Any] = []
        try:
            self._line.settimeout(self._left())
            self._line.sendall(self._session.data_to_send())
            while True:
                while self._waiting:
                    message = self._waiting.pop(0)
                    if message.message_id != number:
                        raise ProviderFailed("The directory answers out of order.")
                    if isinstance(message, SearchResultReference):
                        continue
                    collected.append(message)
                    if not isinstance(message, SearchResultEntry):
                        return collected
                    if len(collected) > most:
                        raise ProviderFailed("The directory sends more entries than were asked for.")
                self._line.settimeout(self._left())
                data = self._line.recv(_READ_BYTES)
                self._received += len(data)
                if not data:
                    raise ProviderFailed("The directory has closed the connection.", hint="Look at its log.")
                if self._received > MAX_BYTES:
                    raise ProviderFailed(f"The directory answers with more than {MAX_BYTES} bytes.")
                self._waiting += self._session.receive(data)
        except TimeoutError:
            raise _too_slow() from None
        except (OSError, LDAPError, ValueError, RecursionError) as error:
            raise ProviderFailed(f"The connection to the directory failed: {_reason(error)}") from None

    def _left(self) -> float:
        left = self._deadline - self._monotonic()
        if left <= 0:
            raise _too_slow()
        return left


def connected(
    address: str, directory: DirectoryRecord, *, seconds: float, monotonic: Callable[[], float] = time.monotonic
) -> DirectoryConnection:
    """A connection to one address, encrypted as the settings say. Everything over it takes at most `seconds`."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    is_tls = parts.scheme == "ldaps"
    deadline = monotonic() + seconds
    try:
        line = socket.create_connection((host, parts.port or _PORTS[parts.scheme]), min(CONNECT_SECONDS, seconds))
    except OSError as error:
        hint = "Check the address, DNS and the firewall."
        raise ProviderFailed(f"{address} cannot be reached: {_reason(error)}", hint=hint) from None
    try:
        if is_tls:
            line = _context(directory).wrap_socket(line, server_hostname=host)
        connection = DirectoryConnection(line, deadline, monotonic=monotonic)
        if not is_tls and directory.starttls:
            connection.start_tls(_context(directory), host)
    except (OSError, ValueError) as error:
        line.close()
        hint = "Its certificate must name this host and come from an authority that is trusted: give the CA's file."
        raise ProviderFailed(f"{address} cannot be trusted or reached: {_reason(error)}", hint=hint) from None
    except ProviderFailed:
        line.close()
        raise
    return connection


def _context(directory: DirectoryRecord) -> ssl.SSLContext:
    try:
        # With certificates of its own no others are trusted.
        context = ssl.create_default_context(cadata=directory.ca_certificate or None)
    except (ssl.SSLError, ValueError):
        raise ProviderFailed("The certificate of the authority cannot be read.", hint="Give a PEM file.") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _new_session() -> LDAPClient:
    # Here and not above: loaded by the first sign-in with a directory, not by every start of a server.
    from sansldap import LDAPClient

    return LDAPClient()


def _entry(message: Any) -> Entry:
    values: dict[str, list[bytes]] = {}
    for attribute in message.attributes:
        values.setdefault(attribute.name.partition(";")[0].casefold(), []).extend(attribute.values)
    return Entry(name=message.object_name, values=values)


def _failed(what: str, result: LDAPResult) -> ProviderFailed:
    code = int(result.result_code)
    if code == _REFERRAL:
        return ProviderFailed("The directory refers to another server.", hint="Give the address of that server.")
    said = "".join(char for char in result.diagnostics_message if char.isprintable())[:200]
    text = f"The directory {what}: {result.result_code.name} ({code}){': ' + said if said else ''}"
    return ProviderFailed(text, hint=_HINTS.get(code, "Look at the directory's log."))


def _too_slow() -> ProviderFailed:
    return ProviderFailed("The directory does not answer in time.", hint="Try again in a moment.", status=503)


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
