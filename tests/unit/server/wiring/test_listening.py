"""The socket of a server before it can answer."""

from __future__ import annotations

import socket

import pytest

from corral.server.wiring import run
from corral.server.wiring.run import CannotStart


def connects(listener: socket.socket) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(listener.getsockname()) == 0


def test_one_of_several_servers_has_its_port_and_refuses_connections_until_it_can_answer() -> None:
    with run._bound("127.0.0.1", 0, listens=False) as listener:
        assert not connects(listener)
        listener.listen()
        assert connects(listener)
        with pytest.raises(CannotStart, match="is in use"):
            run._bound("127.0.0.1", listener.getsockname()[1], listens=False)


def test_a_single_server_lets_callers_wait_for_its_start() -> None:
    with run._bound("127.0.0.1", 0, listens=True) as listener:
        assert connects(listener)
