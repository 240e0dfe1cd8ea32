"""The caller's own account: profile, password, tokens."""

from __future__ import annotations

from fastapi import Response

from corral.control.people import user_accounts
from corral.control.people.permissions import functions_of
from corral.control.ports import Transaction
from corral.control.records import CredentialKind, CredentialRecord, Function, Scope
from corral.core.model import JobKind
from corral.core.people.quota import Quota
from corral.server.auth.callers import AnyCaller, Context, SignedIn
from corral.server.auth.identity import Identity
from corral.server.auth.secrets import new_credential_id, new_token, secret_hash
from corral.server.auth.sessions import (
    check_new_password,
    check_pace,
    note_failed_sign_in,
    open_session,
    set_session_cookie,
)
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.people.users import (
    LimitsView,
    MeView,
    NewTokenView,
    PasswordChange,
    ProfileEdit,
    QuotaView,
    TokenCreate,
    TokenView,
    quota_view,
    token_view,
)
from corral.server.settings.settings import Settings

router = resource_router("/me", "me")


@router.get("", operation_id="get_me", responses=problems())
async def get_me(identity: SignedIn, context: Context) -> MeView:
    """The caller, with the caller's limits; for a session also its CSRF token."""
    return await context.read(_me, identity, context.settings)


@router.patch("", operation_id="edit_me", responses=problems(403))
async def edit_me(body: ProfileEdit, identity: SignedIn, caller: AnyCaller, context: Context) -> MeView:
    """Change the caller's own profile. Only operators change role, group and permission group."""
    await context.execute(user_accounts.edit_profile, caller, display_name=body.display_name, email=body.email)
    return await context.read(_me, identity, context.settings)


@router.post("/password", status_code=204, operation_id="change_password", responses=problems(403, 429))
async def change_password(body: PasswordChange, caller: AnyCaller, identity: SignedIn, context: Context) -> Response:
    """Change the caller's password. All sessions of the user end; tokens stay valid unless `revoke_tokens` is set. A
    caller with a session gets a new one, with its cookie; a caller with a token keeps that token."""
    await check_pace(context, caller.name, caller.source)
    user = await context.read(user_accounts.existing, caller.name)
    if not await context.passwords.matches(user.password_hash, body.old):
        note_failed_sign_in(context, caller.name, caller.source, at="password change")
        raise invalid_field("old", "is not the present password")
    context.throttle.succeeded(caller.name, caller.source)
    check_new_password("new", body.new, before=body.old)
    user = await context.execute(
        user_accounts.change_password,
        caller,
        await context.passwords.hash(body.new),
        before=user,
        revoke_tokens=body.revoke_tokens,
        kept=identity.credential_id,
    )
    context.identities.forget(caller.name)
    answer = Response(status_code=204)
    if identity.kind is CredentialKind.SESSION:
        set_session_cookie(answer, context.settings, await open_session(context, user, caller.source))
    return answer


@router.get("/tokens", operation_id="list_tokens", responses=problems())
async def list_tokens(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[TokenView]:
    """The caller's tokens with name, scope and last use; secrets are never shown."""
    tokens = await context.read(lambda tables: tables.credentials.of_user(caller.name, CredentialKind.TOKEN))
    page = page_of(tokens, key=lambda token: (round(token.created_at * 1000), token.id), limit=limit, cursor=cursor)
    return ListView(items=[token_view(token) for token in page.items], next_cursor=page.next_cursor)


@router.post("/tokens", status_code=201, operation_id="create_token", responses=problems(403))
async def create_token(body: TokenCreate, caller: AnyCaller, identity: SignedIn, context: Context) -> NewTokenView:
    """Create a token. Only this answer shows it."""
    token = new_token()
    now = context.clock.now()
    days = body.expires_in_days or context.settings.server.token_days
    credential = CredentialRecord(
        id=new_credential_id(),
        kind=CredentialKind.TOKEN,
        user=caller.name,
        name=body.name,
        scopes=tuple(scope for scope in Scope if scope.value in body.scopes),
        secret_hash=secret_hash(token),
        created_at=now,
        expires_at=now + days * 86400,
    )
    await context.execute(user_accounts.create_token, caller, credential, by=identity.credential_id)
    return NewTokenView(**token_view(credential).model_dump(), token=token)


@router.delete("/tokens/{token_id}", status_code=204, operation_id="delete_token", responses=problems(403, 404))
async def delete_token(token_id: str, caller: AnyCaller, context: Context) -> Response:
    """Revoke a token. Requests with it are refused from now on."""
    await context.execute(user_accounts.drop_credential, caller, CredentialKind.TOKEN, token_id)
    context.identities.forget(caller.name)
    return Response(status_code=204)


def _me(tables: Transaction, identity: Identity, settings: Settings) -> MeView:
    limits = settings.limits
    event_id = tables.events.last_id()
    user = user_accounts.signed_in(tables, identity.user)
    pools = {group.name: group.pool for group in tables.people.groups()}
    return MeView(
        name=user.name,
        display_name=user.display_name,
        email=user.email,
        role=user.role,
        group=user.group,
        pool=pools.get(user.group) if user.group is not None else None,
        permission_group=user.permission_group,
        functions=[function for function in Function if function in functions_of(tables, user)],
        provider=user.provider,
        must_change_password=user.must_change_password,
        csrf_token=identity.csrf or None,
        event_id=event_id,
        limits=LimitsView(
            max_gpus_per_user=limits.max_gpus_per_user,
            max_gpus_per_job=limits.max_gpus_per_job,
            max_total_gpus=limits.max_total_gpus,
            max_seconds=limits.max_seconds,
            smallest_share=settings.scheduling.smallest_share,
        ),
        quota=quotas_of_user(tables, user.name),
    )


def quotas_of_user(tables: Transaction, user: str) -> dict[str, QuotaView]:
    """Every kind, also those without a limit."""
    given = {record.kind: record.quota for record in tables.people.quotas() if record.user == user}
    return {kind.value: quota_view(given.get(kind, Quota())) for kind in JobKind}
