"""Requests to URLs that users have chosen. They leave this network, or go to a host that an operator has named.

The server reaches more than its users do: its own ports, other machines inside, and the metadata of a cloud. So the
name is looked up once, every address that it has must be outside, and the connection goes to the address that was
checked, whatever the name means a moment later. Redirects are not followed, proxies of the environment are not used,
nothing of an answer but its status is passed on, and a request ends after a few seconds however slowly it is answered.
A refusal does not say whether a name exists, or which address it has.
"""

from __future__ import annotations

import fnmatch
import http.client
import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from corral.control.ports import NoticeFailed, NoticeRefused

SECONDS = 15.0
_CONNECT_SECONDS = 5.0
#: The well-known prefix by which addresses of IPv4 are reached over IPv6.
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
#: All other networks of IPv6 are local, of other uses, or forms of addresses of IPv4 that Python takes for global.
_PUBLIC = ipaddress.ip_network("2000::/3")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: as `socket.getaddrinfo`: the addresses of a host
LookUp = Callable[[str, int], Sequence[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class HookAddress:
    url: str
    host: str
    port: int
    is_encrypted: bool
    #: path and query
    target: str


def look_up(host: str, port: int) -> Sequence[str]:
    return [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class OutsidePosts:
    """`inside` are hosts and networks inside that may be reached: names, patterns such as *.example.org, addresses, or
    networks such as 10.1.0.0/16."""

    def __init__(self, inside: Sequence[str] = (), *, look_up: LookUp = look_up, seconds: float = SECONDS) -> None:
        self._inside = tuple(text.lower() for text in inside)
        self._look_up = look_up
        self._seconds = seconds

    def parse(self, url: str) -> HookAddress:
        """Raises NoticeRefused if nothing could ever be sent there. Without the network."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise NoticeRefused("this is no URL, such as https://chat.example.org/hooks/…") from None
        host = (parts.hostname or "").rstrip(".")
        if parts.scheme not in ("https", "http") or not host or not url.isascii() or not url.isprintable():
            raise NoticeRefused("this is no URL, such as https://chat.example.org/hooks/…")
        if any(mark in url for mark in " \\<>"):
            raise NoticeRefused("this is no URL, such as https://chat.example.org/hooks/…")
        if parts.username is not None or parts.password is not None:
            raise NoticeRefused("a URL with a user name or password is not supported")
        if parts.scheme == "http" and not self._is_named(host):
            raise NoticeRefused("the URL must begin with https://: its path is a secret, which others could read")
        if port == 0:
            raise NoticeRefused("the URL has no usable port")
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        is_encrypted = parts.scheme == "https"
        return HookAddress(
            url=url, host=host, port=port or (443 if is_encrypted else 80), is_encrypted=is_encrypted, target=target
        )

    def check(self, url: str) -> HookAddress:
        """Raises NoticeRefused for a URL that may not be reached now."""
        address = self.parse(url)
        self._place(address)
        return address

    def post(self, url: str, body: Mapping[str, Any]) -> None:
        """Returns when the receiver has taken it. Raises NoticeRefused or NoticeFailed."""
        address = self.parse(url)
        place = self._place(address)
        status = self._status(address, place, json.dumps(body).encode())
        if 300 <= status < 400:
            raise NoticeRefused(f"{address.host} answers with a redirect, which is not followed")
        if status in (400, 401, 403, 404, 405, 410):
            raise NoticeRefused(f"{address.host} refuses it with status {status}")
        if not 200 <= status < 300:
            raise NoticeFailed(f"{address.host} answers with status {status}")

    def _place(self, address: HookAddress) -> str:
        """The address to connect to."""
        refusal = NoticeRefused(
            f"{address.host} cannot be reached from here, or is inside of this network: an operator can allow it by "
            "notification.personal_hook_hosts"
        )
        try:
            found = self._look_up(address.host, address.port)
        except (OSError, UnicodeError):
            raise refusal from None
        places = [ipaddress.ip_address(text.partition("%")[0]) for text in found]
        if not places or not (self._is_named(address.host) or all(map(self._may_be_reached, places))):
            raise refusal
        return found[0]

    def _is_named(self, host: str) -> bool:
        return any("/" not in pattern and fnmatch.fnmatchcase(host.lower(), pattern) for pattern in self._inside)

    def _may_be_reached(self, place: Address) -> bool:
        return is_outside(place) or any(_contains(text, place) for text in self._inside)

    def _status(self, address: HookAddress, place: str, body: bytes) -> int:
        connection: http.client.HTTPConnection
        if address.is_encrypted:
            connection = _PinnedHttps(address.host, address.port, place)
        else:
            connection = _Pinned(address.host, address.port, place)
        # Each wait for the network has a limit, but a receiver may send one byte after the other.
        cut = threading.Timer(self._seconds, lambda: _cut(connection))
        cut.daemon = True
        cut.start()
        try:
            connection.request(
                "POST", address.target, body, {"Content-Type": "application/json", "User-Agent": "corral"}
            )
            return connection.getresponse().status
        except (OSError, http.client.HTTPException, ValueError):
            raise NoticeFailed(f"{address.host} gives no answer") from None
        finally:
            cut.cancel()
            connection.close()


def is_outside(place: Address) -> bool:
    """Whether the address is one of the public network, and not of this machine."""
    if isinstance(place, ipaddress.IPv6Address):
        inner = [place.ipv4_mapped, place.sixtofour, *(place.teredo or ())]
        if place in _NAT64:
            inner.append(ipaddress.IPv4Address(int(place) & 0xFFFFFFFF))
        elif place not in _PUBLIC:
            return False
        if any(not is_outside(found) for found in inner if found is not None):
            return False
    return place.is_global and not place.is_multicast and not _is_own(place)


def _is_own(place: Address) -> bool:
    """Only an address of this machine can be bound."""
    family = socket.AF_INET if place.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(place), 0))
    except OSError:
        return False
    return True


def _contains(text: str, place: Address) -> bool:
    try:
        return place in ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False


class _Pinned(http.client.HTTPConnection):
    """Connects to the address that was checked, under the name of the host."""

    def __init__(self, host: str, port: int, place: str) -> None:
        super().__init__(host, port, timeout=_CONNECT_SECONDS)
        self._place = place

    def connect(self) -> None:
        self.sock = socket.create_connection((self._place, self.port), _CONNECT_SECONDS)


class _PinnedHttps(_Pinned):
    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        super().connect()
        self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)


def _cut(connection: http.client.HTTPConnection) -> None:
    sock = connection.sock
    if sock is None:
        return
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is closed already
