"""Jupyter as a program uses it: kernels over HTTP, their messages over a WebSocket."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

SECONDS = 60.0


class Kernel:
    """A kernel of a workbench, reached through the server. `headers` say who asks."""

    def __init__(self, address: str, headers: Mapping[str, str], kernel_id: str | None = None) -> None:
        self.address = address
        self.headers = dict(headers)
        self.id = kernel_id or self._created()

    def _created(self) -> str:
        # Jupyter wants its own token against forged requests, which it hands out as a cookie.
        with httpx.Client(headers=self.headers, timeout=SECONDS) as http:
            http.get(f"{self.address}lab").raise_for_status()
            answer = http.post(f"{self.address}api/kernels", headers={"X-XSRFToken": http.cookies["_xsrf"]})
            answer.raise_for_status()
            return str(answer.json()["id"])

    def channel(self, **options: Any) -> ClientConnection:
        url = f"{self.address.replace('http', 'ws', 1)}api/kernels/{self.id}/channels"
        return connect(
            url,
            additional_headers=self.headers,
            proxy=None,
            open_timeout=SECONDS,
            max_size=None,
            **options,
        )

    def run(self, code: str) -> str:
        """The output of a piece of code."""
        message_id = uuid.uuid4().hex
        header = {"msg_id": message_id, "username": "", "session": uuid.uuid4().hex, "msg_type": "execute_request"}
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
        message = {
            "header": {**header, "version": "5.3", "date": "2026-01-01T00:00:00Z"},
            "parent_header": {},
            "metadata": {},
            "content": content,
            "channel": "shell",
            "buffers": [],
        }
        printed = ""
        with self.channel() as channel:
            channel.send(json.dumps(message))
            while True:
                reported = json.loads(channel.recv(timeout=SECONDS))
                if reported["parent_header"].get("msg_id") != message_id:
                    continue
                if reported["msg_type"] == "stream":
                    printed += reported["content"]["text"]
                elif reported["msg_type"] == "error":
                    raise AssertionError("\n".join(reported["content"]["traceback"]))
                elif reported["msg_type"] == "status" and reported["content"]["execution_state"] == "idle":
                    return printed
