"""Groups, permissions, volume quotas, keys and sign-in providers, on every database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.ports import NameTaken, Store, StoreConflict
from corral.control.records import (
    CredentialKind,
    CredentialRecord,
    Function,
    GroupRecord,
    IdentityRecord,
    PermissionGroupRecord,
    PoolRecord,
    ProviderKind,
    ProviderRecord,
    QuotaRecord,
    Scope,
    SshKeyRecord,
    UserRecord,
    VolumeQuotaRecord,
)
from corral.core.model import JobKind
from corral.core.people.quota import Quota
from corral.core.storage.volumes import VolumeType

pytest_plugins = ("tests.servers.fixtures",)

ADA, BOB = UserRecord(name="ada"), UserRecord(name="bob")


# ------------------------------------------------------------------------------------------------ users and groups


def test_a_new_store_has_a_group_with_the_default_pool_and_permissions_for_everyone(store: Store) -> None:
    with store.read() as transaction:
        (pool,) = transaction.fleet.pools()
        (group,) = transaction.people.groups()
        (everyone,) = transaction.people.permission_groups()
    assert pool == PoolRecord(name="default", created_at=pool.created_at)
    assert group == GroupRecord(name="default", pool="default", created_at=group.created_at)
    assert everyone.name == "everyone"
    assert sorted(everyone.functions) == sorted(set(Function) - {Function.SEE_OTHERS_JOBS})
    assert pool.created_at > 1e9


def test_a_user_has_a_group_permissions_and_a_profile(store: Store) -> None:
    rich = UserRecord(
        name="zoë",
        group=None,
        permission_group="guests",
        display_name="Zoë 张",
        email="zoe@example.org",
        provider="github",
        subject="42",
    )
    with store.write() as transaction:
        transaction.people.add_user(ADA)
        transaction.people.add_user(rich)
    with store.read() as transaction:
        assert transaction.people.users() == [ADA, rich]
        assert (ADA.group, ADA.permission_group) == ("default", "everyone")
    changed = replace(rich, group="default", display_name="a\0b", email="")
    with store.write() as transaction:
        transaction.people.save_user(changed)
        assert transaction.people.user("zoë") == replace(changed, display_name="a\ufffdb")


def test_a_providers_subject_is_one_user_and_local_users_have_none(store: Store) -> None:
    github = replace(ADA, provider="github", subject="7")
    with store.write() as transaction:
        transaction.people.add_user(github)
        for name in ("bob", "cyd"):
            transaction.people.add_user(UserRecord(name=name))
        transaction.people.add_user(replace(github, name="dan", provider="gitlab"))
    with pytest.raises(NameTaken, match="github name '7' is taken"), store.write() as transaction:
        transaction.people.add_user(replace(github, name="eve"))
    with pytest.raises(NameTaken, match="user name 'ada' is taken"), store.write() as transaction:
        transaction.people.add_user(github)
    with pytest.raises(StoreConflict), store.write() as transaction:
        transaction.people.save_user(replace(BOB, provider="github", subject="7"))
    with store.read() as transaction:
        assert [user.name for user in transaction.people.users()] == ["ada", "bob", "cyd", "dan"]


def test_groups_are_replaced_by_name_and_leave_their_users_behind(store: Store) -> None:
    vision = GroupRecord(name="vision", pool="a100", description="看 🚀", created_at=2.5)
    with store.write() as transaction:
        transaction.fleet.save_pool(PoolRecord(name="a100"))
        transaction.people.save_group(replace(vision, pool=None))
        transaction.people.save_group(vision)
        transaction.people.add_user(replace(ADA, group="vision"))
        transaction.people.add_user(BOB)
        assert transaction.people.groups()[1:] == [vision]
        transaction.people.delete_group("vision")
        transaction.people.delete_group("unknown")
    with store.read() as transaction:
        assert [group.name for group in transaction.people.groups()] == ["default"]
        assert [user.group for user in transaction.people.users()] == [None, "default"]


def test_a_pool_has_one_group_at_most_and_a_group_loses_a_deleted_pool(store: Store) -> None:
    with store.write() as transaction:
        transaction.fleet.save_pool(PoolRecord(name="a100"))
        transaction.people.save_group(GroupRecord(name="vision", pool="a100"))
        transaction.people.save_group(GroupRecord(name="poor"))
        transaction.people.save_group(GroupRecord(name="poorer"))
    for wrong in (GroupRecord(name="poor", pool="a100"), GroupRecord(name="poor", pool="unknown")):
        with pytest.raises(StoreConflict), store.write() as transaction:
            transaction.people.save_group(wrong)
    with store.write() as transaction:
        transaction.fleet.delete_pool("a100")
    with store.read() as transaction:
        pools = {group.name: group.pool for group in transaction.people.groups()}
    assert pools == {"default": "default", "poor": None, "poorer": None, "vision": None}


def test_permission_groups_keep_their_functions_and_hand_their_users_to_everyone(store: Store) -> None:
    guests = PermissionGroupRecord(name="guests", functions=(Function.SEE_OTHERS_JOBS, Function.TRAIN), created_at=1.0)
    viewers = PermissionGroupRecord(name="viewers", description="may look only\0")
    with store.write() as transaction:
        for group in (viewers, replace(guests, functions=()), guests):
            transaction.people.save_permission_group(group)
        transaction.people.add_user(replace(ADA, permission_group="guests"))
        transaction.people.add_user(replace(BOB, permission_group="viewers"))
    with store.read() as transaction:
        assert transaction.people.permission_groups()[1:] == [
            guests,
            replace(viewers, description="may look only\ufffd"),
        ]
    with store.write() as transaction:
        transaction.people.delete_permission_group("guests")
        assert [user.permission_group for user in transaction.people.users()] == ["everyone", "viewers"]
        assert [group.name for group in transaction.people.permission_groups()] == ["everyone", "viewers"]


def test_volume_quotas_are_replaced_and_vanish_without_a_limit(store: Store) -> None:
    block = VolumeQuotaRecord(user="ada", type=VolumeType.BLOCK, max_bytes=1 << 50)
    nothing = VolumeQuotaRecord(user="ada", type=VolumeType.OBJECT, max_bytes=0)
    with store.write() as transaction:
        transaction.people.add_user(ADA)
        transaction.people.save_volume_quota(replace(block, max_bytes=1))
        for quota in (nothing, block):
            transaction.people.save_volume_quota(quota)
        assert transaction.people.volume_quotas() == [block, nothing]
        transaction.people.save_volume_quota(replace(block, max_bytes=None))
        assert transaction.people.volume_quotas() == [nothing]
    with pytest.raises(StoreConflict), store.write() as transaction:
        transaction.people.save_volume_quota(replace(block, user="nobody"))


# ------------------------------------------------------------------------------------------------ keys


def a_key(number: int, user: str = "ada") -> SshKeyRecord:
    return SshKeyRecord(
        id=f"k-{number}",
        user=user,
        name="laptop",
        public_key=f"ssh-ed25519 AAAA{number}",
        fingerprint=f"SHA256:{number}",
        created_at=10.0 - number,
    )


def test_ssh_keys_of_a_user_and_by_their_fingerprint(store: Store) -> None:
    shared = replace(a_key(1, "bob"), id="k-9")
    with store.write() as transaction:
        transaction.people.add_user(ADA)
        transaction.people.add_user(BOB)
        for key in (a_key(1), a_key(2), shared):
            transaction.ssh_keys.add(key)
    with store.read() as transaction:
        assert transaction.ssh_keys.of_user("ada") == [a_key(2), a_key(1)]
        assert transaction.ssh_keys.of_user("nobody") == []
        assert transaction.ssh_keys.by_fingerprint("SHA256:1") == [a_key(1), shared]
        assert transaction.ssh_keys.by_fingerprint("SHA256:\0") == []
    for wrong in (replace(a_key(1), id="k-3"), replace(a_key(3), id="k-1"), a_key(4, "nobody")):
        with pytest.raises(StoreConflict), store.write() as transaction:
            transaction.ssh_keys.add(wrong)
    with store.write() as transaction:
        transaction.ssh_keys.delete(["k-1", "unknown"])
        transaction.ssh_keys.delete([])
        assert transaction.ssh_keys.of_user("ada") == [a_key(2)]


def test_a_token_keeps_how_far_it_reaches(store: Store) -> None:
    full = CredentialRecord(id="t1", kind=CredentialKind.TOKEN, user="ada", secret_hash="h1")
    narrow = replace(full, id="t2", secret_hash="h2", scopes=(Scope.READ, Scope.JOBS))
    with store.write() as transaction:
        transaction.people.add_user(ADA)
        for token in (full, narrow):
            transaction.credentials.add(token)
        transaction.people.add_user(BOB)
        transaction.credentials.add(replace(full, id="t3", user="bob", secret_hash="h3"))
    with store.read() as transaction:
        assert transaction.credentials.of_user("ada", CredentialKind.TOKEN) == [full, narrow]
        assert full.scopes == (Scope.FULL,)
        assert [user.last_seen_at for user in transaction.people.users()] == [None, None]
    with store.write() as transaction:
        for credential_id, at in (("t1", 9.0), ("t2", 5.0)):
            transaction.credentials.touch(credential_id, at)
        assert {user.name: user.last_seen_at for user in transaction.people.users()} == {"ada": 5.0, "bob": None}
        transaction.people.saw_user("bob", 11.0)
        transaction.people.saw_user("not there", 11.0)
        transaction.credentials.delete(["t1", "t2", "t3"])
        assert {user.name: user.last_seen_at for user in transaction.people.users()} == {"ada": 5.0, "bob": 11.0}


# ------------------------------------------------------------------------------------------------ providers

GITHUB = ProviderRecord(
    id="github",
    kind=ProviderKind.GITHUB,
    title="GitHub 组织",
    issuer="https://github.example.org",
    client_id="id",
    client_secret="gAAAA…",
    enabled=True,
    allow=("zoë", "*@example.org"),
    group=None,
    organisation="lab",
    api_token="gBBBB…",
    created_at=1.0,
)


def an_identity(subject: str, login: str, user: str | None = None) -> IdentityRecord:
    return IdentityRecord(
        provider="github", subject=subject, login=login, name="N", email="e@x", seen_at=3.0, user=user
    )


def test_providers_are_replaced_by_id(store: Store) -> None:
    plain = ProviderRecord(id="dex", kind=ProviderKind.OIDC)
    with store.write() as transaction:
        assert transaction.providers.all() == []
        transaction.providers.save(replace(GITHUB, enabled=False, allow=()))
        for provider in (GITHUB, plain):
            transaction.providers.save(provider)
    with store.read() as transaction:
        assert transaction.providers.all() == [plain, GITHUB]
        assert transaction.providers.get("github") == GITHUB
        assert transaction.providers.get("\0") is None


def test_a_provider_puts_people_into_a_group_that_is_there(store: Store) -> None:
    with store.write() as transaction:
        transaction.people.save_group(GroupRecord(name="vision"))
        transaction.providers.save(replace(GITHUB, group="vision"))
        transaction.people.delete_group("vision")
        assert transaction.providers.all() == [replace(GITHUB, group=None)]
    with pytest.raises(StoreConflict), store.write() as transaction:
        transaction.providers.save(replace(GITHUB, group="vision"))


def test_identities_are_known_by_provider_and_subject(store: Store) -> None:
    first, second = an_identity("2", "ada"), an_identity("1", "zoë")
    with store.write() as transaction:
        transaction.people.add_user(ADA)
        transaction.providers.save(GITHUB)
        transaction.providers.save(ProviderRecord(id="dex", kind=ProviderKind.OIDC))
        transaction.providers.save_identities([second, first])
        transaction.providers.save_identities([])
        transaction.providers.save_identities([replace(second, provider="dex")])
    onboarded = replace(first, user="ada", seen_at=9.0)
    with store.write() as transaction:
        transaction.providers.save_identities([onboarded])
        assert transaction.providers.identities("github") == [onboarded, second]
        assert transaction.providers.identity("github", "2") == onboarded
        assert transaction.providers.identity("dex", "2") is None
    for wrong in (replace(first, provider="unknown"), replace(first, user="nobody")):
        with pytest.raises(StoreConflict), store.write() as transaction:
            transaction.providers.save_identities([wrong])
    with store.write() as transaction:
        transaction.providers.delete("github")
        assert transaction.providers.identities("github") == []
        assert len(transaction.providers.identities("dex")) == 1
        assert transaction.people.user("ada") == ADA


def test_any_answer_of_a_provider_is_stored(store: Store) -> None:
    odd = an_identity("a\0", "\udc80")
    with store.write() as transaction:
        transaction.providers.save(GITHUB)
        transaction.providers.save_identities([odd])
        transaction.providers.save_identities([odd])
        kept = transaction.providers.identity("github", "a\0")
    assert kept == an_identity("a\ufffd", "?")


def test_a_deleted_user_takes_keys_and_quotas_along_and_frees_the_identity(store: Store) -> None:
    with store.write() as transaction:
        transaction.providers.save(GITHUB)
        for number, user in enumerate((ADA, BOB)):
            transaction.people.add_user(user)
            transaction.ssh_keys.add(a_key(number, user.name))
            transaction.people.save_quota(QuotaRecord(user=user.name, kind=JobKind.PRESET, quota=Quota(cpu_milli=1)))
            transaction.people.save_volume_quota(VolumeQuotaRecord(user=user.name, type=VolumeType.LOCAL, max_bytes=1))
            transaction.providers.save_identities([an_identity(str(number), user.name, user.name)])
    with store.write() as transaction:
        transaction.people.delete_user("ada")
    with store.read() as transaction:
        assert transaction.ssh_keys.of_user("ada") == []
        assert transaction.ssh_keys.of_user("bob") == [a_key(1, "bob")]
        assert [quota.user for quota in transaction.people.quotas()] == ["bob"]
        assert [quota.user for quota in transaction.people.volume_quotas()] == ["bob"]
        assert [identity.user for identity in transaction.providers.identities("github")] == [None, "bob"]
    with store.write() as transaction:
        # On-boarded again, under the same name.
        transaction.people.add_user(replace(ADA, provider="github", subject="0"))
