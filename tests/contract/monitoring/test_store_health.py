"""How GPUs are and which jobs were warned, on every database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corral.control.ports import Store
from corral.control.records import CheckCause, CheckRecord, CheckState, IdleWarning
from corral.core.model import GpuHealth
from corral.core.monitoring.checks import Check, Measurement, Problem
from corral.core.monitoring.health.model import Condition, Evidence, Sign

pytest_plugins = ("tests.servers.fixtures",)

HOT = Evidence(sign=Sign.HOT, at=1700000000.25, text="91 °C, more than 85 °C", advice="看风扇 \0", value=91.5)
BARE = Evidence(sign=Sign.OPERATOR, at=1.0, text="")
BAD = Condition(
    gpu_id="GPU-1b2c/é", health=GpuHealth.FAILED, since=1700000001.5, evidence=(HOT, BARE), episodes=(5.0, 7.25)
)


def test_conditions_come_back_as_they_were_and_are_replaced_by_gpu(store: Store) -> None:
    healthy = Condition(gpu_id="a")
    with store.write() as transaction:
        transaction.health.save_conditions([])
        transaction.health.save_conditions([BAD, healthy])
    with store.read() as transaction:
        assert transaction.health.conditions() == {"a": healthy, BAD.gpu_id: BAD}
    again = replace(healthy, health=GpuHealth.SUSPECT, since=3.0, evidence=(HOT,), episodes=(3.0,))
    with store.write() as transaction:
        transaction.health.save_conditions([again])
        transaction.health.delete_conditions([BAD.gpu_id, "unknown", "nul\0"])
    with store.read() as transaction:
        assert transaction.health.conditions() == {"a": again}


def test_warnings_come_back_as_they_were_one_per_job(store: Store) -> None:
    first = IdleWarning(job_id="j-12", attempt=3, warned_at=1700000000.5, deadline=1700000600.5)
    other = IdleWarning(job_id="j-7", attempt=1, warned_at=1.0, deadline=2.0, extended_at=1.5)
    with store.write() as transaction:
        for warning in (first, other):
            transaction.health.save_idle_warning(warning)
    with store.read() as transaction:
        assert transaction.health.idle_warnings() == {"j-12": first, "j-7": other}
    later = replace(first, attempt=4, deadline=1700009999.0, extended_at=1700000100.0)
    with store.write() as transaction:
        transaction.health.save_idle_warning(later)
        transaction.health.delete_idle_warnings(["j-7", "j-99", "nonsense"])
        transaction.health.delete_idle_warnings([])
    with store.read() as transaction:
        assert transaction.health.idle_warnings() == {"j-12": later}
    with pytest.raises(ValueError, match="nonsense"), store.write() as transaction:
        transaction.health.save_idle_warning(replace(first, job_id="nonsense"))


def test_checks_are_kept_and_read_by_gpu_model_and_state(store: Store) -> None:
    def check(number: int, gpu: str, **values: Any) -> CheckRecord:
        return CheckRecord(
            **{
                "job_id": f"j-{number}",
                "gpu_id": gpu,
                "node": "n1",
                "model": "A10",
                "cause": CheckCause.REQUESTED,
                "requested_by": "root",
                "requested_at": 100.0 * number,
                "checks": (Check.COMPUTE, Check.DISK),
                **values,
            }
        )

    first, second, other = check(1, "g1"), check(2, "g1"), check(3, "g2", model="H200", node="n2", is_simulated=True)
    with store.write() as transaction:
        transaction.health.add_checks([first, second, other])
    done = replace(
        first,
        state=CheckState.FAILED,
        ended_at=150.0,
        measurements=(Measurement(check=Check.COMPUTE, metric="compute_tflops", value=1.5),),
        problems=(Problem(check=Check.COMPUTE, text="wrong", is_fatal=True),),
        skipped=("disk: full",),
    )
    with store.write() as transaction:
        transaction.health.save_check(done)
    with store.read() as transaction:
        table = transaction.health
        assert (table.check("j-1"), table.check("j-9"), table.check("nonsense")) == (done, None, None)
        assert table.open_checks() == [second, other]
        assert table.checks(gpu_id="g1", limit=5) == [second, done]
        assert table.checks(node="n2", limit=5) == [other]
        assert table.checks(before="j-3", limit=1) == [second]
        assert table.latest_checks() == [done], "those that are open have no values"
        assert table.latest_checks("H200") == []
    with store.write() as transaction:
        assert transaction.health.prune_checks(1000.0) == 1, "the latest of each GPU and open ones stay"
        assert transaction.health.open_checks() == [second, other]
