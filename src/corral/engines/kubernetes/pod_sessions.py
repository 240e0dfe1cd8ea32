"""Connections into pods that run: commands with a terminal, and ports of their programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from corral.control.ports import EngineUnavailable, LaunchRefused, ShellStream
from corral.engines.kubernetes.api.client import ApiClient, ApiError, ApiNotFound, ApiUnavailable, Json
from corral.engines.kubernetes.api.exec_stream import open_command
from corral.engines.kubernetes.api.objects import CONTAINER, annotations_of, name_of
from corral.engines.kubernetes.api.port_forward import forward
from corral.engines.kubernetes.attempts.ends import is_up
from corral.engines.kubernetes.attempts.pods import START_ANNOTATION, place_of_program

#: Runs in the image's own shell, beside the program: $1 working directory, $2 virtual environment, $3 the address of a
#: gang's first instance, then the command.
_SCRIPT = """
cd -- "${1:-/}" 2>/dev/null
if [ -n "$2" ]; then
  export PATH="$2/bin:$PATH"
  if [ -d "$2/conda-meta" ]; then export CONDA_PREFIX="$2"; else export VIRTUAL_ENV="$2"; fi
fi
if [ -n "$3" ]; then export MASTER_ADDR="$3" PET_MASTER_ADDR="$3"; fi
shift 3
[ $# -gt 0 ] && exec "$@"
if command -v bash >/dev/null 2>&1; then exec bash; fi
exec /bin/sh
"""


class PodSessions:
    """`pod_of` returns the pod of an instance that runs, by attempt and rank; None if there is none. `api_path` is the
    path of a pod in the API."""

    def __init__(
        self, api: ApiClient, pod_of: Callable[[str, int], Json | None], api_path: Callable[[Json], str]
    ) -> None:
        self._api = api
        self._pod_of = pod_of
        self._api_path = api_path

    async def open_shell(
        self, attempt_id: str, rank: int, command: Sequence[str], *, has_terminal: bool, has_input: bool
    ) -> ShellStream:
        pod = self._running(attempt_id, rank)
        if pod is None:
            raise LaunchRefused(f"instance {rank} of {attempt_id} does not run")
        workdir, venv = place_of_program(pod)
        arguments = [workdir, venv, annotations_of(pod).get(START_ANNOTATION, ""), *command]
        try:
            return await open_command(
                self._api.access,
                self._api_path(pod),
                CONTAINER,
                ["/bin/sh", "-c", _SCRIPT, "corral-shell", *arguments],
                has_terminal=has_terminal,
                has_input=has_input,
            )
        except ApiNotFound as error:
            raise LaunchRefused(f"instance {rank} of {attempt_id} has ended") from error
        except ApiError as refusal:
            raise LaunchRefused(f"Kubernetes refuses it: {refusal}") from refusal
        except ApiUnavailable as error:
            raise EngineUnavailable(f"Kubernetes: {error}") from error

    def listen_address(self) -> str:
        """A server in the cluster reaches the addresses of pods. One outside of it comes through the API server, which
        connects to the pod's own loopback: then no other pod can even try."""
        return "0.0.0.0" if self._api.access.is_inside else "127.0.0.1"

    def reach(self, attempt_id: str, port: int) -> tuple[str, int] | int:
        pod = self._running(attempt_id, 0)
        if pod is None:
            raise EngineUnavailable(f"{attempt_id} does not run in Kubernetes")
        if self._api.access.is_inside:
            return str(pod["status"]["podIP"]), port
        try:
            return forward(self._api.access, self._api_path(pod), port).detach()
        except (ApiError, ApiUnavailable) as error:
            raise EngineUnavailable(f"Kubernetes: {name_of(pod)}: {error}") from error

    def _running(self, attempt_id: str, rank: int) -> Json | None:
        pod = self._pod_of(attempt_id, rank)
        return pod if pod is not None and is_up(pod) and pod["status"].get("podIP") else None
