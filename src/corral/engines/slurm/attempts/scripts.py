"""The files that an attempt's nodes read, as bash. Pure. Every word is quoted: no text of a job becomes code here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from shlex import quote

from corral.control.ports import Instance, LaunchOrder
from corral.engines.attempts.environment import CUDA_VARIABLE, ROCR_VARIABLE
from corral.engines.attempts.instance_messages import StorageSpec
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.attempts.storage import storage_exports, storage_lines
from corral.engines.slurm.slurm_images import PREFIX, ImageRules, image_exports, image_text

NO_IMAGES = ImageRules()
#: Variables that Slurm sets in a job, by the GPUs that it gave to the job.
_SLURMS_CHOICE = (CUDA_VARIABLE, ROCR_VARIABLE)


def batch_script(order: LaunchOrder, layout: Layout, program: str) -> str:
    """The script that Slurm starts on the first node. It sources `program` instead of starting it: one process less per
    job."""
    return f"#!/bin/bash\n{attempt_text(order, layout, program)}. {quote(program)}\n"


def attempt_text(order: LaunchOrder, layout: Layout, program: str) -> str:
    """The variables that all instances share; `program` is corral's script."""
    limit = "" if order.time_limit_seconds is None else f"{order.time_limit_seconds:.3f}"
    text = _assigned(
        {
            "attempt": order.attempt_id,
            "self": program,
            "places": layout.places,
            "news": layout.reports,
            "stop": layout.stop(order.attempt_id),
            "hurry": layout.hurry,
            "never": layout.never,
            "limit": limit,
            "grace": f"{order.grace_seconds:.3f}",
            "nodes": str(len(order.instances)),
        }
    )
    if len(order.instances) > 1:
        ranks = " ".join(f"[{quote(instance.node)}]={instance.rank}" for instance in order.instances)
        text += f"declare -A ranks=({ranks})\n"
    return text


def instance_text(
    order: LaunchOrder,
    instance: Instance,
    env: Mapping[str, str],
    specs: Sequence[StorageSpec] = (),
    images: ImageRules = NO_IMAGES,
    home: str = "",
) -> str:
    """The program and the environment of one instance. Slurm's choice of GPUs counts, whichever the plan named. `home`
    is that of the job's account."""
    mine = {name: value for name, value in env.items() if name not in _SLURMS_CHOICE}
    lines = [] if order.image else [f"export {name}={quote(value)}" for name, value in mine.items()]
    if not instance.gpu_ids:
        lines += [f"export {name}=" for name in _SLURMS_CHOICE]
    if order.image:
        lines += image_exports(mine)
    if order.venv:
        found = f"[ -d {quote(order.venv + '/conda-meta')} ]"
        lines.append(f"if {found}; then export CONDA_PREFIX={quote(order.venv)}; unset VIRTUAL_ENV; fi")
    lines += storage_exports(specs, PREFIX if order.image else "")
    return (
        f"program=({_bash_words(order.command)})\n"
        + _assigned({"workdir": order.workdir or ""})
        + image_text(order, instance, specs, images, home)
        + _function("environment", lines)
        + _function("storage", storage_lines(specs, env))
    )


def _function(name: str, lines: Iterable[str]) -> str:
    body = "".join(f"  {line}\n" for line in (*lines, ":"))
    return f"{name}() {{\n{body}}}\n"


def _assigned(values: Mapping[str, str]) -> str:
    return "".join(f"{name}={quote(value)}\n" for name, value in values.items())


def _bash_words(words: Iterable[str]) -> str:
    return " ".join(quote(word) for word in words)
