"""Certificates for tests, made by OpenSSL."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make_certificate(directory: Path, *, name: str = "localhost", serial: int = 1) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key; existing files are replaced."""
    certificate, key = directory / "server.pem", directory / "server.key"
    new_key = directory / "new.key"
    new_certificate = directory / "new.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1", "-days", "2"]
    command += ["-set_serial", str(serial), "-keyout", str(new_key), "-out", str(new_certificate)]
    subprocess.run(command, check=True, capture_output=True)
    new_key.replace(key)
    new_certificate.replace(certificate)
    return certificate, key
