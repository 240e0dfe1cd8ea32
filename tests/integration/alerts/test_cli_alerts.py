"""Alerts and channels as people use them: the command line, a real server, a real webhook and real mail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.api import dump
from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.smtp import SmtpServer
from tests.servers.webhook import Webhook

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    directory = tmp_path_factory.mktemp("alerts")
    config = directory / "corral.yaml"
    config.write_text("monitoring: {interval_seconds: 0.5}\nlocal: {virtual_gpus: 2xA10}\n")
    with cli_server(directory, "--config", str(config)) as running:
        yield running


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def ann(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "ann")


def alerts(person: Person, *args: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = person.read("alert", "ls", *args)["items"]
    return found


def test_a_failed_job_is_reported_to_its_owner_and_to_the_channel(
    server: CorralServer, operator: Person, ann: Person
) -> None:
    with Webhook() as hook, SmtpServer() as mail:
        operator.ok("channel", "create", "hook", "--url-stdin", stdin=hook.url)
        operator.ok("channel", "create", "pager", "--url-stdin", "--min-severity", "critical", stdin=mail.url)
        assert "accepted the test message" in operator.ok("channel", "test", "hook")
        assert mail.subjects == []
        assert "accepted the test message" in operator.ok("channel", "test", "pager")
        # A failed job is its owner's matter: a channel gets it only if the rule names that channel.
        operator.ok("alert", "rule", "edit", "job-failed", "--channel", "hook")
        job = ann.submit("--", "sh", "-c", "exit 3")
        ann.wait_for(job, "failed")
        wait_until(lambda: len(hook.titles) == 2, "the channel gets both notices")
        assert hook.titles == ["[corral] Test message", f"[corral] INFO: job-failed {job}"]
        assert mail.subjects == ["[corral] Test message"], "info is below what the pager wants"
        shown = ann.ok("inbox")
        assert "failed" in shown
        assert job in shown
        assert ann.read("inbox")["items"] == []
        assert [item["action"] for item in ann.read("inbox", "--all")["items"]] == ["job.failed", "job.running"]
        (mine,) = alerts(ann)
        assert (mine["rule"], mine["subject"], mine["owner"], mine["state"]) == ("job-failed", job, "ann", "firing")
        assert f"job {job}" in ann.ok("alert", "show", str(mine["id"]))
        deliveries = operator.read("channel", "deliveries", "hook")["items"]
        assert [(item["kind"], item["state"], item["attempts"]) for item in deliveries] == [
            ("fired", "sent", 1),
            ("test", "sent", 1),
        ]
        assert deliveries[0]["alerts"] == [mine["id"]]
        shown = operator.ok("channel", "ls") + operator.ok("channel", "deliveries")
        assert "very-secret-path" not in shown + dump(server) + server.log()
    assert "did not accept it" in operator.run("channel", "test", "hook", code=1).out
    operator.ok("alert", "rule", "reset", "job-failed")
    for name in ("hook", "pager"):
        operator.ok("channel", "rm", name, "--yes")


def test_an_alert_from_its_rule_to_its_end(operator: Person, ann: Person) -> None:
    create = ("alert", "rule", "create", "room", "--signal", "gpus-free", "--at-least", "1", "--clear", "0s")
    assert "gpus-free at least 1 GPU" in operator.ok(*create)
    wait_until(lambda: bool(alerts(operator, "--rule", "room")), "GPUs are free")
    (alert,) = alerts(operator, "--rule", "room")
    assert (alert["scope"], alert["subject"], alert["value"], alert["severity"]) == ("pool", "default", 2, "warning")
    assert alert["id"] not in [item["id"] for item in alerts(ann, "--all")], "it is not about a job of hers"
    number = str(alert["id"])
    ann.run("alert", "show", number, code=4)
    ann.run("alert", "ack", number, code=3)
    assert "acknowledged by operator" in operator.ok("alert", "ack", number, "--note", "use them")
    assert operator.read("alert", "show", number)["note"] == "use them"
    operator.ok("alert", "rule", "edit", "room", "--at-least", "100")
    wait_until(lambda: not alerts(operator, "--rule", "room"), "it is over")
    (over,) = alerts(operator, "--rule", "room", "--all")
    assert (over["state"], over["acknowledged_by"]) == ("resolved", "operator")
    operator.ok("alert", "rule", "rm", "room", "--yes")
    operator.run("alert", "rule", "show", "room", code=4)


def test_rules_that_came_with_corral(operator: Person, ann: Person) -> None:
    rules = {rule["name"]: rule for rule in operator.read("alert", "rules")["items"]}
    assert len(rules) == 19
    assert (rules["gpu-temperature"]["threshold"], rules["gpu-utilization"]["enabled"]) == (85, False)
    assert "came with corral" in operator.run("alert", "rule", "rm", "gpu-temperature", "--yes", code=1).err
    operator.ok("alert", "rule", "edit", "gpu-temperature", "--above", "70", "--for", "2m", "--action", "cordon-node")
    changed = operator.read("alert", "rule", "show", "gpu-temperature")
    assert (changed["threshold"], changed["for_seconds"], changed["actions"]) == (70, 120, ["cordon-node"])
    operator.ok("alert", "rule", "reset", "gpu-temperature")
    assert operator.read("alert", "rule", "show", "gpu-temperature") == rules["gpu-temperature"]
    operator.run("alert", "rule", "edit", "gpu-temperature", code=2)
    operator.run("alert", "rule", "create", "x1", "--signal", "gpu-memory", "--above", "1", "--below", "2", code=2)
    operator.run("alert", "rule", "create", "x1", "--signal", "gpu-memory", code=2)
    ann.run("alert", "rules", code=3)
    assert "gpu-idle" in operator.ok("alert", "signals")


def test_silences(operator: Person) -> None:
    silence = operator.read("alert", "silence", "--subject", "gpu-*", "--time", "2h", "--reason", "new fans")
    assert "new fans" in operator.ok("alert", "silences")
    operator.ok("alert", "unsilence", silence["id"])
    assert operator.read("alert", "silences")["items"] == []
    operator.run("alert", "unsilence", silence["id"], code=4)


def test_a_wrong_address_is_explained(operator: Person) -> None:
    wrong = operator.run("channel", "create", "ops", "--url-stdin", stdin="ops@example.org", code=2)
    assert "mailto://" in wrong.err
    operator.run("channel", "create", "ops", code=2)
    operator.run("channel", "create", "ops", "--url-stdin", stdin="\n", code=2)


def test_rules_and_channels_follow_the_configuration(tmp_path: Path) -> None:
    with Webhook() as hook:
        config = tmp_path / "corral.yaml"
        config.write_text(
            "monitoring: {interval_seconds: 0.5, alert_thresholds: {temperature: 77}}\n"
            f"notification: {{channels: ['{hook.url}'], gpu_available_threshold: 1}}\n"
        )
        server = CorralServer(tmp_path / "state", "--config", str(config), "--virtual-gpus", "2xA10")
        server.start()
        try:
            with server.client() as client:
                (channel,) = client.channels.list()
                assert (channel["name"], channel["from_config"]) == ("config-1", True)
                rules = {rule["name"]: rule for rule in client.alerts.rules()}
                assert (rules["gpu-temperature"]["threshold"], rules["gpus-free"]["enabled"]) == (77, True)
                client.alerts.edit_rule("gpus-free", {"for_seconds": 0})
            wait_until(lambda: hook.titles == ["[corral] INFO: gpus-free default"], "GPUs are free")
        finally:
            server.kill()
