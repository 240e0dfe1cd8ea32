"""Addresses, refs and directories of Git repositories: what git could take for something else is refused."""

from __future__ import annotations

import pytest

from corral.core.git_source import check_directory, check_ref, is_commit, parse_address


@pytest.mark.parametrize(
    ("text", "scheme", "host", "port", "known_as"),
    [
        ("https://git.example.org/team/project.git", "https", "git.example.org", 443, "[git.example.org]:443"),
        ("https://Git.Example.org:8443/~ann/a%20b", "https", "git.example.org", 8443, "[git.example.org]:8443"),
        ("http://[::1]:80/a", "http", "::1", 80, "[::1]:80"),
        ("ssh://git@git.example.org/team/project.git", "ssh", "git.example.org", 22, "git.example.org"),
        ("ssh://git.example.org:2222/team/project.git", "ssh", "git.example.org", 2222, "[git.example.org]:2222"),
        ("git@git.example.org:team/project.git", "ssh", "git.example.org", 22, "git.example.org"),
    ],
)
def test_addresses_of_repositories(text: str, scheme: str, host: str, port: int, known_as: str) -> None:
    found = parse_address(text)
    assert (found.scheme, found.host, found.port, found.known_as) == (scheme, host, port, known_as)


@pytest.mark.parametrize(
    "text",
    [
        "ext::sh -c touch% /tmp/x",
        "ext::https://git.example.org/a",
        "fd::17",
        "file:///home/ann/project",
        "/home/ann/project",
        "../project",
        "project.git",
        "git://git.example.org/a",
        "ftp://git.example.org/a",
        "HTTPS+git://git.example.org/a",
        "--upload-pack=touch /tmp/x",
        "-oProxyCommand=touch",
        "ssh://-oProxyCommand=touch/a",
        "ssh://git@-oProxyCommand=touch/a",
        "-git@git.example.org:a",
        "git@-example.org:a",
        "git@git.example.org:-a",
        "ssh://git@git.example.org/-a\n",
        "https://git.example.org/a b",
        "https://git.example.org/a\nhttps://other",
        "https://git.example.org/$(touch x)",
        "https://git.example.org/a;b",
        "https://git.example.org/`id`",
        "https://git.example.org/a?x=y",
        "https://git.example.org/a#b",
        "https://git.example.org",
        "https://git.example.org/",
        "https://git.example.org:0/a",
        "https://git.example.org:99999/a",
        "https://" + "a" * 1000 + "/a",
    ],
)
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"repository|port|address"):
        parse_address(text)


@pytest.mark.parametrize("text", ["https://ann:secret@git.example.org/a", "https://token@git.example.org/a"])
def test_an_address_holds_no_login_and_the_refusal_does_not_repeat_it(text: str) -> None:
    with pytest.raises(ValueError, match="holds a login") as refused:
        parse_address(text)
    assert "secret" not in str(refused.value).replace("corral secret", "").replace("git_secret", "")
    assert "token" not in str(refused.value)


def test_refs() -> None:
    for text in ("", "main", "feature/first-try", "v1.0", "refs/heads/main", "a" * 40, "b" * 64, "release_2+x"):
        assert check_ref(text) == text
    for text in (
        "-x",
        "--upload-pack=x",
        "a..b",
        "a b",
        "a\n",
        "@{-1}",
        "a@{1}",
        "a/",
        "/a",
        "a.lock",
        "a~1",
        "a^",
        "a:b",
    ):
        with pytest.raises(ValueError, match="not the name"):
            check_ref(text)
    with pytest.raises(ValueError, match="all 40"):
        check_ref("1234abc")
    assert is_commit("a" * 40)
    assert not is_commit("A" * 40)


def test_directories() -> None:
    for text in ("", "sub", "sub/deeper", "with space", "-dash"):
        assert check_directory(text) == text
    for text in ("/etc", "..", "a/../..", "a//b", ".", "a/.", ".git", ".git/hooks", "a\nb", "a\x00"):
        with pytest.raises(ValueError, match="not a directory"):
            check_directory(text)
