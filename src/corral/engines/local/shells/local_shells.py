"""Further commands in running jobs of this machine: `corral shell`.

A command in a job with an image runs in its container, by Podman or Docker. Every other one is started by
`shell_process`, which enters the job as its program did, and ends the command with it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence

from corral.control.ports import EngineUnavailable, LaunchRefused
from corral.engines.attempts.claims import ClaimState, claim_state, read_claim
from corral.engines.attempts.processes import start_ticks
from corral.engines.local.attempts import AttemptFiles
from corral.engines.local.containers.container_orders import ContainerRuntime, container_name
from corral.engines.local.rundir import ENVIRONMENT, TMP, Layout, is_safe_id
from corral.engines.shells.process_shell import ProcessShell, ShellSpec, started

_SHELL_OF_IMAGE = ("/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec /bin/sh")
_HANG_UP_SECONDS = 2.0
#: how long a job may count as running before its runtime has made the container
_CONTAINER_SECONDS = 20.0
_LOOK_SECONDS = 0.2


class LocalShells:
    def __init__(
        self,
        layout: Layout,
        files: AttemptFiles,
        engine: str,
        runtime: Callable[[], ContainerRuntime | None],
        server_env: Mapping[str, str],
    ) -> None:
        self._layout = layout
        self._files = files
        self._engine = engine
        self._runtime = runtime
        self._env = {"PATH": server_env.get("PATH", os.defpath), "LANG": "C.UTF-8"}

    async def open_shell(
        self, attempt_id: str, rank: int, command: Sequence[str], *, has_terminal: bool, has_input: bool
    ) -> ProcessShell:
        """Raises LaunchRefused and EngineUnavailable."""
        spec = self._spec(attempt_id, rank, command, has_terminal=has_terminal)
        words, env = list[str](), dict(self._env)
        if self._has_container(attempt_id, rank):
            words, env = await self._in_container(attempt_id, rank, command, has_terminal, has_input)
            spec = None
        elif spec is None:
            raise LaunchRefused(f"instance {rank} of {attempt_id} does not run")
        try:
            return await started(words, env, spec, has_terminal=has_terminal, has_input=has_input)
        except OSError as error:
            raise EngineUnavailable(f"no command can be started: {error.strerror}") from error

    def _spec(self, attempt_id: str, rank: int, command: Sequence[str], *, has_terminal: bool) -> ShellSpec | None:
        """The input of `shell_process`; None if the instance does not run."""
        if not is_safe_id(attempt_id):
            return None
        directory = self._layout.rank_dir(attempt_id, rank)
        claimed = read_claim(directory).started
        pid, ticks = claimed.get("pid"), claimed.get("start_ticks")
        if not isinstance(pid, int) or ticks is None or start_ticks(pid) != ticks:
            return None
        try:
            # Only the server can change the directory around it: its owner is the account of the job.
            owner = os.lstat(os.path.join(directory, TMP))
        except FileNotFoundError:
            return None
        groups = [os.path.join(path, "cgroup.procs") for path in self._files.group(attempt_id, rank).directories]
        return ShellSpec(
            pid=pid,
            start_ticks=ticks,
            uid=owner.st_uid,
            gid=owner.st_gid,
            groups=[path for path in groups if os.path.exists(path)],
            command=list(command),
            has_terminal=has_terminal,
            term="xterm-256color",
            hang_up_seconds=_HANG_UP_SECONDS,
            control=-1,
        )

    def _has_container(self, attempt_id: str, rank: int) -> bool:
        return is_safe_id(attempt_id) and os.path.exists(
            os.path.join(self._layout.rank_dir(attempt_id, rank), ENVIRONMENT)
        )

    async def _in_container(
        self, attempt_id: str, rank: int, command: Sequence[str], has_terminal: bool, has_input: bool
    ) -> tuple[list[str], dict[str, str]]:
        """The container's own variables, account, working directory and limits hold for the command."""
        runtime, name = self._runtime(), container_name(self._engine, attempt_id, rank)
        if runtime is None or not await self._container_runs(runtime, name, self._layout.rank_dir(attempt_id, rank)):
            raise LaunchRefused(f"instance {rank} of {attempt_id} does not run")
        options = [*(["--interactive"] if has_input else []), *(["--tty"] if has_terminal else [])]
        words = [runtime.program, *runtime.global_options, "exec", *options, name, *(command or _SHELL_OF_IMAGE)]
        return words, dict(runtime.env)

    async def _container_runs(self, runtime: ContainerRuntime, name: str, directory: str) -> bool:
        """Waits for the container of an instance whose runtime is still making it."""
        query = ["container", "inspect", "--format", "{{.State.Running}}", name]
        until = time.monotonic() + _CONTAINER_SECONDS
        while claim_state(directory) is ClaimState.HELD and time.monotonic() < until:
            try:
                process = await asyncio.create_subprocess_exec(
                    runtime.program,
                    *runtime.global_options,
                    *query,
                    env=dict(runtime.env),
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                )
            except OSError as error:
                raise EngineUnavailable(f"{runtime.program} cannot be started: {error.strerror}") from error
            answer, _ = await process.communicate()
            if answer.strip() == b"true":
                return True
            await asyncio.sleep(_LOOK_SECONDS)
        return False
