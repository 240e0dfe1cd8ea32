"""What `deploy/` ships: Prometheus' own tool accepts the configuration and the rules, and the rules do what they say."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
PROMETHEUS = DEPLOY / "prometheus"
RULES = sorted((PROMETHEUS / "rules").glob("*.yml"))


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed: run scripts/install-test-servers as root (Debian package: prometheus)")
    return found


def run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_configuration_is_accepted_with_its_token_beside_it(promtool: str, tmp_path: Path) -> None:
    shutil.copytree(PROMETHEUS, tmp_path / "prometheus")
    (tmp_path / "prometheus" / "corral.token").write_text("a-token")
    said = run(promtool, "check", "config", tmp_path / "prometheus" / "prometheus.yml")
    assert f"{len(RULES)} rule files found" in said


@pytest.mark.parametrize("name", sorted(path.name for path in (PROMETHEUS / "tests").glob("*.yml")))
def test_the_rules_do_what_they_say(promtool: str, name: str) -> None:
    assert "SUCCESS" in run(promtool, "test", "rules", PROMETHEUS / "tests" / name)


def test_every_alert_is_tested_and_says_what_happened() -> None:
    tested = "\n".join(path.read_text() for path in (PROMETHEUS / "tests").glob("*.yml"))
    for path in RULES:
        for group in yaml.safe_load(path.read_text())["groups"]:
            for rule in group["rules"]:
                name = rule.get("alert") or rule["record"]
                assert re.search(rf"\b{re.escape(name)}\b", tested), f"{name} has no test"
                if "alert" in rule:
                    assert rule["labels"]["severity"] in ("info", "warning", "critical"), name
                    assert rule["annotations"]["summary"], name
