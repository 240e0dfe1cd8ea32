"""Keys for mutual authentication between the server and workbenches on other machines: one per workbench.

Both ends have the same key, present its certificate and accept no other. The server's file is beside the job's
directory, where no job can write; the workbench gets a copy that only its account can read.
"""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

#: Subject of all certificates; only the key is checked.
NAME = "workbench.corral.internal"
#: A workbench may run for years, and the clocks of nodes may be wrong.
_FROM = datetime(2000, 1, 1, tzinfo=UTC)
_UNTIL = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


class WorkbenchKeys:
    """`path_of` returns the server's file for a job."""

    def __init__(self, path_of: Callable[[str], Path]) -> None:
        self._path_of = path_of

    def of(self, job_id: str) -> bytes:
        """The key with its certificate; created by the first call. Raises OSError."""
        path = self._path_of(job_id)
        try:
            return path.read_bytes()
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_once(path, new_key())
            return path.read_bytes()

    def context(self, job_id: str) -> ssl.SSLContext:
        """The TLS context for a connection to that workbench only. Raises OSError."""
        path = self._path_of(job_id)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(path)
        context.load_verify_locations(path)
        return context


def new_key() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        # It cannot sign other certificates.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + certificate.public_bytes(serialization.Encoding.PEM)


def _write_once(path: Path, content: bytes) -> None:
    """Written atomically; an existing file is not replaced."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
