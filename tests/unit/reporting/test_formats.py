"""A report in every format: the same numbers, whole pages, and names that try to be more than names."""

from __future__ import annotations

import csv as stdlib_csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import pypdfium2
import pytest
import typst

from corral.control.records import UsageRecord
from corral.control.reports.report_data import ReportData, Span
from corral.control.reports.report_numbers import Material, build
from corral.control.reports.report_texts import GAP, duration, hours, span_text
from corral.reporting import csv, html, pdf
from corral.reporting.document import document, summary
from tests.unit.control.report_rows import DAY, MONDAY, gpu_counts, row

NOW = MONDAY + 8 * DAY
WEEK = Span(since=MONDAY, until=MONDAY + 7 * DAY)
HOSTILE = (
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '#eval("1+1") #panic() *bold* $x$ `raw` @ref',
    "\"quotes\" 'and' & ampersands",
    "=cmd|' /C calc'!A0",
    "张伟 – Ünïcødé 🐎",
    "line\nbreak\ttab\0nul\ud800half",
    "x" * 200,
)


def report(usage: list[UsageRecord], **values: object) -> ReportData:
    counts = gpu_counts(8, MONDAY - 7 * DAY, MONDAY + 7 * DAY)
    material = Material(cluster="c-1", title="Weekly report", span=WEEK, now=NOW, usage=usage, gpu_counts=counts)
    return build(replace(material, **values))  # type: ignore[arg-type]


def pages(content: bytes) -> list[str]:
    with pypdfium2.PdfDocument(content) as opened:
        return [page.get_textpage().get_text_range() for page in opened]


USAGE = [row(number, number * 60, number * 60 + 500, user=f"user-{number % 14}", waited=90) for number in range(1, 80)]
SMALL = [row(1, 0, 90, gpus=2, waited=75), row(2, 5, 65, user="bob", group=None)]


class Reader(HTMLParser):
    """Text and elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "rect", "line", "path", "circle"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, "elements are closed in the order in which they were opened"

    def handle_data(self, data: str) -> None:
        self.text += data


def read(content: bytes) -> Reader:
    reader = Reader()
    reader.feed(content.decode())
    assert reader.open == []
    return reader


def test_the_same_numbers_stand_in_html_and_pdf() -> None:
    data = report(SMALL)
    shown = document(data)
    page, paper = read(html.render(shown)).text, " ".join(pages(pdf.render(shown, made_at=NOW)))
    for text in (page, paper):
        assert "4.00" in text, "4 GPU-hours: three of ann, one of bob"
        assert "1.20 kWh" in text
        assert "Weekly report" in text
        assert "7 – 13 September 2026" in text
        assert "bob" in text
        assert "in no group" in text


def test_the_page_needs_nothing_from_outside_and_runs_nothing() -> None:
    page = read(html.render(document(report(USAGE))))
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "iframe", "object", "img", "form", "a", "base"}
    for _, attributes in page.tags:
        assert not {name for name in attributes if name in ("src", "href") or name.startswith("on")}
    assert "url(" not in html.STYLE
    tables = [tag for tag, _ in page.tags if tag == "table"]
    assert len(tables) == len([tag for tag, _ in page.tags if tag == "caption"]) > 2, "every table says what it shows"
    heads = [attributes for tag, attributes in page.tags if tag == "th"]
    assert all(attributes.get("scope") in ("col", "row") for attributes in heads)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_only_a_name(name: str) -> None:
    usage = [row(1, 0, 60, user=name, group=name, queue=name, model=name, job_name=name), row(2, 0, 30)]
    data = report(usage, title=name, cluster=name)
    shown = document(data)
    page = read(html.render(shown))
    assert not {tag for tag, _ in page.tags} & {"script", "img"}
    paper = "".join(pages(pdf.render(shown, made_at=NOW)))
    assert "Users and groups" in paper
    if name.isascii() and name.isprintable():
        assert name in page.text
        squeezed = re.sub(r"\s", "", paper.replace("\u200b", "").replace("\ufffe", ""))
        assert re.sub(r"\s", "", name) in squeezed
    written = csv.render(usage, WEEK, NOW).decode()
    lines = list(stdlib_csv.DictReader(io.StringIO(written, newline="")))
    assert len(lines) == 2
    for column in ("job_name", "user", "group", "queue", "gpu_model"):
        cell = lines[0][column]
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
        assert cell.removeprefix("'") == name.encode("utf-8", "replace").decode()


def test_a_pdf_is_made_without_any_font_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = typst.Fonts(include_system_fonts=False, include_embedded_fonts=True)
    monkeypatch.setattr(pdf, "_fonts", lambda: bare)
    made = pdf.render(document(report([*USAGE, row(99, 0, 5000, user="张伟")])), made_at=NOW)
    reported = pages(made)
    assert "GPU-hours held" in reported[0]
    assert all(f"{number} of {len(reported)}" in text for number, text in enumerate(reported, 1)), "pages are numbered"
    assert all("c-1 · Weekly report" in text for text in reported[1:]), "every page says what it is of"


def test_a_pdf_is_on_a4_and_the_same_again() -> None:
    shown = document(report(USAGE))
    made = pdf.render(shown, made_at=NOW)
    assert made == pdf.render(shown, made_at=NOW)
    with pypdfium2.PdfDocument(made) as opened:
        assert 2 <= len(opened) <= 6
        assert {tuple(round(side) for side in page.get_size()) for page in opened} == {(595, 842)}


def test_a_report_on_nothing_says_so_in_every_format() -> None:
    shown = document(report([], gpu_counts=()))
    assert "Nothing ran in this period" in read(html.render(shown)).text
    assert "Nothing ran in this period" in "".join(pages(pdf.render(shown, made_at=NOW)))
    assert csv.render([], WEEK, NOW).decode() == ",".join(csv.COLUMNS) + "\r\n"


def test_the_data_has_what_every_number_is_made_of() -> None:
    data = report(USAGE)
    written = csv.render(USAGE, WEEK, NOW).decode()
    assert written.count("\r\n") == len(USAGE) + 1
    lines = list(stdlib_csv.DictReader(io.StringIO(written, newline="")))
    hours = data.totals.hours
    for column in ("gpu_hours", "busy_gpu_hours", "idle_gpu_hours", "energy_kwh"):
        assert sum(float(line[column]) for line in lines) == pytest.approx(getattr(hours, column))
    assert sum(line["outcome"] == "completed" for line in lines) == data.totals.outcomes.completed
    assert max(float(line["wait_seconds"]) for line in lines) == data.queues[0].most


def test_attempts_beyond_the_period_are_not_in_its_data() -> None:
    usage = [row(1, -600, -60), row(2, 7 * 1440, 7 * 1440 + 5), row(3, -60, 60), row(4, 7 * 1440 - 1, None)]
    lines = list(stdlib_csv.DictReader(io.StringIO(csv.render(usage, WEEK, NOW).decode(), newline="")))
    assert [line["attempt"] for line in lines] == ["j-3.1", "j-4.1"]
    assert [float(line["gpu_hours"]) for line in lines] == [pytest.approx(1.0), pytest.approx(1 / 60)]
    assert lines[1]["ended_at"] == ""


def test_the_summary_fits_into_a_message() -> None:
    reported = summary(report(SMALL))
    assert reported.startswith("c-1, 7 – 13 September 2026\n")
    assert "GPU-hours held: 4.00" in reported
    assert "What stands out\n- " in reported


@pytest.mark.parametrize(
    ("since", "until", "text"),
    [
        (0, 7, "7 – 13 September 2026"),
        (0, 1, "7 September 2026"),
        (0, 30, "7 September – 6 October 2026"),
        (0, 120, "7 September 2026 – 4 January 2027"),
        (0.5, 1, "7 September 2026, 12:00 UTC – 8 September 2026, 00:00 UTC"),
    ],
)
def test_spans_in_a_message(since: float, until: float, text: str) -> None:
    assert span_text(Span(since=MONDAY + since * DAY, until=MONDAY + until * DAY)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (3599, "1 h"),
        (3660, "1 h 1 min"),
        (86_399, "1 d"),
        (100_000, "1 d 4 h"),
    ],
)
def test_durations_in_a_message(seconds: float, text: str) -> None:
    assert duration(seconds) == text.replace(" ", GAP)


@pytest.mark.parametrize(
    ("value", "of", "text"),
    [(0, None, "0"), (12_345.6, None, "12,346"), (12.34, None, "12.3"), (0.0123, None, "0.0123"), (3.2, 4000, "3")],
)
def test_amounts_have_as_many_decimals_as_their_whole(value: float, of: float | None, text: str) -> None:
    assert hours(value, of=of) == text
