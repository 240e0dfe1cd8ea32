"""A small web program: a page, its requests as a document, and a WebSocket that echoes.

echo_app.py PORT
"""

from __future__ import annotations

import asyncio
import json
import sys
from http import HTTPStatus

from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

PAGE = b"""<!doctype html><title>echo app</title><p id="answer">waiting</p><script>
document.cookie = "planted=1";
const socket = new WebSocket(`ws://${location.host}/ws`);
socket.onopen = () => socket.send("hello from the page");
socket.onmessage = (event) => { document.getElementById("answer").textContent = event.data; };
</script>"""


def answer(connection: ServerConnection, request: Request) -> Response | None:
    if request.path == "/ws":
        return None
    if request.path.startswith("/seen"):
        body = json.dumps({"path": request.path, "headers": dict(request.headers.raw_items())}).encode()
        kind = "application/json"
    else:
        body, kind = PAGE, "text/html"
    headers = Headers({"Content-Type": kind, "Content-Length": str(len(body)), "Set-Cookie": "own=1; Path=/"})
    headers["Set-Cookie"] = "corral_session=forged; Path=/"
    return Response(HTTPStatus.OK, "OK", headers, body)


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(f"echo: {message!s}")


async def main(port: int) -> None:
    async with serve(echo, "127.0.0.1", port, process_request=answer) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
