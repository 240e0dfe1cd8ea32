"""Scheduling: which job starts when and where, why the others wait, and until when.

Begin with `cycle.scheduler`: its function `schedule` turns a snapshot into a plan and nothing else. A cycle uses, in
this order:

- `ordering`: which waiting job goes first.
- `limits`: rules that hold a job although there may be room, and GPUs that are guaranteed to queues.
- `reservations`: GPUs that are closed to a job.
- `placement`: the node and the GPUs among those that are free.
- `preemption`: running jobs that are interrupted or moved for a job without room.
- `backfill`: the planned start of a job that has to wait, and what is held for it.
- `elastic`: jobs that shrink for others and grow into idle GPUs.
- `plan`: the decisions as values, and their check before they are applied.

Two packages look at the same rules from outside: `explain` says why a job waits, `forecast` learns run times and runs
cycles ahead of time to estimate starts.
"""
