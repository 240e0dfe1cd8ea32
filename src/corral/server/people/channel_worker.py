"""Sends new items of inboxes to personal channels, a few at a time, and one at a time for each user."""

from __future__ import annotations

import logging
import threading

from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.worker import Worker
from corral.control.people import inbox_channels
from corral.control.people.inbox_channels import ChannelMessage
from corral.control.people.user_inbox import KINDS
from corral.control.ports import Clock, NoticeFailed, NoticeRefused, Store, StoreUnavailable, Transaction
from corral.server.auth.secret_box import SecretUnreadable
from corral.server.people.personal_sender import PersonalSender

log = logging.getLogger("corral.server.people.channel_worker")

EVERY_SECONDS = 2.0
AT_ONCE = 8
_MAX_EVENTS = 1000
_ANSWER_SECONDS = 30.0


class ChannelWorker:
    def __init__(
        self,
        *,
        controller: Controller,
        store: Store,
        sender: PersonalSender,
        clock: Clock,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._controller = controller
        self._store = store
        self._sender = sender
        self._clock = clock
        self._lock = threading.Lock()
        #: by user, the thread that sends now
        self._senders: dict[str, threading.Thread] = {}
        #: the last event that was looked at; None: none yet
        self._seen: int | None = None
        #: users with items that were not sent yet
        self._waiting: set[str] = set()
        self._worker = Worker("personal channels", self.step, every_seconds=every_seconds)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        """Does not wait for receivers that hang: the next server tries again."""
        self._worker.stop()

    def step(self) -> None:
        """Begin to send what is due. Without new events, and without items that wait, this reads one number."""
        with self._store.read() as tx:
            last = tx.events.last_id()
            users = self._users(tx, last)
            pending = inbox_channels.pending(tx, users) if users is None or users else []
        self._seen = last
        self._waiting = {channel.user for channel in pending}
        now = self._clock.now()
        for channel in pending:
            if inbox_channels.may_send(channel, now):
                self._begin(channel.user, channel.name)

    def _users(self, tx: Transaction, last: int) -> set[str] | None:
        """Users who may have something to get; None: all."""
        if self._seen is None or last - self._seen > _MAX_EVENTS:
            return None
        fresh = tx.events.after(self._seen, _MAX_EVENTS) if last > self._seen else []
        return self._waiting | {event.owner for event in fresh if event.action in KINDS and event.owner}

    def _begin(self, user: str, name: str) -> None:
        with self._lock:
            if user in self._senders or len(self._senders) >= AT_ONCE or self._worker.is_stopping:
                return
            thread = threading.Thread(target=self._send, args=(user, name), name=f"channel-of-{user}", daemon=True)
            self._senders[user] = thread
        thread.start()

    def _send(self, user: str, name: str) -> None:
        try:
            message = self._controller.execute(inbox_channels.begin, user, name).result(_ANSWER_SECONDS)
            if message is not None:
                error, is_final = self._outcome(message)
                done = self._controller.execute(inbox_channels.finish, message, error, is_final=is_final)
                done.result(_ANSWER_SECONDS)
        except ControllerStopped:
            pass  # the next server finds it
        except StoreUnavailable as error:
            log.warning("messages to channel %s of %s wait: %s", name, user, error)
        except Exception:
            log.exception("sending to channel %s of %s failed", name, user)
        finally:
            with self._lock:
                del self._senders[user]

    def _outcome(self, message: ChannelMessage) -> tuple[str | None, bool]:
        """The error, if there is one, and whether another try is useless."""
        try:
            self._sender.send(message)
        except NoticeRefused as refused:
            return str(refused), True
        except (NoticeFailed, SecretUnreadable) as error:
            return str(error), False
        return None, False
