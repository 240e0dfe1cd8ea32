"""A test cluster to try things on, until it is interrupted:

    python -m tests.servers.kubernetes DIRECTORY [REAL_NODES [HOLLOW_NODES [DRIVER_NODES]]]

DIRECTORY must not exist. Lines written to DIRECTORY/control are obeyed: `cut-power NODE`, `start NODE`,
`kill DAEMON`, `start DAEMON`, `kill NODE DAEMON`, `start NODE DAEMON`, `load ARCHIVE`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.servers.kubernetes.cluster import KubernetesCluster
from tests.servers.kubernetes.control_plane import DAEMONS
from tests.servers.kubernetes.programs import HOW_TO_BUILD, HOW_TO_INSTALL, find_programs, is_installed


def main(directory: str, nodes: str = "2", hollow_nodes: str = "2", driver_nodes: str = "0") -> None:
    programs = find_programs() if is_installed() else None
    if programs is None:
        sys.exit(HOW_TO_BUILD if is_installed() else HOW_TO_INSTALL)
    place = Path(directory).resolve()
    place.mkdir(parents=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    cluster = KubernetesCluster(
        directory=place,
        programs=programs,
        nodes=int(nodes),
        hollow_nodes=int(hollow_nodes),
        driver_nodes=int(driver_nodes),
    )
    control = place / "control"
    os.mkfifo(control)
    with cluster:
        _say(f"export KUBECONFIG={cluster.kubeconfig} PATH={programs}:$PATH")
        while True:
            for line in control.read_text().splitlines():
                try:
                    _obey(cluster, line.split())
                    _say(f"done: {line}")
                except (AssertionError, LookupError, RuntimeError, ValueError) as error:
                    _say(f"failed: {line}: {error!r}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _obey(cluster: KubernetesCluster, words: list[str]) -> None:
    match words:
        case ["cut-power", node]:
            cluster.cut_power(node)
        case ["kill", daemon] if daemon in DAEMONS:
            cluster.kill_daemon(daemon)
        case ["start", daemon] if daemon in DAEMONS:
            cluster.start_daemon(daemon)
        case ["start", node] if node in cluster.hollow_names:
            cluster.start_hollow_node(cluster.hollow_names.index(node) + 1)
        case ["start", node]:
            cluster.start_node(node)
        case ["kill", node, daemon]:
            cluster.node(node).kill_daemon(daemon)
        case ["start", node, daemon]:
            cluster.node(node).start_daemon(daemon)
        case ["load", archive]:
            cluster.load_image(Path(archive))
        case _:
            raise ValueError("no such command")


if __name__ == "__main__":
    main(*sys.argv[1:])
