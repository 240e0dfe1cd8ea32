"""The files of `deploy/`: Prometheus' own tool accepts the configuration and the rules, the rules do what they say, and
the dashboards are in order.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parents[3] / "deploy"
PROMETHEUS = DEPLOY / "prometheus"
RULES = sorted((PROMETHEUS / "rules").glob("*.yml"))
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"


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


def test_the_composition_names_files_and_services_that_exist() -> None:
    composed = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = composed["services"]
    assert set(services) == {"corral", "postgres", "prometheus", "grafana"}
    for name, service in services.items():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            assert source in composed["volumes"] or (DEPLOY / source).exists(), f"{name}: {mount}"
        for other in service.get("depends_on", {}):
            assert other in services
        shared = service.get("network_mode", "service:corral").removeprefix("service:")
        assert shared in services
    build = services["corral"]["build"]
    containerfile = (DEPLOY / build["context"] / build["dockerfile"]).read_text()
    for copied in re.findall(r"^COPY (?!--from=)(\S+)", containerfile, re.MULTILINE):
        assert copied == "dist/*.whl" or (DEPLOY.parent / copied).exists(), copied
    variables = set(re.findall(r"\$\{(\w+)\}", "".join(p.read_text() for p in (DEPLOY / "grafana").rglob("*.yml"))))
    assert variables == set(services["grafana"]["environment"])


def load(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text())
    assert isinstance(found, dict)
    return found


def test_dashboards_have_names_of_their_own() -> None:
    assert len(DASHBOARDS) == 4
    for key in ("uid", "title"):
        assert len({load(path)[key] for path in DASHBOARDS}) == len(DASHBOARDS)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_is_in_order(path: Path) -> None:
    dashboard = load(path)
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        cells = {(place["x"] + right, place["y"] + down) for right in range(place["w"]) for down in range(place["h"])}
        assert not cells & taken, f"{panel['title']} lies on another panel"
        taken |= cells
        if panel["type"] == "row":
            continue
        # The data source is chosen in the dashboard: no id of one particular Grafana.
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        for target in panel["targets"]:
            used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval", "__range"}
            assert used <= variables, panel["title"]
            assert target["legendFormat"]


def test_dashboards_and_rules_use_documented_metrics_only() -> None:
    documented = set(re.findall(r"`((?:corral|process)_[a-z_0-9]+)`", REFERENCE.read_text()))
    texts = [
        target["expr"] for path in DASHBOARDS for panel in load(path)["panels"] for target in panel.get("targets", [])
    ]
    texts += [
        rule["expr"]
        for path in RULES
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    ]
    used = {name for text in texts for name in re.findall(r"(?<![:\w])(?:corral|process)_[a-z_0-9]+", text)}
    plain = {re.sub(r"_(bucket|sum|count)$", "", name) for name in used}
    assert plain - documented == set()
