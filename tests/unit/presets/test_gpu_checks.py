"""The program of a check, in its test mode, and how it reads reports of dcgmi."""

from __future__ import annotations

import json

import pytest

from corral.presets import gpu_checks


def last_line(output: str) -> dict[str, object]:
    line = output.splitlines()[-1]
    assert line.startswith(gpu_checks.MARK)
    found = json.loads(line[len(gpu_checks.MARK) :])
    assert isinstance(found, dict)
    return found


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_checks, "MEASURE_SECONDS", 0.01)


def test_the_processor_passes_and_what_it_lacks_is_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_checks.main(["--cpu", "--checks", "compute,memory,pcie,disk"]) == 0
    found = last_line(capsys.readouterr().out)
    metrics = [item["metric"] for item in found["measurements"]]  # type: ignore[attr-defined]
    assert metrics == [
        "compute_tflops",
        "memory_gb_per_second",
        "disk_write_mb_per_second",
        "disk_read_mb_per_second",
    ]
    assert (found["problems"], found["mode"]) == ([], "cpu")
    assert found["skipped"] == [{"check": "pcie", "reason": "there is no GPU in test mode"}]


def test_nothing_checked_is_not_a_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_checks.main(["--cpu", "--checks", "pcie"]) == 2


def test_an_error_in_the_middle_of_a_check_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(result: gpu_checks.Result) -> None:
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setitem(gpu_checks.ON_CPU, "compute", breaks)
    assert gpu_checks.main(["--cpu", "--checks", "compute"]) == 1
    problems = last_line(capsys.readouterr().out)["problems"]
    text = "RuntimeError: CUDA error: unspecified launch failure"
    assert problems == [{"check": "compute", "text": text, "is_fatal": True}]


def test_an_unknown_check_is_wrong_usage() -> None:
    with pytest.raises(SystemExit) as ended:
        gpu_checks.main(["--checks", "colour"])
    assert ended.value.code == 2


def test_failed_tests_are_found_wherever_dcgmi_puts_them() -> None:
    report = {
        "DCGM Diagnostic": {
            "test_categories": [
                {
                    "category": "Integration",
                    "tests": [
                        {"name": "PCIe", "results": [{"gpu_id": "0", "status": "PASS"}]},
                        {
                            "name": "GPU Memory",
                            "results": [
                                {"gpu_id": "0", "status": "FAIL", "warnings": [{"warning": "2 errors were found"}]}
                            ],
                        },
                    ],
                }
            ]
        }
    }
    assert gpu_checks.dcgm_failures(report) == ["GPU Memory failed: 2 errors were found"]
