"""A real Slurm for tests: controller, accounting and several nodes with GPUs, all on this machine and its loopback.

Each node is a slurmd of its own on its own port. It claims CPUs, memory and GPUs that are not there; behind each GPU is
a link to /dev/null, so that Slurm counts it and names it to jobs as it would a real one. Jobs are held in groups of the
kernel where that is possible, so that they can run out of memory as on a real node.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HOW_TO_INSTALL_REST = (
    "slurmrestd or Slurm's tokens are not installed, or this is not root: run scripts/install-test-servers as root "
    "(Debian packages: slurmrestd slurm-wlm-jwt-plugin)"
)
HOW_TO_INSTALL = (
    "Slurm is not installed, or this is not root: run scripts/install-test-servers as root "
    "(Debian packages: slurmctld slurmd slurmdbd slurm-client munge mariadb-server)"
)
NEEDED = ("slurmctld", "slurmd", "slurmdbd", "sbatch", "munged", "mariadbd")
#: It runs neither as root nor as Slurm's own account.
REST_ACCOUNT = "daemon"
#: how long until a node that does not answer counts as down
NODE_TIMEOUT_SECONDS = 10


def is_installed() -> bool:
    paths = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return os.geteuid() == 0 and all(shutil.which(name, path=paths) for name in NEEDED)


def has_rest() -> bool:
    """slurmrestd, and what makes and checks its tokens."""
    plugins = Path("/usr/lib").glob("*/slurm*/auth_jwt.so")
    return shutil.which("slurmrestd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None and any(plugins)


@dataclass(kw_only=True)
class SlurmCluster:
    directory: Path
    nodes: int = 4
    gpus: int = 8
    cpus: int = 16
    memory_mib: int = 64_000
    gpu_type: str = "a100"
    #: how many of each type a node has; None: all are of `gpu_type`
    gpu_types: Mapping[str, int] | None = None
    prefix: str = "node"
    #: more lines for slurm.conf
    settings: Sequence[str] = ()
    _rest_port: int = 0
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    # ------------------------------------------------------------------------------------ for tests

    def __enter__(self) -> SlurmCluster:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def conf(self) -> Path:
        return self.directory / "etc" / "slurm.conf"

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.conf), "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}

    @property
    def node_names(self) -> list[str]:
        return [f"{self.prefix}{number}" for number in range(1, self.nodes + 1)]

    def run(self, *words: str, check: bool = True, **options: object) -> str:
        done = subprocess.run(
            words,
            env=self.env,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            **options,  # type: ignore[call-overload]
        )
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr or done.stdout}")
        return str(done.stdout)

    def start(self) -> None:
        self._configure()
        self._start("munged", *self._munge_command())
        self._wait(lambda: (self.directory / "run" / "munge.sock").exists(), "munge")
        self._start_database()
        self._start("slurmdbd", "slurmdbd", "-D")
        self._wait(lambda: self._works("sacctmgr", "-n", "show", "cluster"), "slurmdbd", seconds=60)
        if "local" not in self.run("sacctmgr", "-n", "show", "cluster", "format=cluster"):
            self.run("sacctmgr", "-i", "add", "cluster", "local")
        self.start_controller()
        for name in self.node_names:
            self.start_node(name)
        self._wait(lambda: self._idle_nodes() == self.nodes, "the nodes", seconds=60)

    def stop(self) -> None:
        self.run("scancel", "--user=root", check=False)
        with contextlib.suppress(AssertionError):
            self._wait(lambda: not self.run("squeue", "-h", check=False).strip(), "the jobs", seconds=10)
        for name in [*reversed(self._processes)]:
            self._end(name, signal.SIGTERM)

    def process_ids(self) -> dict[str, int]:
        """The process ids of its daemons, by their names."""
        return {name: process.pid for name, process in self._processes.items()}

    def start_controller(self) -> None:
        self._start("slurmctld", "slurmctld", "-D", "-f", str(self.conf))
        self._wait(lambda: self._works("scontrol", "ping"), "slurmctld", seconds=30)

    def make_whole(self) -> None:
        """Prepare the cluster for the next test: a controller that was killed loses its latest changes, such as that a
        node is not drained any more; and it may keep GPUs for jobs that ended meanwhile, until it is restarted. Jobs of
        the test before may still be ending; those that do not end are cancelled."""
        try:
            self._wait(self._has_no_jobs, "the others' end", seconds=20)
        except AssertionError:
            self.cancel_all()
        if self._holds_gpus():
            self._end("slurmctld", signal.SIGTERM)
            self.start_controller()
            self._wait(lambda: not self._holds_gpus(), "the GPUs that no job has")
        self._wait(self._are_resumed, "the drained nodes")

    def cancel_all(self) -> None:
        """By number: Slurm knows no name of an account that is gone, and would requeue such a job for ever."""
        self.run("scancel", *self.run("squeue", "-h", "-o", "%A").split(), check=False)
        self._wait(self._has_no_jobs, "the end of cancelled jobs", seconds=60)

    def _has_no_jobs(self) -> bool:
        return not self.run("squeue", "-h").strip()

    def _are_resumed(self) -> bool:
        """Slurm refuses to resume a node whose state is changing: asked until no node is withheld."""
        for node in self._withheld():
            self.run("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
        return not self._withheld()

    def kill_controller(self) -> None:
        self._end("slurmctld", signal.SIGKILL)

    @property
    def rest_socket(self) -> Path:
        return self.directory / "run" / "rest" / "slurmrestd.sock"

    def start_rest(self) -> str:
        """The address of slurmrestd, which is started once. It takes tokens only, also at its socket."""
        if "slurmrestd" not in self._processes:
            place = self.rest_socket.parent
            place.mkdir(exist_ok=True)
            shutil.chown(place, REST_ACCOUNT)
            self.rest_socket.unlink(missing_ok=True)
            self._rest_port = self._rest_port or _free_ports(1)[0]
            account = ["setpriv", f"--reuid={REST_ACCOUNT}", f"--regid={REST_ACCOUNT}", "--clear-groups"]
            addresses = [f"unix:{self.rest_socket}", f"127.0.0.1:{self._rest_port}"]
            command = ["slurmrestd", "-s", "v0.0.38,dbv0.0.38", "-a", "rest_auth/jwt", *addresses]
            # The name stands for a token of its own: it passes on those of its callers.
            self._start("slurmrestd", *account, "env", "SLURM_JWT=daemon", *command)
            self._wait(lambda: _answers(self._rest_port), "slurmrestd")
        return f"http://127.0.0.1:{self._rest_port}"

    def kill_rest(self) -> None:
        self._end("slurmrestd", signal.SIGKILL)

    def token(self, seconds: int = 3600) -> str:
        """One of root's."""
        return self.run("scontrol", "token", f"lifespan={seconds}").strip().removeprefix("SLURM_JWT=")

    def start_node(self, name: str) -> None:
        (self.directory / "state" / name).mkdir(parents=True, exist_ok=True)
        self._start(f"slurmd-{name}", "slurmd", "-D", "-N", name, "-f", str(self.conf))

    def kill_node_daemon(self, name: str) -> None:
        """Only slurmd: what runs there goes on, as after a crash of the daemon."""
        self._end(f"slurmd-{name}", signal.SIGKILL)

    def crash_node(self, name: str) -> None:
        """Kills the daemon and everything that it started, like a power failure."""
        self._end(f"slurmd-{name}", signal.SIGKILL)
        spool = str(self.directory / "state" / name)
        listening = subprocess.run(["ss", "-xlpH"], capture_output=True, text=True, check=True).stdout
        for line in listening.splitlines():
            if f" {spool}/" in line and "pid=" in line:
                _kill_tree(int(line.split("pid=")[1].split(",")[0]))

    # ------------------------------------------------------------------------------------ inside

    def _configure(self) -> None:
        for name in ("etc", "run", "log", "state/ctld", "state/db", "dev"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        # Programs of other accounts pass here to read the settings and to reach munge.
        for path in (self.directory, *(self.directory / name for name in ("etc", "run", "state"))):
            path.chmod(0o755)
        ports = _free_ports(3 + self.nodes)
        self._database_port = ports[2]
        etc, dev = self.directory / "etc", self.directory / "dev"
        for index in range(self.gpus):
            link = dev / f"nvidia{index}"
            if not link.is_symlink():
                link.symlink_to("/dev/null")
        key = etc / "munge.key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(os.urandom(1024))
        names = f"{self.prefix}[1-{self.nodes}]"
        lines, first = ["AutoDetect=off"], 0
        for kind, count in self._types.items():
            files = f"{dev}/nvidia[{first}-{first + count - 1}]"
            lines.append(f"NodeName={names} Name=gpu Type={kind} File={files}")
            first += count
        (etc / "gres.conf").write_text("".join(f"{line}\n" for line in lines))
        (etc / "cgroup.conf").write_text(
            "CgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\nConstrainRAMSpace=yes\nAllowedRAMSpace=100\n"
        )
        accounting = etc / "slurmdbd.conf"
        accounting.touch(mode=0o600)
        accounting.write_text(self._accounting_settings(ports))
        self.conf.write_text(self._controller_settings(ports))

    @property
    def _types(self) -> Mapping[str, int]:
        return self.gpu_types or {self.gpu_type: self.gpus}

    def _token_settings(self) -> list[str]:
        if not has_rest():
            return []
        key = self.directory / "etc" / "jwt.key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(os.urandom(32))
        return ["AuthAltTypes=auth/jwt", f"AuthAltParameters=jwt_key={key}"]

    def _accounting_settings(self, ports: Sequence[int]) -> str:
        run, log = self.directory / "run", self.directory / "log"
        tokens = "\n".join(self._token_settings())
        return f"""AuthType=auth/munge
AuthInfo=socket={run}/munge.sock
{tokens}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports[1]}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports[2]}
StorageUser=slurm
StoragePass=slurm-local
StorageLoc=slurm_acct_db
LogFile={log}/slurmdbd.log
PidFile={run}/slurmdbd.pid
"""

    def _controller_settings(self, ports: Sequence[int]) -> str:
        run, log, state = (self.directory / name for name in ("run", "log", "state"))
        host = socket.gethostname().split(".")[0]
        tracked = "cgroup" if has_groups() else "linuxproc"
        gres = ",".join(f"gpu:{kind}:{count}" for kind, count in self._types.items())
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={self.cpus} "
            f"RealMemory={self.memory_mib} Gres={gres} State=UNKNOWN"
            for name, port in zip(self.node_names, ports[3:], strict=True)
        )
        more = "\n".join([*self.settings, *self._token_settings()])
        # Clusters of tests beside each other have nodes of the same names, and Slurm names the control groups of their
        # jobs by numbers alone: two with the same one would kill each other's processes.
        first_job = ports[0] * 1000 + 1
        return f"""ClusterName=local
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={run}/munge.sock,cred_expire=5
CredType=cred/munge
ProctrackType=proctrack/{tracked}
TaskPlugin=task/{"cgroup" if tracked == "cgroup" else "none"}
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
MpiDefault=none
SlurmdParameters=config_overrides
GresTypes=gpu
SlurmdSpoolDir={state}/%n
SlurmdPidFile={run}/slurmd.%n.pid
SlurmdLogFile={log}/slurmd.%n.log
StateSaveLocation={state}/ctld
SlurmctldPidFile={run}/slurmctld.pid
SlurmctldLogFile={log}/slurmctld.log
SlurmdTimeout={NODE_TIMEOUT_SECONDS}
SlurmctldTimeout=60
KillWait=5
UnkillableStepTimeout=300
ReturnToService=2
MinJobAge=300
FirstJobId={first_job}
MaxJobCount=50000
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=100
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,default_queue_depth=2000,sched_min_interval=0,batch_sched_delay=0
PriorityType=priority/basic
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={ports[1]}
AccountingStoragePass={run}/munge.sock
AccountingStorageTRES=gres/gpu,{",".join(f"gres/gpu:{kind}" for kind in self._types)}
{more}
{nodes}
PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

    def _munge_command(self) -> list[str]:
        run, log = self.directory / "run", self.directory / "log"
        return [
            "munged",
            "--foreground",
            "--force",
            f"--key-file={self.directory}/etc/munge.key",
            f"--socket={run}/munge.sock",
            f"--pid-file={run}/munged.pid",
            f"--log-file={log}/munged.log",
            f"--seed-file={self.directory}/state/munge.seed",
        ]

    def _start_database(self) -> None:
        data = self.directory / "state" / "db"
        # Of its own: a database that starts removes what another one beside it has just put into a common one.
        scratch = self.directory / "state" / "db-tmp"
        scratch.mkdir(exist_ok=True)
        for path in (data, scratch):
            shutil.chown(path, "mysql", "mysql")
        if not (data / "mysql").exists():
            self.run(
                "mariadb-install-db",
                "--user=mysql",
                f"--datadir={data}",
                f"--tmpdir={scratch}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            )
        client = ("--no-defaults", "-S", f"{data}/sock", "-u", "root")
        self._start(
            "mariadbd",
            "mariadbd",
            "--no-defaults",
            "--user=mysql",
            f"--datadir={data}",
            f"--tmpdir={scratch}",
            f"--socket={data}/sock",
            "--bind-address=127.0.0.1",
            f"--port={self._database_port}",
            f"--pid-file={data}/own.pid",
            "--innodb-buffer-pool-size=64M",
            "--innodb-flush-log-at-trx-commit=0",
        )
        self._wait(lambda: self._works("mariadb-admin", *client, "ping"), "MariaDB", seconds=60)
        grants = "".join(
            f"CREATE USER IF NOT EXISTS slurm@'{host}' IDENTIFIED BY 'slurm-local'; "
            f"GRANT ALL ON slurm_acct_db.* TO slurm@'{host}';"
            for host in ("127.0.0.1", "localhost")
        )
        self.run("mariadb", *client, "-e", grants)

    def _holds_gpus(self) -> bool:
        used = self.run("sinfo", "-h", "-N", "-O", "GresUsed:100").split()
        if any(not word.partition("(")[0].endswith(":0") for word in used):
            return True
        # Slurm 22.05 may count GPUs of an ended job here only.
        return "gres/gpu" in "".join(re.findall(r"AllocTRES=(\S*)", self.run("scontrol", "show", "nodes", "-o")))

    def _withheld(self) -> list[str]:
        return sorted(set(self.run("sinfo", "-h", "-N", "-t", "drain,down", "-o", "%N").split()))

    def _idle_nodes(self) -> int:
        return len(set(self.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N", check=False).split()))

    def _works(self, *words: str) -> bool:
        done = subprocess.run(words, env=self.env, capture_output=True, timeout=60, check=False)
        return done.returncode == 0 and b"DOWN" not in done.stdout

    def _start(self, name: str, *command: str) -> None:
        with (self.directory / "log" / f"{name}.out").open("ab") as output:
            self._processes[name] = subprocess.Popen(
                command,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.directory,
                start_new_session=True,
            )

    def _end(self, name: str, how: signal.Signals) -> None:
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _wait(self, condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"{what} did not come up; see {self.directory}/log"
            time.sleep(0.1)


def has_groups() -> bool:
    """The groups that Slurm needs to hold jobs in, of the kind that its Debian version knows how to use."""
    return all(os.access(f"/sys/fs/cgroup/{name}", os.W_OK) for name in ("freezer", "memory"))


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def _kill_tree(pid: int) -> None:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                _kill_tree(int(child))
        os.kill(pid, signal.SIGKILL)
