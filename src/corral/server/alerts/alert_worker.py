"""Alerts in a running server: one worker evaluates the rules regularly, another one sends notices.

`core.alerts` decides and `control.alerts` writes; a round without changes writes nothing. The worker is also a sink of
the sampling, for signals that need more than a single reading.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from corral.control.alerts import alerts, channels, facts
from corral.control.live.controller import Controller
from corral.control.live.worker import Worker
from corral.control.ports import Clock, NoticeRefused, Notifier, Round, Store
from corral.control.records import ChannelRecord
from corral.core.alerts.evaluation import evaluate
from corral.core.alerts.facts import Facts, FailureFact, ServerFact, VolumeFact
from corral.core.alerts.recent import Recent
from corral.server.alerts.notice_delivery import POLL_SECONDS, NoticeDelivery
from corral.server.auth.secret_box import SecretBox, SecretUnreadable
from corral.telemetry.readings import LatestReadings

log = logging.getLogger("corral.server.alerts.alert_worker")

IDLE_SIGNAL = "gpu-idle"
_ANSWER_SECONDS = 30.0


class AlertWorker:
    """`config_channels` are the addresses of the configuration file; the channels config-1, … are made of them."""

    def __init__(
        self,
        *,
        controller: Controller,
        store: Store,
        readings: LatestReadings,
        notifier: Notifier,
        box: SecretBox,
        clock: Clock,
        interval_seconds: float = 5.0,
        config_channels: Sequence[str] = (),
        poll_seconds: float = POLL_SECONDS,
        servers: Callable[[], Sequence[ServerFact]] = tuple,
    ) -> None:
        """`servers` is the leader of several servers, if there are several."""
        self._controller = controller
        self._store = store
        self._readings = readings
        self._notifier = notifier
        self._box = box
        self._clock = clock
        self._config_channels = tuple(config_channels)
        self._servers = servers
        self._recent = Recent(since=clock.now())
        self._recent_lock = threading.Lock()
        self._facts_kept: dict[str, facts.NodeFacts] = {}
        self._delivering = NoticeDelivery(
            controller=controller, store=store, notifier=notifier, box=box, clock=clock, poll_seconds=poll_seconds
        )
        self._worker = Worker("alerting", self._round, every_seconds=interval_seconds)

    def start(self) -> None:
        """Update rules and channels from the settings, and begin. No alert fires before the first readings."""
        self._controller.execute(alerts.follow_settings).result(_ANSWER_SECONDS)
        self._follow_channels()
        self._resume()
        self._worker.start()
        self._delivering.start()

    def stop(self) -> None:
        self._worker.stop()
        self._delivering.stop()

    def wake(self) -> None:
        """Sends queued notices now, rather than within a second."""
        self._delivering.wake()

    def take(self, taken: Round) -> None:
        """Implements `ReadingSink`."""
        with self._recent_lock:
            for reading in taken.gpus:
                if reading.lost:
                    continue
                held_by = taken.holders.get(reading.gpu_id, ())
                # A job that says that it idles does not count as one that should work.
                running = [holder for holder in held_by if holder.running_since and not holder.idles]
                self._recent.see(
                    reading.gpu_id,
                    reading.at,
                    holders=tuple(holder.attempt_id for holder in running),
                    utilization=reading.utilization,
                    xids=reading.xids,
                    ecc_uncorrected=reading.ecc_uncorrected,
                    remap_failed=reading.remap_failed,
                )

    def evaluate(self) -> bool:
        """Evaluate once; returns whether any alert has changed."""
        now = self._clock.now()
        with self._store.read() as tx:
            rules, live, silences = tx.alerts.rules(), tx.alerts.live(), tx.alerts.silences()
            failures, volumes = facts.failures(tx, now), facts.volumes(tx)
        evaluation = evaluate(rules, self._facts(failures, volumes, now), live, silences, now)
        if evaluation.is_empty:
            return False
        self._controller.execute(alerts.apply, evaluation).result(_ANSWER_SECONDS)
        self._delivering.wake()
        return True

    def _facts(self, failures: Sequence[FailureFact], volumes: Sequence[VolumeFact], now: float) -> Facts:
        seen = self._controller.inspect(facts.look, now).result(_ANSWER_SECONDS)
        readings = self._readings.fresh(now)
        with self._recent_lock:
            self._recent.retain(seen.places)
            found = facts.facts_of(seen, readings, self._recent, failures, volumes, now, self._facts_kept)
        return replace(found, servers=self._servers())

    def _round(self) -> None:
        self.evaluate()

    # ---------------------------------------------------------------- the start

    def _resume(self) -> None:
        """Alerts about idle GPUs continue after a restart, although earlier readings are not kept in memory."""
        with self._store.read() as tx:
            watching = {rule.name: rule for rule in tx.alerts.rules() if rule.signal == IDLE_SIGNAL}
            idle = [alert for alert in tx.alerts.live() if alert.rule in watching]
        with self._recent_lock:
            for alert in idle:
                # The alert began when the threshold was reached.
                self._recent.resume(alert.subject, alert.pending_since - watching[alert.rule].threshold * 60)

    def _follow_channels(self) -> None:
        with self._store.read() as tx:
            known = {channel.name: channel for channel in tx.channels.all()}
        try:
            renewed = {
                name: (channel.url, self._box.encrypt(self._box.decrypt(channel.url)))
                for name, channel in known.items()
                if not self._box.is_current(channel.url)
            }
            if renewed:
                self._controller.execute(channels.renew_secrets, renewed).result(_ANSWER_SECONDS)
                with self._store.read() as tx:
                    known = {channel.name: channel for channel in tx.channels.all()}
        except SecretUnreadable as error:
            log.error("the addresses of channels cannot be read: %s", error)
        try:
            wanted = [
                self._config_channel(f"{channels.CONFIG_PREFIX}{number}", url, known)
                for number, url in enumerate(self._config_channels, start=1)
            ]
        except SecretUnreadable as error:
            log.error("the channels of the configuration file cannot be stored: %s", error)
            return
        self._controller.execute(channels.follow_settings, wanted).result(_ANSWER_SECONDS)

    def _config_channel(self, name: str, url: str, known: dict[str, ChannelRecord]) -> ChannelRecord:
        before = known.get(name)
        if before is not None and self._reads_as(before.url, url):
            return before
        try:
            shown, is_usable, problem = self._notifier.shown(url), True, ""
        except NoticeRefused as refused:
            log.error("notification.channels: address %s: %s", name.removeprefix(channels.CONFIG_PREFIX), refused)
            shown, is_usable, problem = f"{url.partition('://')[0][:20]}://***", False, str(refused)
        return ChannelRecord(
            name=name, url=self._box.encrypt(url), shown=shown, enabled=is_usable, description=problem, from_config=True
        )

    def _reads_as(self, encrypted: str, url: str) -> bool:
        try:
            return self._box.decrypt(encrypted) == url
        except SecretUnreadable:
            return False
