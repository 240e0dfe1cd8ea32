"""Summaries of the commands of the first level, for `corral --help`. Written by `make openapi`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Summary(NamedTuple):
    name: str
    section: str
    text: str


SUMMARIES: Sequence[Summary] = (
    Summary("submit", "Daily work", "Submit a job."),
    Summary("run", "Daily work", "Submit a job and print its output until it ends, and exit with its exit code."),
    Summary("wait", "Daily work", "Wait until jobs have ended, and exit like the first one that did not complete."),
    Summary("jobs", "Daily work", "List jobs, the newest first; without -a those that wait or run."),
    Summary("show", "Daily work", "Show everything about one job, with its attempts."),
    Summary(
        "why",
        "Daily work",
        "Show why a job waits: the rules that hold it, the jobs ahead, its planned start, and changes that would help.",
    ),
    Summary("inbox", "Daily work", "Show what happened to your jobs, volumes and shares."),
    Summary("stop", "Daily work", "Stop jobs: SIGTERM, then SIGKILL after the grace time."),
    Summary("start", "Daily work", "Queue jobs that were held back or have ended, with the same settings."),
    Summary(
        "requeue", "Daily work", "Requeue running jobs: they save, end, and later resume from their last checkpoint."
    ),
    Summary(
        "restart",
        "Daily work",
        "Run jobs again from their last checkpoint: a running job is requeued, an ended one is queued.",
    ),
    Summary(
        "resize",
        "Daily work",
        "Change the number of GPUs of a running elastic job: it is warned, saves, and starts again.",
    ),
    Summary(
        "migrate",
        "Daily work",
        "Move a running job to another node, after a preview: it is warned, saves, and starts again there.",
    ),
    Summary("extend", "Daily work", "Give more time, once, to a job that was warned because it is idle."),
    Summary(
        "edit",
        "Daily work",
        "Change settings of a job: queue, priority, time limit and dependencies before it runs, its"
        " size before it ever ran, and its description at any time.",
    ),
    Summary("keep", "Daily work", "Keep jobs with their logs and files beyond the retention time."),
    Summary("rm", "Daily work", "Delete ended jobs with their attempts and logs."),
    Summary("clone", "Daily work", "Submit a job of yours again."),
    Summary("logs", "Daily work", "Print a job's output, search it on the server, or save it."),
    Summary("shell", "Daily work", "Open a shell in a running job, or run a command there."),
    Summary("files", "Daily work", "List and save the files that a job wrote into CORRAL_OUTPUT_DIR."),
    Summary("cp", "Daily work", "Copy files to a volume, from a volume, or between volumes."),
    Summary("sync", "Daily work", "Make a directory equal to another: only new and changed files are copied."),
    Summary("preset", "Daily work", "Trainings that are ready to run, with parameters."),
    Summary("checkpoints", "Daily work", "List a job's checkpoints, newest first."),
    Summary(
        "checkpoint",
        "Daily work",
        "Ask a running job to save a checkpoint; a program with the checkpoint helper does so after its current step.",
    ),
    Summary("curves", "Daily work", "Show numbers that a job's program reports per step, such as its loss."),
    Summary("image", "Daily work", "Manage the images that jobs run in."),
    Summary("registry", "Daily work", "Manage your logins to registries."),
    Summary("secret", "Daily work", "Manage secrets, which jobs get as variables or files."),
    Summary("volume", "Daily work", "Manage the storage that your jobs mount."),
    Summary("dataset", "Daily work", "Keep versions of files: commit, diff, check out, mount into jobs."),
    Summary("target", "Daily work", "Manage the targets that store datasets."),
    Summary("pin", "Queue", "Put a waiting job to the front (operators)."),
    Summary("unpin", "Queue", "Undo a pin (operators)."),
    Summary("move", "Queue", "Change the order of your own waiting jobs."),
    Summary(
        "scores",
        "Queue",
        "Show the scores of the fair-share order, lower goes first; or the history of one user's scores.",
    ),
    Summary("queue", "Queue", "Show the order of waiting jobs, and manage queues."),
    Summary("status", "Cluster", "Show nodes, free and allocated GPUs, and running jobs."),
    Summary("top", "Cluster", "Watch GPUs, running jobs and the queue, live; q quits."),
    Summary("nodes", "Cluster", "List nodes; cordon, drain, uncordon and remove them."),
    Summary("gpus", "Cluster", "List GPUs with readings and health; test, mark and reset them."),
    Summary("cluster", "Cluster", "The health of each part of the platform (operators), and the clusters."),
    Summary("leader", "Cluster", "The server that leads, if several share one store (operators)."),
    Summary("pool", "Cluster", "List pools of GPUs; manage them (operators)."),
    Summary("object-store", "Cluster", "Manage the buckets that object volumes use."),
    Summary("maintenance", "Cluster", "See planned maintenance; plan it (operators)."),
    Summary("reservation", "Cluster", "See reserved GPUs; reserve them for users and groups (operators)."),
    Summary("analyse", "Cluster", "Find waste, and show usage."),
    Summary("alert", "Cluster", "List and acknowledge alerts, and manage their rules."),
    Summary("channel", "Cluster", "Manage where notices are sent: mail, chats, webhooks (operators)."),
    Summary("receipts", "Queue", "Show preemptions, newest first."),
    Summary(
        "estimates",
        "Queue",
        "Show the accuracy of estimated starts: of 10 jobs, 5 should start before p50 and 9 before p90.",
    ),
    Summary("events", "Cluster", "Show the audit log: actor, action and object, newest last."),
    Summary("report", "Cluster", "Make, keep and schedule reports on usage (operators)."),
    Summary("simulate", "Cluster", "Run a trace through the scheduler in virtual time, and compare policies on it."),
    Summary("shadow", "Cluster", "Try another policy beside the live one, without effect (operators)."),
    Summary("whatif", "Cluster", "Replay past jobs with other rules or another fleet (operators)."),
    Summary("about", "Cluster", "Show the server's version, the health of its parts, and its licence."),
    Summary(
        "search",
        "Daily work",
        "Find jobs, nodes, GPUs, queues, images and all other objects that you may see, best match first.",
    ),
    Summary("allocate", "Tasks that hold GPUs", "Hold GPUs for a task."),
    Summary("start-program", "Tasks that hold GPUs", "Start a program on a task's GPUs."),
    Summary("release", "Tasks that hold GPUs", "Release a task's GPUs; a program on them is stopped."),
    Summary("gpu-manager", "Tasks that hold GPUs", "The commands for tasks with the flags of a GPU manager script."),
    Summary(
        "slurm-compat", "Daily work", "Commands of Slurm, answered by corral: sbatch, squeue, scancel, sinfo, sacct."
    ),
    Summary("workbench", "Daily work", "Workbenches: Jupyter and SSH on GPUs, for as long as you need."),
    Summary("app", "Daily work", "Apps: web programs in jobs, such as TensorBoard."),
    Summary("open", "Daily work", "Print the address of a job's app, and open it where there is a browser."),
    Summary("code", "Daily work", "Open a workbench in VS Code on this machine, by Remote-SSH."),
    Summary("tunnel", "Daily work", "Make a port of a job's node a port of this machine, until Ctrl-C."),
    Summary(
        "login", "People", "Sign in: a token for this server is stored for the next commands, readable by you only."
    ),
    Summary("logout", "People", "Sign out: the stored token is revoked and deleted."),
    Summary("whoami", "People", "Show who you are signed in as."),
    Summary("profile", "People", "Show your account and your permissions; change your name and e-mail address."),
    Summary("passwd", "People", "Change your own password."),
    Summary("token", "People", "Manage your own API tokens."),
    Summary("key", "People", "Manage your own SSH public keys."),
    Summary("user", "People", "Manage users (operators)."),
    Summary("group", "People", "Manage groups of users who share a pool (operators)."),
    Summary("permission-group", "People", "Manage permissions of users (operators)."),
    Summary("provider", "People", "Manage sign-in providers and on-board their people (operators)."),
    Summary("quota", "People", "See quotas; set them (operators)."),
    Summary("budget", "People", "See budgets and statements; set limits, grants and prices (operators)."),
    Summary("flavor", "People", "Kinds of hardware; managed by operators."),
    Summary("package", "People", "Sizes of jobs to choose from; managed by operators."),
    Summary("up", "Set-up", "Run the server on this machine until Ctrl-C."),
    Summary("init", "Set-up", "Write the files that a project or a server begins with."),
    Summary("config", "Set-up", "Show, check and import the configuration."),
    Summary("backup", "Set-up", "Back up and restore the server's state."),
    Summary("store", "Set-up", "Move the server's store to another database."),
    Summary("licence", "Set-up", "See the licence; set it (operators)."),
    Summary("doctor", "Set-up", "Check the set-up of this machine and of the server, and show how to fix problems."),
    Summary(
        "exporter",
        "Set-up",
        "Serve this node's GPUs and host at /metrics, under the names of NVIDIA's DCGM exporter, until Ctrl-C.",
    ),
    Summary(
        "mcp",
        "Set-up",
        "Serve assistants by the Model Context Protocol: status, why, dry runs, submissions, logs and reports.",
    ),
    Summary("health", "Cluster", "Check GPUs actively, and see the results."),
    Summary("drill", "Set-up", "Make virtual GPUs and nodes fail, to see what happens then."),
    Summary("completion", "Set-up", "Completion of commands and options in your shell."),
    Summary("version", "Set-up", "Print the version of this command and, if it can be reached, of the server."),
)
