"""Workbenches.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import NotRequired, TypedDict

from corral.client.views.jobs import JobState, JobView, MountBody


class JupyterView(TypedDict):
    ready: bool
    #: Redirects a signed-in browser to the workbench's own origin; programs send a token.
    address: str


class SshView(TypedDict):
    ready: bool
    host: str
    port: int | None
    #: Account of the operating system to log in with.
    account: str | None
    #: The SSH server's host key, for a known_hosts file.
    host_key: str | None
    #: To be copied.
    command: str | None
    sessions: int


class WorkbenchView(TypedDict):
    id: str
    name: str
    user: str
    state: JobState
    message: str
    jupyter: JupyterView | None
    ssh: SshView | None
    #: Time without use; null while the workbench does not run.
    idle_seconds: float | None
    idle_stop_seconds: float | None
    image: str | None
    venv: str | None
    job: JobView


class WorkbenchCreate(TypedDict):
    """A workbench to create. corral decides which programs it runs."""

    name: str
    cpus: NotRequired[float]
    env: NotRequired[dict[str, str] | None]
    flavor: NotRequired[str | None]
    #: 0, a share below 1, or whole GPUs.
    gpus: NotRequired[float]
    hold: NotRequired[bool]
    #: Stop the workbench after so much time without use.
    idle_stop: NotRequired[float | str | None]
    #: The name or address of an image; the node's own environment if left out.
    image: NotRequired[str | None]
    #: Offer JupyterLab through this server.
    jupyter: NotRequired[bool]
    labels: NotRequired[dict[str, str] | None]
    memory: NotRequired[float | str]
    model: NotRequired[str | list[str] | None]
    #: Storage of the workbench, such as data:/data.
    mounts: NotRequired[list[str | MountBody] | None]
    package: NotRequired[str | None]
    priority: NotRequired[int | None]
    queue: NotRequired[str | None]
    #: Allow the owner's registered SSH keys to log in; null: yes, if there is a key and the node has an SSH server.
    #: With an image, null means no.
    ssh: NotRequired[bool | None]
    time: NotRequired[float | str | None]
    #: A virtual environment or conda prefix on the node.
    venv: NotRequired[str | None]
    #: Working directory; default: a directory of its own, kept until the workbench is deleted.
    workdir: NotRequired[str | None]
