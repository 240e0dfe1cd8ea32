"""Errors of dataset storages and repositories as answers of the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from corral.control.errors import NotFound
from corral.datasets.errors import Damaged, DatasetError
from corral.datasets.errors import NotFound as NothingThere
from corral.objects.access import NotReachable
from corral.server.datasets.dataset_library import NotOfVersion
from corral.server.http.problems import Problem
from corral.server.storage.readers import Readers

Params = ParamSpec("Params")
Answer = TypeVar("Answer")

#: Errors that mean that the sent data is damaged.
TAKERS = frozenset({"take_in", "index_pieces"})


async def looked_up(
    readers: Readers, user: str, look: Callable[Params, Answer], *args: Params.args, **kwargs: Params.kwargs
) -> Answer:
    """Run on one of the user's threads; an error of the storage becomes a problem."""
    try:
        return await readers.do(user, look, *args, **kwargs)
    except NothingThere as error:
        raise NotFound(str(error), field="path") from None
    except NotOfVersion as error:
        raise NotFound(str(error), field="ids") from None
    except Damaged as error:
        raise Problem(422 if look.__name__ in TAKERS else 502, "Damaged data", f"{error}.", slug="damaged") from None
    except (DatasetError, NotReachable, OSError) as error:
        raise Problem(503, "Storage unavailable", f"{error}.", slug="storage-unavailable") from None
