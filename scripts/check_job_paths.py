"""Checks that no module opens a path that a job can change, but for those of `corral.files`.

    python scripts/check_job_paths.py

Two rules, over the folders whose code runs with the server's rights:

1. A module that calls a file function by path is named in `OWN_FILES` below, with whose files it opens. A new one fails
   until a reviewer has put it there: what a job can change is opened by `corral.files` only.
2. A module that is named there does not name what gives paths of jobs or volumes (`JOB_PATHS`). One that has such a
   path hands it to `corral.files`.

Calls that start from a directory which is held open (`dir_fd=`) are allowed everywhere, but for `os.open`, which would
follow links and wait for pipes.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "corral"
# fmt: off
FOLDERS = (
    "backup", "control", "core", "datasets", "engines", "objects", "reporting", "server", "simulator", "stores",
    "telemetry",
)
# fmt: on
#: What runs with the rights of a user or of a job, and `corral.files` itself.
OTHER_FOLDERS = ("checkpoint", "cli", "client", "files", "presets")

# fmt: off
#: Functions of modules, and methods of paths, that follow a path.
FUNCTIONS = {
    "os": {
        "access", "chmod", "chown", "fwalk", "getxattr", "lchown", "link", "listdir", "listxattr", "lstat", "makedirs",
        "mkdir", "mkfifo", "mknod", "open", "readlink", "remove", "removedirs", "removexattr", "rename", "renames",
        "replace", "rmdir", "scandir", "setxattr", "stat", "statvfs", "symlink", "truncate", "unlink", "utime", "walk",
    },
    "os.path": {
        "exists", "getmtime", "getsize", "isdir", "isfile", "islink", "ismount", "lexists", "realpath", "samefile",
    },
    "shutil": {"copy", "copy2", "copyfile", "copymode", "copystat", "copytree", "move", "rmtree"},
}
METHODS = {
    "chmod", "exists", "expanduser", "glob", "hardlink_to", "is_dir", "is_file", "is_fifo", "is_mount", "is_socket",
    "is_symlink", "iterdir", "lchmod", "lstat", "mkdir", "read_bytes", "read_text", "readlink", "rename", "resolve",
    "rglob", "rmdir", "samefile", "symlink_to", "touch", "unlink", "write_bytes", "write_text",
}
# fmt: on
#: What gives a path that a job can change.
JOB_PATHS = {"checkpoint_dir", "job_directories", "output_dir", "path_of"}

OWN_FILES: dict[str, str] = {
    "datasets/content/blobs.py": "the place of packs, which no job can write to",
    "datasets/content/pieces.py": "the place of packs, which no job can write to",
    "datasets/history/git_versions.py": "the server's clones of histories",
    "datasets/history/versions.py": "histories, which no job can write to",
    "datasets/repository.py": "a checkout's parent, which only its owner can write to; removes nothing",
    "datasets/work/checkout.py": "the staging directory of a checkout, which only its owner can write to",
    "datasets/work/scan.py": "the directory that was named; below it by descriptor, without links",
    "datasets/work/update.py": "a checkout of the caller's own: the server updates none",
    "datasets/work/working_index.py": "notes about checkouts, in the caller's home",
    "objects/bucket_mounts.py": "the directory around a mount, which is the server's",
    "objects/cache.py": "the cache of buckets, which is the server's",
    "objects/fuse_mount.py": "the staging directory of a mount, which is the server's",
    "objects/prefetch.py": "fetched files, in a directory that no job can write to until all are there",
    "stores/database/disk_reserve.py": "the store",
    "reporting/pdf.py": "corral's own template",
    "simulator/traces/job.py": "traces that an operator named",
    "simulator/traces/openb.py": "traces that an operator named",
    "server/system/write_proof.py": "the server's home",
    "backup/creation.py": "a copy of the history, in a temporary directory of the server",
    "backup/file_restore.py": "sets times by descriptor",
    "server/system/backup/backup_places.py": "archives and secrets of an operator",
    "server/system/backup/backups.py": "the server's home and its configuration; files of jobs by corral.backup",
    "server/system/file_systems.py": "the kernel's list of mounts; paths are only resolved",
    "server/system/backup/restore.py": "a home that no server uses; files of jobs by corral.backup",
    "server/system/server_setup.py": "corral's own templates",
    "server/wiring/tls.py": "certificates of an operator",
    "server/wiring/home_ownership.py": "the server's home, and the engines' places",
    "server/system/disk_guard.py": "the server's home",
    "engines/attempts/terms.py": "the engine's own place",
    "engines/local/fold.py": "run directories; the job-owned ones in them are only removed when empty",
    "engines/attempts/claims.py": "run directories, which are the server's",
    "engines/attempts/holder.py": "runs as the job",
    "engines/attempts/json_files.py": "run directories and the directories around volumes, which no job can change",
    "engines/kubernetes/api/client.py": "a certificate for OpenSSL, in a directory that is removed at once",
    "engines/kubernetes/api/credentials.py": "the operator's token file",
    "engines/kubernetes/api/kubeconfig.py": "the operator's kubeconfig",
    "engines/kubernetes/attempts/log_follow.py": "the engine's own directories",
    "engines/kubernetes/attempts/pod_wrapper.py": "corral's own code",
    "engines/kubernetes/attempts/records.py": "the engine's own directories: pods do not mount them",
    "engines/kubernetes/engine.py": "the engine's own directories",
    "engines/local/attempts.py": "run directories, which are the server's",
    "engines/local/cgroups.py": "control groups",
    "engines/local/amd_gpus.py": "the kernel's own files",
    "engines/local/containers/container_job.py": "the runtime's environment and login, in a run directory",
    "engines/local/containers/container_mounts.py": "opens as the job's account, mounts what the server made",
    "engines/local/containers/container_runtime.py": "the machine's own settings",
    "engines/local/engine.py": "run directories, which are the server's",
    "engines/local/faults.py": "drills, in the server's home",
    "engines/local/containers/image_rights.py": "notes about images, in the server's home",
    "engines/local/instance_specs.py": "the helper and MPS, in the server's home",
    "engines/local/supervisors/spawner_link.py": "the spawner's log",
    "engines/attempts/log_segments.py": "logs, in a run directory",
    "engines/local/shells/local_shells.py": "run directories and control groups, which are the server's",
    "engines/shells/shell_process.py": "/proc, by the directory of one process, and control groups",
    "engines/slurm/job_adoption.py": "directories of instances that it has just made",
    "engines/local/mps.py": "MPS, in the server's home",
    "engines/attempts/job_places.py": "the server's own directories on the way to a job's",
    "engines/attempts/processes.py": "/proc; and a virtual environment, as the job's account",
    "engines/local/rundir.py": "run directories, which are the server's",
    "engines/storage/buckets.py": "the directory around what an instance has of the node's disk",
    "engines/storage/datasets.py": "checkouts, which no job can write to",
    "engines/storage/driver.py": "the directories around volumes, which no job can pass",
    "engines/storage/job_mounts.py": "the private place of an instance, and the directories around volumes",
    "engines/storage/mount_namespace.py": "directories that only root can change, in a namespace of the job's own",
    "engines/storage/storage_specs.py": "corral's own code",
    "engines/storage/permissions.py": "the directories around volumes, which no job can pass",
    "engines/storage/preparation.py": "the run directory, which is the server's",
    "engines/storage/project_quotas.py": "the root of a volume, which lies where no job can pass",
    "engines/storage/scratch.py": "the directory around what instances have of the node's disk",
    "engines/local/supervisors/job_process.py": "/dev/null",
    "engines/local/supervisors/supervisor.py": "the run directory, which is the server's",
    "engines/local/watcher.py": "the engine's pipe",
    "engines/slurm/attempts/slurm_attempt.py": "what was ordered, in the server's own directories",
    "engines/slurm/attempts/logs.py": "whether there is a log, in the engine's own directory",
    "engines/slurm/engine.py": "what was ordered, in the server's own directories",
    "engines/slurm/attempts/installation.py": "corral's own code",
    "engines/slurm/attempts/attempt_files.py": "the place of an instance, before it is given to the job",
    "engines/slurm/attempts/node_reports.py": "one file that all jobs append to: opened without links, see the module",
    "engines/slurm/attempts/run_directory.py": "the server's own; what jobs write, without links (`open_plain`)",
    "engines/slurm/slurm_api/rest_tokens.py": "tokens of an operator",
    "engines/slurm/cluster/drains.py": "the server's own directories",
    "engines/workbenches/app_host.py": "runs as the job",
    "engines/workbenches/program/host.py": "runs as the job",
    "engines/workbenches/program/activity.py": "runs as the job",
    "engines/workbenches/program/services.py": "runs as the job",
    "engines/workbenches/program/ssh_server.py": "runs as the job",
    "engines/workbenches/program/requirements.py": "runs as the job",
    "engines/workbenches/workbench_relay.py": "runs as the job",
    "server/datasets/operation_runner.py": "words of the server's own workers",
    "server/settings/config_file.py": "the configuration",
    "server/http/console_files.py": "the console",
    "server/datasets/dataset_access.py": "clones of histories, in the server's home",
    "server/datasets/dataset_sent.py": "notes about uploads, in the server's home",
    "server/jobs/git_sources.py": "known hosts and certificates, in the server's home and of an operator",
    "server/wiring/foundation.py": "the server's home",
    "server/system/isolation.py": "the server's home",
    "server/wiring/home_lock.py": "the server's home",
    "server/wiring/server_log.py": "the server's own log",
    "server/routes/system/pages.py": "corral's own code",
    "server/auth/secret_box.py": "the server's keys",
    "server/settings/settings_sources.py": "the configuration",
    "server/whatif/simulation_runner.py": "simulations, in the server's home",
    "server/whatif/simulation_orders.py": "simulations, in the server's home",
    "server/settings/storage_places.py": "the server's home",
    "server/storage/volume_storage.py": "uploads to buckets, in the server's home",
    "server/people/secret_orders.py": "notes in the server's home; files of jobs through corral.files",
    "server/workbenches/job_ports.py": "tables of the kernel",
    "server/workbenches/workbench_ports.py": "the server's home",
    "stores/reports/report_files.py": "reports, in the server's home",
    "stores/database/sqlite.py": "the store",
    "stores/workbenches/workbench_keys.py": "keys, beside the jobs' directories",
    "stores/workbenches/workbench_directories.py": "corral's own code; the directory around a job's",
    "stores/jobs/job_directories.py": "the directories around jobs'",
    "telemetry/amd/sources.py": "a device file of the machine",
    "telemetry/history/file.py": "the history, in the server's home",
    "telemetry/notices.py": "reports, in the server's home",
}

#: Modules that name paths of jobs and open none of them, although they open others.
PASSES_ON = {
    "engines/local/containers/image_rights.py": "notes about images, in the server's home",
    "engines/local/instance_specs.py": "to the supervisor, which hands them to corral.files",
    "server/datasets/operation_runner.py": "to the worker, which hands them to corral.files",
    "server/storage/volume_storage.py": "to stores/storage/volume_directory.py and stores/storage/uploads.py",
    "stores/workbenches/workbench_keys.py": "its own `path_of` gives the server's files",
    "stores/jobs/job_directories.py": "makes them, and opens them with corral.files",
}

#: Calls that only look like it.
NOT_FILES = {"ran.exists", "self._bucket.rename", "self.resolve", "work.tx.credentials.touch"}


def calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of every call that follows a path."""
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _follows_path(node):
            yield node.lineno, ast.unparse(node.func)
        elif isinstance(node, ast.Attribute) and id(node) not in called and _is_function(ast.unparse(node)):
            yield node.lineno, f"{ast.unparse(node)}, handed to others"
        elif isinstance(node, ast.ImportFrom) and node.module in FUNCTIONS:
            for name in node.names:
                if _is_function(f"{node.module}.{name.name}"):
                    yield node.lineno, f"import of {node.module}.{name.name}"


def _is_function(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    return last in FUNCTIONS.get(owner, ())


def _follows_path(node: ast.Call) -> bool:
    name = ast.unparse(node.func)
    owner, _, last = name.rpartition(".")
    if name in NOT_FILES:
        return False
    if name in ("open", "os.open"):
        return True
    if owner in FUNCTIONS:
        return last in FUNCTIONS[owner] and not _is_held(node)
    return bool(owner) and (last in METHODS or (last == "open" and _opens_file(node)))


def _is_held(node: ast.Call) -> bool:
    """The call is about a descriptor, or starts from one."""
    is_relative = any(word.arg and word.arg.endswith("dir_fd") for word in node.keywords)
    return is_relative or (bool(node.args) and ast.unparse(node.args[0]).endswith("descriptor"))


def _opens_file(node: ast.Call) -> bool:
    """`path.open("rb")` or `path.open(encoding=…)`: other things have an `open` without a mode."""
    first = node.args[0] if node.args else None
    is_mode = isinstance(first, ast.Constant) and isinstance(first.value, str) and set(first.value) <= set("rwxab+t")
    return is_mode or any(word.arg in ("encoding", "mode", "errors") for word in node.keywords)


def job_paths(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of everything that gives paths of jobs, where it is used."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in JOB_PATHS:
            yield node.lineno, node.attr
        elif isinstance(node, ast.Name) and node.id in JOB_PATHS:
            yield node.lineno, node.id


def problems() -> Iterator[str]:
    for folder in sorted(path.parent.name for path in ROOT.glob("*/__init__.py")):
        if folder not in (*FOLDERS, *OTHER_FOLDERS):
            yield f"{ROOT / folder}: say in {Path(__file__).name} whether its code runs with the server's rights"
    seen = set()
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if name not in OWN_FILES:
            for line, call in calls(tree):
                yield f"{path}:{line}: {call}: use corral.files, or name the module in {Path(__file__).name}"
            continue
        if any(True for _ in calls(tree)):
            seen.add(name)
        for line, word in job_paths(tree) if name not in PASSES_ON else ():
            yield f"{path}:{line}: {word} gives paths that jobs can change: hand them to corral.files in another module"
    for name in sorted(OWN_FILES.keys() - seen):
        yield f"{name} opens no file by its path any more: take it out of {Path(__file__).name}"


def main() -> int:
    found = list(problems())
    for problem in found:
        sys.stdout.write(f"{problem}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
