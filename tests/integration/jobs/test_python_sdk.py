"""The examples of docs/how-to/python-sdk.md, run one after the other against a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "python-sdk.md"


def test_the_examples_of_the_page_work(tmp_path: Path) -> None:
    examples = "\n".join(
        re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    )
    server = CorralServer(tmp_path / "server", "--virtual-gpus", "2xA100-80G")
    server.start()
    try:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("CORRAL_")}
        env = {**clean, "CORRAL_SERVER": server.url, "CORRAL_TOKEN": server.token(), "CORRAL_HOME": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", examples], env=env, capture_output=True, text=True, timeout=90)
    finally:
        server.stop()
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "operator"
    assert re.fullmatch(r"j-\d+ (queued|starting|running)", lines[1])
    assert "now completed" in lines
    assert "completed 0" in lines
    assert lines.count("loss 0.1") == 2, "once from `log`, once from `follow_log`"
    assert "ended: completed 0" in lines
    assert "['sdk-first']" in lines
    assert "2.0 GPUs are free" in lines or "2 GPUs are free" in lines
    assert any(line.startswith("not found: ") for line in lines)
    assert lines[-1].startswith("422 [('gpus', ")
