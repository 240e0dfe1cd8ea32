"""The form of the blocks in README, tutorial and how-tos: each is run by a test, or says why it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documentation import pages, test_first_pages
from tests.documentation.pages import COMMANDS, OUTPUT, Page, read_page

TESTS = Path(pages.__file__).parent


@pytest.mark.parametrize("name", pages.pages_with_blocks())
def test_every_block_is_run_or_says_why_not(name: str) -> None:
    wrong = [
        f"{block.place} ({block.language or 'no language'})"
        for block in read_page(name).blocks
        if block.language != OUTPUT and not block.is_run and not block.not_run
    ]
    assert not wrong, "name the language, give a title, or add <!-- not run: REASON -->"


@pytest.mark.parametrize("name", pages.pages_with_blocks())
def test_no_explanation_stands_beside_a_command_without_a_comment_sign(name: str) -> None:
    for block in read_page(name).blocks:
        if block.language in COMMANDS:
            assert "·" not in block.commands, block.place


def test_every_page_belongs_to_a_test() -> None:
    areas = {area for path in TESTS.glob("test_how_to_*.py") for area in _areas(path)}
    run = {name for area in areas for name in pages.pages_with_blocks(area)}
    run |= {*test_first_pages.PAGES, test_first_pages.SDK}
    assert run == set(pages.pages_with_blocks())


def _areas(path: Path) -> list[str]:
    found: dict[str, object] = {}
    text = path.read_text(encoding="utf-8")
    exec(text[text.index("AREAS") : text.index("@pytest")], found)
    areas = found["AREAS"]
    assert isinstance(areas, tuple)
    return list(areas)


def page_of(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(text)
    return read_page("page.md")


def test_comments_before_a_block_say_how_it_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_of(
        "<!-- server: --virtual-gpus 2xA10 -->\n<!-- placeholders: gpu-03=a10-001 -->\n# Title\n"
        "<!-- given: echo 1\necho 2 -->\n<!-- fails: corral rm -->\n"
        "```console\n$ corral nodes show gpu-03\nout\n$ corral rm\n```\n"
        '```yaml title="job.yaml"\ngpus: 1\n```\n```text\nout\n```\n'
        "1. First\n   <!-- not run: needs Slurm -->\n   ```sh\n   squeue\n   ```\n",
        tmp_path,
        monkeypatch,
    )
    assert page.server == "--virtual-gpus 2xA10"
    command, file, output, indented = page.blocks
    assert page.filled(command.commands) == "corral nodes show a10-001\ncorral rm\n"
    assert command.given == ("echo 1\necho 2",)
    assert command.fails == ("corral rm",)
    assert (file.title, file.is_run, output.is_run) == ("job.yaml", True, False)
    assert (indented.text, indented.not_run, indented.is_run) == ("squeue\n", "needs Slurm", False)


def test_an_unknown_comment_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="unknown comment"):
        page_of("<!-- not ran: typing error -->\n```sh\ntrue\n```\n", tmp_path, monkeypatch)
