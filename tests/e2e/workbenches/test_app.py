"""The page of an app in a real browser: opened from the console, at an origin of its own, with a WebSocket."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parents[2] / "integration" / "programs" / "echo_app.py"


def test_a_page_with_a_websocket(server: CorralServer, browser: Browser) -> None:
    line = f'{shlex.join([sys.executable, str(PROGRAM)])} "$CORRAL_APP_PORT"'
    with server.http("ann") as http:
        body = {"command": ["sh", "-c", line], "port": 0, "app_name": "echo"}
        job = http.post("/jobs", json=body).raise_for_status().json()["id"]
        wait_until(lambda: http.get(f"/apps/{job}").json()["ready"], "the app is ready")
        address = http.get(f"/apps/{job}").json()["address"]
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(f"{server.url}/healthz")
        signed_in = page.request.post(
            f"{server.url}/api/v1/auth/login", data={"user": "ann", "password": "password-of-ann"}
        )
        assert signed_in.ok
        page.goto(address)
        expect(page.locator("#answer")).to_have_text("echo: hello from the page")
        assert page.url == f"http://{job}.localhost:{server.port}/"
        # The page has none of corral's cookies, and cannot read the API.
        assert "corral" not in page.evaluate("document.cookie")
        read = "fetch(`${location.protocol}//127.0.0.1:${location.port}/api/v1/me`, {credentials: 'include'})"
        assert page.evaluate(f"{read}.then(answer => answer.text()).catch(() => 'refused')") == "refused"
    finally:
        context.close()
        with server.http("ann") as http:
            http.post(f"/jobs/{job}/stop").raise_for_status()
