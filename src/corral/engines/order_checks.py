"""Checks of launch orders that all clusters share, before any file or object is created."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from corral.control.ports import LaunchOrder, LaunchRefused


def check_cluster_order(order: LaunchOrder, is_safe_id: Callable[[str], bool], max_chars: int) -> None:
    """Raises LaunchRefused for an order that no cluster could run. `max_chars` limits the command with its
    environment."""
    if not is_safe_id(order.attempt_id):
        raise LaunchRefused(f"{order.attempt_id!r} is not the id of an attempt")
    if not order.command or not order.instances:
        raise LaunchRefused("there is nothing to run, or nowhere to run it")
    if order.workdir is not None and not order.workdir.startswith("/"):
        raise LaunchRefused(f"the working directory {order.workdir!r} is not an absolute path")
    texts = [*order.command, *order.env.values(), *order.env, *order.secret_env.values(), *order.secret_env]
    if sum(map(len, texts)) > max_chars:
        raise LaunchRefused(f"the command and its environment are longer than {max_chars} characters")


def check_registry_image(order: LaunchOrder) -> None:
    """Raises LaunchRefused for an image file, which only Apptainer runs."""
    if order.image and order.image.startswith("/"):
        raise LaunchRefused(
            f"{order.image} is a file of Apptainer, which runs on Slurm clusters: choose one, or give the image's "
            "address in a registry"
        )


def command_problem(command: Iterable[str]) -> str:
    """Why the kernel would refuse to start a command; "" if it would not."""
    bad = next((word for word in command if "\0" in word), None)
    return f"{bad!r}: execve: embedded null byte" if bad is not None else ""
