"""The rules for names. `scripts/console_names.py` writes them for the console, too (`make openapi`)."""

from __future__ import annotations

import re

#: Queues, flavors, packages, pools, groups, permission groups, reservations and presets.
SETTING_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}")
#: Jobs and workbenches.
JOB_NAME = re.compile(r"[A-Za-z0-9_-]{4,63}")
#: Volumes.
VOLUME_NAME = re.compile(r"[A-Za-z0-9_-]{2,63}")
#: Datasets.
DATASET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{1,62}")
#: Tags of dataset versions.
TAG_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
#: Images, registry logins, object stores and dataset targets.
IMAGE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
#: Alert rules, channels and schedules of reports.
RULE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
#: Secrets.
SECRET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
#: Users.
USER_NAME = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")
#: Environment variables.
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
