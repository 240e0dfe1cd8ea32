"""Sending notices: what is due is taken from the store, one thread per channel, so that a slow channel delays no other.

At least once: a try is counted in the store before it is made, and its outcome after. A server that dies in between
tries again when its successor starts; the receiver may then see the notice twice, but never not at all.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from corral.control.alerts import channels
from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.worker import Worker
from corral.control.ports import Clock, NoticeFailed, NoticeRefused, Notifier, Store, StoreUnavailable
from corral.control.records import DeliveryRecord
from corral.server.auth.secret_box import SecretBox, SecretUnreadable

log = logging.getLogger("corral.server.alerts.notice_delivery")

#: How soon a notice is seen that somebody else has queued.
POLL_SECONDS = 1.0
#: No notice waits for longer than this, neither for its next try nor for company.
LONGEST_PAUSE_SECONDS = 3600.0
_STOP_SECONDS = 2.0


class NoticeDelivery:
    def __init__(
        self,
        *,
        controller: Controller,
        store: Store,
        notifier: Notifier,
        box: SecretBox,
        clock: Clock,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._controller = controller
        self._store = store
        self._notifier = notifier
        self._box = box
        self._clock = clock
        self._lock = threading.Lock()
        #: by channel, the thread that sends there now
        self._senders: dict[str, threading.Thread] = {}
        self._worker = Worker("delivering", self._send_due, every_seconds=poll_seconds)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        """A channel that hangs is left to itself; its notice is tried again by the next server."""
        self._worker.stop()
        with self._lock:
            senders = list(self._senders.values())
        deadline = time.monotonic() + _STOP_SECONDS
        for sender in senders:
            sender.join(timeout=max(0.0, deadline - time.monotonic()))

    def wake(self) -> None:
        """Something was queued just now."""
        self._worker.wake()

    def _send_due(self) -> None:
        with self._store.read() as tx:
            waiting = tx.channels.waiting()
        for channel, due in due_by_channel(waiting, self._clock.now()).items():
            with self._lock:
                if channel in self._senders or self._worker.is_stopping:
                    continue
                sender = threading.Thread(target=self._send_all, args=(channel, due), name=f"to-{channel}", daemon=True)
                self._senders[channel] = sender
            sender.start()

    def _send_all(self, channel: str, due: Sequence[int]) -> None:
        try:
            for delivery_id in due:
                if self._worker.is_stopping:
                    return
                self._send(delivery_id)
        except ControllerStopped:
            pass  # the next server finds it waiting
        except StoreUnavailable as error:
            log.warning("notices to channel %s wait: %s", channel, error)
        except Exception:
            log.exception("sending to channel %s failed", channel)
        finally:
            with self._lock:
                del self._senders[channel]
            self._worker.wake()

    def _send(self, delivery_id: int) -> None:
        begun = self._controller.execute(channels.begin, delivery_id).result()
        if begun is None:
            return
        error, is_final = None, False
        try:
            url = self._box.decrypt(begun.channel.url)
            attachments = [Path(path) for path in begun.delivery.attachments]
            self._notifier.send(url, begun.delivery.title, begun.delivery.body, attachments)
        except (NoticeRefused, SecretUnreadable) as refused:
            error, is_final = str(refused), True
        except NoticeFailed as failed:
            error = str(failed)
        if error is not None:
            log.warning("channel %s did not take notice %d: %s", begun.channel.name, delivery_id, error)
        self._controller.execute(channels.finish, delivery_id, error, is_final=is_final).result()


def due_by_channel(waiting: Sequence[DeliveryRecord], now: float) -> dict[str, list[int]]:
    """What may be sent now. News about alerts keep their order: no end is told before its beginning."""
    due: defaultdict[str, list[int]] = defaultdict(list)
    held_up: set[str] = set()
    for delivery in waiting:
        about_alerts = bool(delivery.alert_ids)
        if about_alerts and delivery.channel in held_up:
            continue
        # Later than any pause: the clock was set back since.
        if not now < delivery.next_try_at <= now + LONGEST_PAUSE_SECONDS:
            due[delivery.channel].append(delivery.id)
        elif about_alerts:
            held_up.add(delivery.channel)
    return dict(due)
