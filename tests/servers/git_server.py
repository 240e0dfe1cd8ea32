"""Real Git servers for tests: `git http-backend` behind TLS with tokens, and `sshd` with deploy keys."""

from __future__ import annotations

import base64
import getpass
import os
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.servers.certificates import make_certificate
from tests.servers.corral_server import free_port

TOKEN = "glpat-3b1c0ffee5ecret"
USER = "deploy"
IDENTITY = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


@dataclass(kw_only=True)
class Repository:
    """A bare repository, and the work tree from which its commits come."""

    bare: Path
    work: Path

    @classmethod
    def made(cls, directory: Path, name: str) -> Repository:
        made = cls(bare=directory / f"{name}.git", work=directory / f"{name}-work")
        made.bare.parent.mkdir(parents=True, exist_ok=True)
        made.git("init", "-q", "--bare", "-b", "main", str(made.bare), where=directory)
        made.git("init", "-q", "-b", "main", str(made.work), where=directory)
        return made

    def git(self, *arguments: str, where: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=where or self.work,
            env={**os.environ, **IDENTITY},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, files: dict[str, str], *, branch: str = "main") -> str:
        """Commits files, pushes the branch, and returns the commit."""
        if branch not in self.git("branch", "--format=%(refname:short)").split() and branch != "main":
            self.git("branch", branch)
        if self.git("branch", "--show-current") != branch:
            self.git("checkout", "-q", branch)
        for name, text in files.items():
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", f"change {branch}")
        self.push(branch)
        return self.git("rev-parse", "HEAD")

    def push(self, *refs: str) -> None:
        self.git("push", "-q", "-f", str(self.bare), *refs)


@dataclass(kw_only=True)
class HttpsServer:
    """Serves `ROOT/public/…` to everybody, `ROOT/private/…` with the token; `/moved/…` leads to another path."""

    root: Path
    port: int
    certificate: Path
    #: what was asked for, with the header of the login
    requests: list[tuple[str, str]] = field(default_factory=list)

    def url(self, path: str) -> str:
        return f"https://localhost:{self.port}/{path}"


@contextmanager
def https_server(root: Path) -> Iterator[HttpsServer]:
    certificate, key = make_certificate(root)
    known = HttpsServer(root=root, port=0, certificate=certificate)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            else:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._answer(body)

        def _answer(self, body: bytes) -> None:
            parts = urlsplit(self.path)
            login = self.headers.get("Authorization", "")
            known.requests.append((self.path, login))
            if parts.path.startswith("/moved/"):
                self._send(301, {"Location": f"/public/{self.path.removeprefix('/moved/')}"}, b"")
                return
            expected = "Basic " + base64.b64encode(f"{USER}:{TOKEN}".encode()).decode()
            if parts.path.startswith("/private/") and login != expected:
                self._send(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")
                return
            env = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": unquote(parts.path),
                "QUERY_STRING": parts.query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
            }
            done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=False)
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            status = int(headers.pop("Status", "200").split()[0])
            self._send(status, headers, content)

        def _send(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    known.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, name="git-https", daemon=True)
    thread.start()
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


@dataclass(kw_only=True)
class SshServer:
    """An SSH server that lets in one deploy key, for reading repositories below a directory."""

    root: Path
    port: int
    #: a private key that it accepts, and one that it refuses
    key: str
    other_key: str
    log: Path

    def url(self, path: str) -> str:
        return f"ssh://{getpass.getuser()}@localhost:{self.port}{self.root / path}"


@contextmanager
def ssh_server(root: Path) -> Iterator[SshServer]:
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("sshd is not installed: scripts/install-test-servers brings it")
    own = root / "ssh"
    own.mkdir(mode=0o700)
    for name in ("host", "key", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(own / name)], check=True)
    shell = own / "serve"
    shell.write_text('#!/bin/sh\nexport GIT_CONFIG_GLOBAL=/dev/null\nexec git shell -c "$SSH_ORIGINAL_COMMAND"\n')
    shell.chmod(0o755)
    public = (own / "key.pub").read_text().strip()
    (own / "authorized").write_text(f'restrict,command="{shell}" {public}\n')
    port = free_port()
    lines = [
        f"ListenAddress 127.0.0.1:{port}",
        f"HostKey {own / 'host'}",
        f"AuthorizedKeysFile {own / 'authorized'}",
        f"PidFile {own / 'pid'}",
        "StrictModes no",
        "UsePAM no",
        "PermitRootLogin prohibit-password",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "MaxStartups 100",
    ]
    (own / "config").write_text("".join(f"{line}\n" for line in lines))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    log = own / "log"
    process = subprocess.Popen([program, "-D", "-f", str(own / "config"), "-E", str(log)])
    try:
        deadline = time.monotonic() + 20
        while not log.exists() or "Server listening" not in log.read_text():
            assert process.poll() is None, log.read_text() if log.exists() else "sshd ended"
            assert time.monotonic() < deadline, "sshd does not listen"
            time.sleep(0.02)
        keys = {name: (own / name).read_text() for name in ("key", "other")}
        yield SshServer(root=root, port=port, key=keys["key"], other_key=keys["other"], log=log)
    finally:
        process.terminate()
        process.wait(timeout=10)
