"""HTTPS by the server itself, and by a real nginx with the block that `corral init server` writes."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from corral.server.system.server_setup import ServerAnswers, files_for
from corral.server.wiring import tls
from tests.integration.cli_harness import Person
from tests.integration.waiting import wait_until
from tests.servers.certificates import make_certificate
from tests.servers.corral_server import PASSWORD, CorralServer, free_port

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def serial_at(port: int) -> int:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain, context.wrap_socket(plain) as secure:
        der = secure.getpeercert(binary_form=True)
    assert der is not None
    text = subprocess.run(
        ["openssl", "x509", "-inform", "der", "-noout", "-serial"], input=der, capture_output=True, check=True
    )
    return int(text.stdout.decode().strip().removeprefix("serial="), 16)


def is_ready(url: str, certificate: Path) -> bool:
    try:
        return httpx.get(f"{url}/readyz", verify=ssl.create_default_context(cafile=certificate)).is_success
    except httpx.TransportError:
        return False


def test_the_server_speaks_https_and_reads_a_renewed_certificate(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, serial=7)
    server = CorralServer(tmp_path / "home", "--virtual-gpus=2xA10")
    server.url = f"https://127.0.0.1:{server.port}"
    server.home.mkdir()
    (server.home / "corral.yaml").write_text(f"server: {{tls_certificate: {certificate}, tls_key: {key}}}\n")
    try:
        server.start(wait=False)
        wait_until(lambda: is_ready(server.url, certificate), "it is ready", seconds=60)
        assert f"runs at https://127.0.0.1:{server.port}" in server.log()
        person = Person(server=server.url, home=tmp_path, env={"SSL_CERT_FILE": str(certificate)})
        person.run("login", "--user", "operator", "--password-stdin", stdin=PASSWORD, code=0)
        assert "corral" in person.ok("about")
        with httpx.Client(base_url=server.url, verify=False) as browser:
            body = {"user": "operator", "password": PASSWORD}
            cookie = browser.post("/api/v1/auth/login", json=body).headers["set-cookie"]
        assert cookie.startswith("__Host-corral_session=")
        assert "secure" in cookie.lower()
        make_certificate(tmp_path, serial=8)
        wait_until(lambda: serial_at(server.port) == 8, "the new certificate is used", seconds=60)
    finally:
        server.kill()


def test_files_that_do_not_fit_are_not_used(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, serial=1)
    watched = tls.CertificateFiles(str(certificate), str(key))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    assert not watched.reload_if_changed(context)
    other = tmp_path / "other"
    other.mkdir()
    new_certificate, new_key = make_certificate(other, serial=2)
    shutil.copy(new_certificate, certificate)
    assert not watched.reload_if_changed(context), "the key does not fit yet"
    shutil.copy(new_key, key)
    assert watched.reload_if_changed(context)
    assert not watched.reload_if_changed(context)
    key.write_text("no key")
    assert tls.check_certificate(str(certificate), str(key)) != ""
    assert "No such file" in tls.check_certificate(str(tmp_path / "none.pem"), str(key))


def test_a_certificate_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    server = CorralServer(tmp_path / "home")
    server.home.mkdir()
    (server.home / "corral.yaml").write_text("server: {tls_certificate: /none.pem, tls_key: /none.key}\n")
    server.start(wait=False)
    assert server.process is not None
    assert server.process.wait(timeout=60) == 1
    assert "the certificate /none.pem cannot be used: No such file or directory" in server.log()


@contextmanager
def nginx(directory: Path, upstream: int) -> Iterator[str]:
    """A real nginx with the block of `corral init server`; its address."""
    if NGINX is None:
        pytest.skip("nginx is not installed: run scripts/install-test-servers as root (Debian package: nginx-light)")
    directory.mkdir()
    directory.chmod(0o755)
    certificate, key = make_certificate(directory)
    answers = ServerAnswers(
        is_shared=False,
        engine="local",
        store="sqlite",
        tls="proxy",
        operator_account=None,
        name="localhost",
        certificate=str(certificate),
        key=str(key),
        port=upstream,
    )
    port = free_port()
    block = files_for(answers)["nginx.conf"].replace("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;")
    paths = "".join(
        f"{kind}_temp_path {directory}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (directory / "nginx.conf").write_text(
        f"daemon off;\nworker_processes 1;\npid {directory}/pid;\nerror_log {directory}/error.log;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{paths}{block}\n}}\n"
    )
    command = [NGINX, "-e", str(directory / "error.log"), "-c", str(directory / "nginx.conf"), "-p", str(directory)]
    subprocess.run([*command, "-t"], check=True, capture_output=True)
    process = subprocess.Popen(command)
    try:
        wait_until(lambda: _listens(port), "nginx listens")
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=20)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_nginx_passes_streams_and_large_bodies_on(tmp_path: Path) -> None:
    server = CorralServer(tmp_path / "home", "--virtual-gpus=2xA10")
    server.home.mkdir()
    (server.home / "corral.yaml").write_text("server: {trusted_proxies: [127.0.0.1]}\n")
    server.start()
    try:
        with nginx(tmp_path / "nginx", server.port) as url:
            headers = {"Authorization": f"Bearer {server.token()}"}
            with httpx.Client(base_url=f"{url}/api/v1", headers=headers, verify=False, timeout=60) as http:
                # A stream sends each event at once, and is not collected by the proxy.
                seen: list[str] = []
                with http.stream("GET", "/stream") as stream:
                    lines = stream.iter_lines()
                    made = http.post("/queues", json={"name": "night"})
                    assert made.status_code == 201
                    for line in lines:
                        seen.append(line)
                        if "queue" in line and "night" in line:
                            break
                assert seen
                # nginx allows 1 MiB unless the block says otherwise; corral's own answer comes back.
                body = {"command": ["true"], "env": {"LARGE": "x" * 3_000_000}}
                large = http.post("/jobs", json=body)
                assert large.headers["content-type"].startswith("application/")
                assert large.status_code != 413
                http.post("/auth/login", json={"user": "operator", "password": "wrong-password"})
                events = http.get("/events", params={"limit": 50}).json()["items"]
                assert "127.0.0.1" in {event.get("source") for event in events}
    finally:
        server.kill()


def _echo(connection: ServerConnection) -> None:
    for message in connection:
        connection.send(message)


def test_nginx_passes_websockets_on(tmp_path: Path) -> None:
    with serve(_echo, "127.0.0.1", 0) as echo:
        thread = threading.Thread(target=echo.serve_forever)
        thread.start()
        try:
            port = echo.socket.getsockname()[1]
            with nginx(tmp_path / "nginx", port) as url:
                context = ssl.create_default_context()
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                with connect(url.replace("https", "wss"), ssl=context, server_hostname="localhost") as client:
                    client.send("through the proxy")
                    assert client.recv(timeout=20) == "through the proxy"
        finally:
            echo.shutdown()
            thread.join()
