"""Alerts on their way to people: a controller with a real store, a real mail server and a real HTTP receiver."""

from __future__ import annotations

import io
import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from corral.control.alerts import alerts, channels
from corral.control.fleet.gpu_holders import holders
from corral.control.jobs import jobs
from corral.control.live.controller import Controller
from corral.control.live.unit_of_work import Caller
from corral.control.ports import AttemptPhase, AttemptStatus, GpuReading, Notifier, Round, Store
from corral.control.records import AlertFilter, ChannelRecord, DeliveryRecord, DeliveryState, JobSpec
from corral.control.system.policies import Policies
from corral.core.alerts.model import Alert, AlertState, Severity, Silence
from corral.core.model import NodeState, Request
from corral.server.alerts.alert_worker import AlertWorker
from corral.server.auth.secret_box import SecretBox
from corral.stores import open_store
from corral.telemetry.notices import AppriseNotifier
from corral.telemetry.readings import LatestReadings
from tests.integration.waiting import wait_until
from tests.servers.smtp import SmtpServer
from tests.servers.webhook import Webhook
from tests.unit.control.world import NoWorkspace, RecordingEngine
from tests.unit.core.builders import node

pytestmark = pytest.mark.slow

ROOT = Caller(name="root", is_operator=True)


class SteppedClock:
    """Real enough for threads, but time passes only when a story says so."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.now()


class House:
    """A controller, a store and alerting, which can be closed and opened again."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.clock = SteppedClock()
        self.engine = RecordingEngine([node("n1", gpus=2), node("n2", gpus=2)])
        self.box = SecretBox(home)
        self.config_channels: tuple[str, ...] = ()

    @contextmanager
    def open(self, notifier: Notifier | None = None) -> Iterator[AlertWorker]:
        self.store: Store = open_store(f"sqlite:///{self.home / 'corral.db'}")
        self.controller = Controller(
            store=self.store,
            engines={"local": self.engine},
            clock=self.clock,
            policies=Policies(),
            workspace=NoWorkspace(),
            observe_seconds=0.05,
        )
        self.controller.start()
        self.readings = LatestReadings(stale_after_seconds=15)
        alerting = AlertWorker(
            controller=self.controller,
            store=self.store,
            readings=self.readings,
            notifier=notifier or AppriseNotifier(),
            box=self.box,
            clock=self.clock,
            interval_seconds=3600,  # a story looks when it wants to
            config_channels=self.config_channels,
            poll_seconds=0.02,
        )
        alerting.start()
        try:
            yield alerting
        finally:
            alerting.stop()
            self.controller.stop()
            self.store.close()

    def do(self, use_case: Callable[..., Any], *args: Any) -> Any:
        return self.controller.execute(use_case, *args).result(10)

    def channel(self, name: str, url: str, **values: Any) -> ChannelRecord:
        shown = AppriseNotifier().shown(url)
        record = ChannelRecord(name=name, url=self.box.encrypt(url), shown=shown, **values)
        made: ChannelRecord = self.do(channels.create, ROOT, record)
        return made

    def run_job(self) -> str:
        """A job of ann's on one GPU of n1, whose processes are up."""
        spec = jobs.JobDraft(spec=JobSpec(command=("true",)), request=Request(gpus=1))
        job_id: str = self.do(jobs.submit, Caller(name="ann"), [spec])[0].job.id
        wait_until(lambda: len(self.engine.launched) == 1, "it is launched")
        self.engine.report(AttemptStatus(attempt_id=f"{job_id}.1", phase=AttemptPhase.RUNNING, at=self.clock.time))
        return job_id

    def pass_time(self, alerting: AlertWorker, seconds: float, celsius: float, use: float = 0.5) -> None:
        """Readings every five seconds, each looked at."""
        for _ in range(round(seconds / 5)):
            self.clock.time += 5
            gpus = [
                GpuReading(
                    gpu_id=gpu.id, at=self.clock.time, temperature_celsius=celsius if not place else 40, utilization=use
                )
                for place, gpu in enumerate(self.engine.nodes[0].gpus)
            ]
            held_by = self.controller.inspect(holders).result(10)
            taken = Round(at=self.clock.time, gpus=gpus, holders=held_by)
            self.readings.take(taken)
            alerting.take(taken)
            alerting.evaluate()

    def alerts(self) -> list[Alert]:
        with self.store.read() as tx:
            return list(tx.alerts.page(AlertFilter(), cursor=None, limit=100).items)[::-1]

    def deliveries(self, channel: str) -> list[DeliveryRecord]:
        with self.store.read() as tx:
            return list(tx.channels.deliveries(channel, cursor=None, limit=100).items)[::-1]

    def all_sent(self, channel: str, count: int) -> bool:
        found = self.deliveries(channel)
        return len(found) == count and all(item.state is DeliveryState.SENT for item in found)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setattr(channels, "BACKOFF_SECONDS", (0.0,) * 5)  # the story's clock stands still
    return House(tmp_path)


@pytest.fixture
def mail() -> Iterator[SmtpServer]:
    with SmtpServer() as server:
        yield server


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with Webhook() as receiver:
        yield receiver


def test_an_alert_arrives_by_mail_once_and_resolves_once(house: House, mail: SmtpServer) -> None:
    with house.open() as alerting:
        house.channel("ops", mail.url)
        house.pass_time(alerting, 60, 40)
        house.pass_time(alerting, 10, 97)
        assert mail.subjects == []
        house.pass_time(alerting, 120, 97)
        wait_until(lambda: len(mail.subjects) == 1, "the mail is there")
        house.pass_time(alerting, 300, 40)
        wait_until(lambda: house.all_sent("ops", 2), "the end was sent")
    assert mail.subjects == [
        "[corral] CRITICAL: gpu-temperature n1/0",
        "[corral] RESOLVED: gpu-temperature n1/0",
    ]
    assert "n1/0 (A10 on n1) is at 97 °C (above 85 °C)" in mail.bodies()[0].splitlines()[1]
    assert mail.mails[0]["To"] == "ops@example.org"


def test_notice_refused_by_a_channel_is_sent_again(house: House, hook: Webhook) -> None:
    hook.failures = 2
    with house.open() as alerting:
        house.channel("hook", hook.url)
        house.pass_time(alerting, 60, 97)
        wait_until(lambda: house.all_sent("hook", 1), "it got there")
        (record,) = house.deliveries("hook")
    assert (record.attempts, record.error, hook.requests) == (3, "", 3)
    assert hook.titles == ["[corral] CRITICAL: gpu-temperature n1/0"]


@pytest.fixture
def whole_log(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """The log of a server with log_level debug. Not caplog: it listens to every logger by itself."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    root = logging.getLogger()
    root.addHandler(handler)
    monkeypatch.setattr(root, "level", logging.DEBUG)
    yield text
    root.removeHandler(handler)


def test_the_record_says_what_went_wrong_and_no_secret(house: House, hook: Webhook, whole_log: io.StringIO) -> None:
    hook.failures = 100
    with house.open() as alerting:
        house.channel("hook", hook.url)
        house.pass_time(alerting, 60, 97)
        wait_until(
            lambda: [item.state for item in house.deliveries("hook")] == [DeliveryState.FAILED], "it was given up"
        )
        (record,) = house.deliveries("hook")
        with house.store.read() as tx:
            (channel,) = tx.channels.all()
    assert record.attempts == 6
    assert "500" in record.error
    assert "very-secret-path" not in whole_log.getvalue() + record.error + channel.shown + channel.url
    assert "channel hook did not take notice" in whole_log.getvalue()
    assert channel.shown.startswith("json://127.0.0.1:")


def test_a_hanging_channel_delays_no_other(house: House, hook: Webhook, mail: SmtpServer) -> None:
    hook.hanging.set()
    with house.open() as alerting:
        house.channel("a-hanging", hook.url)
        house.channel("ops", mail.url)
        house.pass_time(alerting, 20, 97)
        wait_until(lambda: hook.requests > 0, "the hanging one has begun")
        house.pass_time(alerting, 100, 97)
        house.pass_time(alerting, 200, 40)
        wait_until(lambda: house.all_sent("ops", 2), "the other one has both")
        assert house.deliveries("a-hanging")[0].state is DeliveryState.WAITING
        hook.released.set()
    assert len(mail.subjects) == 2


class Dying:
    """Imitates a server that is killed while it sends: the try is begun and never ends."""

    def check(self, url: str) -> None: ...

    def shown(self, url: str) -> str:
        return url

    def send(self, url: str, title: str, body: str, attachments: Any = ()) -> None:
        threading.Event().wait()


def test_a_restart_between_firing_and_sending_loses_nothing(house: House, mail: SmtpServer) -> None:
    with house.open(Dying()) as alerting:
        house.channel("ops", mail.url)
        house.pass_time(alerting, 60, 97)
        wait_until(lambda: any(item.attempts for item in house.deliveries("ops")), "it was begun")
    assert mail.subjects == []
    with house.open() as alerting:
        wait_until(lambda: len(mail.subjects) == 1, "the next server sends it")
        house.pass_time(alerting, 60, 97)
        house.pass_time(alerting, 200, 40)
        wait_until(lambda: house.all_sent("ops", 2), "and the end")
    assert mail.subjects == ["[corral] CRITICAL: gpu-temperature n1/0", "[corral] RESOLVED: gpu-temperature n1/0"]


def test_a_test_message_with_and_without_success(house: House, hook: Webhook, mail: SmtpServer) -> None:
    mail.refusing = True
    with house.open():
        house.channel("hook", hook.url, enabled=False)
        house.channel("ops", mail.url)
        for name in ("hook", "ops"):
            house.do(channels.test, ROOT, name)
        wait_until(lambda: house.all_sent("hook", 1), "also one that is off can be tested")
        wait_until(lambda: house.deliveries("ops")[0].state is DeliveryState.FAILED, "one try is enough")
        (record,) = house.deliveries("ops")
    assert hook.titles == ["[corral] Test message"]
    assert (record.attempts, "Try again later" in record.error) == (1, True), record.error


def test_a_silence_and_an_acknowledgement(house: House, mail: SmtpServer) -> None:
    with house.open() as alerting:
        house.channel("ops", mail.url)
        silence = Silence(id="s1", subject="n1/*", ends_at=house.clock.time + 60, reason="new fans")
        house.do(alerts.create_silence, ROOT, silence)
        house.pass_time(alerting, 40, 97)
        (alert,) = house.alerts()
        assert (alert.state, alert.silenced) == (AlertState.FIRING, True)
        house.do(alerts.acknowledge, ROOT, alert.id, "on my way")
        assert house.deliveries("ops") == []
        house.pass_time(alerting, 40, 97)
        wait_until(lambda: len(mail.subjects) == 1, "it has outlasted its silence")
        house.pass_time(alerting, 100, 40)
        (alert,) = house.alerts()
    assert (alert.state, alert.acknowledged_by, alert.note) == (AlertState.RESOLVED, "root", "on my way")


def test_a_lost_node_is_one_notice(house: House, mail: SmtpServer) -> None:
    with house.open() as alerting:
        house.channel("ops", mail.url)
        house.pass_time(alerting, 30, 97)
        wait_until(lambda: len(mail.subjects) == 1, "it is hot")
        first, second = house.engine.nodes
        house.engine.nodes = (first, replace(second, state=NodeState.DOWN))
        wait_until(lambda: _node_state(house, "n2") is NodeState.DOWN, "it was observed")
        house.pass_time(alerting, 5, 97)
        wait_until(lambda: len(mail.subjects) == 2, "the alert about the node is sent at once")
        house.engine.nodes = (first, second)
        wait_until(lambda: _node_state(house, "n2") is NodeState.READY, "it is back")
        house.pass_time(alerting, 120, 97)
        wait_until(lambda: len(mail.subjects) == 3, "and that it is back")
    assert mail.subjects[1:] == ["[corral] CRITICAL: node-lost n2", "[corral] RESOLVED: node-lost n2"]


def _node_state(house: House, name: str) -> NodeState:
    state: NodeState = house.controller.inspect(lambda state: state.snapshot.nodes[name].state).result(10)
    return state


def test_an_idle_gpu_is_reported_with_its_owner_across_a_restart(house: House) -> None:
    with house.open() as alerting:
        job = house.run_job()
        house.pass_time(alerting, 31 * 60, 40, use=0.0)
        (alert,) = house.alerts()
        assert f"under {job}" in alert.text
        assert (alert.rule, alert.owner, alert.state) == ("gpu-idle", "ann", AlertState.FIRING)
    with house.open() as alerting:
        house.pass_time(alerting, 300, 40, use=0.0)
        assert [item.state for item in house.alerts()] == [AlertState.FIRING]
        house.pass_time(alerting, 120, 40, use=0.9)
        assert [item.state for item in house.alerts()] == [AlertState.RESOLVED]


def test_stale_readings_conclude_nothing(house: House) -> None:
    with house.open() as alerting:
        house.pass_time(alerting, 30, 97)
        for _ in range(100):
            house.clock.time += 5
            alerting.evaluate()
        (alert,) = house.alerts()
    assert (alert.state, alert.clear_since) == (AlertState.FIRING, None)


def test_channels_follow_the_configuration(house: House, hook: Webhook, mail: SmtpServer) -> None:
    house.config_channels = (mail.url, "nonsense://x")
    with house.open(), house.store.read() as tx:
        first, second = tx.channels.all()
    assert (first.name, first.enabled, house.box.decrypt(first.url)) == ("config-1", True, mail.url)
    assert (second.name, second.enabled, second.shown) == ("config-2", False, "nonsense://***")
    assert "not understood" in second.description
    with house.open():
        house.do(channels.edit, ROOT, "config-1", {"min_severity": Severity.WARNING})
        with house.store.read() as tx:
            assert tx.channels.all()[0].url == first.url, "the same address is not written again"
    house.config_channels = (hook.url,)
    with house.open(), house.store.read() as tx:
        (only,) = tx.channels.all()
    assert (only.name, house.box.decrypt(only.url), only.min_severity) == ("config-1", hook.url, Severity.WARNING)
    keys = house.box.path
    keys.write_text(f"{Fernet.generate_key().decode()}\n{keys.read_text()}")
    with house.open(), house.store.read() as tx:
        (renewed,) = tx.channels.all()
    assert house.box.is_current(renewed.url)
    assert house.box.decrypt(renewed.url) == hook.url


def test_a_report_goes_with_its_file(house: House, mail: SmtpServer, tmp_path: Path) -> None:
    file = tmp_path / "report.csv"
    file.write_text("user,hours\nann,3\n")
    with house.open():
        house.channel("ops", mail.url)
        house.do(channels.enqueue, ["ops"], "report", "Weekly report", "See the file.", [str(file)])
        wait_until(lambda: house.all_sent("ops", 1), "it was sent")
        shutil.move(file, tmp_path / "elsewhere")
        house.do(channels.enqueue, ["ops"], "report", "Weekly report", "See the file.", [str(file)])
        wait_until(lambda: house.deliveries("ops")[-1].state is DeliveryState.FAILED, "there is nothing to send")
        assert "report.csv" in house.deliveries("ops")[-1].error
    (got,) = mail.mails
    attached = [part.get_filename() for part in got.iter_attachments()]
    assert attached == ["report.csv"]
    assert mail.subjects == ["Weekly report"]
