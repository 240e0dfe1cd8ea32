"""Jobs in images on a Slurm cluster: what the node needs to run a program by Apptainer, as bash. Pure.

Apptainer runs as the job's account, inside of the Slurm job, so an image file, a registry and a directory give the job
no more than the account may have. Values of the environment and logins are in variables, never on a command line.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from corral.control.ports import Instance, LaunchOrder, LaunchRefused
from corral.engines.attempts.environment import job_directories
from corral.engines.attempts.instance_messages import StorageSpec
from corral.engines.slurm.attempts.storage import node_word

#: Apptainer passes variables with this prefix to the program, and no others.
PREFIX = "APPTAINERENV_"
#: The environment of jobs in images, in which the image's own PATH counts.
IMAGE_TMP = "/tmp"
_IMAGES = ".cache/corral/images"
#: Bash: variables of Slurm, which names the GPUs of the job there.
_SLURMS_VARIABLES = (
    'for name in "${!SLURM_@}" CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES GPU_DEVICE_ORDINAL; do '
    f'[ -n "${{!name+set}}" ] && export "{PREFIX}$name=${{!name}}"; done'
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageRules:
    """How this cluster runs images; `program` is Apptainer on the nodes, "" if it runs none."""

    program: str = ""


def check_image(order: LaunchOrder, rules: ImageRules) -> None:
    """Raises LaunchRefused for an image that this cluster cannot run."""
    if not order.image:
        return
    if not rules.program:
        raise LaunchRefused(
            "this cluster runs no images: leave the image out, or use another cluster. An operator who has installed "
            "Apptainer on the nodes sets cluster.slurm.apptainer"
        )
    if order.login is not None and not order.login.is_own:
        raise LaunchRefused(
            f"{order.image} is pulled with a login that is not the job's user's, and on a Slurm cluster nothing keeps "
            "it from the job: pull the image into a .sif file that the user may read, or store a login of the user"
        )
    for path in (order.image, order.workdir or "", *job_directories(order), *(each.path for each in order.storage)):
        if path.startswith("/") and (":" in path or "," in path):
            raise LaunchRefused(f"{path}: a directory with ':' or ',' in its name cannot be mounted in a container")


def image_text(
    order: LaunchOrder, instance: Instance, specs: Sequence[StorageSpec], rules: ImageRules, home: str
) -> str:
    """Variables and functions that `attempt.sh` reads: empty for a job without an image. `home` is that of the job's
    account, which keeps pulled images."""
    if not order.image:
        return ""
    # One account may serve several users: an image that was pulled with a login is found by the same login only.
    user = f"{order.login.username}@{order.login.registry}" if order.login else ""
    name = hashlib.sha256(f"{user} {order.image}".encode()).hexdigest()[:32]
    values = {
        "apptainer": rules.program,
        "image": order.image,
        "image_file": os.path.join(home or "/", _IMAGES, f"{name}.sif"),
        "account_home": home or "/",
        "image_home": order.env.get("CORRAL_JOB_DIR", ""),
        "image_gpus": "yes" if instance.gpu_ids else "",
    }
    login = {}
    if order.login:
        login = {"APPTAINER_DOCKER_USERNAME": order.login.username, "APPTAINER_DOCKER_PASSWORD": order.login.secret}
    exports = "".join(f"  export {name}={quote(value)}\n" for name, value in login.items())
    return (
        "".join(f"{name}={quote(value)}\n" for name, value in values.items())
        + f"image_binds() {{\n  binds=({' '.join(_binds(order, specs))})\n}}\n"
        + f"registry_login() {{\n{exports}  :\n}}\n"
    )


def image_exports(env: Mapping[str, str]) -> Iterable[str]:
    """Commands that give the program its environment. Apptainer sets HOME by itself."""
    yield from (f"export {PREFIX}{name}={quote(value)}" for name, value in env.items() if name != "HOME")
    yield f'export "{PREFIX}CORRAL_RUN_DIR=$place"'
    yield _SLURMS_VARIABLES


def _binds(order: LaunchOrder, specs: Sequence[StorageSpec]) -> list[str]:
    """The directories that the program sees beside its working directory: at their own paths, and storage also where
    the job mounts it."""
    found = [quote(path) for path in job_directories(order)]
    for spec in specs:
        source, kind = node_word(spec["source"]), "ro" if spec["read_only"] else "rw"
        found += [f"{source}:{source}:{kind}", f"{source}:{quote(spec['path'])}:{kind}"]
    return found
