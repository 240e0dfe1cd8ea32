"""Files of reports: whole or not there, and gone with their report."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.stores.reports.report_files import DirectoryReportFiles


def test_files_come_together_and_are_replaced_together(tmp_path: Path) -> None:
    files = DirectoryReportFiles(tmp_path / "reports")
    assert files.ids() == set()
    assert files.path("r-1", "a.pdf") is None
    files.put("r-1", {"a.pdf": b"one", "a.csv": b"two"})
    files.put("r-1", {"a.pdf": b"three"})
    path = files.path("r-1", "a.pdf")
    assert path is not None
    assert path.read_bytes() == b"three"
    assert files.path("r-1", "a.csv") is None
    assert path.parent.stat().st_mode & 0o077 == 0, "no other account may read it"
    assert files.ids() == {"r-1"}
    files.remove(["r-1", "unknown"])
    assert files.ids() == set()


def test_a_draft_of_a_server_that_died_is_no_report(tmp_path: Path) -> None:
    root = tmp_path / "reports"
    (root / ".draft-r-1").mkdir(parents=True)
    (root / ".draft-r-1" / "a.pdf").write_bytes(b"hal")
    files = DirectoryReportFiles(root)
    assert files.ids() == set()
    assert files.path("r-1", "a.pdf") is None
    files.put("r-1", {"a.csv": b"whole"})
    assert [path.name for path in root.iterdir()] == ["r-1"]
    assert [path.name for path in (root / "r-1").iterdir()] == ["a.csv"]


@pytest.mark.parametrize("bad", ["", "..", "../x", "a/b", ".hidden", "x" * 101, "a\0"])
def test_an_id_that_is_none_leads_nowhere(tmp_path: Path, bad: str) -> None:
    (tmp_path / "x").mkdir()
    files = DirectoryReportFiles(tmp_path / "reports")
    with pytest.raises(ValueError, match="not the id"):
        files.remove([bad])
    assert (tmp_path / "x").is_dir()
