"""Jobs in images as text for the nodes of a Slurm cluster, and which of them are refused."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from corral.control.ports import Instance, LaunchOrder, LaunchRefused, RegistryLogin
from corral.core.model import EndReason
from corral.engines.order_checks import check_registry_image
from corral.engines.slurm.attempts.ends import parse_exit
from corral.engines.slurm.attempts.scripts import instance_text
from corral.engines.slurm.slurm_images import ImageRules, check_image

RULES = ImageRules(program="apptainer")
INSTANCE = Instance(rank=0, node="n1")
OWN = RegistryLogin(registry="r.example.org", username="ada", secret="s3'cr\"et $(touch x)", is_own=True)
ORDER = LaunchOrder(
    attempt_id="j-1.1",
    job_id="j-1",
    user="ada",
    command=("python", "train.py"),
    instances=(INSTANCE,),
    image="r.example.org/team/train:1",
)


def printed(order: LaunchOrder, env: dict[str, str], script: str) -> list[str]:
    text = instance_text(order, INSTANCE, env, (), RULES, "/home/ada")
    done = subprocess.run(
        ["/bin/bash", "-c", f"place=/run/7\n{text}{script}"], capture_output=True, text=True, check=True, env={}
    )
    return done.stdout.splitlines()


def test_values_reach_the_program_by_variables_of_apptainer_only() -> None:
    value = 'it\'s $(touch x) "quoted"'
    found = printed(ORDER, {"WORDS": value, "HOME": "/x", "PATH": "/opt/bin"}, "environment; export SLURM=1; env")
    assert f"APPTAINERENV_WORDS={value}" in found
    assert "APPTAINERENV_CORRAL_RUN_DIR=/run/7" in found
    assert not [line for line in found if line.startswith(("WORDS=", "APPTAINERENV_HOME=", "PATH=/opt"))]


def test_slurms_variables_are_passed_on() -> None:
    script = "export SLURM_JOB_ID=7 CUDA_VISIBLE_DEVICES=3 SLURMD_X=1; environment; env"
    with_gpu = replace(ORDER, instances=(replace(INSTANCE, gpu_ids=("n1-gpu3",)),))
    text = instance_text(with_gpu, with_gpu.instances[0], {}, (), RULES, "/home/ada")
    done = subprocess.run(["/bin/bash", "-c", text + script], capture_output=True, text=True, check=True, env={})
    passed = {line for line in done.stdout.splitlines() if line.startswith("APPTAINERENV_")}
    assert passed == {
        "APPTAINERENV_SLURM_JOB_ID=7",
        "APPTAINERENV_CUDA_VISIBLE_DEVICES=3",
        "APPTAINERENV_CORRAL_RUN_DIR=",
    }


def test_the_login_is_in_variables_of_the_pull_alone() -> None:
    order = replace(ORDER, login=OWN)
    assert OWN.secret not in "\n".join(printed(order, {}, "environment; env"))
    assert f"APPTAINER_DOCKER_PASSWORD={OWN.secret}" in printed(order, {}, "registry_login; env")


def test_each_login_has_a_file_of_its_own() -> None:
    with_login = replace(ORDER, login=OWN)
    others = replace(ORDER, login=replace(OWN, username="bob"))
    files = {printed(order, {}, 'echo "$image_file"')[0] for order in (ORDER, with_login, others)}
    assert len(files) == 3
    assert all(file.startswith("/home/ada/.cache/corral/images/") and file.endswith(".sif") for file in files)
    again = replace(with_login, login=replace(OWN, secret="a new one"))
    assert printed(again, {}, 'echo "$image_file"')[0] in files


def test_orders_that_this_cluster_cannot_run_are_refused() -> None:
    check_image(replace(ORDER, login=OWN), RULES)
    check_image(replace(ORDER, image=None), ImageRules())
    with pytest.raises(LaunchRefused, match=r"cluster\.slurm\.apptainer"):
        check_image(ORDER, ImageRules())
    with pytest.raises(LaunchRefused, match="nothing keeps it from the job"):
        check_image(replace(ORDER, login=replace(OWN, is_own=False)), RULES)
    with pytest.raises(LaunchRefused, match="with ':' or ','"):
        check_image(replace(ORDER, workdir="/home/ada/a,b"), RULES)


def test_other_engines_refuse_a_file() -> None:
    check_registry_image(ORDER)
    with pytest.raises(LaunchRefused, match="which runs on Slurm clusters"):
        check_registry_image(replace(ORDER, image="/shared/train.sif"))


def test_a_failed_pull_has_its_reason_and_message() -> None:
    line = "5 image_pull_error - - image r/x:1: unauthorized: sign in"
    end = parse_exit(line, limit_seconds=None, since=0.0, now=9.0).exit
    assert (end.reason, end.message) == (EndReason.IMAGE_PULL_ERROR, "image r/x:1: unauthorized: sign in")
    assert (end.exit_code, end.main_ended_at) == (None, None)
