"""Further commands in running jobs on Slurm: `corral shell`.

Each is a step of the job's allocation beside its program (`srun --overlap`), started by the account of the job: Slurm
lets no other in, keeps it under the limits of the job, and ends it with the job. On the node a few lines of bash find
the job's program by the directory of its instance, and continue with its variables and working directory.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Sequence

from corral.control.ports import EngineUnavailable, LaunchRefused
from corral.engines.shells.process_shell import ProcessShell, ShellSpec, started
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.attempts.slurm_attempt import Attempt
from corral.engines.slurm.slurm_api.commands import SRUN_FAILED, Slurm, SlurmRefused
from corral.engines.slurm.slurm_api.slurm_records import JobOwner

#: srun ends its step before it ends itself.
_HANG_UP_SECONDS = 20.0
#: $1 is the directory of the instance, $2 the type of the terminal, if there is one; then the command.
_SCRIPT = r"""
place=$1 term=$2
shift 2
oldest= main=
for file in $(grep -lszxF "CORRAL_RUN_DIR=$place" /proc/[0-9]*/environ); do
  pid=${file//[!0-9]/}
  IFS= read -r line 2>/dev/null </proc/"$pid"/stat || continue
  fields=(${line##*) }) # the first is the state, the twentieth the time at which it began
  if [ -z "$oldest" ] || (( fields[19] < oldest )); then oldest=${fields[19]} main=$pid; fi
done
if [ -z "$main" ]; then echo "the program of the job does not run" >&2; exit 126; fi
variables=()
while IFS= read -r -d '' line; do [[ $line == ?*=* ]] && variables+=("$line"); done </proc/"$main"/environ
cd -- "$(readlink /proc/"$main"/cwd)" 2>/dev/null
[ -n "$term" ] && variables+=("TERM=$term")
runner=()
if [ -e "$place/runner" ]; then # the program runs in an image: so does the command, with the same directories
  . "$place/runner"
  inside=("PATH=$PATH") prefix=APPTAINERENV_
  # The program may be found, or Apptainer, in whose own environment the variables of the program have the prefix.
  [[ " ${variables[*]} " == *" ${prefix}CORRAL_RUN_DIR="* ]] && prefix=
  for line in "${variables[@]}"; do
    case $prefix$line in
      APPTAINERENV_HOME=*|APPTAINERENV_APPTAINER_*|APPTAINERENV_SINGULARITY_*) ;;
      APPTAINERENV_*) inside+=("$prefix$line") ;;
    esac
  done
  variables=("${inside[@]}")
  [ $# -gt 0 ] || set -- sh
fi
[ $# -gt 0 ] || set -- bash
exec env -i -- "${variables[@]}" "${runner[@]}" "$@"
"""


class SlurmShells:
    def __init__(self, layout: Layout, slurm: Slurm, running: Callable[[str, int], Attempt | None]) -> None:
        """`running` finds an attempt whose instance of that rank runs."""
        self._layout = layout
        self._slurm = slurm
        self._running = running

    async def open_shell(
        self, attempt_id: str, rank: int, command: Sequence[str], *, has_terminal: bool, has_input: bool
    ) -> ProcessShell:
        """Raises LaunchRefused and EngineUnavailable."""
        attempt = self._running(attempt_id, rank)
        if attempt is None or attempt.job_id is None:
            raise LaunchRefused(f"instance {rank} of {attempt_id} does not run")
        try:
            srun, env = self._slurm.beside(
                attempt.job_id, attempt.nodes[rank], has_terminal=has_terminal, has_input=has_input
            )
        except SlurmRefused as refusal:
            raise LaunchRefused(f"Slurm opens no shell: {refusal}") from refusal
        uid, gid = _account_of(attempt.owner)
        term = "xterm-256color" if has_terminal else ""
        place = self._layout.place(attempt_id, rank)
        spec = ShellSpec(
            pid=0,
            start_ticks=0,
            uid=uid,
            gid=gid,
            groups=[],
            command=[*srun, "/bin/bash", "-c", _SCRIPT, "corral-shell", place, term, *command],
            has_terminal=has_terminal,
            term=term,
            hang_up_seconds=_HANG_UP_SECONDS,
            control=-1,
        )
        try:
            return await started(
                [],
                env,
                spec,
                has_terminal=has_terminal,
                has_input=has_input,
                failures={SRUN_FAILED: f"Slurm did not start it: srun --overlap --jobid={attempt.job_id} has failed"},
            )
        except OSError as error:
            raise EngineUnavailable(f"no command can be started: {error.strerror}") from error


def _account_of(owner: JobOwner) -> tuple[int, int]:
    """The user and the group. Raises LaunchRefused."""
    if owner.uid == os.geteuid() or (owner.uid is None and not owner.name):
        return os.geteuid(), os.getegid()
    try:
        found = pwd.getpwnam(owner.name) if owner.uid is None else pwd.getpwuid(owner.uid)
    except KeyError:
        named = owner.name or owner.uid
        raise LaunchRefused(f"the account of the job ({named}) is unknown on the machine of the server") from None
    return found.pw_uid, found.pw_gid
