"""The Prometheus text."""

from __future__ import annotations

from corral.server.metrics import Histogram, ServerMetrics, gauge, render


def test_a_histogram_is_cumulative_and_ends_with_everything() -> None:
    histogram = Histogram("x_seconds", "X.", labels=("route",), buckets=(0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 3.0):
        histogram.observe(value, "/jobs")
    assert render([histogram.family()]).splitlines() == [
        "# HELP x_seconds X.",
        "# TYPE x_seconds histogram",
        'x_seconds_bucket{route="/jobs",le="0.1"} 2',
        'x_seconds_bucket{route="/jobs",le="1"} 3',
        'x_seconds_bucket{route="/jobs",le="+Inf"} 4',
        'x_seconds_sum{route="/jobs"} 3.65',
        'x_seconds_count{route="/jobs"} 4',
    ]


def test_labels_are_escaped() -> None:
    text = render([gauge("g", "G.", {(("name", 'a"b\\c\nd'),): 1.5})])
    assert text.splitlines()[2] == 'g{name="a\\"b\\\\c\\nd"} 1.5'


def test_the_server_measures_itself() -> None:
    metrics = ServerMetrics("1.2.3")
    metrics.observe_request("GET", "/api/v1/jobs", 404, 0.002)
    metrics.observe_cycle(0.0001)
    text = render(metrics.families())
    assert 'corral_build_info{version="1.2.3"} 1' in text
    assert 'corral_api_request_seconds_count{method="GET",route="/api/v1/jobs",status="4xx"} 1' in text
    assert "corral_cycle_seconds_count 1" in text
