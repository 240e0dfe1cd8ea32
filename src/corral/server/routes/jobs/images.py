"""Images that jobs run in, and the logins that they are pulled with."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from corral.control.errors import Invalid
from corral.control.jobs import images
from corral.control.live.unit_of_work import Caller
from corral.control.records import ImageRecord, RegistryCredentialRecord
from corral.server.auth.callers import AnyCaller, Context
from corral.server.auth.secret_box import SecretUnreadable
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import Problem
from corral.server.http.strict_route import problems, resource_router
from corral.server.jobs.registry_listing import ListingFailed, RegistryAccess, images_of
from corral.server.schemas.base import ListView
from corral.server.schemas.jobs.images import (
    ImageCreate,
    ImageEdit,
    ImageView,
    LoginPut,
    RegistryImageView,
    RegistryLoginView,
    image_values,
    image_view,
    login_view,
    registry_image_view,
)

router = resource_router("", "images")

#: Owner, if several images have the same name; empty means the platform. Without it, the caller's own image is used.
Owner = Annotated[str | None, Query(max_length=253)]
Platform = Annotated[bool, Query(description="The platform's login instead of the caller's own; only for operators.")]


@router.get("/images", operation_id="list_images", responses=problems())
async def list_images(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[ImageView]:
    """Images of the caller, public ones, and those that are shared with the caller; operators see all."""
    found = await context.read(images.visible, caller)
    views = [_view(image, caller) for image in found]
    return page_of(views, key=lambda view: (view.name, view.owner), limit=limit, cursor=cursor)


@router.post("/images", status_code=201, operation_id="create_image", responses=problems(403, 409))
async def create_image(body: ImageCreate, caller: AnyCaller, context: Context) -> ImageView:
    """Register an image under a name, so that jobs can use it."""
    return _view(await context.execute(images.create, caller, ImageRecord(**image_values(body))), caller)


@router.get("/images/{image}", operation_id="get_image", responses=problems(404))
async def get_image(image: str, caller: AnyCaller, context: Context, owner: Owner = None) -> ImageView:
    """One registered image."""
    return _view(await context.read(images.found, caller, image, owner), caller)


@router.patch("/images/{image}", operation_id="edit_image", responses=problems(403, 404))
async def edit_image(
    image: str, body: ImageEdit, caller: AnyCaller, context: Context, owner: Owner = None
) -> ImageView:
    """Change the given fields of a registered image. Jobs that run are not affected."""
    return _view(await context.execute(images.edit, caller, image, owner, image_values(body)), caller)


@router.delete("/images/{image}", status_code=204, operation_id="delete_image", responses=problems(403, 404))
async def delete_image(image: str, caller: AnyCaller, context: Context, owner: Owner = None) -> Response:
    """Remove an image from the list; the registry is not changed."""
    await context.execute(images.delete, caller, image, owner)
    return Response(status_code=204)


@router.get("/registry-logins", operation_id="list_registry_logins", responses=problems())
async def list_registry_logins(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[RegistryLoginView]:
    """The caller's own logins, without their secrets; operators also see the platform's."""
    found = await context.read(images.logins, caller)
    views = [login_view(login) for login in found]
    return page_of(views, key=lambda view: (view.name, int(view.platform)), limit=limit, cursor=cursor)


@router.put("/registry-logins/{login}", operation_id="put_registry_login", responses=problems(403, 409, 503))
async def put_registry_login(login: str, body: LoginPut, caller: AnyCaller, context: Context) -> RegistryLoginView:
    """Store a login, or replace the one of that name."""
    try:
        secret = context.box.encrypt(body.secret)
    except SecretUnreadable as error:
        raise Problem(503, "Secrets cannot be kept", f"{error}.", slug="secret-unreadable") from None
    kept = RegistryCredentialRecord(name=login, owner="", registry=body.registry, username=body.username, secret=secret)
    return login_view(await context.execute(images.put_login, caller, kept, is_platform=body.platform))


@router.delete(
    "/registry-logins/{login}", status_code=204, operation_id="delete_registry_login", responses=problems(403, 404, 409)
)
async def delete_registry_login(
    login: str, caller: AnyCaller, context: Context, platform: Platform = False
) -> Response:
    """Delete the stored login of a registry."""
    await context.execute(images.delete_login, caller, login, is_platform=platform)
    return Response(status_code=204)


@router.get("/registry-logins/{login}/images", operation_id="list_registry_images", responses=problems(404, 502))
async def list_registry_images(
    login: str,
    caller: AnyCaller,
    context: Context,
    repository: Annotated[
        str | None, Query(max_length=253, pattern=r"^[a-z0-9]+(?:[._/-]+[a-z0-9]+)*$", description="Only this one.")
    ] = None,
    platform: Platform = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[RegistryImageView]:
    """The images that this login can see in its registry: of a GitLab, those of the projects of its owner. Registries
    must be named by an operator in `images.registries`."""
    record = await context.read(images.own_login, caller, login, is_platform=platform)
    places = {place.removeprefix("http://"): place for place in context.settings.images.registries}
    if record.registry not in places:
        raise Invalid(
            f"the images of {record.registry} are not listed here: an operator adds it to images.registries in "
            "corral.yaml",
            field="login",
        )
    place = places[record.registry]
    try:
        secret = context.box.decrypt(record.secret)
        access = RegistryAccess(
            host=record.registry,
            url=place if place.startswith("http://") else f"https://{place}",
            username=record.username,
            secret=secret,
        )
        found = await images_of(access, repository)
    except SecretUnreadable as error:
        raise Problem(503, "Secrets cannot be read", f"{error}.", slug="secret-unreadable") from None
    except ListingFailed as error:
        raise Problem(502, "The registry cannot be listed", f"{error}.", slug="registry-failed") from None
    views = [registry_image_view(image) for image in found]
    return page_of(views, key=lambda view: (view.repository, view.version), limit=limit, cursor=cursor)


def _view(image: ImageRecord, caller: Caller) -> ImageView:
    return image_view(image, is_owner=caller.is_operator or caller.name == image.owner)
