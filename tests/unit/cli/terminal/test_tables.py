"""A row is a line: cut at the width of the terminal, not cut in a pipe; colour never carries information alone."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from corral.cli.terminal import columns, tables

TITLES = columns.columns("ID", "NAME~", "STATE!", "GPUS>")
ROWS = [
    ("j-1", "a-short-name", "running", "8"),
    ("j-1234", "a-name-that-is-quite-a-bit-longer-than-it-needs-to-be-for-this-table", "failed", "0.5"),
]


def drawn(width: int, *, colour: bool = False) -> str:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=colour, color_system="standard" if colour else None
    )
    console.print(tables.table(TITLES, ROWS))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_cuts_the_flexible_column_and_wraps_nothing(width: int) -> None:
    lines = drawn(width).splitlines()
    assert len(lines) == 1 + len(ROWS)
    assert all(len(line) <= width for line in lines)
    assert "j-1234" in lines[2]
    assert "failed" in lines[2]
    assert "…" in lines[2]


def test_numbers_end_under_each_other() -> None:
    lines = [line.rstrip() for line in drawn(200).splitlines()]
    assert len({len(line) for line in lines}) == 1


def test_the_word_is_there_whatever_the_colour() -> None:
    assert "running" in drawn(100)
    assert "\x1b[32mrunning" in drawn(100, colour=True)


def test_a_pipe_gets_whole_lines_without_boxes_or_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    columns.print_table(TITLES, [*ROWS, ("j-3", "two\nlines", "queued", "1")])
    out = capsys.readouterr().out
    assert out.splitlines()[2].split() == ["j-1234", ROWS[1][1], "failed", "0.5"]
    assert "two lines" in out
    assert out.isascii()
    assert all(line == line.rstrip() for line in out.splitlines())


def test_a_width_can_be_set_for_a_pipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    columns.print_table(TITLES, ROWS)
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 50


def test_markup_in_a_name_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    columns.print_table(TITLES, [("j-1", "[red]x[/red]", "running", "1")])
    columns.print_facts([("Name", "[bold]y[/bold]"), ("Empty", "")])
    out = capsys.readouterr().out
    assert "[red]x[/red]" in out
    assert "[bold]y[/bold]" in out
    assert "Empty" not in out


def test_a_very_narrow_terminal_gets_fewer_columns_and_no_stumps() -> None:
    titles = columns.columns("ID", "NAME~", "STATE!", "PRIO>?", "GPUS>", "DETAIL~")
    rows = [("j-1", "a-short-name", "running", "5", "8", "node-1")]

    def shown(width: int) -> list[str]:
        return [titles[place].title for place in columns.fitting(titles, rows, width)]

    assert shown(80) == ["ID", "NAME", "STATE", "PRIO", "GPUS", "DETAIL"]
    assert shown(42) == ["ID", "NAME", "STATE", "GPUS", "DETAIL"]
    assert shown(33) == ["ID", "NAME", "STATE", "GPUS"]
    assert shown(5) == ["ID", "STATE"]


@pytest.mark.parametrize("width", [4, 20, 33, 60, 200])
def test_wide_characters_are_counted_as_two(width: int) -> None:
    rows = [("j-1", "训练-resnet-训练-训练-训练", "running", "8"), ("j-2", "", "failed", "1")]
    for line in columns.lines(TITLES, rows, width, in_colour=False)[1:]:
        assert cell_len(line) <= max(width, len("j-1") + columns.GAP + len("running"))
    assert columns.lines(TITLES, rows, 200, in_colour=False)[2].split() == ["j-2", "-", "failed", "1"]


def test_table_in_watch_mode_has_the_same_lines() -> None:
    assert drawn(60).splitlines() == columns.lines(TITLES, ROWS, 60, in_colour=False)
