"""The files that `corral init server` writes: each combination of answers is a configuration that a server accepts."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml

from corral.server.settings.settings_sources import check_config, load_settings
from corral.server.system.server_setup import ServerAnswers, files_for

COMBINATIONS = list(
    itertools.product(
        (False, True), ("local", "slurm"), ("sqlite", "postgresql://c:p@db/corral"), ("none", "proxy", "files")
    )
)


def answers(is_shared: bool, engine: str, store: str, tls: str) -> ServerAnswers:
    return ServerAnswers(
        is_shared=is_shared,
        engine=engine,
        store=store,
        tls=tls,
        operator_account="labadmin" if is_shared else None,
        name="hub.example.com" if tls != "none" else "",
        certificate="/etc/ssl/c.pem" if tls == "files" else "",
        key="/etc/ssl/c.key" if tls == "files" else "",
        shared_directory="/shared/corral" if engine == "slurm" else "",
        cluster=engine,
        port=9000,
        home="/srv/corral",
        directory="/etc/lab",
        corral="/opt/c/bin/corral",
    )


@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda one: "-".join(map(str, one)))
def test_a_server_accepts_the_configuration(combination: tuple[bool, str, str, str], tmp_path: Path) -> None:
    made = files_for(answers(*combination))
    (tmp_path / "corral.yaml").write_text(made["corral.yaml"])
    assert check_config(tmp_path / "corral.yaml") == []
    settings = load_settings(config=tmp_path / "corral.yaml", overrides={"home": tmp_path}, environ={})
    is_shared, engine, store, tls = combination
    assert settings.cluster[0].engine == engine
    assert settings.storage.database == store
    assert settings.server.port == 9000
    assert settings.server.has_tls == (tls == "files")
    assert settings.server.host == ("0.0.0.0" if tls == "files" else "127.0.0.1")
    assert settings.local.run_as.users == ({"operator": "labadmin"} if is_shared else {})
    assert ("single-user.conf" in made) != is_shared
    assert ("nginx.conf" in made) == (tls == "proxy")


def test_the_unit_names_this_installation_and_only_optional_files() -> None:
    made = files_for(answers(True, "local", "sqlite", "none"))
    lines = made["corral.service"].splitlines()
    assert "ExecStart=/opt/c/bin/corral up" in lines
    assert "Environment=CORRAL_HOME=/srv/corral" in lines
    assert "EnvironmentFile=-/etc/lab/environment" in lines, "the minus sign: the file need not exist"
    assert not [line for line in lines if line.startswith("Environment=CORRAL_CONFIG")]
    assert made["environment"] == "CORRAL_CONFIG=/etc/lab/corral.yaml\n"


def test_the_proxy_block_has_the_answers() -> None:
    text = files_for(answers(True, "local", "sqlite", "proxy"))["nginx.conf"]
    assert "server_name hub.example.com *.wb.hub.example.com;" in text
    assert "proxy_pass http://127.0.0.1:9000;" in text
    assert "example.org" not in text
    config = yaml.safe_load(files_for(answers(True, "local", "sqlite", "proxy"))["corral.yaml"])
    assert config["workbench"]["url"] == "https://{workbench}.wb.hub.example.com"
