"""How a job names its secrets."""

from __future__ import annotations

import pytest

from corral.core.jobs.secret_uses import SecretUse, parse_secret, parse_secrets


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("wandb", SecretUse(name="wandb", variable="WANDB")),
        ("hub-token.v2", SecretUse(name="hub-token.v2", variable="HUB_TOKEN_V2")),
        ("wandb=WANDB_API_KEY", SecretUse(name="wandb", variable="WANDB_API_KEY")),
        ("deploy-key:file", SecretUse(name="deploy-key", variable="DEPLOY_KEY_FILE", is_file=True)),
    ],
)
def test_a_secret_is_a_variable_or_a_file(text: str, use: SecretUse) -> None:
    assert parse_secret(text) == use


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not the name of a secret"),
        ("../etc/passwd:file", "not the name of a secret"),
        ("a b", "not the name of a secret"),
        ("wandb:env", "NAME:file"),
        ("wandb=", "not a name of an environment variable"),
        ("wandb=A-B", "not a name of an environment variable"),
        ("7days", "choose one: 7days=VARIABLE"),
        ("wandb=CORRAL_JOB_DIR", "set by corral"),
    ],
)
def test_other_texts_are_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_secret(text)


def test_two_secrets_cannot_have_one_variable() -> None:
    assert len(parse_secrets(("a", "b=A2", "a:file"))) == 3
    with pytest.raises(ValueError, match="a and b have the same variable A"):
        parse_secrets(("a", "b=A"))
