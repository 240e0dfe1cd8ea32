"""`corral exporter`: serves the readings of a node's GPUs to Prometheus or to a corral server on another machine."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal.failures import Refused, WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, command

if TYPE_CHECKING:
    from corral.control.ports import Collector
    from corral.telemetry.exporter import Places

app = typer.Typer()


@command(
    app,
    "exporter",
    section=Section.SETUP,
    connects=False,
    examples=[
        "corral exporter",
        "corral exporter --port 9400 --interval 5",
        "corral exporter --virtual-gpus 8xA100-80G",
    ],
)
def exporter(
    terminal: Terminal,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "0.0.0.0",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help="The port; 0 chooses a free one.")] = 9400,
    virtual_gpus: Annotated[
        str | None, typer.Option(metavar="NxMODEL", help="Busy virtual GPUs instead of real ones.")
    ] = None,
    interval: Annotated[float, typer.Option(min=0.1, max=3600, metavar="SECONDS", help="How often to read.")] = 1.0,
) -> None:
    """Serve this node's GPUs and host at /metrics, under the names of NVIDIA's DCGM exporter, until Ctrl-C."""
    from corral.telemetry.exporter import Exporter, ExporterServer

    try:
        collectors, places = _virtual(virtual_gpus) if virtual_gpus else _real()
    except ValueError as error:
        raise WrongUsage(str(error)) from error
    reading = Exporter(collectors, places, interval_seconds=interval)
    try:
        server = ExporterServer(reading, host, port)
    except OSError as error:
        raise Refused(f"cannot listen at {host}:{port}: {error.strerror}", hint="Give another --port.") from error
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    reading.start()
    thread = threading.Thread(target=server.serve_forever, name="exporter", daemon=True)
    thread.start()
    terminal.note(f"Metrics at http://{host}:{server.port}/metrics")
    try:
        done.wait()
    finally:
        server.shutdown()
        server.server_close()
        reading.stop()


def _real() -> tuple[list[Collector], Places]:
    from corral.engines.local.fleet import host_name
    from corral.telemetry.amd.collector import AmdCollector
    from corral.telemetry.host import HostCollector
    from corral.telemetry.nvml import NvmlCollector

    nvidia, amd = NvmlCollector(), AmdCollector()
    collectors: list[Collector] = [nvidia, amd, HostCollector(host_name(), Path("/"))]
    return collectors, lambda: nvidia.places(host_name()) | amd.places(host_name())


def _virtual(text: str) -> tuple[list[Collector], Places]:
    from corral.engines.local.fleet import VirtualFleet, fleet_for
    from corral.telemetry.page import GpuPlace
    from corral.telemetry.virtual import VirtualCollector

    fleet = fleet_for(virtual_gpus=text)
    assert isinstance(fleet, VirtualFleet)
    places = {
        gpu.id: GpuPlace(index=gpu.index, model=gpu.model, host=node.id) for node in fleet.nodes() for gpu in node.gpus
    }
    # An exporter does not know which GPUs are allocated: all virtual GPUs are shown as busy.
    busy = dict.fromkeys(places, 1.0)
    return [VirtualCollector(fleet, lambda: busy)], lambda: places
