"""Images of registries: of any that speaks OCI's protocol, and of a GitLab by its projects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from corral.server.jobs.registry_listing import FoundImage, ListingFailed, RegistryAccess, images_of
from tests.servers.listed_registry import ListedRegistry


@pytest.fixture
def registry() -> Iterator[ListedRegistry]:
    made = ListedRegistry()
    yield made
    made.close()


def listed(registry: ListedRegistry, secret: str = "secret", repository: str | None = None) -> list[FoundImage]:
    access = RegistryAccess(host=registry.host, url=f"http://{registry.host}", username="ada", secret=secret)
    return asyncio.run(images_of(access, repository))


@pytest.mark.parametrize("kind", ["basic", "bearer"])
def test_every_version_has_its_size_and_date(registry: ListedRegistry, kind: str) -> None:
    registry.kind = kind
    found = {image.version: image for image in listed(registry)}
    assert found.keys() == {"1.0", "2.0"}
    for version, image in found.items():
        assert image.address == f"{registry.host}/team/train:{version}"
        assert (image.repository, image.size_bytes, image.created_at) == ("team/train", 32100, "2026-01-02T03:04:05Z")


def test_a_gitlab_is_asked_for_the_projects_of_the_user(registry: ListedRegistry) -> None:
    registry.kind = "gitlab"
    registry.has_catalog = False
    (image,) = listed(registry)
    assert (image.address, image.repository) == (f"{registry.host}/team/train:v1", "team/train")
    assert (image.version, image.size_bytes, image.created_at) == ("v1", 4096, "2026-03-04T05:06:07.000Z")
    with pytest.raises(ListingFailed, match="personal access token with the scopes read_api and read_registry"):
        listed(registry, secret="a-password")
    assert {image.version for image in listed(registry, repository="team/train")} == {"1.0", "2.0"}


def test_registry_that_cannot_be_listed_is_reported(registry: ListedRegistry) -> None:
    with pytest.raises(ListingFailed, match="does not accept this login"):
        listed(registry, secret="wrong")
    registry.has_catalog = False
    with pytest.raises(ListingFailed, match="name one, such as team/train"):
        listed(registry)
    assert len(listed(registry, repository="team/train")) == 2
    assert listed(registry, repository="not/there") == []


def test_the_login_goes_to_no_other_place_without_tls(
    registry: ListedRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    challenge = {"WWW-Authenticate": 'Bearer realm="http://elsewhere.example/token",service="x"'}
    monkeypatch.setattr(registry, "answer", lambda path, headers: (401, {}, challenge))
    with pytest.raises(ListingFailed, match="token service without TLS"):
        listed(registry)
