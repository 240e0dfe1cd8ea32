"""Signing in and out."""

from __future__ import annotations

from fastapi import Depends, Request, Response
from starlette.responses import JSONResponse

from corral.control.live.unit_of_work import Caller
from corral.control.people import permissions, user_accounts
from corral.control.records import CredentialKind, CredentialRecord, Function, Role
from corral.server.auth.callers import (
    AnyCaller,
    Context,
    SignedIn,
    address_of,
    check_own_page,
    is_secure,
    password_change_required,
    session_cookie,
)
from corral.server.auth.directory_sign_in import user_of_directory
from corral.server.auth.secrets import new_credential_id, new_token, secret_hash
from corral.server.auth.sessions import (
    open_session,
    replace_password,
    set_session_cookie,
    sign_in,
    user_with_password,
)
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.people.users import LoginCreate, LoginView

router = resource_router("/auth", "sign-in")


@router.post(
    "/login",
    operation_id="login",
    response_model=LoginView,
    responses=problems(403, 404, 409, 415, 429, 502, 503),
    dependencies=[Depends(check_own_page)],
)
async def login(body: LoginCreate, request: Request, context: Context) -> Response:
    """Sign in with a password, of this server or of the directory `provider`. With `token_name` the answer contains a
    bearer token; without it, the answer sets a session cookie.

    A one-time password gives no token: send `new_password`, too, which replaces it. A session opened with a one-time
    password can only replace the password.
    """
    address = address_of(request)
    if body.provider is not None:
        if body.new_password is not None:
            raise invalid_field("new_password", "cannot be set here: the directory keeps the password")
        user = await user_of_directory(context, body.provider, body.user, body.password, address)
    else:
        user = await user_with_password(context, body.user, body.password, address)
    if body.new_password is not None:
        user = await replace_password(context, user, body.password, body.new_password, address)
    elif user.must_change_password and body.token_name is not None:
        raise password_change_required("Give new_password, too: a one-time password gives no token.")
    caller = Caller(name=user.name, is_operator=user.role is Role.OPERATOR, source=address)
    view = LoginView(user=user.name, role=user.role, must_change_password=user.must_change_password)
    now = context.clock.now()
    if body.token_name is not None:
        token = new_token()
        functions = await context.read(permissions.functions_of, user)
        # A user who may not create tokens can still sign in at the command line, for as long as in a browser.
        server = context.settings.server
        lifetime = server.token_days * 86400 if Function.TOKENS in functions else server.session_hours * 3600
        credential = CredentialRecord(
            id=new_credential_id(),
            kind=CredentialKind.TOKEN,
            user=user.name,
            name=body.token_name,
            secret_hash=secret_hash(token),
            created_at=now,
            expires_at=now + lifetime,
        )
        await context.execute(sign_in, caller, credential, user)
        return JSONResponse(view.model_copy(update={"token": token}).model_dump(mode="json", exclude_none=True))
    session = await open_session(context, user, address)
    view = view.model_copy(update={"csrf_token": session.csrf})
    answer = JSONResponse(view.model_dump(mode="json", exclude_none=True))
    set_session_cookie(answer, context.settings, session)
    return answer


@router.post("/logout", status_code=204, operation_id="logout", responses=problems(403))
async def logout(caller: AnyCaller, identity: SignedIn, context: Context) -> Response:
    """End this session, or revoke this token."""
    await context.execute(user_accounts.drop_credential, caller, identity.kind, identity.credential_id)
    context.identities.forget(identity.user)
    answer = Response(status_code=204)
    settings = context.settings
    answer.delete_cookie(session_cookie(settings), httponly=True, samesite="lax", secure=is_secure(settings))
    return answer
