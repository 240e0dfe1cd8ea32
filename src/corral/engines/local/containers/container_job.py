"""A container, as its supervisor uses it: pulls the image, separates the job's processes from the runtime's, finds out
how the container ended, and removes it. The engine provides the command lines.

The program is the first process of the container's own process namespace. The kernel ignores SIGTERM for such a process
unless it has a handler, and kills all others when it ends. So that a stop means the same as without a container, every
process of the container gets the signal, and a first process that would have died of it is killed as soon as it is
alone. It is forked from the spawner, so this module uses the standard library only.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from corral.engines.attempts.instance_messages import ContainerSpec, InstanceSpec
from corral.engines.attempts.processes import die_with_parent, dies_of, pid_namespace, send
from corral.engines.local.containers.container_mounts import enter_container_mounts
from corral.engines.local.containers.image_rights import ImageRights, plain_id

if TYPE_CHECKING:
    import subprocess

#: How long the runtime may take to answer a question or to remove a container.
_ANSWER_SECONDS = 30.0
_TAIL_BYTES = 4096
_NEVER = "0001-"
_ERROR = "Error: "


class PullFailed(Exception):
    """The image could not be pulled; the message is the runtime's own."""


class PullStopped(Exception):
    """A stop came before the image was pulled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerEnd:
    """The runtime's report about a container that ended. `has_started` is None if it reports nothing."""

    has_started: bool | None
    oom_killed: bool = False
    message: str = ""


class ContainerJob:
    def __init__(self, spec: ContainerSpec) -> None:
        self._spec = spec
        self._own_namespace = pid_namespace(os.getpid())
        #: the image that the attempt may run, once that is known
        self._image_id = ""

    def entered(self, spec: InstanceSpec) -> list[str]:
        """Called in the process that becomes the runtime: mounts the directories of the container, and returns the
        command. Raises CannotMount."""
        command = list(enter_container_mounts(spec, self._spec))
        command[self._spec["image_at"]] = self._image_id or self._spec["image"]
        return command

    @property
    def env(self) -> dict[str, str]:
        return self._spec["env"]

    # -------------------------------------------------------------------------------------------- beginning

    def fetch_image(self, wake: int, wants_stop: Callable[[], bool], say: Callable[[str], None]) -> None:
        """Waits until the image is on the node and may be used. `wake` becomes readable when a signal came. Raises
        PullFailed or PullStopped. An image that was pulled with a login is pulled again, so that the registry decides
        whether this user may use it."""
        rights = ImageRights(self._spec["rights"], self._id_of)
        found = self._id_of(self._spec["image"])
        if not self._spec["auth"] and found is not None and rights.is_open(found):
            self._image_id = found
            return
        say(f"pulling image {self._spec['image']}")
        if not self._spec["auth"]:
            self._pull(wake, wants_stop)
            self._image_id = self._pulled_id()
            rights.open_to_all(self._image_id)
            return
        try:
            self._write_auth()
            with rights.pulling(self._spec["image"]):
                self._pull(wake, wants_stop)
        finally:
            self._remove_auth()
        self._image_id = self._pulled_id()

    def _id_of(self, address: str) -> str | None:
        return plain_id(self._answer([*self._spec["exists"][:-1], address]))

    def _pulled_id(self) -> str:
        found = self._id_of(self._spec["image"])
        if found is None:
            raise PullFailed(f"image {self._spec['image']}: it was removed from the node meanwhile")
        return found

    def _write_auth(self) -> None:
        directory = os.path.dirname(self._spec["auth_file"])
        os.makedirs(directory, mode=0o700, exist_ok=True)
        _write_private(self._spec["auth_file"], self._spec["auth"])

    def _remove_auth(self) -> None:
        import shutil  # see `_start`

        shutil.rmtree(os.path.dirname(self._spec["auth_file"]), ignore_errors=True)

    def _pull(self, wake: int, wants_stop: Callable[[], bool]) -> None:
        process = self._start(self._spec["pull"])
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(process.stderr, select.POLLIN)
        tail = b""
        while process.poll() is None:
            if wants_stop():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise PullStopped
            poll.poll()
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
            tail = (tail + (process.stderr.read() or b""))[-_TAIL_BYTES:]
        tail += process.stderr.read() or b""
        if process.returncode != 0:
            raise PullFailed(f"image {self._spec['image']}: {error_in(tail) or 'it cannot be pulled'}")

    def _start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        # Not loaded by the spawner: it loads `threading`, whose handler costs every fork a quarter of its time.
        import subprocess

        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=self._spec["env"],
                cwd="/",
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        except OSError as error:
            raise PullFailed(f"image {self._spec['image']}: {command[0]}: {error.strerror}") from error

    def write_environment(self, env: Mapping[str, str]) -> None:
        """Writes the file that the runtime reads: one variable per line, taken literally."""
        text = "".join(f"{name}={value}\n" for name, value in sorted(env.items()))
        _write_private(self._spec["env_file"], text)

    # -------------------------------------------------------------------------------------------- its processes

    def inside(self, pids: Iterable[int]) -> set[int]:
        """The processes that belong to the container, without those of its runtime."""
        return {pid for pid in pids if pid_namespace(pid) not in ("", self._own_namespace)}

    def terminate(self, inside: set[int]) -> bool:
        """SIGTERM to every process; False if there is none yet."""
        if self._spec["is_child"]:
            send(inside, signal.SIGTERM)
            send(inside, signal.SIGCONT)
            return bool(inside)
        return self._answer(self._spec["terminate"]) is not None

    def end_lonely_first(self, inside: set[int]) -> bool:
        """Kill a first process that is alone and would have died of SIGTERM if it were not the first."""
        lonely = next(iter(inside)) if len(inside) == 1 else None
        if lonely is None or not dies_of(lonely, signal.SIGTERM):
            return False
        return send([lonely], signal.SIGKILL) > 0

    # -------------------------------------------------------------------------------------------- end

    def end(self) -> ContainerEnd:
        answer = self._answer(self._spec["inspect"])
        if answer is None:
            return ContainerEnd(has_started=None)
        oom_killed, started_at, message = (*answer.strip().split("|", 2), "", "")[:3]
        return ContainerEnd(
            has_started=not started_at.startswith(_NEVER), oom_killed=oom_killed == "true", message=message.strip()
        )

    def remove(self) -> None:
        self._answer(self._spec["remove"])
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._spec["env_file"])

    def _answer(self, command: Sequence[str]) -> str | None:
        """The output of the runtime; None if it fails or does not answer."""
        import subprocess  # see `_start`

        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._spec["env"],
                cwd="/",
                timeout=_ANSWER_SECONDS,
                preexec_fn=die_with_parent,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def error_in(output: bytes) -> str:
    """The runtime's last error message, without its prefix."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    complaints = [line for line in lines if line.startswith((_ERROR, "docker: "))]
    found = (complaints or lines or [""])[-1]
    for decoration in ("docker: ", _ERROR, "Error response from daemon: "):
        found = found.removeprefix(decoration)
    return found


def _write_private(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as target:
        target.write(text)
