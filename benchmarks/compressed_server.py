"""corral in compressed time: `python -m benchmarks.compressed_server up`, options as of `corral up`.

The settings compress what decides, and this what estimates: estimated starts have constants in seconds that no setting
changes, such as the stretches of life tables and the length of a day. They are divided by `CORRAL_BENCH_FACTOR` before
the server begins. No decision of the scheduler depends on them.
"""

from __future__ import annotations

import os
from itertools import pairwise

from corral.core.scheduling.forecast import accuracy, arrivals, count_lines, life_tables, remaining_time

FACTOR_VARIABLE = "CORRAL_BENCH_FACTOR"


def compress(factor: float) -> None:
    """To be called before any other module of corral is imported: some of these constants are copied by imports."""
    life_tables.FIRST_SECONDS /= factor
    life_tables._EDGES = tuple(edge / factor for edge in life_tables._EDGES)
    life_tables._WIDTHS = tuple(after - before for before, after in pairwise(life_tables._EDGES))
    life_tables._WITHOUT_TABLES = life_tables.Hazard([rate * factor for rate in life_tables._WITHOUT_TABLES.rates])
    arrivals.DAY /= factor
    arrivals.LEAST_SECONDS /= factor
    arrivals.HORIZON_SECONDS /= factor
    accuracy.HORIZONS = tuple((seconds / factor, label) for seconds, label in accuracy.HORIZONS)
    accuracy._BOUNDS = tuple(seconds / factor for seconds in accuracy._BOUNDS)
    accuracy.GRAIN_SECONDS /= factor
    remaining_time.LEAST_SECONDS /= factor
    count_lines.LEAST_STEP_SECONDS /= factor


def main() -> None:
    compress(float(os.environ[FACTOR_VARIABLE]))
    from corral.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
