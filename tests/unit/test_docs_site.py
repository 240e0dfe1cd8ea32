"""The documentation as a site: links that leave it, and a strict build."""

from __future__ import annotations

import importlib.resources
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.unit.scripts import load_script

ROOT = Path(__file__).parents[2]
hooks = load_script("docs_hooks.py")


def test_links_out_of_the_pages_become_paths() -> None:
    text = hooks.outside_links_as_paths(
        "[the file](../../../deploy/compose.yaml) [page](run-a-server.md#tls) [gone](nothing.md) [x](https://a.b)",
        ROOT / "docs" / "how-to" / "system",
    )
    assert text == ("the file (`deploy/compose.yaml`) [page](run-a-server.md#tls) [gone](nothing.md) [x](https://a.b)")


def test_every_page_is_in_the_navigation() -> None:
    """Decisions and measurements have lists of their own."""
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    listed = {page for page in pages if page.startswith(("decisions/", "measurements/")) and "README" not in page}
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    assert set(re.findall(r"[\w/-]+\.md", navigation)) == pages - listed


def test_the_site_is_built_without_a_broken_link(tmp_path: Path) -> None:
    assert importlib.resources.files("material"), "the theme"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "true"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    assert (site / "search" / "search_index.json").stat().st_size > 100_000
    page = (site / "how-to" / "coming-from" / "kueue.html").read_text()
    assert "ClusterQueue" in page
    assert "not run:" not in page
    assert "https://fonts" not in page
