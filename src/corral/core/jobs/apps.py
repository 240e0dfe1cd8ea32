"""Web programs that corral knows: how each is started so that only corral reaches it. Data only.

A program is served at the root of an origin of its own, so it needs no path prefix. Placeholders of commands and
variables: `{port}` is a free port of the node's loopback address, `{socket}` the path of a socket that only the job's
account can open. A program that can listen at a socket does so: other accounts of the node cannot connect to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SOCKET = "{socket}"


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownApp:
    title: str
    #: what is run; the arguments of the job follow
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    #: the arguments that are needed, for a message; "" if none are
    needs: str = ""

    @property
    def has_socket(self) -> bool:
        return any(SOCKET in word for word in self.command)


KNOWN_APPS: Mapping[str, KnownApp] = {
    "tensorboard": KnownApp(
        title="TensorBoard",
        command=("tensorboard", "--host", "127.0.0.1", "--port", "{port}", "--logdir", "."),
    ),
    "code-server": KnownApp(
        title="VS Code (code-server)",
        command=(
            *("code-server", "--auth", "none", "--socket", SOCKET, "--socket-mode", "600"),
            *("--disable-telemetry", "--disable-update-check"),
        ),
    ),
    "openvscode": KnownApp(
        title="VS Code (openvscode-server)",
        command=("openvscode-server", "--without-connection-token", "--socket-path", SOCKET),
    ),
    "mlflow": KnownApp(
        title="MLflow",
        command=("mlflow", "ui", "--host", "127.0.0.1", "--port", "{port}"),
        # corral has checked the host and the origin of every request.
        env={"MLFLOW_SERVER_ALLOWED_HOSTS": "*", "MLFLOW_SERVER_CORS_ALLOWED_ORIGINS": "*"},
    ),
    "streamlit": KnownApp(
        title="Streamlit",
        command=(
            *("streamlit", "run", "--server.address=127.0.0.1", "--server.port={port}", "--server.headless=true"),
            "--browser.gatherUsageStats=false",
        ),
        needs="the script: corral submit --app streamlit -- page.py",
    ),
    "gradio": KnownApp(
        title="Gradio",
        command=("python3",),
        env={"GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": "{port}", "GRADIO_ANALYTICS_ENABLED": "False"},
        needs="the script: corral submit --app gradio -- demo.py",
    ),
    "ray": KnownApp(
        title="Ray dashboard",
        command=(
            *("ray", "start", "--head", "--block", "--port=0", "--include-dashboard=true"),
            *("--dashboard-host=127.0.0.1", "--dashboard-port={port}"),
        ),
    ),
    "rstudio": KnownApp(
        title="RStudio",
        command=(
            *("rserver", "--server-daemonize=0", "--auth-none=1", "--www-address=127.0.0.1", "--www-port={port}"),
            *("--www-verify-user-agent=0", "--server-data-dir=.rstudio", "--database-config-file=/dev/null"),
        ),
    ),
}


def app_command(name: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The command of a known app. Raises ValueError for an app that is not known or lacks its arguments."""
    app = KNOWN_APPS.get(name)
    if app is None:
        raise ValueError(
            f"there is no app {name!r}; there are: {', '.join(sorted(KNOWN_APPS))}; any other program is "
            "given with its port: --port 8080 --app-name demo -- COMMAND"
        )
    if arguments[: len(app.command)] == app.command:
        return arguments  # the command of an earlier job, submitted again
    if app.needs and not arguments:
        raise ValueError(f"{name} needs {app.needs}")
    return (*app.command, *arguments)
