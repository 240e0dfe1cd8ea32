"""The licence of this server: the key that verifies it, and warnings before it expires."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from corral.control.ports import StoreUnavailable
from corral.control.system import licence
from corral.server.http.context import ServerContext
from corral.server.http.problems import Problem

log = logging.getLogger("corral.server")

#: Warnings need not be more precise than this.
CHECK_SECONDS = 3600.0


def public_key_of(context: ServerContext) -> str:
    return context.settings.server.licence_public_key or licence.PUBLIC_KEY


async def current_licence(context: ServerContext) -> licence.Licence:
    token = await context.read(lambda tables: tables.meta.get(licence.KEPT))
    return licence.assess(token, public_key_of(context), context.clock.now())


async def watch_licence(present: Callable[[], ServerContext]) -> None:
    """Check the licence regularly, until cancelled."""
    while True:
        context = present()
        try:
            warned = await context.execute(licence.warn, public_key_of(context))
        except Problem:
            return  # the server stops
        except StoreUnavailable:
            log.debug("the licence is not checked: the store is unavailable, or another server leads")
        except Exception:  # a warning that fails must not prevent the next ones
            log.exception("the licence could not be checked")
        else:
            if warned is not None:
                log.warning("%s", warned.detail)
        await asyncio.sleep(CHECK_SECONDS)
