"""Jobs, nodes and queues as immutable values: the things that scheduling decisions are about.

A value has only fields that can change a decision. The command and the environment of a job, and how things are stored
or shown, belong to the layers around the core. Times are seconds since the epoch, always passed by the caller; sizes
are integers, so that sums never drift.

Import the values from this package, not from its modules: one name per value, wherever its module is.
"""

from corral.core.model.fleet import (
    CLUSTER_LABEL,
    DEFAULT_POOL,
    VIRTUAL,
    Gpu,
    GpuHealth,
    Node,
    NodeState,
    Taken,
    is_slice,
)
from corral.core.model.job_states import ENDED, HOLDING, EndReason, JobKind, JobState
from corral.core.model.jobs import Job, attempt_id, job_of_attempt
from corral.core.model.scheduling import (
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    WHOLE,
    Allocation,
    Blocking,
    Ceiling,
    Elastic,
    Grant,
    Prediction,
    Queue,
    Request,
)

__all__ = [
    "CLUSTER_LABEL",
    "DEFAULT_POOL",
    "DEFAULT_PRIORITY",
    "DEFAULT_QUEUE",
    "ENDED",
    "HOLDING",
    "VIRTUAL",
    "WHOLE",
    "Allocation",
    "Blocking",
    "Ceiling",
    "Elastic",
    "EndReason",
    "Gpu",
    "GpuHealth",
    "Grant",
    "Job",
    "JobKind",
    "JobState",
    "Node",
    "NodeState",
    "Prediction",
    "Queue",
    "Request",
    "Taken",
    "attempt_id",
    "is_slice",
    "job_of_attempt",
]
