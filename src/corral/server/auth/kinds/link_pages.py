"""Lists that come in pages with a Link header, as those of GitHub and GitLab do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from corral.server.auth.outside import ProviderFailed, fetch, json_of

#: A hundred people each.
MAX_PAGES = 100


async def all_pages(url: str, *, headers: Mapping[str, str]) -> list[dict[str, Any]]:
    """The items of all pages, up to ten thousand."""
    items: list[dict[str, Any]] = []
    host = urlsplit(url)[:2]
    for _ in range(MAX_PAGES):
        answer = await fetch(url, headers=headers)
        page = json_of(answer)
        if not isinstance(page, list):
            raise ProviderFailed(f"{url} does not answer with a list", hint="Check the address of the provider.")
        items += [item for item in page if isinstance(item, dict)]
        following = answer.links.get("next", {}).get("url")
        if not following:
            break
        # The token goes along: never to another host, whatever the answer says.
        if urlsplit(following)[:2] != host:
            raise ProviderFailed(f"{url} continues on another host")
        url = following
    return items
