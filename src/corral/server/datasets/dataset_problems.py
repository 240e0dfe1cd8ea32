"""What storages and repositories of datasets have against something, as answers of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from corral.control.errors import NotFound
from corral.datasets.errors import Damaged, DatasetError
from corral.datasets.errors import NotFound as NothingThere
from corral.objects.access import NotReachable
from corral.server.datasets.dataset_library import NotOfVersion
from corral.server.http.problems import Problem

Params = ParamSpec("Params")
Answer = TypeVar("Answer")

#: Where the damage is in what was sent.
TAKERS = frozenset({"take_in", "index_pieces"})


async def looked_up(look: Callable[Params, Answer], *args: Params.args, **kwargs: Params.kwargs) -> Answer:
    """On a thread; what the storage has against it becomes an answer."""
    try:
        return await asyncio.to_thread(look, *args, **kwargs)
    except NothingThere as error:
        raise NotFound(str(error), field="path") from None
    except NotOfVersion as error:
        raise NotFound(str(error), field="ids") from None
    except Damaged as error:
        raise Problem(422 if look.__name__ in TAKERS else 502, "Damaged data", f"{error}.", slug="damaged") from None
    except (DatasetError, NotReachable, OSError) as error:
        raise Problem(503, "Storage unavailable", f"{error}.", slug="storage-unavailable") from None
