"""Sign-in providers: management, tests, accounts and on-boarding. Only the list needs no sign-in."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from fastapi import Query, Request, Response

from corral.control.people import ldap_directories, sign_in_providers
from corral.control.ports import Transaction
from corral.control.records import DirectoryRecord, ProviderKind, ProviderRecord
from corral.server.auth.callers import Context, Operator
from corral.server.auth.directory.memberships import parsed
from corral.server.auth.outside import ProviderFailed
from corral.server.auth.secret_box import SECRET_FIELDS, SecretUnreadable
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import Problem, invalid_field, showing_new
from corral.server.http.strict_route import problems, resource_router
from corral.server.routes.people.sign_in import callback_uri, login_path
from corral.server.schemas.base import ListView
from corral.server.schemas.people.directories import LdapSettingsBody
from corral.server.schemas.people.sign_in_providers import (
    IdentityView,
    OnboardCreate,
    ProviderCreate,
    ProviderDetailView,
    ProviderEdit,
    ProviderTestView,
    ProviderView,
    check_view,
    identity_view,
    local_view,
    provider_detail_view,
    provider_view,
)
from corral.server.schemas.people.users import UserView, user_view

router = resource_router("", "sign-in providers")

_MAX_BRACKETS = 100


@router.get("/auth/providers", operation_id="list_providers")
async def list_providers(context: Context) -> ListView[ProviderView]:
    """The providers to sign in with. Needs no sign-in."""
    known = await context.read(lambda tables: tables.providers.all())
    enabled = [
        provider_view(item, "/" if item.kind is ProviderKind.LDAP else login_path(item.id))
        for item in known
        if item.enabled
    ]
    return ListView(items=[local_view(), *enabled])


@router.get("/auth/providers/all", operation_id="list_all_providers", responses=problems(403))
async def list_all_providers(
    request: Request, caller: Operator, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[ProviderDetailView]:
    """All sign-in providers with their settings, also those that are disabled; secrets are never shown."""
    known = await context.read(lambda tables: [item.id for item in tables.providers.all()])
    views = [await _view(context, request, provider_id) for provider_id in known]
    return page_of(views, key=lambda view: (view.id,), limit=limit, cursor=cursor)


@router.post("/auth/providers", status_code=201, operation_id="create_provider", responses=problems(403, 409, 503))
async def create_provider(
    body: ProviderCreate, request: Request, caller: Operator, context: Context
) -> ProviderDetailView:
    """Create a provider. It is disabled unless `enabled` is set, so that it can be tested before users see it."""
    given = _locked(context, body.model_dump())
    lists = {"allow": tuple(body.allow), "group_rules": tuple(body.group_rules)}
    settings = _directory_of(body.directory)
    directory = None if settings is None else DirectoryRecord(**settings)
    record = ProviderRecord(**{**given, "kind": ProviderKind(body.kind), **lists, "directory": directory})
    await context.execute(sign_in_providers.create_provider, caller, record)
    with showing_new():
        return await _view(context, request, body.id)


@router.patch("/auth/providers/{id}", operation_id="edit_provider", responses=problems(403, 404, 409, 503))
async def edit_provider(
    id: str, body: ProviderEdit, request: Request, caller: Operator, context: Context
) -> ProviderDetailView:
    """Change a provider. Secrets that are left out are kept."""
    changes = _locked(context, body.model_dump(exclude_unset=True))
    changes |= {name: tuple(changes[name]) for name in ("allow", "group_rules") if name in changes}
    if "directory" in changes:
        changes["directory"] = _directory_of(body.directory)
    edited = await context.execute(sign_in_providers.edit_provider, caller, id, changes)
    context.sign_in.forget(edited)
    return await _view(context, request, id)


@router.delete(
    "/auth/providers/{id}", status_code=204, operation_id="delete_provider", responses=problems(403, 404, 409)
)
async def delete_provider(id: str, caller: Operator, context: Context) -> Response:
    """Delete a provider. Its users and their jobs stay; they are signed out and need a password to sign in again."""
    for name in await context.execute(sign_in_providers.delete_provider, caller, id):
        context.identities.forget(name)
    return Response(status_code=204)


@router.post("/auth/providers/{id}/test", operation_id="test_provider", responses=problems(403, 404))
async def test_provider(id: str, request: Request, caller: Operator, context: Context) -> ProviderTestView:
    """Run all checks that are possible without a user signing in; each failed check has a hint."""
    provider = await context.read(sign_in_providers.existing, id)
    checks = await context.sign_in.test(provider, redirect_uri=callback_uri(request, context, id))
    return ProviderTestView(
        ok=all(check.state != "fail" for check in checks), checks=[check_view(check) for check in checks]
    )


@router.get("/auth/providers/{id}/people", operation_id="list_provider_people", responses=problems(403, 404, 502, 503))
async def list_provider_people(
    id: str,
    caller: Operator,
    context: Context,
    refresh: Annotated[bool, Query(description="Ask the provider first, if it can list accounts.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[IdentityView]:
    """Accounts that can be on-boarded: members that the provider lists, and accounts that have tried to sign in. With
    `refresh` the users of a directory are looked up again, too."""
    provider = await context.read(sign_in_providers.existing, id)
    if refresh:
        await _refresh(context, caller, provider)
    known = await context.read(sign_in_providers.known_people, id)
    page = page_of(known, key=lambda item: (item.login, item.subject), limit=limit, cursor=cursor)
    return ListView(items=[identity_view(provider, item) for item in page.items], next_cursor=page.next_cursor)


@router.post("/users:onboard", status_code=201, operation_id="onboard_users", responses=problems(403, 404, 409))
async def onboard_users(body: OnboardCreate, caller: Operator, context: Context) -> ListView[UserView]:
    """Create users for accounts of a provider, all of them or none. User names are derived from the logins."""
    made = await context.execute(
        sign_in_providers.on_board, caller, body.provider, body.subjects, body.group, body.operators
    )
    return ListView(items=[user_view(user) for user in made])


async def _refresh(context: ServerContext, caller: Operator, provider: ProviderRecord) -> None:
    subjects: list[str] = []
    present: list[ldap_directories.FoundPerson] = []
    try:
        found = await context.sign_in.people(provider)
        if provider.kind is ProviderKind.LDAP:
            subjects = await context.read(ldap_directories.subjects_of, provider.id)
            present = await context.sign_in.present(provider, subjects)
    except ProviderFailed as error:
        detail = f"{error}. {error.hint}".strip()
        raise Problem(error.status, "The provider cannot be reached", detail, slug="provider-failed") from None
    if found is not None:
        await context.execute(sign_in_providers.remember, caller, provider.id, found)
    if subjects:
        for name in await context.execute(ldap_directories.refresh, provider, subjects, present):
            context.identities.forget(name)


async def _view(context: ServerContext, request: Request, provider_id: str) -> ProviderDetailView:
    provider, users, has_operator = await context.read(_with_users, provider_id)
    return provider_detail_view(
        provider, users=users, has_operator=has_operator, redirect_uri=callback_uri(request, context, provider_id)
    )


def _directory_of(body: LdapSettingsBody | None) -> dict[str, Any] | None:
    """The given settings of a directory, whose filters can be read."""
    if body is None:
        return None
    given = body.given()
    for field in ("user_filter", "group_filter"):
        try:
            if given.get(field, "").count("(") > _MAX_BRACKETS:
                raise ValueError("too many brackets")
            if field in given:
                parsed(given[field])
        except ValueError as error:
            raise invalid_field(f"directory.{field}", f"is no filter such as (objectClass=person): {error}") from None
    return given


def _with_users(tables: Transaction, provider_id: str) -> tuple[ProviderRecord, int, bool]:
    counts = Counter(user.provider for user in tables.people.users())
    return (
        sign_in_providers.existing(tables, provider_id),
        counts[provider_id],
        sign_in_providers.has_operator(tables, provider_id),
    )


def _locked(context: ServerContext, values: dict[str, Any]) -> dict[str, Any]:
    """The same values with their secrets encrypted; an empty secret means none."""
    try:
        return {
            name: (context.box.encrypt(value) if value else "") if name in SECRET_FIELDS else value
            for name, value in values.items()
        }
    except SecretUnreadable as error:
        raise Problem(503, "Secrets cannot be kept", f"{error}.", slug="secret-unreadable") from None
