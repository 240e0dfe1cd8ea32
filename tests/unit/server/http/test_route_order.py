"""Routes are tried in order: no route may answer in the place of a later, more exact one."""

from __future__ import annotations

import re

from starlette.routing import Match, Route

from corral.server.http.app import bare_app


def test_every_route_answers_at_its_own_address() -> None:
    routes = [route for route in bare_app().routes if isinstance(route, Route)]
    assert len(routes) > 200
    hidden = []
    for route in routes:
        address = re.sub(r"\{\w+\}", "x", route.path_format)
        for method in sorted(route.methods or ()):
            scope = {"type": "http", "method": method, "path": address, "root_path": "", "headers": []}
            first = next(one for one in routes if one.matches(scope)[0] is Match.FULL)
            if first is not route:
                hidden.append(f"{method} {route.path_format}: {first.path_format} answers")
    assert hidden == []
