"""Flags of docker, kubectl and Slurm that corral does not have, with what to type instead."""

from __future__ import annotations

from collections.abc import Collection, Mapping

_TAIL = ("--tail", "Use --tail N.")
_NODES = ("--nodes", "Use --nodes N: a job has one instance on each node.")
_FILTERS = ("--queue", "There are no namespaces; --queue and --user filter lists.")
_SEARCH = ("--search", "Use --search TEXT to filter the list.")
_GPUS = ("--gpus", "Use --gpus N: they count on each node.")
_CPUS = ("--cpus", "Use --cpus N: they count on each node.")
_MEMORY = ("--memory", "Use --memory SIZE, such as 16GiB.")
_QUEUE = ("--retries", "Use --queue for the queue of a job.")
_ATTEMPT = ("--attempt", "Use --attempt N for the log of an earlier attempt.")
_TIME = ("--retries", "Use --time, such as 2h.")
_NO_TIMES = ("--tail", "Lines of a log have no times; --tail N begins with the last N lines.")
_NAME = ("--retries", "Use --name NAME.")
_BACKGROUND = ("--retries", "A job always runs in the background; `corral run` waits for it.")
_MOUNT = ("--mount", "Use --mount VOLUME:/path.")
_STAYS = ("--retries", "A job stays until `corral rm`; retention removes old ones.")
_TERMINAL = ("--retries", "Use `corral workbench` for work at a terminal.")
_SHELL = ("--rank", "`corral shell` is interactive by itself.")
_NO_NAMESPACES = ("--retries", "There are no namespaces; --queue is the queue of a job.")
_LABEL = ("--retries", "The scheduler chooses the nodes; --label NAME=VALUE narrows them down.")
_WORKDIR = ("--workdir", "Use --workdir DIR.")
_ENV = ("--env", "Use --env NAME=VALUE.")
_RETRIES = ("--retries", "Use --retries N.")
_MAIL = ("--retries", "`corral inbox channels create` sends notices about your jobs.")
_LOG = ("--retries", "Output and errors are one log: `corral logs JOB`.")
_CHARGED = ("--retries", "A job is charged to you and your group.")
_OWNER = ("--retries", "A job belongs to the user who submits it.")
_BY_NAME = ("--array", "Name the jobs; `corral jobs --mine -q` prints the ids of yours.")
_RANK = ("--rank", "Use --rank N: each node of a job has its own log.")
_JSON = ("--output", "Use -o json.")
_LIVE = ("--output", "`corral top` shows GPUs and jobs live.")
_PARAMETERS = ("--param", "Parameters of a preset are given with --param NAME=VALUE.")
#: Flags of other tools, each with an option and a hint; the first one whose option the command has is shown.
FOREIGN_FLAGS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "-n": (_TAIL, _NODES, _FILTERS),
    "-N": (_NODES,),
    "-G": (_GPUS,),
    "-c": (_CPUS, _RANK),
    "--ntasks": (_NODES,),
    "--lines": (_TAIL,),
    "--namespace": (_NO_NAMESPACES, _FILTERS),
    "-l": (_SEARCH, ("--label", "Use --label NAME=VALUE for nodes with a label.")),
    "--selector": (_SEARCH,),
    "--gres": (("--model", "Use --gpus N and --model MODEL."),),
    "--gpus-per-node": (_GPUS,),
    "--gpus-per-task": (_GPUS,),
    "--cpus-per-task": (_CPUS,),
    "--mem": (_MEMORY,),
    "-m": (_MEMORY,),
    "-p": (_QUEUE, _ATTEMPT),
    "--partition": (_QUEUE,),
    "--previous": (_ATTEMPT,),
    "--since": (_NO_TIMES,),
    "--timestamps": (_NO_TIMES,),
    "-t": (_TIME, _NO_TIMES),
    "-J": (_NAME,),
    "--job-name": (_NAME,),
    "--dependency": (("--after", "Use --after JOB."),),
    "-d": (_BACKGROUND,),
    "--detach": (_BACKGROUND,),
    "--rm": (_STAYS,),
    "-e": (_ENV,),
    "--env-file": (_ENV,),
    "--export": (_ENV,),
    "--error": (_LOG,),
    "-A": (_CHARGED,),
    "--account": (_CHARGED,),
    "--qos": (_QUEUE,),
    "--user": (_OWNER, _BY_NAME),
    "--mine": (_BY_NAME,),
    "--all": (_BY_NAME,),
    "-a": (_BY_NAME,),
    "--state": (_BY_NAME,),
    "--wrap": (("--retries", "Put a shell after --, as in `-- bash -c 'COMMAND'`."),),
    "--node": (_LABEL,),
    "--nodelist": (_LABEL,),
    "--exclude": (_LABEL,),
    "-x": (_LABEL,),
    "-C": (_LABEL,),
    "--constraint": (_LABEL,),
    "--exclusive": (("--retries", "Use --gpus N with all GPUs of a node."),),
    "--ntasks-per-node": (("--retries", "A job has one instance on each node, which starts its own processes."),),
    "--mail-user": (_MAIL,),
    "--mail-type": (_MAIL,),
    "--begin": (("--hold", "Use --hold, and `corral start` later."),),
    "--comment": (("--description", "Use --description TEXT."),),
    "--chdir": (_WORKDIR,),
    "--cwd": (_WORKDIR,),
    "-D": (_WORKDIR,),
    "--parsable": (("--retries", "Use -o name to print only the id."),),
    "-q": (("--retries", "Use -o name to print only the id."),),
    "--quiet": (("--retries", "Use -o name to print only the id."),),
    "--test-only": (("--dry-run", "Use --dry-run."),),
    "--restart": (_RETRIES,),
    "--requeue": (_RETRIES,),
    "--no-requeue": (("--retries", "Use --retries 0."),),
    "--signal": (("--grace", "Use --grace DURATION: the time between SIGTERM and SIGKILL."),),
    "--reservation": (("--retries", "Reserved GPUs are used without a flag."),),
    "--time-limit": (_TIME,),
    "-g": (_GPUS,),
    "-w": (_WORKDIR, _LIVE),
    "--watch": (_LIVE,),
    "--until": (_NO_TIMES,),
    "--grep": (("--search", "Use --search TEXT."),),
    "--container": (_RANK,),
    "--all-containers": (("--rank", "Use --rank all."),),
    "--json": (_JSON,),
    "-j": (_JSON,),
    "--yaml": (("--output", "Use -o yaml."),),
    "--set": (_PARAMETERS,),
    "-i": (_TERMINAL, _SHELL),
    "-it": (_TERMINAL, _SHELL),
    "-v": (_MOUNT,),
    "--volume": (_MOUNT,),
    "-u": (("--mine", "Use --user NAME."), _BY_NAME),
    "--me": (("--mine", "Use --mine."), _BY_NAME),
    "--format": (("--columns", "Use -o json|yaml|csv|name, and --columns A,B."),),
}
#: The same for commands that ask a question.
QUESTION_FLAGS = dict.fromkeys(("-f", "--force"), (("--yes", "Use -y to skip the question."),))


def hint_for(option: str, known: Collection[str]) -> str:
    """Advice for an option of another tool, in a command with the `known` options; empty if there is none."""
    foreign = {**FOREIGN_FLAGS, **QUESTION_FLAGS}.get(option, ())
    return next((text for needed, text in foreign if needed in known), "")
