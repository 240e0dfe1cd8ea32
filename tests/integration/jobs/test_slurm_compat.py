"""Scripts made for Slurm, unchanged, through corral's queue: look-alikes on the PATH of someone at a shell."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of, scientist, stop_everything
from tests.integration.slurm_server import server_on
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TRAIN = """#!/bin/bash
#SBATCH --job-name=train
#SBATCH --gres=gpu:2        # both of them
#SBATCH --cpus-per-task=2 --mem=1G
#SBATCH -t 0:10:00
#SBATCH -o out-%x-%j.txt

echo "gpus $CUDA_VISIBLE_DEVICES job $SLURM_JOB_ID name $SLURM_JOB_NAME cpus $SLURM_CPUS_PER_TASK"
echo "from $SLURM_SUBMIT_DIR with $*"
#SBATCH --gres=gpu:8
"""


class Shell:
    """Someone whose PATH begins with corral's look-alikes."""

    def __init__(self, person: Person, programs: Path) -> None:
        self.person = person
        self.home = person.home
        self.env = {**person.environment(), "PATH": f"{programs}:{os.environ['PATH']}"}

    def run(self, line: str, *, code: int = 0, stdin: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["bash", "-c", line], env=self.env, cwd=self.home, input=stdin, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, f"{line}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def sbatch(self, line: str, *, stdin: str = "") -> str:
        """The job's number."""
        return self.run(f"sbatch --parsable {line}", stdin=stdin).stdout.strip()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("compat"), "--virtual-nodes", "2x4xA100-80G") as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def ann(server: CorralServer, operator: Person, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    person = scientist(server, operator, "annika")
    programs = tmp_path_factory.mktemp("path") / "programs"
    said = person.ok("slurm-compat", "install", str(programs))
    assert f"export PATH={programs}:$PATH" in said
    return Shell(person, programs)


@pytest.fixture(autouse=True)
def nothing_left_over(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "operator" in request.fixturenames:
        stop_everything(request.getfixturevalue("operator"))


def test_a_batch_script_runs_unchanged_and_its_name_can_be_given_again(ann: Shell, operator: Person) -> None:
    (ann.home / "train.sh").write_text(TRAIN)
    said = ann.run("sbatch train.sh --epochs 90").stdout
    assert said.startswith("Submitted batch job ")
    number = said.split()[-1]
    ann.person.wait_for(f"j-{number}", "completed")
    output = (ann.home / f"out-train-{number}.txt").read_text().splitlines()
    words = output[0].split()
    assert words[2:] == ["job", number, "name", "train", "cpus", "2"]
    assert len(words[1].split(",")) == 2
    assert output[1] == f"from {ann.home} with --epochs 90"

    # twice the same name, given on the command line too: Slurm does not mind, and neither does this
    again = ann.sbatch("-W -J train -o again.txt train.sh")
    assert (ann.home / "again.txt").read_text().startswith("gpus ")
    wrapped = ann.sbatch("--wait --wrap 'echo from $HOSTNAME; exit 0'")
    piped = ann.sbatch("-W", stdin="#!/bin/sh\necho piped\n")
    names = [ann.person.read("show", f"j-{job}")["name"] for job in (number, again, wrapped, piped)]
    assert names == ["train", "train-2", "wrap", "sbatch"]
    assert ann.person.ok("logs", f"j-{piped}").strip() == "piped"
    failed = ann.run("sbatch -W --wrap 'exit 7'", code=7)
    assert "Submitted batch job" in failed.stdout


def test_arrays_and_dependencies_go_by_the_number_that_was_printed(ann: Shell) -> None:
    script = "#!/bin/bash\necho $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT in $SLURM_ARRAY_JOB_ID\n"
    (ann.home / "sweep.sh").write_text(script)
    sweep = ann.sbatch("--array=1,4-6:2%3 -o sweep-%A_%a.txt sweep.sh")
    ann.sbatch(f"-W --dependency=afterok:{sweep} -o after.txt --wrap 'cat sweep-*.txt'")
    lines = (ann.home / "after.txt").read_text().splitlines()
    assert lines == [f"{index} of 3 in {sweep}" for index in (1, 4, 6)]

    blocked = ann.sbatch("-a 0-2 -J many --wrap 'sleep 300'")
    chained = ann.sbatch(f"-d afterok:{blocked}_1 --wrap true")
    assert ann.run(f"squeue -h -j {blocked} -o %j").stdout.split() == ["many-0", "many-1", "many-2"]
    assert ann.run(f"squeue -h -j {chained} -o '%t %r'").stdout.strip() == "PD Dependency"
    ann.run(f"scancel {blocked}_1")
    wait_until(lambda: ann.person.state(f"j-{chained}") == "stopped", "what needs it ends too")
    ann.run(f"scancel {blocked}")
    wait_until(lambda: not ann.run(f"squeue -h -j {blocked}").stdout.strip(), "all of the array end")


def test_jobs_and_nodes_are_listed_and_cancelled_as_scripts_expect(ann: Shell, operator: Person) -> None:
    other = operator.submit("--name", "of-another-user", "--gpus", "4", "--", "sleep", "300")
    runs = ann.sbatch("--gres=gpu:4 -t 1-0 -J long --wrap 'sleep 300'")
    waits = ann.sbatch("--gres=gpu:4 -J late --wrap 'sleep 300'")
    ann.person.wait_for(f"j-{runs}", "running")
    listed = ann.run("squeue").stdout.splitlines()
    titles = ["JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)"]
    assert listed[0].split() == titles
    assert {line.split()[0] for line in listed[1:]} == {runs, waits}
    assert ann.run("squeue --me -h -o '%i %T %l %b'").stdout.splitlines() == [
        f"{runs} RUNNING 1-00:00:00 gres/gpu:4",
        f"{waits} PENDING UNLIMITED gres/gpu:4",
    ]
    assert ann.run("squeue -u annika -ht PD --format=%.10i").stdout.rstrip("\n") == waits.rjust(10)
    assert ann.run("squeue -h -t R,PD -n long -o %i").stdout.split() == [runs]
    assert ann.run("sinfo -h -o '%D %t %G'").stdout.split() == ["2", "alloc", "gpu:4"]
    assert ann.run("sinfo").stdout.split()[:6] == ["PARTITION", "AVAIL", "TIMELIMIT", "NODES", "STATE", "NODELIST"]
    long = ann.run("squeue --me -l").stdout.splitlines()
    assert long[0].split() == ["JOBID", "PARTITION", "NAME", "USER", "STATE", "TIME", "TIME_LIMI", *titles[6:]]
    assert [line.split()[4] for line in long[1:]] == ["RUNNING", "PENDING"]
    nodes = ann.run("sinfo -N").stdout.splitlines()
    assert nodes[0].split() == ["NODELIST", "NODES", "PARTITION", "STATE"]
    assert [line.split()[1:] for line in nodes[1:]] == [["1", "default", "alloc"]] * 2
    assert len({line.split()[0] for line in nodes[1:]}) == 2
    assert ann.run("sinfo -N -l").stdout.split()[:7] == [*nodes[0].split(), "CPUS", "MEMORY", "GRES"]
    words = ["PARTITION", "AVAIL", "TIMELIMIT", "NODES", "STATE", "GRES", "NODELIST"]
    assert ann.run("sinfo -l").stdout.split()[:7] == words

    ann.run(f"scancel {waits}")
    assert ann.person.state(f"j-{waits}") == "stopped"
    assert "already" in ann.run(f"scancel {waits}", code=1).stderr
    accounts = ann.run("sacct").stdout.splitlines()
    assert accounts[0].split() == ["JobID", "JobName", "Partition", "User", "AllocCPUS", "State", "ExitCode"]
    assert set(accounts[1]) == {"-", " "}
    of_today = ann.run("sacct -nPX --format=jobid,state%20,alloctres").stdout.splitlines()
    assert [line for line in of_today if line.startswith((runs, waits))] == [
        f"{runs}|RUNNING|gres/gpu=4",
        f"{waits}|CANCELLED|gres/gpu=4",
    ]
    assert ann.run(f"sacct -n -j {waits} -o jobname%-8,end%7 -S 2020-01-01").stdout.startswith("late")
    assert ann.run("sacct -S now-1hours -s R -nPo JobID").stdout.split() == [runs]
    assert "no job" in ann.run("scancel 999999", code=1).stderr
    assert other.removeprefix("j-") in ann.run(f"scancel {other.removeprefix('j-')}", code=1).stderr
    ann.run("scancel --me")
    ann.person.wait_for(f"j-{runs}", "stopped")
    assert operator.state(other) == "running"


def test_a_script_for_two_nodes_runs_once_on_the_first(ann: Shell) -> None:
    (ann.home / "two.sh").write_text(
        "#!/bin/bash\n#SBATCH -N 2 --gpus-per-node=1\n#SBATCH -o two.txt\necho rank $SLURM_NODEID of $SLURM_NNODES\n"
    )
    number = ann.sbatch("-W two.sh")
    assert (ann.home / "two.txt").read_text() == "rank 0 of 2\n"
    grants = ann.person.read("show", f"j-{number}")["attempts"][0]["allocation"]["grants"]
    assert len({grant["node"] for grant in grants}) == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sbatch --no-such-option --wrap true", "--no-such-option"),
        ("sbatch --gres=license:1 --wrap true", "GPUs only"),
        ("sbatch -t soon --wrap true", "is not a time"),
        ("sbatch -a 5-1 --wrap true", "runs backwards"),
        ("sbatch -a 0-9%2 --wrap true", "corral cannot keep to '%2'"),
        ("sbatch -d afterok:999999 --wrap true", "no job"),
        ("sbatch missing.sh", "there is no script missing.sh in"),
        ("sbatch .", ". is a directory, not a script"),
        ("sacct -S yesterday-ish", "'yesterday-ish' is not a time"),
        ("sacct -o none-such", "does not know the field none-such"),
        ("squeue --no-such-option", "--no-such-option"),
        ("squeue -o %Z", "%Z"),
        ("scancel", "which job"),
        ("sinfo -Q", "-Q"),
    ],
)
def test_unknown_slurm_options_are_refused_with_a_message(ann: Shell, line: str, words: str) -> None:
    done = subprocess.run(["bash", "-c", line], env=ann.env, cwd=ann.home, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert words in done.stderr, done.stderr
    assert done.stdout == ""


def test_options_need_no_dashes_before_them(ann: Shell) -> None:
    person = ann.person
    (ann.home / "plain.sh").write_text("#!/bin/sh\necho got $1\n")
    script = str(ann.home / "plain.sh")
    compat = "slurm-compat"
    first = person.ok(compat, "sbatch", "--parsable", "--gres=gpu:1", "-t", "2:00:00", script, "--epochs").strip()
    person.wait_for(f"j-{first}", "completed")
    assert person.ok("logs", f"j-{first}") == "got --epochs\n"
    output = ann.home / "wrapped.txt"
    after = ("--dependency", f"afterok:{first}", "-o", str(output))
    wrapped = person.ok(compat, "sbatch", "--parsable", "-W", *after, "--wrap", "echo wrapped -h").strip()
    assert output.read_text() == "wrapped -h\n"
    held = person.ok(compat, "sbatch", "-H", "--parsable", "--wrap=true").strip()
    assert person.ok(compat, "squeue", "--me", "-h", "-o", "%i").split() == [held]
    assert person.ok(compat, "squeue", "-h", "-t", "CD", "-j", wrapped, "-o", "%T").split() == ["COMPLETED"]
    person.ok(compat, "sinfo", "-h", "-o", "%P")
    person.ok(compat, "scancel", "--me")
    assert "As for the Slurm program" in person.ok(compat, "squeue", "--help")


def test_programs_of_others_are_not_overwritten(ann: Shell, tmp_path: Path) -> None:
    (tmp_path / "squeue").write_text("#!/bin/sh\necho mine\n")
    assert "choose another directory" in ann.person.run("slurm-compat", "install", str(tmp_path), code=2).err
    assert [path.name for path in tmp_path.iterdir()] == ["squeue"]


def test_on_a_real_slurm_a_script_starts_its_steps_on_all_of_its_nodes(
    slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    server = server_on(slurm_cluster, tmp_path / "state", models="{a100: A100-80G}")
    server.start()
    try:
        person = operator_of(server)
        person.ok("slurm-compat", "install", str(tmp_path / "programs"))
        shell = Shell(person, tmp_path / "programs")
        (shell.home / "steps.sh").write_text(
            "#!/bin/bash\n#SBATCH -N 2 --gpus-per-node=A100:2 -o steps-%j.txt\necho script on $SLURM_NODEID\n"
            "srun -N 2 -n 2 --ntasks-per-node=1 sh -c 'echo step on $SLURMD_NODENAME'\n"
        )
        number = shell.sbatch("-W steps.sh")
        output = sorted((shell.home / f"steps-{number}.txt").read_text().splitlines())
        assert output[0] == "script on 0"
        assert len(set(output[1:])) == 2
        assert all(line.startswith("step on node") for line in output[1:])
        # Slurm's types are the models that the cluster says, whatever the capitals
        assert person.read("show", f"j-{number}")["models"] == ["A100-80G"]
        assert "A100-80G" in shell.run("sbatch --gres=gpu:h200:1 --wrap true", code=2).stderr
    finally:
        server.stop()
