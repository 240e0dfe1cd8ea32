"""A real directory for tests: OpenLDAP's slapd on the loopback interface, with LDAP, StartTLS and LDAPS."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from pathlib import Path

from tests.servers.certificates import make_certificate
from tests.servers.corral_server import free_port

HOW_TO_INSTALL = "slapd is not installed: apt-get install slapd ldap-utils (scripts/install-test-servers does it)"
BASE = "dc=lab,dc=org"
PEOPLE = f"ou=people,{BASE}"
GROUPS = f"ou=groups,{BASE}"
ADMIN, ADMIN_PASSWORD = f"cn=admin,{BASE}", "the-directory-admin"
#: May read everything, and change nothing.
SERVICE, SERVICE_PASSWORD = f"cn=corral,{BASE}", "service-S3cret"

_SETTINGS = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
moduleload ppolicy
pidfile {directory}/slapd.pid
TLSCertificateFile {certificate}
TLSCertificateKeyFile {key}
TLSVerifyClient never
{more}
database mdb
suffix "{base}"
rootdn "{admin}"
rootpw {admin_password}
directory {directory}/data
maxsize 104857600
index objectClass,entryUUID,uid,member eq
access to attrs=userPassword by anonymous auth by * none
access to * by * read
overlay memberof
overlay ppolicy
"""

_FIRST = f"""
dn: {BASE}
objectClass: dcObject
objectClass: organization
o: Lab
dc: lab

dn: {PEOPLE}
objectClass: organizationalUnit
ou: people

dn: {GROUPS}
objectClass: organizationalUnit
ou: groups

dn: {SERVICE}
objectClass: applicationProcess
objectClass: simpleSecurityObject
cn: corral
userPassword: {SERVICE_PASSWORD}
"""


def reason_to_skip() -> str | None:
    return None if _program() is not None and shutil.which("ldapmodify") else HOW_TO_INSTALL


class LdapServer:
    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port, self.tls_port = free_port(), free_port()
        self.plain = f"ldap://127.0.0.1:{self.port}"
        self.named = f"ldap://localhost:{self.port}"
        self.encrypted = f"ldaps://localhost:{self.tls_port}"
        self._ports = {"ldap": self.port, "ldaps": self.tls_port}
        self._directory = directory
        self._log = directory / "slapd.log"
        self._process: subprocess.Popen[bytes] | None = None
        certificate, key = make_certificate(directory)
        self.ca = certificate.read_text()
        self._settings = {
            "directory": directory,
            "certificate": certificate,
            "key": key,
            "base": BASE,
            "admin": ADMIN,
            "admin_password": ADMIN_PASSWORD,
        }

    def start(self, more: str = "") -> None:
        """Starts the directory; `more` are lines for its configuration. What was stored before is still there."""
        program = _program()
        assert program is not None, HOW_TO_INSTALL
        is_new = not (self._directory / "data").exists()
        (self._directory / "data").mkdir(exist_ok=True)
        settings = self._directory / "slapd.conf"
        settings.write_text(_SETTINGS.format(more=more, **self._settings))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [program, "-f", str(settings), "-h", " ".join(self._addresses()), "-d", "256"],
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 30
        while self._command("ldapwhoami").returncode != 0:
            assert time.monotonic() < deadline, self._log.read_text()[-3000:]
            assert self._process.poll() is None, self._log.read_text()[-3000:]
            time.sleep(0.02)
        if is_new:
            self.add(_FIRST)

    def _addresses(self) -> list[str]:
        """The certificate names the first of these hosts only."""
        hosts = ("127.0.0.1", "127.0.0.2")
        return [f"{kind}://{host}:{port}" for host in hosts for kind, port in self._ports.items()]

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(timeout=20)

    def add(self, entries: str) -> None:
        self._changed("ldapmodify", "-a", text=entries)

    def add_person(self, login: str, password: str, *, more: str = "", place: str = PEOPLE) -> str:
        """The name of the new entry."""
        name = f"uid={login},{place}"
        self.add(
            f"dn: {name}\nobjectClass: inetOrgPerson\nuid: {login}\ncn: {login.capitalize()} Example\nsn: Example\n"
            f"mail: {login}@lab.org\nuserPassword: {password}\n{more}"
        )
        return name

    def add_group(self, group: str, *members: str, place: str = GROUPS) -> str:
        name = f"cn={group},{place}"
        lines = "".join(f"member: {member}\n" for member in members)
        self.add(f"dn: {name}\nobjectClass: groupOfNames\ncn: {group}\n{lines}")
        return name

    def change(self, changes: str) -> None:
        """LDIF with changes of entries."""
        self._changed("ldapmodify", text=changes)

    def delete(self, name: str) -> None:
        self._changed("ldapdelete", name)

    def log(self) -> str:
        """The requests that the directory got: a line for each."""
        return self._log.read_text(errors="replace")

    def _changed(self, *command: str, text: str = "") -> None:
        done = self._command(*command, text=text)
        assert done.returncode == 0, done.stderr

    def _command(self, program: str, *more: str, text: str = "") -> subprocess.CompletedProcess[str]:
        # The options come first: what follows a name is taken for one.
        options = [item for item in more if item.startswith("-")]
        names = [item for item in more if not item.startswith("-")]
        return subprocess.run(
            [program, "-x", "-H", self.plain, "-D", ADMIN, "-w", ADMIN_PASSWORD, *options, *names],
            input=text,
            capture_output=True,
            text=True,
            timeout=30,
        )


def _program() -> str | None:
    return shutil.which("slapd") or shutil.which("slapd", path="/usr/sbin")
