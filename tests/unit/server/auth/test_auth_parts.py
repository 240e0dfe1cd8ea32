"""The parts of sign-in: passwords, the brake on guessing, secrets, and identities that cost no database read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from argon2 import PasswordHasher

from corral.control.live.unit_of_work import Caller
from corral.control.records import (
    EVERYONE,
    CredentialKind,
    CredentialRecord,
    Function,
    PermissionGroupRecord,
    Role,
    Scope,
    UserRecord,
)
from corral.core.people.password_rules import refusal_of
from corral.server.auth.identity import Identities
from corral.server.auth.passwords import Passwords, one_time_password
from corral.server.auth.secrets import new_token, secret_hash
from corral.server.auth.throttle import LoginThrottle
from corral.server.http.problems import Problem


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def test_pauses_after_failures_of_a_user_from_an_address_grow_up_to_the_longest() -> None:
    clock = Hand()
    throttle = LoginThrottle(attempts=3, longest_seconds=60, monotonic=clock)
    assert [throttle.begin("ann", "1.1.1.1") for _ in range(3)] == [0, 0, 0]
    pauses = []
    for _ in range(9):
        pauses.append(throttle.begin("ann", "1.1.1.1"))
        clock.at += pauses[-1]
        assert throttle.begin("ann", "1.1.1.1") == 0
    assert pauses == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60, 60])
    clock.at += 600
    assert [throttle.begin("ann", "1.1.1.1") for _ in range(3)] == [0, 0, 0]


def test_failures_from_elsewhere_do_not_keep_a_user_out() -> None:
    throttle = LoginThrottle(attempts=3, longest_seconds=60, monotonic=Hand())
    for _ in range(10):
        throttle.begin("ann", "1.1.1.1")
    assert throttle.begin("ann", "2.2.2.2") == 0
    assert throttle.begin("bob", "1.1.1.1") == 0


def test_an_address_that_tries_many_users_is_slowed_down_too() -> None:
    throttle = LoginThrottle(attempts=2, longest_seconds=60, monotonic=Hand())
    throttle.know("ann", "1.1.1.1")
    assert [throttle.begin(f"user{n}", "1.1.1.1") for n in range(8)] == [0] * 8
    assert throttle.begin("another", "1.1.1.1") > 0
    assert throttle.begin("another", "3.3.3.3") == 0
    assert throttle.begin("ann", "1.1.1.1") == 0, "has signed in from there before"


def test_guessing_from_many_addresses_is_bounded_but_not_for_known_ones() -> None:
    throttle = LoginThrottle(attempts=2, longest_seconds=60, monotonic=Hand())
    throttle.begin("ann", "9.9.9.9")
    throttle.succeeded("ann", "9.9.9.9")
    allowed = sum(throttle.begin("ann", f"1.1.{n // 250}.{n % 250}") == 0 for n in range(1000))
    assert allowed == 40
    assert throttle.begin("ann", "9.9.9.9") == 0
    assert throttle.begin("bob", "1.1.9.9") == 0


def test_all_addresses_of_one_ipv6_network_count_as_one() -> None:
    throttle = LoginThrottle(attempts=2, longest_seconds=60, monotonic=Hand())
    assert [throttle.begin("ann", f"2001:db8::{n}") == 0 for n in range(4)] == [True, True, False, False]
    assert throttle.begin("ann", "2001:db8:0:1::1") == 0


def test_successful_sign_ins_never_add_up() -> None:
    throttle = LoginThrottle(attempts=2, longest_seconds=60, monotonic=Hand())
    for _ in range(50):
        assert throttle.begin("ann", "1.1.1.1") == 0
        throttle.succeeded("ann", "1.1.1.1")


def test_the_brake_forgets_old_keys() -> None:
    clock = Hand()
    throttle = LoginThrottle(attempts=2, longest_seconds=1, monotonic=clock)
    for number in range(30_000):
        clock.at += 0.01
        throttle.begin(f"u{number}", f"a{number}")
    assert len(throttle._failed) < 15_000


def test_passwords_are_kept_as_slowly_as_they_should_be() -> None:
    """The servers of other tests hash cheaply: this is the real way."""
    passwords = Passwords()
    kept = passwords.hash_now("open sesame")
    passwords.close()
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert PasswordHasher().verify(kept, "open sesame")


def test_passwords_match_only_themselves_and_no_user_matches_none() -> None:
    passwords = Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))

    async def story() -> None:
        hashed = await passwords.hash("correct horse")
        assert "correct" not in hashed
        assert await passwords.matches(hashed, "correct horse")
        assert not await passwords.matches(hashed, "wrong")
        assert not await passwords.matches(None, "wrong")
        assert not await passwords.matches("not a hash", "wrong")

    asyncio.run(story())
    passwords.close()


def test_a_sign_in_while_the_server_stops_is_a_503() -> None:
    """One that begins after the threads have ended, and one that waits for a thread then."""
    passwords = Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    going_on = threading.Event()

    async def story() -> None:
        for _ in range(2):
            passwords._threads.submit(going_on.wait)
        waiting = asyncio.create_task(passwords.hash("correct horse"))
        await asyncio.sleep(0)
        passwords.close()
        going_on.set()
        for answer in (waiting, passwords.hash("correct horse")):
            with pytest.raises(Problem) as refused:
                await answer
            assert refused.value.status == 503

    asyncio.run(story())


def test_unacceptable_passwords_are_explained() -> None:
    assert "at least 8" in str(refusal_of("short"))
    assert "at most" in str(refusal_of("x" * 300))
    assert "blank" in str(refusal_of(" " * 10))
    assert refusal_of(one_time_password()) is None


def test_tokens_are_long_prefixed_and_different() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(token.startswith("corral_") and len(token) == 50 and token[7:].isalnum() for token in tokens)


class OneCredential:
    """A store with one user and one credential that counts how often it is read."""

    def __init__(self, credential: CredentialRecord, user: UserRecord) -> None:
        self.credential, self.user_record = credential, user
        self.group = PermissionGroupRecord(name=EVERYONE, functions=(Function.TRAIN,))
        self.reads = 0

    @contextmanager
    def read(self) -> Iterator[Any]:
        self.reads += 1
        yield SimpleNamespace(
            credentials=SimpleNamespace(
                by_hash=lambda h: self.credential if h == self.credential.secret_hash else None
            ),
            people=SimpleNamespace(
                user=lambda name: self.user_record if name == self.user_record.name else None,
                permission_groups=lambda: [self.group],
            ),
        )


def one_credential(expires_at: float | None = None) -> OneCredential:
    record = CredentialRecord(
        id="c-1", kind=CredentialKind.TOKEN, user="ann", secret_hash=secret_hash("s3cret"), expires_at=expires_at
    )
    return OneCredential(record, UserRecord(name="ann", role=Role.SCIENTIST))


def test_an_identity_is_read_once_and_forgotten_on_change() -> None:
    store, clock, touched = one_credential(), Hand(), []
    identities = Identities(store, touch=lambda cid, at: touched.append((cid, at)), now=clock)  # type: ignore[arg-type]

    async def story() -> None:
        for _ in range(5):
            found = await identities.of_secret("s3cret", CredentialKind.TOKEN)
            assert found is not None
            assert found.user == "ann"
        assert store.reads == 1
        assert touched == [("c-1", 1000.0)]
        assert await identities.of_secret("s3cret", CredentialKind.SESSION) is None
        assert await identities.of_secret("other", CredentialKind.TOKEN) is None

        assert found is not None
        assert found.caller("10.0.0.1") == Caller(name="ann", source="10.0.0.1", functions=frozenset({Function.TRAIN}))
        assert found.scopes == {Scope.FULL}
        assert await identities.current(found) == found
        store.group = PermissionGroupRecord(name=EVERYONE, functions=(Function.TASKS,))
        assert await identities.current(found) == found, "it is cached until a change is reported"
        identities.forget_all()
        now = await identities.current(found)
        assert now is not None
        assert now.functions == {Function.TASKS}

        store.user_record = UserRecord(name="ann", role=Role.OPERATOR)
        identities.forget("ann")
        promoted = await identities.current(found)
        assert promoted is not None
        assert promoted.caller().may(Function.SEE_OTHERS_JOBS)

        store.user_record = UserRecord(name="ann", disabled=True)
        identities.forget("ann")
        assert await identities.of_secret("s3cret", CredentialKind.TOKEN) is None

    asyncio.run(story())


def test_an_expired_credential_has_no_user_even_while_it_is_cached() -> None:
    store, clock = one_credential(expires_at=1005.0), Hand()
    identities = Identities(store, touch=lambda cid, at: None, now=clock)  # type: ignore[arg-type]

    async def story() -> None:
        assert await identities.of_secret("s3cret", CredentialKind.TOKEN) is not None
        clock.at = 1005.0
        assert await identities.of_secret("s3cret", CredentialKind.TOKEN) is None

    asyncio.run(story())
