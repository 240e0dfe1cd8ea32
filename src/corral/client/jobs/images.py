"""The routes of images and of the registry logins that they are pulled with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import ImageView, RegistryImageView, RegistryLoginView


class Images:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[ImageView]:
        """Images of the caller, public ones, and those that are shared with the caller; operators see all."""
        return self._transport.pages("/images")

    def get(self, name: str, *, owner: str | None = None) -> ImageView:
        """One registered image."""
        return cast("ImageView", self._transport.get(f"/images/{segment(name)}", {"owner": owner}))

    def create(self, body: Mapping[str, Any]) -> ImageView:
        """Register an image under a name, so that jobs can use it."""
        return cast("ImageView", self._transport.post("/images", dict(body)))

    def edit(self, name: str, changes: Mapping[str, Any], *, owner: str | None = None) -> ImageView:
        """Change the given fields of an image."""
        return cast("ImageView", self._transport.patch(_path(name, owner), dict(changes)))

    def delete(self, name: str, *, owner: str | None = None) -> None:
        """Delete the entry of an image; the registry is not changed."""
        self._transport.delete(_path(name, owner))

    def logins(self) -> Iterator[RegistryLoginView]:
        """The caller's own logins, without their secrets; operators also see the platform's."""
        return self._transport.pages("/registry-logins")

    def registry_images(
        self, login: str, *, repository: str | None = None, platform: bool = False
    ) -> Iterator[RegistryImageView]:
        """The images of a login's registry."""
        query = {"repository": repository, "platform": "true" if platform else None}
        return self._transport.pages(f"/registry-logins/{segment(login)}/images", query)

    def put_login(self, name: str, body: Mapping[str, Any]) -> RegistryLoginView:
        """Store a login, or replace the one of that name."""
        return cast("RegistryLoginView", self._transport.put(f"/registry-logins/{segment(name)}", dict(body)))

    def delete_login(self, name: str, *, platform: bool = False) -> None:
        """Delete the stored login of a registry."""
        self._transport.delete(f"/registry-logins/{segment(name)}{'?platform=true' if platform else ''}")


def _path(name: str, owner: str | None) -> str:
    return f"/images/{segment(name)}" + (f"?owner={segment(owner)}" if owner is not None else "")
