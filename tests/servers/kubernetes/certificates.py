"""Certificates of a test cluster: an authority, and identities that Kubernetes reads names and groups from."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=30)


@dataclass(frozen=True, kw_only=True)
class Identity:
    certificate: bytes
    key: bytes

    def write(self, directory: Path, name: str) -> tuple[Path, Path]:
        certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
        certificate.write_bytes(self.certificate)
        key.touch(mode=0o600)
        key.write_bytes(self.key)
        return certificate, key


class Authority:
    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "corral-tests")])
        builder = _certificate(self._name, self._name, self._key.public_key())
        extended = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._certificate = extended.sign(self._key, hashes.SHA256())

    @property
    def certificate(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self, user: str, *, group: str = "", addresses: tuple[IPv4Address, ...] = (), names: str = ""
    ) -> Identity:
        """An identity for clients, and for servers at these addresses and (separated by spaces) names."""
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
        builder = _certificate(subject, self._name, key.public_key()).add_extension(usage, critical=False)
        known = [*map(x509.IPAddress, addresses), *map(x509.DNSName, names.split())]
        if known:
            builder = builder.add_extension(x509.SubjectAlternativeName(known), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Identity(certificate=certificate.public_bytes(serialization.Encoding.PEM), key=_private(key))

    def kubeconfig(self, server: str, identity: Identity) -> str:
        """Complete in itself: no other file is needed beside it. JSON is YAML, too."""
        cluster = {"server": server, "certificate-authority-data": _encoded(self.certificate)}
        user = {
            "client-certificate-data": _encoded(identity.certificate),
            "client-key-data": _encoded(identity.key),
        }
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": "tests", "user": user}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
            "current-context": "tests",
        }
        return json.dumps(content, indent=1)


def key_pair() -> tuple[bytes, bytes]:
    """A private key and its public one, as the API server signs and checks tokens with."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return _private(key), public


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - timedelta(minutes=5),
        not_valid_after=now + LIFETIME,
    )


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
