"""The images of a registry, with version, size and date, read with a user's own login.

A GitLab is recognised by the address of its token service, and asked by its REST API for the projects of the login's
owner, because it lists its repositories to no user. Every other registry is asked by the protocol of OCI. Only
registries that an operator has named are asked, so that users cannot make the server send requests to any address.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import httpx

from corral.server.auth.outside import MAX_ANSWER_BYTES, USER_AGENT, http_options

#: How long a listing may take, and how many requests are made at the same time.
LISTING_SECONDS = 30.0
_AT_ONCE = 8
MAX_REPOSITORIES = 100
MAX_VERSIONS = 20
_TOKEN_SERVICE = "/jwt/auth"
_MANIFESTS = ", ".join(
    f"application/vnd.{kind}"
    for kind in (
        "oci.image.manifest.v1+json",
        "docker.distribution.manifest.v2+json",
        "oci.image.index.v1+json",
        "docker.distribution.manifest.list.v2+json",
    )
)
_PART = re.compile(r'(\w+)="([^"]*)"')

T = TypeVar("T")


class ListingFailed(Exception):
    """The registry cannot be listed; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundImage:
    #: for `--image`
    address: str
    repository: str
    version: str
    #: compressed, as it is pulled
    size_bytes: int | None = None
    #: RFC 3339, as the registry gives it
    created_at: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RegistryAccess:
    #: as it stands in addresses of images
    host: str
    #: https://host, or http://host where the operator says so
    url: str
    username: str
    secret: str


async def images_of(access: RegistryAccess, repository: str | None = None) -> list[FoundImage]:
    """All that the login can see, or those of one repository. Raises ListingFailed."""
    try:
        async with (
            asyncio.timeout(LISTING_SECONDS),
            httpx.AsyncClient(**http_options(access.url), headers={"User-Agent": USER_AGENT}) as client,
        ):
            return await _Listing(access, client).found(repository)
    except TimeoutError:
        raise ListingFailed(f"{access.host} did not answer within {LISTING_SECONDS:.0f} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ListingFailed(f"{access.host} cannot be reached: {str(error) or type(error).__name__}") from None


class _Listing:
    def __init__(self, access: RegistryAccess, client: httpx.AsyncClient) -> None:
        self._access = access
        self._client = client
        self._free = asyncio.Semaphore(_AT_ONCE)
        #: address and service of the token service; None for a registry that takes passwords
        self._realm: tuple[str, str] | None = None
        self._tokens: dict[str, str] = {}

    async def found(self, repository: str | None) -> list[FoundImage]:
        answer = await self._send(f"{self._access.url}/v2/", self._basic())
        if answer.status_code == 401:
            self._learn(answer.headers.get("WWW-Authenticate", ""))
            if self._realm is None:
                raise ListingFailed(f"{self._access.host} does not accept this login")
        realm = urlsplit(self._realm[0]) if self._realm else None
        if realm is not None and realm.path.endswith(_TOKEN_SERVICE) and repository is None:
            return await self._of_gitlab(f"{realm.scheme}://{realm.netloc}/api/v4")
        names = [repository] if repository is not None else await self._catalog()
        return _flat(await self._each(names[:MAX_REPOSITORIES], self._versions))

    # -------------------------------------------------------------------------------------------- OCI

    async def _catalog(self) -> list[str]:
        answer = await self._ask(f"/v2/_catalog?n={MAX_REPOSITORIES}", "registry:catalog:*")
        if answer is None:
            raise ListingFailed(
                f"{self._access.host} does not list its repositories: name one, such as team/train (--repository)"
            )
        return sorted(_texts(answer.get("repositories")))

    async def _versions(self, repository: str) -> list[FoundImage]:
        answer = await self._ask(f"/v2/{quote(repository)}/tags/list", f"repository:{repository}:pull")
        tags = sorted(_texts((answer or {}).get("tags")), reverse=True)[:MAX_VERSIONS]

        async def look(tag: str) -> FoundImage:
            size, created = await self._described(repository, tag)
            address = f"{self._access.host}/{repository}:{tag}"
            return FoundImage(address=address, repository=repository, version=tag, size_bytes=size, created_at=created)

        return await self._each(tags, look)

    async def _described(self, repository: str, reference: str, depth: int = 1) -> tuple[int | None, str | None]:
        scope = f"repository:{repository}:pull"
        manifest = await self._ask(
            f"/v2/{quote(repository)}/manifests/{quote(reference, safe=':')}", scope, accept=_MANIFESTS
        )
        inner = [
            manifest_entry
            for manifest_entry in _maps((manifest or {}).get("manifests"))
            if isinstance(manifest_entry.get("digest"), str)
        ]
        if inner and depth:
            # Of an image for several kinds of machines the first one for Linux, without records of how it was built.
            first = next(
                (
                    manifest_entry
                    for manifest_entry in inner
                    if _map(manifest_entry.get("platform")).get("os") == "linux"
                ),
                inner[0],
            )
            return await self._described(repository, str(first["digest"]), 0)
        if manifest is None or inner:
            return None, None
        config = _map(manifest.get("config"))
        parts = [config, *_maps(manifest.get("layers"))]
        size = sum(part["size"] for part in parts if isinstance(part.get("size"), int))
        digest = config.get("digest")
        about = await self._ask(f"/v2/{quote(repository)}/blobs/{digest}", scope) if isinstance(digest, str) else None
        return size, _moment((about or {}).get("created"))

    # -------------------------------------------------------------------------------------------- GitLab

    async def _of_gitlab(self, api: str) -> list[FoundImage]:
        headers = {"PRIVATE-TOKEN": self._access.secret}
        query = urlencode({"membership": "true", "simple": "true", "order_by": "last_activity_at", "per_page": 100})
        projects = await self._list(f"{api}/projects?{query}", headers)
        if projects is None:
            raise ListingFailed(
                f"{self._access.host} belongs to a GitLab, which does not accept the login's secret for its API: store "
                "a personal access token with the scopes read_api and read_registry (corral registry login)"
            )

        async def repositories(project: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
            found = await self._list(
                f"{api}/projects/{int(project['id'])}/registry/repositories?tags=true&per_page=100", headers
            )
            return [
                (int(project["id"]), repository) for repository in found or () if isinstance(repository.get("id"), int)
            ]

        async def versions(place: tuple[int, Mapping[str, Any]]) -> list[FoundImage]:
            project, repository = place
            return await self._each(
                [tag for tag in _maps(repository.get("tags")) if isinstance(tag.get("name"), str)][:MAX_VERSIONS],
                lambda tag: look(
                    f"{api}/projects/{project}/registry/repositories/{repository['id']}/tags/", repository, tag
                ),
            )

        async def look(address: str, repository: Mapping[str, Any], tag: Mapping[str, Any]) -> FoundImage:
            answer = await self._send(address + quote(str(tag["name"]), safe=""), headers)
            about = _json(answer) if answer.status_code == 200 else {}
            size = about.get("total_size")
            return FoundImage(
                address=str(tag.get("location") or f"{repository.get('location')}:{tag['name']}"),
                repository=str(repository.get("path") or repository.get("name") or ""),
                version=str(tag["name"]),
                size_bytes=size if isinstance(size, int) else None,
                created_at=_moment(about.get("created_at")),
            )

        mine = [project for project in projects if isinstance(project.get("id"), int)]
        places = _flat(await self._each(mine[:MAX_REPOSITORIES], repositories))
        return _flat(await self._each(places[:MAX_REPOSITORIES], versions))

    # -------------------------------------------------------------------------------------------- requests

    async def _each(self, items: Iterable[Any], work: Callable[[Any], Awaitable[T]]) -> list[T]:
        return list(await asyncio.gather(*(work(item) for item in items)))

    async def _list(self, url: str, headers: Mapping[str, str]) -> list[Mapping[str, Any]] | None:
        """The objects of a list; None if the server refuses."""
        answer = await self._send(url, headers)
        return _maps(_json_value(answer)) if answer.status_code == 200 else None

    async def _ask(self, path: str, scope: str, accept: str = "application/json") -> dict[str, Any] | None:
        """The answer of the registry; None if it refuses or has none."""
        authorization = (
            self._basic() if self._realm is None else {"Authorization": f"Bearer {await self._token(scope)}"}
        )
        answer = await self._send(f"{self._access.url}{path}", {**authorization, "Accept": accept})
        return _json(answer) if answer.status_code == 200 else None

    async def _token(self, scope: str) -> str:
        assert self._realm is not None
        if scope not in self._tokens:
            address, service = self._realm
            query = urlencode({"service": service, "scope": scope})
            answer = await self._send(f"{address}?{query}", self._basic())
            if answer.status_code != 200:
                raise ListingFailed(f"{self._access.host} does not accept this login")
            body = _json(answer)
            self._tokens[scope] = str(body.get("token") or body.get("access_token") or "")
        return self._tokens[scope]

    async def _send(self, url: str, headers: Mapping[str, str]) -> httpx.Response:
        async with self._free, self._client.stream("GET", url, headers=dict(headers)) as answer:
            content = b""
            async for part in answer.aiter_bytes():
                content += part
                if len(content) > MAX_ANSWER_BYTES:
                    raise ListingFailed(f"{self._access.host} answers with more than {MAX_ANSWER_BYTES} bytes")
        kept = {name: answer.headers[name] for name in ("WWW-Authenticate",) if name in answer.headers}
        return httpx.Response(answer.status_code, headers=kept, content=content, request=answer.request)

    def _basic(self) -> dict[str, str]:
        token = base64.b64encode(f"{self._access.username}:{self._access.secret}".encode()).decode()
        return {"Authorization": f"Basic {token}"}

    def _learn(self, challenge: str) -> None:
        """Stores the token service. The login is sent only to a service that is reached as safely as the registry."""
        if not challenge.lower().startswith("bearer "):
            return
        parts = dict(_PART.findall(challenge))
        realm, own = urlsplit(parts.get("realm", "")), urlsplit(self._access.url)
        if realm.scheme != "https" and (realm.scheme, realm.hostname) != (own.scheme, own.hostname):
            raise ListingFailed(
                f"{self._access.host} names a token service without TLS: {parts.get('realm', '')[:200]}"
            )
        self._realm = (parts["realm"], parts.get("service", ""))


def _flat(lists: Iterable[list[T]]) -> list[T]:
    return [item for items in lists for item in items]


def _json_value(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _json(answer: httpx.Response) -> dict[str, Any]:
    return dict(_map(_json_value(answer)))


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _maps(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str) and len(item) <= 512] if isinstance(value, list) else []


def _moment(value: Any) -> str | None:
    return value[:40] if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value) else None
