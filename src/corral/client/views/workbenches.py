"""Workbenches.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import NotRequired, TypedDict

from corral.client.views.jobs import JobState, JobView, MountBody


class JupyterView(TypedDict):
    ready: bool
    #: At the console: leads a browser that is signed in to its own origin; programs send a token.
    address: str


class SshView(TypedDict):
    ready: bool
    host: str
    port: int | None
    #: Of the operating system; whom to log in as.
    account: str | None
    #: What the server shows, for a file of known hosts.
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
    #: For how long nobody has used it; null while it does not run.
    idle_seconds: float | None
    idle_stop_seconds: float | None
    image: str | None
    venv: str | None
    job: JobView


class WorkbenchCreate(TypedDict):
    """A workbench as a user asks for it. What it runs is corral's business."""

    name: str
    cpus: NotRequired[float]
    env: NotRequired[dict[str, str] | None]
    flavor: NotRequired[str | None]
    #: 0, a share below 1, or whole GPUs.
    gpus: NotRequired[float]
    hold: NotRequired[bool]
    #: Stop it when nobody has used it for so long.
    idle_stop: NotRequired[float | str | None]
    #: The name or address of an image; the node's own environment if left out.
    image: NotRequired[str | None]
    #: Offer JupyterLab through this server.
    jupyter: NotRequired[bool]
    labels: NotRequired[dict[str, str] | None]
    memory: NotRequired[float | str]
    model: NotRequired[str | list[str] | None]
    #: Storage that it sees, such as data:/data.
    mounts: NotRequired[list[str | MountBody] | None]
    package: NotRequired[str | None]
    priority: NotRequired[int | None]
    queue: NotRequired[str | None]
    #: Let its owner's registered SSH keys log in.
    ssh: NotRequired[bool]
    time: NotRequired[float | str | None]
    #: A virtual environment or conda prefix on the node.
    venv: NotRequired[str | None]
    #: Where it begins; a directory of its own that is kept until it is deleted.
    workdir: NotRequired[str | None]
