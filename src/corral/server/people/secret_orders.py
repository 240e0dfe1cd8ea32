"""Secrets of jobs at the edge: decrypted when an attempt is launched, and their files removed when its job is over.

A variable exists in the launch order and in the job's process only. A file is in the job's directory, readable for the
job's account alone. Before a file is written, the job's id is noted in the server's home, so that a server that starts
after a crash removes it, too.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from corral.control.errors import Refusal
from corral.control.launch.directories import DISK_TROUBLE, launch_failure
from corral.control.live.controller import Controller
from corral.control.live.state import State
from corral.control.live.worker import Worker
from corral.control.people import secrets
from corral.control.ports import LaunchOrder, LaunchRefused, Store
from corral.control.records import SecretRecord
from corral.core.jobs.secret_uses import parse_secrets
from corral.core.model import JobState
from corral.files import NotPlain, Place
from corral.files.removal import remove_below
from corral.server.auth.secret_box import SecretBox, SecretUnreadable
from corral.stores.jobs.job_directories import DirectoryWorkspace

log = logging.getLogger("corral.server.secrets")

DIRECTORY = "secrets"
NOTES = "secret-files"
EVERY_SECONDS = 10.0
_ASK_SECONDS = 10.0
_LIVE = (JobState.STARTING, JobState.RUNNING, JobState.STOPPING)


class SecretOrders:
    """A launch step, and a worker that removes files."""

    def __init__(
        self, *, controller: Controller, store: Store, box: SecretBox, workspace: DirectoryWorkspace, home: Path
    ) -> None:
        self._controller = controller
        self._store = store
        self._box = box
        self._workspace = workspace
        self._notes = home / NOTES
        self._worker = Worker("secret files", self.remove_files, every_seconds=EVERY_SECONDS)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def prepare(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        """Launch step: add the values of secrets. Raises LaunchRefused, and EngineUnavailable if a file cannot be
        written now."""
        if not order.secrets:
            return order
        with self._store.read() as tables:
            try:
                found = secrets.found(tables, order.user, order.secrets)
            except Refusal as refusal:
                raise LaunchRefused(refusal.detail) from None
        values = {name: unlocked(self._box, secret) for name, secret in found.items()}
        env, files = {}, {}
        for use in parse_secrets(order.secrets):
            if use.is_file:
                files[use.name] = values[use.name]
                env[use.variable] = str(self._workspace.home(order.job_id) / DIRECTORY / use.name)
            else:
                env[use.variable] = values[use.name]
        if files:
            try:
                self._write(order.job_id, files)
            except OSError as error:
                raise launch_failure("the files of secrets cannot be written", error) from error
        return replace(order, secret_env=env)

    def remove_files(self) -> None:
        """Remove the files of jobs that hold no nodes any more. They are written again for the next attempt."""
        try:
            noted = os.listdir(self._notes)
        except FileNotFoundError:
            return
        live = self._controller.inspect(_live, frozenset(noted)).result(_ASK_SECONDS)
        for job_id in sorted(set(noted) - live):
            try:
                self._remove(job_id)
            except OSError as error:
                log.error("the files of secrets of %s cannot be removed: %s", job_id, error)

    def renewed(self) -> dict[secrets.Key, tuple[str, str]]:
        """Secrets that are encrypted with an older key: the stored value, and the value under the newest key."""
        with self._store.read() as tables:
            stored = tables.secrets.all()
        found = {}
        for secret in stored:
            try:
                if not self._box.is_current(secret.value):
                    found[secrets.key_of(secret)] = (secret.value, self._box.encrypt(self._box.decrypt(secret.value)))
            except SecretUnreadable as error:
                log.error("the secret %s of %s cannot be read: %s", secret.name, secret.owner, error)
        return found

    def _write(self, job_id: str, files: dict[str, str]) -> None:
        self._notes.mkdir(mode=0o700, exist_ok=True)
        (self._notes / job_id).touch(mode=0o600)
        with self._workspace.opened(job_id) as home:
            try:
                _write_files(home, files)
            except OSError as error:
                if error.errno in DISK_TROUBLE:
                    raise
                # An earlier attempt has put something else there.
                remove_below(home.descriptor, DIRECTORY)
                _write_files(home, files)

    def _remove(self, job_id: str) -> None:
        """Removes everything at the place, also what the job has put there. Raises OSError if something is left, so
        that it is tried again.
        """
        try:
            with self._workspace.opened(job_id) as home:
                if not remove_below(home.descriptor, DIRECTORY):
                    raise OSError(errno.ENOTEMPTY, "something in the directory cannot be removed")
        except (FileNotFoundError, NotADirectoryError):
            pass  # the job's directory was removed
        except NotPlain as error:
            log.warning("%s has replaced its directory: %s", job_id, error)
        (self._notes / job_id).unlink(missing_ok=True)


def unlocked(box: SecretBox, secret: SecretRecord) -> str:
    """The value of a secret. Raises LaunchRefused."""
    try:
        return box.decrypt(secret.value)
    except SecretUnreadable as error:
        log.error("the secret %s of %s cannot be read: %s", secret.name, secret.owner, error)
        raise LaunchRefused(
            f"the secret {secret.name} cannot be read any more: set it again with corral secret set {secret.name}"
        ) from None


def _write_files(home: Place, files: Mapping[str, str]) -> None:
    home.make(DIRECTORY, 0o700)
    with home.below(DIRECTORY) as own:
        for name, value in files.items():
            own.write(name, value.encode(), mode=0o400, for_owner=True)


def _live(state: State, job_ids: frozenset[str]) -> set[str]:
    jobs = state.snapshot.jobs
    return {job_id for job_id in job_ids if job_id in jobs and jobs[job_id].state in _LIVE}
