"""The API server's refusals in plain words."""

from __future__ import annotations

import pytest

from corral.engines.kubernetes.api.refusals import is_full_quota, plain_refusal

QUOTA = (
    'pods "corral-x-0" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu={}, '
    "used: requests.nvidia.com/gpu=6, limited: requests.nvidia.com/gpu=8"
)
TWO = (
    'pods "x" is forbidden: exceeded quota: compute, requested: requests.cpu=4,requests.memory=1Gi, '
    "used: requests.cpu=7,requests.memory=64Gi, limited: requests.cpu=8,requests.memory=64Gi"
)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            QUOTA.format(4),
            "the quota gpus of namespace vision allows 8 GPUs (nvidia.com/gpu) at most, of which 6 are used and 4 more "
            "requested",
        ),
        (
            TWO,
            "the quota compute of namespace vision allows 8 CPU at most, of which 7 are used and 4 more requested; "
            "64Gi memory at most, of which 64Gi are used and 1Gi more requested",
        ),
        (
            'pods "x" is forbidden: failed quota: compute: must specify limits.cpu for: job; requests.memory for: job',
            "the quota compute of namespace vision wants limits.cpu, requests.memory of every pod: submit the job with "
            "--cpus and --memory",
        ),
        (
            'pods "x" is forbidden: [maximum memory usage per Container is 1Gi, but limit is 4Gi, minimum cpu usage '
            "per Container is 100m, but request is 10m]",
            "namespace vision does not allow it: at most 1Gi memory for each container, not 4Gi; at least 100m CPU for "
            "each container, not 10m",
        ),
        (
            'pods "x" is forbidden: maximum cpu usage per Container is 2, but no limit is specified',
            "namespace vision does not allow it: at most 2 CPU for each container, and the job names none",
        ),
        (
            'pods "x" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000',
            "namespace vision does not allow it: a limit of CPU at most 2 times the request, not 4.000000",
        ),
        (
            'pods "x" is forbidden: violates PodSecurity "restricted:latest": unrestricted capabilities',
            "namespace vision enforces the standard restricted:latest of Pod Security: unrestricted capabilities",
        ),
        ("admission webhook denied the request", "admission webhook denied the request"),
    ],
)
def test_a_refusal_is_said_in_plain_words(message: str, words: str) -> None:
    assert plain_refusal(message, "vision") == words


@pytest.mark.parametrize(
    ("message", "is_full"),
    [
        (QUOTA.format(4), True),
        # No end of another job makes room for it.
        (QUOTA.format(12), False),
        (TWO, True),
        ('pods "x" is forbidden: exceeded quota: gpus', True),
        ('pods "x" is forbidden: failed quota: compute: must specify limits.cpu', False),
    ],
)
def test_only_a_quota_that_another_job_can_free_is_waited_for(message: str, is_full: bool) -> None:
    assert is_full_quota(message) is is_full
