"""Workbenches.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import NotRequired, TypedDict

from corral.client.views.jobs import JobState, JobView, MountBody


class AppLinkView(TypedDict):
    #: group or link
    kind: str
    #: The group, or the id of the link.
    name: str
    created_at: str
    #: null: until it is removed.
    expires_at: str | None
    #: The link, which is shown once. A user must be signed in to use it.
    address: str


class AppShareCreate(TypedDict):
    #: Share with this group; null: make a link.
    group: NotRequired[str | None]
    #: Duration of the share; for a link at most 30 days, by default 1 day.
    lasts: NotRequired[float | str | None]


class AppShareView(TypedDict):
    #: group or link
    kind: str
    #: The group, or the id of the link.
    name: str
    created_at: str
    #: null: until it is removed.
    expires_at: str | None


class AppView(TypedDict):
    job_id: str
    #: The job's name.
    name: str
    user: str
    state: JobState
    #: The app, if corral knows it.
    app: str | None
    title: str
    #: Whether the program accepts connections.
    ready: bool
    #: The page; it leads through the console to an origin of its own.
    address: str
    #: Shown to the job's owner and to operators only.
    shares: list[AppShareView]


class KnownAppView(TypedDict):
    name: str
    title: str
    #: The program that must be installed on the node or in the image.
    command: list[str]
    #: Whether other accounts of the node cannot connect to it.
    socket: bool


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
    #: Purpose of the job, shown to every user who sees the job.
    description: NotRequired[str]
    env: NotRequired[dict[str, str] | None]
    #: A flavor of the catalog.
    flavor: NotRequired[str | None]
    #: Per node: 0, a share below 1, or whole GPUs.
    gpus: NotRequired[float]
    hold: NotRequired[bool]
    #: Stop the workbench after so much time without use.
    idle_stop: NotRequired[float | str | None]
    #: The name of an image, or an address; null: the node's own environment.
    image: NotRequired[str | None]
    #: Offer JupyterLab through this server.
    jupyter: NotRequired[bool]
    labels: NotRequired[dict[str, str] | None]
    memory: NotRequired[float | str]
    #: Accepted GPU models.
    model: NotRequired[str | list[str] | None]
    #: Storage of the job, such as data:/data:ro or local:10GiB:/scratch.
    mounts: NotRequired[list[str | MountBody] | None]
    #: A package of the catalog, instead of gpus, cpus, memory and flavor.
    package: NotRequired[str | None]
    priority: NotRequired[int | None]
    queue: NotRequired[str | None]
    #: Secrets of the user or the user's group: NAME or NAME=VARIABLE is an environment variable, NAME:file a file,
    #: whose path is in NAME_FILE.
    secrets: NotRequired[str | list[str]]
    #: Allow the owner's registered SSH keys to log in; null: yes, if there is a key and the node has an SSH server.
    #: With an image, null means no.
    ssh: NotRequired[bool | None]
    time: NotRequired[float | str | None]
    #: A virtual environment or conda prefix on the nodes; its programs are first in PATH.
    venv: NotRequired[str | None]
    #: Working directory; default: a directory of its own, kept until the workbench is deleted.
    workdir: NotRequired[str | None]
