"""Alerts in the console: what fires is there without a reload; rules, silences and channels, with a real receiver."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.webhook import Webhook

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    """One that looks twice a second, and whose rule about heat does not wait."""
    config = tmp_path_factory.mktemp("alerts") / "corral.yaml"
    config.write_text("monitoring: {interval_seconds: 0.5}\nlocal: {virtual_gpus: 4xA10}\n")
    with api_server("--config", str(config), users=("ann",)) as running:
        with running.http() as http:
            soon = {"for_seconds": 0, "clear_seconds": 0}
            http.patch("/alert-rules/gpu-temperature", json=soon).raise_for_status()
        yield running


class Heat:
    """Makes virtual GPUs hot, as `corral drill overheat` does."""

    def __init__(self, server: CorralServer) -> None:
        self._path: Path = server.home / "local" / "faults.json"
        with server.http() as http:
            self.gpus = [gpu["id"] for gpu in http.get("/gpus").json()["items"]]

    def on(self, gpu: str) -> None:
        self._write({"gpus": {gpu: {"temperature": 97}}})

    def off(self) -> None:
        self._write({})

    def _write(self, faults: dict[str, object]) -> None:
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(faults))
        new.replace(self._path)


@pytest.fixture
def heat(server: CorralServer) -> Iterator[Heat]:
    made = Heat(server)
    yield made
    made.off()


def row(page: Page, table: str, *texts: str) -> Locator:
    rows = page.get_by_role("table", name=table).get_by_role("row")
    for text in texts:
        rows = rows.filter(has_text=text)
    return rows


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_role("combobox", name=label, exact=True).click()
    page.get_by_role("option", name=option, exact=True).click()


def test_an_alert_appears_without_reload_and_is_acknowledged_and_silenced(
    visit: Visit, server: CorralServer, heat: Heat
) -> None:
    console = visit()
    page = console.open("/alerts", "Alerts")
    expect(page.get_by_text("No alerts")).to_be_visible()
    gpu = heat.gpus[0]
    heat.on(gpu)
    hot = row(page, "Firing", "gpu-temperature", gpu)
    expect(hot).to_contain_text("97 °C")
    expect(hot).to_contain_text("critical")
    expect(hot.get_by_role("link", name=gpu)).to_have_attribute("href", f"/gpus/{gpu}")

    hot.get_by_role("button", name=f"Acknowledge: gpu-temperature {gpu}").click()
    form = page.get_by_role("dialog", name=re.compile("Acknowledge"))
    form.get_by_label("Note").fill("fans are ordered")
    form.get_by_role("button", name="Acknowledge").click()
    expect(hot).to_contain_text("acknowledged by operator: fans are ordered")

    hot.get_by_role("button", name=f"Silence this: gpu-temperature {gpu}").click()
    form = page.get_by_role("dialog", name="New silence")
    expect(form.get_by_label("Subjects")).to_have_value(gpu)
    form.get_by_label("For how long").fill("soon")
    expect(form.get_by_text("A length of time, such as")).to_be_visible()
    form.get_by_label("For how long").fill("2h")
    form.get_by_label("Reason").fill("new fans")
    form.get_by_role("button", name="Create").click()
    expect(hot).to_contain_text("silenced")

    page.get_by_role("tab", name="Silences").click()
    silence = row(page, "Silences", gpu, "new fans")
    silence.get_by_role("button", name=re.compile("End now")).click()
    page.get_by_role("dialog").get_by_role("button", name="End now").click()
    expect(page.get_by_text("No silences")).to_be_visible()

    heat.off()
    page.get_by_role("tab", name="Firing").click()
    expect(hot).to_have_count(0)
    console.open(f"/alerts?tab=history&severity=critical&subject={gpu}", "Alerts")
    over = row(page, "History", "gpu-temperature", gpu)
    expect(over).to_contain_text("resolved")
    over.get_by_role("button", name="critical").click()
    expect(page.get_by_role("dialog")).to_contain_text("97 °C")
    page.keyboard.press("Escape")
    # The chosen ones lie over the field itself.
    page.get_by_role("combobox", name="Severity").click(force=True)
    page.get_by_role("option", name="critical").click()
    page.get_by_role("option", name="info").click()
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    expect(page).to_have_url(re.compile("severity=info"))


def test_a_rule_from_its_creation_to_its_end(visit: Visit, server: CorralServer) -> None:
    console = visit()
    page = console.open("/alerts?tab=rules", "Alerts")
    page.get_by_role("button", name="New rule").click()
    form = page.get_by_role("dialog", name="New rule")
    form.get_by_label("Name").fill("A10 hot")
    expect(form.get_by_text("Up to 63 small letters").nth(1)).to_be_visible()
    form.get_by_label("Name").fill("a10-hot")
    form.get_by_label("Threshold").fill("very hot")
    expect(form.get_by_text("A number, such as 85.")).to_be_visible()
    form.get_by_label("Threshold").fill("1e16")
    form.get_by_label("For at least").fill("5m")
    form.get_by_label("cordon the node").check()
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_text("must be at most")).to_be_visible()
    form.get_by_label("Threshold").fill("75")
    expect(form).to_contain_text("Fires as warning when the temperature of a GPU is above 75 °C for 5m")
    expect(form).to_contain_text("Then: cordon the node.")
    form.get_by_role("button", name="Create").click()
    made = row(page, "Rules", "a10-hot")
    expect(made).to_contain_text("above 75 °C for 5m")

    made.get_by_role("button", name="a10-hot").click()
    expect(page).to_have_url(re.compile("open=a10-hot"))
    form = page.get_by_role("dialog", name="Rule a10-hot")
    form.get_by_label("Threshold").fill("70")
    form.get_by_role("button", name="Save").click()
    expect(made).to_contain_text("above 70 °C for 5m")
    made.get_by_role("switch").click(force=True)
    expect(page.get_by_text("Rule a10-hot is off.")).to_be_visible()
    with server.http() as http:
        kept = http.get("/alert-rules/a10-hot").json()
    assert (kept["threshold"], kept["for_seconds"], kept["actions"], kept["enabled"]) == (
        70,
        300,
        ["cordon-node"],
        False,
    )

    made.get_by_role("button", name="a10-hot").click()
    page.get_by_role("dialog", name="Rule a10-hot").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog", name="Delete rule a10-hot?").get_by_role("button", name="Delete the rule").click()
    expect(made).to_have_count(0)


def test_a_built_in_rule_goes_back_to_how_it_came(visit: Visit, server: CorralServer) -> None:
    with server.http() as http:
        http.patch("/alert-rules/queue-length", json={"threshold": 7}).raise_for_status()
    console = visit()
    page = console.open("/alerts?tab=rules&open=queue-length", "Alerts")
    form = page.get_by_role("dialog", name="Rule queue-length")
    expect(form.get_by_label("Watches")).to_be_disabled()
    expect(form.get_by_label("cordon the node")).to_be_disabled()
    expect(form.get_by_role("button", name="Delete")).to_have_count(0)
    form.get_by_role("button", name="Reset").click()
    page.get_by_role("dialog", name="Reset queue-length?").get_by_role("button", name="Reset").click()
    expect(row(page, "Rules", "queue-length")).to_contain_text("above 100 jobs")


def test_a_channel_is_added_and_tested_and_its_address_is_never_shown(visit: Visit, server: CorralServer) -> None:
    console = visit()
    page = console.open("/alerts?tab=channels", "Alerts")
    with Webhook() as hook:
        page.get_by_role("button", name="New channel").click()
        form = page.get_by_role("dialog", name="New channel")
        form.get_by_label("Name").fill("our-hook")
        choose(page, "Kind", "A webhook of your own")
        address = form.get_by_role("textbox", name="Webhook address")
        address.fill("our chat")
        form.get_by_role("button", name="Create").click()
        expect(form.get_by_text("An address that begins with https://")).to_be_visible()
        address.fill(hook.url.replace("json://", "http://"))
        form.get_by_role("button", name="Create").click()
        shown = row(page, "Channels", "our-hook")
        expect(shown).to_contain_text("json://127.0.0.1")
        expect(form).to_have_count(0)
        assert "very-secret-path" not in page.content()
        shown.get_by_role("button", name="Test our-hook").click()
        expect(page.get_by_role("status").filter(has_text="our-hook took the test message.")).to_be_visible()
        assert hook.titles == ["[corral] Test message"]
        expect(row(page, "Deliveries", "Test message")).to_contain_text("sent")
    shown.get_by_role("button", name="Test our-hook").click()
    expect(page.get_by_role("status").filter(has_text="did not take it")).to_be_visible()
    failed = row(page, "Deliveries", "Test message", "failed")
    failed.get_by_role("button", name=re.compile("Send .* again")).click()
    expect(page.get_by_text("It is tried again.")).to_be_visible()

    shown.get_by_role("button", name="our-hook", exact=True).click()
    form = page.get_by_role("dialog", name="Channel our-hook")
    assert "very-secret-path" not in page.content()
    choose(page, "Notify from this severity on", "critical")
    form.get_by_role("button", name="Save").click()
    expect(shown).to_contain_text("critical")
    shown.get_by_role("button", name="our-hook", exact=True).click()
    page.get_by_role("dialog", name="Channel our-hook").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog", name=re.compile("Delete channel")).get_by_role(
        "button", name="Delete the channel"
    ).click()
    expect(page.get_by_text("No notifications are sent yet")).to_be_visible()


def test_a_failed_job_leads_from_its_alert_to_its_page(visit: Visit, server: CorralServer) -> None:
    with server.http("ann") as http:
        job = http.post("/jobs", json={"name": "failing", "command": ["false"], "max_retries": 0}).json()["id"]
        wait_until(lambda: bool(http.get(f"/alerts?subject={job}").json()["items"]), "its owner sees the alert")
    page = visit().open("/alerts", "Alerts")
    row(page, "Firing", "job-failed", job).get_by_role("link", name=job).click()
    expect(page).to_have_url(re.compile(f"/jobs/{job}"))


def test_alerts_are_narrowed_and_acknowledged_and_silenced_together(visit: Visit, server: CorralServer) -> None:
    jobs = []
    with server.http("ann") as http:
        for name in ("first-one", "second-one"):
            body = {"name": name, "command": ["false"], "max_retries": 0}
            jobs.append(http.post("/jobs", json=body).raise_for_status().json()["id"])

        def all_fire() -> bool:
            return all(http.get(f"/alerts?subject={job}").json()["items"] for job in jobs)

        wait_until(all_fire, "both alerts fire")
        alerts = [http.get(f"/alerts?subject={job}").json()["items"][0]["id"] for job in jobs]
    page = visit().open("/alerts", "Alerts")
    page.get_by_role("textbox", name="Find by rule, subject or text").fill("first-one")
    expect(row(page, "Firing", "second-one")).to_have_count(0)
    expect(row(page, "Firing", "first-one")).to_have_count(1)
    page.get_by_role("textbox", name="Find by rule, subject or text").fill("-one")
    for alert in alerts:
        page.get_by_role("checkbox", name=f"Select {alert}", exact=True).check()
    page.get_by_role("toolbar").get_by_role("button", name="Acknowledge").click()
    form = page.get_by_role("dialog", name="Acknowledge 2 alerts")
    form.get_by_role("textbox", name="Note").fill("a broken script")
    form.get_by_role("button", name="Acknowledge").click()
    expect(form).to_have_count(0)
    for name in ("first-one", "second-one"):
        expect(row(page, "Firing", name)).to_contain_text("a broken script")
    for alert in alerts:
        page.get_by_role("checkbox", name=f"Select {alert}", exact=True).check()
    page.get_by_role("toolbar").get_by_role("button", name="Silence").click()
    page.get_by_role("dialog", name="New silence").get_by_role("button", name="Create").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    with server.http() as http:
        silenced = {item["subject"] for item in http.get("/silences").json()["items"]}
        assert set(jobs) <= silenced
