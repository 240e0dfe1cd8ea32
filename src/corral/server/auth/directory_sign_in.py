"""Sign-in with the password of a directory: paced, counted and refused like a wrong password of this server."""

from __future__ import annotations

import logging

from corral.control.errors import NotFound
from corral.control.people import sign_in_providers
from corral.control.ports import Transaction
from corral.control.records import ProviderKind, ProviderRecord, UserRecord
from corral.server.auth.outside import ProviderFailed
from corral.server.auth.sessions import check_pace, note_failed_sign_in, wrong_password
from corral.server.http.context import ServerContext
from corral.server.http.problems import Problem

log = logging.getLogger("corral.server.auth")


async def user_of_directory(
    context: ServerContext, provider_id: str, login: str, password: str, address: str
) -> UserRecord:
    """The user behind a login of the directory. Raises a problem for a wrong password, an unknown login and a disabled
    account alike; for a person who may not sign in here it says so."""
    provider, known = await context.read(_known, provider_id, login)
    # A directory does not tell capitals apart, so neither does the count of failures.
    counted_as = f"{provider_id}/{login.casefold()}"
    await check_pace(context, counted_as, address, user=known)
    try:
        found = await context.sign_in.with_password(provider, login, password)
    except ProviderFailed as error:
        context.throttle.withdraw(counted_as, address)
        log.warning("sign-in with %s failed: %s %s", provider_id, error, error.hint)
        raise Problem(
            error.status,
            "The directory cannot be asked",
            f"{provider.title} cannot check passwords at this moment. Try again, or tell an operator.",
            slug="provider-failed",
        ) from None
    if found is None:
        log.warning("failed sign-in with %s from %s", provider_id, address)
        note_failed_sign_in(context, known, address, provider=provider_id)
        raise wrong_password(context, counted_as, address)
    context.throttle.succeeded(counted_as, address)
    identity, member_of = found
    outcome = await context.execute(sign_in_providers.sign_in, address, identity, member_of)
    if outcome.user is None:
        note_failed_sign_in(context, outcome.identity.user, address, provider=provider_id)
        raise refused(provider, outcome)
    # The rules of the provider may have changed the role.
    context.identities.forget(outcome.user.name)
    return outcome.user


def refused(provider: ProviderRecord, outcome: sign_in_providers.SignInOutcome) -> Problem:
    """Why a person whom the provider knows is not signed in."""
    login = outcome.identity.login
    if outcome.is_disabled:
        return Problem(403, "Not signed in", f"The user {outcome.identity.user} is disabled.", slug="user-disabled")
    return Problem(
        403,
        "Ask an operator",
        f"{provider.title} knows you as {login}, but you are no user here yet. Ask an operator to on-board you.",
        slug="not-on-boarded",
        numbers={"provider": provider.id, "login": login},
    )


def _known(tables: Transaction, provider_id: str, login: str) -> tuple[ProviderRecord, str | None]:
    """The directory, and the name of the user with this login if there is one."""
    provider = tables.providers.get(provider_id)
    if provider is None or not provider.enabled or provider.kind is not ProviderKind.LDAP:
        raise NotFound(f"there is no directory {provider_id!r} to sign in with", field="provider")
    users = {user.subject: user.name for user in tables.people.users() if user.provider == provider_id}
    folded = login.casefold()
    subjects = (item.subject for item in tables.providers.identities(provider_id) if item.login.casefold() == folded)
    return provider, next((users[subject] for subject in subjects if subject in users), None)
