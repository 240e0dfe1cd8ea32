"""The server's own TLS: a certificate and its key from files, which are read again when they change."""

from __future__ import annotations

import logging
import os
import ssl

log = logging.getLogger("corral.server")

#: Between two looks at the files.
CHECK_SECONDS = 10.0


def check_certificate(certificate: str, key: str) -> str:
    """Why the files cannot be used; "" if they can."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:
        # OpenSSL's errors are errors of the system here, and often without a name of a file.
        return str(getattr(error, "strerror", None) or error)
    return ""


def check_authorities(path: str | None) -> str:
    """Why a file of authorities cannot be used; "" if it can, or there is none."""
    try:
        ssl.create_default_context(cafile=path)
    except (OSError, ValueError) as error:
        return str(getattr(error, "strerror", None) or error)
    return ""


class CertificateFiles:
    """Reloads a renewed certificate for new connections; open ones keep theirs."""

    def __init__(self, certificate: str, key: str) -> None:
        self._files = (certificate, key)
        self._seen = self._state()

    def reload_if_changed(self, context: ssl.SSLContext) -> bool:
        """Files that do not fit together yet are tried again at the next look: a renewal writes them one by one."""
        state = self._state()
        if state == self._seen:
            return False
        if problem := check_certificate(*self._files):
            log.warning("the new certificate in %s cannot be used yet; the old one stays: %s", self._files[0], problem)
            return False
        context.load_cert_chain(*self._files, password=_no_password)
        self._seen = state
        log.info("the certificate in %s was read again", self._files[0])
        return True

    def _state(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(path) for path in self._files]


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _no_password() -> str:
    # Without this, OpenSSL would ask at the terminal.
    raise ValueError("the key is encrypted: corral needs a key without a password")
