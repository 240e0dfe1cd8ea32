"""Wrong requests: each is refused with a 4xx that names the field, and nothing in the store changes.

Wrong configuration files have their own table in tests/unit/server/test_settings.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.api import API, api_server, dump, problem
from tests.servers.corral_server import CorralServer

OK = {"command": ["true"], "hold": True}


def job(**fields: Any) -> dict[str, Any]:
    return {**OK, **fields}


def volume(**fields: Any) -> dict[str, Any]:
    return {"name": "data", "type": "block", "size": "1GiB", **fields}


def bucket(**fields: Any) -> dict[str, Any]:
    return {"name": "lab", "kind": "s3", "bucket": "lab", **fields}


def reservation(**fields: Any) -> dict[str, Any]:
    window = {"since": "2099-01-01T00:00:00Z", "until": "2099-01-02T00:00:00Z"}
    return {"name": "demo", "pool": "default", "gpus": 1, "users": ["operator"], **window, **fields}


def git_target(url: str, **fields: str) -> dict[str, Any]:
    metadata = {"kind": "git", "url": url, **fields}
    return {"name": "t1", "metadata": metadata, "storage": {"kind": "directory", "path": "/srv/x"}}


#: method, path, JSON body (or raw bytes), status, the field that the answer must name ("" where there is none)
WRONG: list[tuple[str, str, Any, int, str]] = [
    # what is not a job
    ("POST", "/jobs", b"{not json", 422, "body"),
    ("POST", "/jobs", b"", 422, "body"),
    ("POST", "/jobs", [], 422, "body"),
    ("POST", "/jobs", "a job, please", 422, "body"),
    ("POST", "/jobs", {}, 422, "command"),
    ("POST", "/jobs", {"command": []}, 422, "command"),
    ("POST", "/jobs", {"command": [""]}, 422, "command"),
    ("POST", "/jobs", {"command": "python train.py"}, 422, "command"),
    ("POST", "/jobs", {"command": ["a\u0000b"]}, 422, "command[0]"),
    ("POST", "/jobs", b'{"command": ["\\ud800"]}', 422, "command[0]"),
    ("POST", "/jobs", {"command": [1, 2]}, 422, "command[0]"),
    ("POST", "/jobs", {"command": ["x"] * 2000}, 422, "command"),
    ("POST", "/jobs", b"[" * 100_000, 400, "body"),
    ("POST", "/jobs", b'{"command": ["\xff"]}', 400, "body"),
    ("POST", "/jobs", b'{"command": ["true"], "nodes": ' + b"9" * 5000 + b"}", 400, "body"),
    # amounts
    ("POST", "/jobs", job(gpus=-1), 422, "gpus"),
    ("POST", "/jobs", job(gpus=1.5), 422, "gpus"),
    ("POST", "/jobs", job(gpus="2"), 422, "gpus"),
    ("POST", "/jobs", job(gpus=True), 422, "gpus"),
    ("POST", "/jobs", job(gpus=None), 422, "gpus"),
    ("POST", "/jobs", b'{"command": ["true"], "gpus": NaN}', 422, "gpus"),
    ("POST", "/jobs", b'{"command": ["true"], "gpus": 1e999}', 422, "gpus"),
    ("POST", "/jobs", job(gpus=0.0001), 422, "gpus"),
    ("POST", "/jobs", {"command": ["true"], "gpus": 5}, 422, "gpus"),
    ("POST", "/jobs", job(nodes=0), 422, "nodes"),
    ("POST", "/jobs", job(nodes=1.5), 422, "nodes"),
    ("POST", "/jobs", {"command": ["true"], "nodes": 2, "gpus": 1}, 422, "nodes"),
    ("POST", "/jobs", job(nodes=2, kind="training"), 422, "nodes"),
    ("POST", "/jobs", job(cpus=-0.5), 422, "cpus"),
    ("POST", "/jobs", job(cpus="many"), 422, "cpus"),
    ("POST", "/jobs", job(memory="16XB"), 422, "memory"),
    ("POST", "/jobs", job(memory=-1), 422, "memory"),
    ("POST", "/jobs", job(memory=10**30), 422, "memory"),
    # words
    ("POST", "/jobs", job(name="abc"), 422, "name"),
    ("POST", "/jobs", job(name="with space"), 422, "name"),
    ("POST", "/jobs", job(name="x" * 64), 422, "name"),
    ("POST", "/jobs", job(name="taken-name"), 409, "name"),
    ("POST", "/jobs", job(kind="gaming"), 422, "kind"),
    ("POST", "/jobs", {"command": ["true"], "queue": "nowhere"}, 422, "queue"),
    ("POST", "/jobs", {"command": ["true"], "gpus": 1, "model": "Voodoo2"}, 422, "model"),
    ("POST", "/jobs", job(model=[7]), 422, "model[0]"),
    ("POST", "/jobs", job(priority=101), 422, "priority"),
    ("POST", "/jobs", job(priority="high"), 422, "priority"),
    ("POST", "/jobs", job(time="forever"), 422, "time"),
    ("POST", "/jobs", job(time=0), 422, "time"),
    ("POST", "/jobs", job(time=-5), 422, "time"),
    ("POST", "/jobs", job(grace="-1s"), 422, "grace"),
    ("POST", "/jobs", job(env={"A B": "x"}), 422, "env"),
    ("POST", "/jobs", job(env={"A": 1}), 422, "env.A"),
    ("POST", "/jobs", job(env=["A=1"]), 422, "env"),
    ("POST", "/jobs", job(labels={"zone": 1}), 422, "labels.zone"),
    ("POST", "/jobs", job(workdir="relative/path"), 422, "workdir"),
    ("POST", "/jobs", job(max_retries=101), 422, "max_retries"),
    ("POST", "/jobs", job(checkpoint_interval=0), 422, "checkpoint_interval"),
    ("POST", "/jobs", job(checkpoint_interval="8d"), 422, "checkpoint_interval"),
    ("POST", "/jobs", job(checkpoint_interval="often"), 422, "checkpoint_interval"),
    ("POST", "/jobs", job(hold="yes"), 422, "hold"),
    ("POST", "/jobs", job(prioritty=3), 422, "prioritty"),
    ("POST", "/jobs:batch", {"jobs": []}, 422, "jobs"),
    ("POST", "/jobs:batch", {"jobs": [OK, {"command": []}]}, 422, "jobs[1].command"),
    ("POST", "/jobs:batch", {"jobs": [OK] * 1001}, 422, "jobs"),
    ("POST", "/jobs:batch", {"jobs": [job(name="same-name"), job(name="same-name")]}, 409, "jobs[1].name"),
    ("POST", "/jobs:batch", {"jobs": [OK, {"command": ["true"], "queue": "nowhere"}]}, 422, "jobs[1].queue"),
    ("POST", "/jobs:batch", {"jobs": [OK, job(package="x", gpus=1)]}, 422, "jobs[1].gpus"),
    # elastic jobs
    ("POST", "/jobs", job(min_gpus=0), 422, "min_gpus"),
    ("POST", "/jobs", job(min_gpus=1.5), 422, "min_gpus"),
    ("POST", "/jobs", job(min_gpus=3, max_gpus=2), 422, "min_gpus"),
    ("POST", "/jobs", job(max_gpus=5), 409, "max_gpus"),
    ("POST", "/jobs", job(min_gpus=1, gpus=1), 422, "gpus"),
    ("POST", "/jobs", job(min_gpus=1, package="x"), 422, "min_gpus"),
    ("POST", "/jobs", job(min_gpus=1, nodes=2), 422, "min_gpus"),
    ("POST", "/jobs", job(min_gpus=1, kind="workbench"), 422, "min_gpus"),
    # what comes after others
    ("POST", "/jobs", job(after=["no-such-job"]), 422, "after"),
    ("POST", "/jobs", job(after="j-1"), 422, "after"),
    ("POST", "/jobs", job(after=[""]), 422, "after[0]"),
    ("POST", "/jobs", job(after=["j-1"] * 101), 422, "after"),
    ("POST", "/jobs:plan", job(after=["no-such-job"]), 422, "after"),
    ("PATCH", "/jobs/j-1", {"after": [1]}, 422, "after[0]"),
    # arrays
    ("POST", "/jobs:array", job(name="sweep"), 422, "array"),
    ("POST", "/jobs:array", job(array="0-9"), 422, "name"),
    ("POST", "/jobs:array", job(name="sweep", array=7), 422, "array"),
    ("POST", "/jobs:array", job(name="sweep", array="9-0"), 422, "array"),
    ("POST", "/jobs:array", job(name="sweep", array="0-1000"), 422, "array"),
    ("POST", "/jobs:array", job(name="sweep", array="0-1000000"), 422, "array"),
    ("POST", "/jobs:array", job(name="taken-name", array="0"), 409, "name"),
    ("POST", "/jobs:stop", {}, 422, "array"),
    ("POST", "/jobs:stop", {"array": "no-such-array"}, 404, "array"),
    # clones, and the way back to the queue
    ("POST", "/jobs/j-999/clone", {}, 404, "job"),
    ("POST", "/jobs/j-1/clone", {"gpus": -1}, 422, "gpus"),
    ("POST", "/jobs/j-1/clone", {"command": []}, 422, "command"),
    ("POST", "/jobs/j-1/clone", {"name": "taken-name"}, 409, "name"),
    ("POST", "/jobs/j-1/clone", {"preset": "classification"}, 422, "preset"),
    ("POST", "/jobs/j-1/clone", {"colour": "red"}, 422, "colour"),
    ("POST", "/jobs/j-999/requeue", None, 404, "job"),
    ("POST", "/jobs/j-1/requeue", None, 409, ""),
    ("POST", "/jobs/j-999/resize", {"gpus": 2}, 404, "job"),
    ("POST", "/jobs/j-1/resize", {"gpus": 2}, 409, ""),
    ("POST", "/jobs/j-1/resize", {"gpus": 0}, 422, "gpus"),
    ("POST", "/jobs/j-1/resize", {}, 422, "gpus"),
    ("POST", "/jobs:plan", {"command": ["true"], "gpus": -2}, 422, "gpus"),
    # jobs that are not there, or not in that state
    ("GET", "/jobs/j-999", None, 404, "job"),
    ("GET", "/jobs/no-such-name", None, 404, "job"),
    ("GET", "/jobs/j-99999999999999999999999", None, 404, "job"),
    ("GET", "/jobs/j-", None, 404, "job"),
    ("GET", "/jobs/j--1", None, 404, "job"),
    ("GET", "/jobs/j-%EF%BC%91", None, 404, "job"),
    ("GET", "/jobs/j-1.1", None, 404, "job"),
    ("GET", "/jobs/%00", None, 422, "path"),
    ("POST", "/jobs/j-99999999999999999999999/stop", None, 404, "job"),
    ("POST", "/jobs/j-1x/stop", None, 404, "job"),
    ("POST", "/jobs/j-1/move", {"before": "j-99999999999999999999999"}, 409, ""),
    ("POST", "/jobs/j-999/start", None, 404, "job"),
    ("POST", "/jobs/j-1/pin", None, 409, ""),
    ("POST", "/jobs/j-1/move", {}, 422, "after"),
    ("POST", "/jobs/j-1/move", {"before": "j-1", "after": "j-1"}, 422, "after"),
    ("POST", "/jobs/j-1/move", {"before": "j-1"}, 409, ""),
    ("DELETE", "/jobs/j-999", None, 404, "job"),
    ("GET", "/jobs/j-999/checkpoints", None, 404, "job"),
    ("GET", "/jobs/j-1/checkpoints?good=true", None, 422, "good"),
    ("POST", "/jobs/j-999/checkpoint", None, 404, "job"),
    ("POST", "/jobs/j-1/checkpoint", None, 409, ""),
    ("GET", "/jobs/j-1/logs?tail=-1", None, 422, "tail"),
    ("GET", "/jobs/j-1/logs?attempt=7", None, 404, "attempt"),
    ("GET", "/jobs/j-1/logs?rank=3", None, 404, "rank"),
    ("GET", "/jobs/j-1/logs/search", None, 422, "q"),
    ("GET", "/jobs/j-1/logs/search?q=", None, 422, "q"),
    ("GET", "/jobs/j-1/logs/search?q=x&attempt=7", None, 404, "attempt"),
    ("GET", "/jobs/j-1/logs/search?q=x&attempt=latest", None, 422, "attempt"),
    ("GET", "/jobs/j-1/logs/search?q=x&rank=3", None, 404, "rank"),
    ("GET", "/jobs/j-1/logs/search?q=x&rank=-1", None, 422, "rank"),
    ("GET", "/jobs/j-1/logs/search?q=x&regex=perhaps", None, 422, "regex"),
    ("GET", "/jobs/j-1/logs/download?attempt=0", None, 404, "attempt"),
    ("GET", "/jobs/j-1/logs/download?rank=one", None, 422, "rank"),
    # files
    ("GET", "/jobs/j-999/files", None, 404, "job"),
    ("GET", "/jobs/j-1/files?path=/etc", None, 422, "path"),
    ("GET", "/jobs/j-1/files?path=a/../../b", None, 422, "path"),
    ("GET", "/jobs/j-1/files?path=nothing", None, 404, "path"),
    ("GET", "/jobs/j-1/files?path=%00", None, 422, "path"),
    ("GET", "/jobs/j-1/files?cursor=!!!", None, 422, "cursor"),
    ("GET", "/jobs/j-1/files?cursor=WzFd", None, 422, "cursor"),
    ("GET", "/jobs/j-1/files/content?path=..", None, 422, "path"),
    ("GET", "/jobs/j-1/files/content?path=%2Fetc%2Fpasswd", None, 422, "path"),
    ("GET", "/jobs/j-1/files/content?path=" + "x" * 5000, None, 422, "path"),
    ("GET", "/jobs/j-1/files/content", None, 404, "path"),
    # presets
    ("POST", "/jobs", {"preset": "nothing"}, 422, "preset"),
    ("POST", "/jobs", job(preset="classification"), 422, "command"),
    ("POST", "/jobs", {"preset": "classification", "kind": "training"}, 422, "kind"),
    ("POST", "/jobs", {"preset": "classification", "nodes": 2}, 422, "nodes"),
    ("POST", "/jobs", {"preset": "classification", "parameters": {"epochs": 0}}, 422, "parameters.epochs"),
    ("POST", "/jobs", {"preset": "classification", "parameters": {"epoch": 1}}, 422, "parameters.epoch"),
    ("POST", "/jobs", {"preset": "classification", "parameters": [1]}, 422, "parameters"),
    ("POST", "/jobs", job(parameters={"epochs": 1}), 422, "parameters"),
    ("POST", "/jobs:batch", {"jobs": [OK, {"preset": "nothing"}]}, 422, "jobs[1].preset"),
    ("GET", "/presets/nothing", None, 404, "preset"),
    ("GET", "/presets?cursor=!!!", None, 422, "cursor"),
    ("POST", "/presets", {}, 422, "yaml"),
    ("POST", "/presets", {"yaml": "name: ["}, 422, "yaml"),
    ("POST", "/presets", {"yaml": "name: mine"}, 422, "yaml"),
    ("POST", "/presets", {"yaml": "name: mine\ncommand: ['{x}']"}, 422, "yaml"),
    ("POST", "/presets", {"yaml": "name: detection\ncommand: [x]"}, 409, "name"),
    ("DELETE", "/presets/nothing", None, 404, "name"),
    ("DELETE", "/presets/detection", None, 422, "name"),
    ("POST", "/presets/nothing/run", {}, 404, "preset"),
    ("POST", "/presets/detection/run", {"parameters": {"epochs": "many"}}, 422, "parameters.epochs"),
    ("POST", "/presets/detection/run", {"overrides": {"gpus": -1}}, 422, "overrides.gpus"),
    ("POST", "/presets/detection/run", {"overrides": {"colour": "red"}}, 422, "overrides.colour"),
    ("POST", "/presets/detection/run", {"overrides": {"preset": "x"}}, 422, "overrides.preset"),
    ("POST", "/presets/detection/run", {"overrides": {"command": ["x"]}}, 422, "command"),
    ("POST", "/presets/detection/run", {"name": "taken-name", "overrides": {"hold": True}}, 409, "name"),
    # volumes and mounts
    ("POST", "/volumes", {}, 422, "name"),
    ("POST", "/volumes", volume(name="x"), 422, "name"),
    ("POST", "/volumes", volume(name="v-12"), 422, "name"),
    ("POST", "/volumes", volume(name="a/b"), 422, "name"),
    ("POST", "/volumes", volume(type="tape"), 422, "type"),
    ("POST", "/volumes", volume(type="local"), 422, "type"),
    ("POST", "/volumes", volume(size=0), 422, "size"),
    ("POST", "/volumes", volume(size="much"), 422, "size"),
    ("POST", "/volumes", volume(size=-1), 422, "size"),
    ("POST", "/volumes", volume(cluster="moon"), 422, "cluster"),
    ("POST", "/volumes", volume(object_store="x"), 422, "object_store"),
    ("POST", "/volumes", volume(colour="red"), 422, "colour"),
    ("POST", "/volumes", {"name": "bucket", "type": "object"}, 422, "object_store"),
    ("POST", "/volumes", {"name": "bucket", "type": "object", "object_store": "nothing"}, 422, "object_store"),
    ("POST", "/volumes", {"name": "bucket", "type": "object", "object_store": "x", "size": 1}, 422, "size"),
    ("GET", "/volumes/nothing", None, 404, "volume"),
    ("GET", "/volumes/v-999?owner=ann", None, 404, "volume"),
    ("GET", "/volumes?type=tape", None, 422, "type"),
    ("GET", "/volumes?cursor=!!!", None, 422, "cursor"),
    ("PATCH", "/volumes/nothing", {"size": "1GiB"}, 404, "volume"),
    ("PUT", "/volumes/nothing/shares", {"shares": []}, 404, "volume"),
    ("PUT", "/volumes/nothing/shares", {"shares": [{"kind": "everybody", "name": "x"}]}, 422, "shares[0].kind"),
    ("DELETE", "/volumes/nothing", None, 404, "volume"),
    # files of volumes
    ("GET", "/volumes/nothing/files", None, 404, "volume"),
    ("GET", "/volumes/nothing/files?path=../x", None, 422, "path"),
    ("GET", "/volumes/nothing/files?path=a/../../x", None, 422, "path"),
    ("GET", "/volumes/nothing/files?path=/etc", None, 422, "path"),
    ("GET", "/volumes/nothing/files?path=a%00b", None, 422, "path"),
    ("GET", "/volumes/nothing/files?path=" + "x" * 256, None, 422, "path"),
    ("GET", "/volumes/nothing/files?path=" + "x/" * 101, None, 422, "path"),
    ("GET", "/volumes/nothing/files?limit=5001", None, 422, "limit"),
    ("GET", "/volumes/nothing/files?cursor=!!!", None, 422, "cursor"),
    ("GET", "/volumes/nothing/files?cursor=WzFd", None, 422, "cursor"),
    ("GET", "/volumes/nothing/files/content", None, 422, "path"),
    ("GET", "/volumes/nothing/files/checksum?path=x&algorithm=md5", None, 422, "algorithm"),
    ("PUT", "/volumes/nothing/files/content?path=.", b"x", 422, "path"),
    ("PUT", "/volumes/nothing/files/content?path=x&modified_at=soon", b"x", 422, "modified_at"),
    ("PUT", "/volumes/nothing/files/content?path=x&modified_at=1969-01-01T00:00:00Z", b"x", 422, "modified_at"),
    ("PUT", "/volumes/nothing/files/directory?path=", b"", 422, "path"),
    ("DELETE", "/volumes/nothing/files?path=", None, 422, "path"),
    ("POST", "/volumes/nothing/uploads", {}, 422, "path"),
    ("POST", "/volumes/nothing/uploads", {"path": "../x", "size": 1}, 422, "path"),
    ("POST", "/volumes/nothing/uploads", {"path": "x", "size": -1}, 422, "size"),
    ("POST", "/volumes/nothing/uploads", {"path": "x", "size": "1"}, 422, "size"),
    ("POST", "/volumes/nothing/uploads", {"path": "x", "size": 1, "part_bytes": 1}, 422, "part_bytes"),
    ("POST", "/volumes/nothing/uploads", {"path": "x", "size": 1 << 40, "part_bytes": 65536}, 422, "part_bytes"),
    ("POST", "/volumes/nothing/uploads", {"path": "x", "size": 1, "checksum": "abc"}, 422, "checksum"),
    ("POST", "/volumes/nothing/uploads", {"path": "x", "size": 1, "modified_at": "now"}, 422, "modified_at"),
    ("POST", "/volumes/nothing/uploads/x/complete", {"checksum": "ABC"}, 422, "checksum"),
    ("PUT", "/volumes/nothing/uploads/x/parts/-1", b"x", 422, "part"),
    ("PUT", "/volumes/nothing/uploads/x/parts/0", b"x", 404, "volume"),
    ("POST", "/object-stores", {}, 422, "name"),
    ("POST", "/object-stores", bucket(name="Upper"), 422, "name"),
    ("POST", "/object-stores", bucket(bucket="a b"), 422, "bucket"),
    ("POST", "/object-stores", bucket(kind="ftp"), 422, "kind"),
    ("POST", "/object-stores", bucket(endpoint="not an address"), 422, "endpoint"),
    ("POST", "/object-stores", bucket(endpoint="http://x:port"), 422, "endpoint"),
    ("POST", "/object-stores", bucket(access_key="AK"), 422, "secret"),
    ("POST", "/object-stores", bucket(prefix="a/../b"), 422, "prefix"),
    ("GET", "/object-stores/nothing", None, 404, "object-store"),
    ("PATCH", "/object-stores/nothing", {"region": "x"}, 404, "object-store"),
    ("DELETE", "/object-stores/nothing", None, 404, "object-store"),
    ("POST", "/object-stores/nothing/test", {}, 404, "object-store"),
    ("POST", "/jobs", job(mounts="data:/data"), 422, "mounts"),
    ("POST", "/jobs", job(mounts=["data"]), 422, "mounts"),
    ("POST", "/jobs", job(mounts=["nothing:/data"]), 422, "mounts"),
    ("POST", "/jobs", job(mounts=["nothing:/data:rx"]), 422, "mounts"),
    ("POST", "/jobs", job(mounts=["nothing:/"]), 422, "mounts"),
    ("POST", "/jobs", job(mounts=["nothing:/proc/1"]), 422, "mounts"),
    ("POST", "/jobs", job(mounts=["nothing:/a/../b"]), 422, "mounts"),
    ("POST", "/jobs", job(mounts=["dataset:mnist:/data"]), 422, "mounts"),
    ("POST", "/jobs", job(mounts=["tape:x:/data"]), 422, "mounts"),
    ("POST", "/jobs", job(mounts=["local:lots:/scratch"]), 422, "mounts"),
    ("POST", "/jobs", job(mounts=["local:1GiB:/a", "local:1GiB:/a/b"]), 422, "mounts"),
    ("POST", "/jobs", job(mounts=[{"source": "nothing"}]), 422, "mounts[0].path"),
    ("POST", "/jobs:batch", {"jobs": [OK, job(mounts=["nothing:/data"])]}, 422, "jobs[1].mounts"),
    ("POST", "/workbenches", {"name": "bench-1", "mounts": ["nothing:/data"]}, 422, "mounts"),
    # images
    ("POST", "/jobs", job(image=""), 422, "image"),
    ("POST", "/jobs", job(image="dir:/etc"), 422, "image"),
    ("POST", "/jobs", job(image="--privileged"), 422, "image"),
    ("POST", "/jobs", job(image=7), 422, "image"),
    ("POST", "/jobs", job(venv="relative/venv"), 422, "venv"),
    ("POST", "/jobs", job(image="ubuntu", venv="/opt/venv"), 422, "venv"),
    ("POST", "/images", {}, 422, "name"),
    ("POST", "/images", {"name": "x"}, 422, "address"),
    ("POST", "/images", {"name": "Upper", "address": "ubuntu"}, 422, "name"),
    ("POST", "/images", {"name": "x", "address": "not an address"}, 422, "address"),
    ("POST", "/images", {"name": "x", "address": "ubuntu", "visibility": "secret"}, 422, "visibility"),
    ("POST", "/images", {"name": "x", "address": "ubuntu", "shared_users": ["operator"]}, 422, "visibility"),
    (
        "POST",
        "/images",
        {"name": "x", "address": "ubuntu", "visibility": "shared", "shared_users": ["stranger"]},
        422,
        "shared_users",
    ),
    ("POST", "/images", {"name": "x", "address": "ubuntu", "credential": "nothing"}, 422, "credential"),
    ("GET", "/images/nothing", None, 404, "image"),
    ("PATCH", "/images/nothing", {"description": "x"}, 404, "image"),
    ("DELETE", "/images/nothing?owner=stranger", None, 404, "image"),
    ("GET", "/images?cursor=!!!", None, 422, "cursor"),
    ("PUT", "/registry-logins/x", {"registry": "h", "username": "a"}, 422, "secret"),
    ("PUT", "/registry-logins/x", {"registry": "http://h", "username": "a", "secret": "s"}, 422, "registry"),
    ("PUT", "/registry-logins/Upper", {"registry": "h", "username": "a", "secret": "s"}, 422, "name"),
    ("PUT", "/registry-logins/x", {"registry": "h", "username": "a", "secret": ""}, 422, "secret"),
    ("DELETE", "/registry-logins/nothing", None, 404, "login"),
    # reports
    ("POST", "/reports", {}, 422, "period"),
    ("POST", "/reports", {"period": "7d", "since": "2026-01-01T00:00:00Z"}, 422, "period"),
    ("POST", "/reports", {"period": "7d", "until": "2026-01-01T00:00:00Z"}, 422, "until"),
    ("POST", "/reports", {"period": "soon"}, 422, "period"),
    ("POST", "/reports", {"period": 1}, 422, "period"),
    ("POST", "/reports", {"period": "400d"}, 422, "period"),
    ("POST", "/reports", {"since": "yesterday"}, 422, "since"),
    ("POST", "/reports", {"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, 422, "since"),
    ("POST", "/reports", {"since": "2026-01-02T00:00:00Z", "until": "9026-01-01T00:00:00Z"}, 422, "until"),
    ("POST", "/reports", {"since": "0001-01-01T00:00:00Z", "until": "0001-02-01T00:00:00Z"}, 422, "since"),
    ("GET", "/reports/r-0", None, 404, "report"),
    ("GET", "/reports/..%2F..%2Fcorral.db", None, 404, ""),
    ("GET", "/reports/r-0/file?format=docx", None, 422, "format"),
    ("DELETE", "/reports/r-0", None, 404, "report"),
    ("GET", "/reports?cursor=!!!", None, 422, "cursor"),
    ("POST", "/report-schedules", {"name": "With Space"}, 422, "name"),
    ("POST", "/report-schedules", {"name": "x", "period": "hourly"}, 422, "period"),
    ("POST", "/report-schedules", {"name": "x", "hour": 24}, 422, "hour"),
    ("POST", "/report-schedules", {"name": "x", "weekday": -1}, 422, "weekday"),
    ("POST", "/report-schedules", {"name": "x", "channels": ["nowhere"]}, 422, "channels"),
    ("PATCH", "/report-schedules/nothing", {"hour": 1}, 404, "schedule"),
    ("DELETE", "/report-schedules/nothing", None, 404, "schedule"),
    # looking back
    ("GET", "/jobs/j-999/why?at=yesterday", None, 422, "at"),
    ("GET", "/jobs/j-999/why?at=2026-01-01T00:00:00", None, 422, "at"),
    ("GET", "/jobs/j-999/why?at=2026-01-01T00:00:00Z", None, 404, "job"),
    # the shadow policy
    ("PUT", "/shadow", {}, 422, "queues"),
    ("PUT", "/shadow", {"queues": {"*": {"policy": "x"}}}, 422, "queues.*.policy"),
    ("PUT", "/shadow", {"queues": {"x": {"policy": "fcfs"}}}, 422, "queues.x"),
    ("PUT", "/shadow", {"fleet": {"scale": 2}}, 422, "fleet"),
    ("GET", "/shadow?limit=-1", None, 422, "limit"),
    ("DELETE", "/shadow", None, 404, "shadow"),
    # what-if questions
    ("POST", "/simulations", {}, 422, "candidate"),
    ("POST", "/simulations", {"candidate": {"queues": {"*": {"policy": "x"}}}}, 422, "candidate.queues.*.policy"),
    ("POST", "/simulations", {"candidate": {"queues": {"x": {"policy": "fcfs"}}}}, 422, "candidate.queues.x"),
    ("POST", "/simulations", {"candidate": {"queues": {"*": {"blocking": "x"}}}}, 422, "candidate.queues.*.blocking"),
    ("POST", "/simulations", {"candidate": {"queues": {"*": {"weight": 0}}}}, 422, "candidate.queues.*.weight"),
    ("POST", "/simulations", {"candidate": {"quotas": {"nobody": 4}}}, 422, "candidate.quotas"),
    ("POST", "/simulations", {"candidate": {"fleet": {"scale": 0}}}, 422, "candidate.fleet.scale"),
    ("POST", "/simulations", {"candidate": {"fleet": {"scale": 0.01}}}, 422, "candidate.fleet"),
    ("POST", "/simulations", {"candidate": {"fleet": {"remove": ["nowhere"]}}}, 422, "candidate.fleet.remove"),
    ("POST", "/simulations", {"candidate": {"fleet": {"pools": {"nowhere": "x"}}}}, 422, "candidate.fleet.pools"),
    (
        "POST",
        "/simulations",
        {"candidate": {"fleet": {"add": [{"nodes": 100000, "gpus": 8, "model": "H100"}]}}},
        422,
        "candidate.fleet",
    ),
    ("POST", "/simulations", {"base": {"fleet": {"remove": ["x"]}}, "candidate": {}}, 422, "base.fleet.remove"),
    ("POST", "/simulations", {"candidate": {}, "days": 0}, 422, "days"),
    ("POST", "/simulations", {"candidate": {}, "days": 93}, 422, "days"),
    ("POST", "/simulations", {"candidate": {}, "days": 7, "since": "2026-01-01T00:00:00Z"}, 422, "days"),
    ("POST", "/simulations", {"candidate": {}, "since": "yesterday"}, 422, "since"),
    ("POST", "/simulations", {"candidate": {}, "since": "2999-01-01T00:00:00Z"}, 422, "since"),
    ("POST", "/simulations", {"candidate": {}, "until": "2999-01-01T00:00:00Z"}, 422, "until"),
    ("POST", "/simulations", {"candidate": {}, "jobs": []}, 422, "jobs"),
    (
        "POST",
        "/simulations",
        {"candidate": {}, "jobs": [{"user": "ann", "submitted_at": 0, "run_seconds": 5, "gpus": 1.5}]},
        422,
        "jobs",
    ),
    (
        "POST",
        "/simulations",
        {"candidate": {}, "jobs": [{"user": "ann", "submitted_at": 0, "run_seconds": 5, "queue": "x"}]},
        422,
        "jobs",
    ),
    ("GET", "/simulations/s-0", None, 404, "simulation"),
    ("GET", "/simulations/..%2F..%2Fcorral.db", None, 404, ""),
    ("GET", "/simulations?cursor=!!!", None, 422, "cursor"),
    ("POST", "/simulations/s-999/cancel", {}, 404, "simulation"),
    ("POST", "/simulations/s-999/again", {}, 404, "simulation"),
    ("DELETE", "/simulations/s-999", None, 404, "simulation"),
    # lists
    ("GET", "/jobs?limit=0", None, 422, "limit"),
    ("GET", "/jobs?limit=501", None, 422, "limit"),
    ("GET", "/jobs?limit=ten", None, 422, "limit"),
    ("GET", "/jobs?cursor=!!!", None, 422, "cursor"),
    ("GET", "/jobs?sort=colour", None, 422, "sort"),
    ("GET", "/jobs?state=sleeping", None, 422, "state[0]"),
    ("GET", "/jobs?kind=gaming", None, 422, "kind[0]"),
    ("GET", "/jobs?stat=running", None, 422, "stat"),
    ("GET", "/jobs?name=%00", None, 422, "name"),
    ("GET", "/nodes?cursor=bm90LWEtY3Vyc29y", None, 422, "cursor"),
    ("GET", "/nodes?colour=red", None, 422, "colour"),
    ("GET", "/gpus/no-such", None, 404, "gpu"),
    ("DELETE", "/nodes/no-such", None, 404, "node"),
    ("POST", "/gpus/no-such/reset-health", None, 404, "gpu"),
    ("POST", "/gpus/no-such/self-test", None, 404, "gpu"),
    ("POST", "/gpus/no-such/mark", {"health": "failed", "reason": "it smokes"}, 404, "gpu"),
    ("POST", "/gpus/no-such/mark", {"health": "healthy", "reason": "it is fine"}, 422, "health"),
    ("POST", "/gpus/no-such/mark", {"health": "failed"}, 422, "reason"),
    ("POST", "/gpus/no-such/mark", {"health": "failed", "reason": ""}, 422, "reason"),
    ("POST", "/gpus/no-such/mark", {"health": "failed", "reason": "x" * 501}, 422, "reason"),
    ("POST", "/gpus/no-such/mark", {"health": "failed", "reason": "x", "until": 1}, 422, "until"),
    ("GET", "/events?since=yesterday", None, 422, "since"),
    ("GET", "/events?until=2026-01-01T00:00:00", None, 422, "until"),
    ("GET", "/events?cursor=xyz", None, 422, "cursor"),
    ("GET", "/stream?last_event_id=-1", None, 422, "last_event_id"),
    (
        "GET",
        "/jobs?cursor=WyJpZCIsIDk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5LCA5OTk5OTk5OTk5OTk5OTk5OTk5OTk5XQ",
        None,
        422,
        "cursor",
    ),
    ("GET", "/jobs/j-1/logs?attempt=99999999999999999999999", None, 404, "attempt"),
    ("GET", "/jobs/j-1/logs?follow=perhaps", None, 422, "follow"),
    # queues
    # reservations
    ("POST", "/reservations", {}, 422, "name"),
    ("POST", "/reservations", reservation(name="a b"), 422, "name"),
    ("POST", "/reservations", reservation(pool="atlantis"), 422, "pool"),
    ("POST", "/reservations", reservation(gpus=None), 422, "gpus"),
    ("POST", "/reservations", reservation(gpus=0), 422, "gpus"),
    ("POST", "/reservations", reservation(gpus=1.5), 422, "gpus"),
    ("POST", "/reservations", reservation(gpus=10**9), 422, "gpus"),
    ("POST", "/reservations", reservation(gpus=5000), 409, "gpus"),
    ("POST", "/reservations", reservation(gpu_ids=["no-such-gpu"]), 422, "gpu_ids"),
    ("POST", "/reservations", reservation(gpu_ids="all"), 422, "gpu_ids"),
    ("POST", "/reservations", reservation(model="Voodoo2"), 422, "model"),
    ("POST", "/reservations", reservation(users=[]), 422, "users"),
    ("POST", "/reservations", reservation(users=["nobody"]), 422, "users"),
    ("POST", "/reservations", reservation(groups=["nobodies"]), 422, "groups"),
    ("POST", "/reservations", reservation(since="18:00"), 422, "since"),
    ("POST", "/reservations", reservation(since=1700000000), 422, "since"),
    ("POST", "/reservations", reservation(since="2099-01-02T00:00:00"), 422, "since"),
    ("POST", "/reservations", reservation(until="2001-01-01T00:00:00Z"), 422, "until"),
    ("POST", "/reservations", reservation(since="2099-02-01T00:00:00Z"), 422, "until"),
    ("POST", "/reservations", reservation(until=None, gpus=4), 409, "gpus"),
    ("POST", "/reservations", reservation(lends="no"), 422, "lends"),
    ("POST", "/reservations", reservation(note="x" * 5000), 422, "note"),
    ("POST", "/reservations", reservation(for_ever=True), 422, "for_ever"),
    ("PATCH", "/reservations/nowhere", {"gpus": 1}, 404, "reservation"),
    ("PATCH", "/reservations/nowhere", {"gpus": "two"}, 422, "gpus"),
    ("DELETE", "/reservations/nowhere", None, 404, "reservation"),
    ("GET", "/reservations?since=yesterday", None, 422, "since"),
    ("GET", "/reservations?group=vision", None, 422, "group"),
    ("GET", "/nodes/atlantis/drain-preview", None, 404, "node"),
    ("GET", "/nodes/atlantis/drain-preview?at=18:00", None, 422, "at"),
    ("POST", "/queues", {}, 422, "name"),
    ("POST", "/queues", {"name": "a b c d"}, 422, "name"),
    ("POST", "/queues", {"name": "default"}, 409, "name"),
    ("POST", "/queues", {"name": "queue-1", "policy": "lottery"}, 422, "policy"),
    ("POST", "/queues", {"name": "queue-1", "placement": "random"}, 422, "placement"),
    ("POST", "/queues", {"name": "queue-1", "blocking": "hard"}, 422, "blocking"),
    ("POST", "/queues", {"name": "queue-1", "pool": "atlantis"}, 422, "pool"),
    ("POST", "/queues", {"name": "queue-1", "weight": 0}, 422, "weight"),
    ("POST", "/queues", {"name": "queue-1", "max_gpus": 1, "guaranteed_gpus": 2}, 422, "guaranteed_gpus"),
    ("POST", "/queues", {"name": "queue-1", "guaranteed_gpus": 999_999}, 422, "guaranteed_gpus"),
    ("POST", "/queues", {"name": "queue-1", "guaranteed_gpus": -1}, 422, "guaranteed_gpus"),
    ("POST", "/queues", {"name": "queue-1", "preempts": True}, 422, "preempts"),
    ("POST", "/queues", {"name": "queue-1", "preempts": "sometimes"}, 422, "preempts"),
    ("PATCH", "/queues/default", {"preempts": True}, 422, "preempts"),
    # datasets
    ("POST", "/datasets", {}, 422, "name"),
    ("POST", "/datasets", {"name": "x"}, 422, "name"),
    ("POST", "/datasets", {"name": "-x-"}, 422, "name"),
    ("POST", "/datasets", {"name": "d-12"}, 422, "name"),
    ("POST", "/datasets", {"name": "x" * 64}, 422, "name"),
    ("POST", "/datasets", {"name": "a b"}, 422, "name"),
    ("POST", "/datasets", {"name": "digits", "target": "nowhere"}, 404, "target"),
    ("POST", "/datasets", {"name": "digits", "description": "x" * 1001}, 422, "description"),
    ("POST", "/datasets", {"name": "digits", "size": 1}, 422, "size"),
    ("GET", "/datasets/nothing", None, 404, "dataset"),
    ("GET", "/datasets/d-99999999999999999999999", None, 404, "dataset"),
    ("GET", "/datasets?owned=me", None, 422, "owned"),
    ("GET", "/datasets/nothing/versions", None, 404, "dataset"),
    ("GET", "/datasets/nothing/versions?cursor=x", None, 422, "cursor"),
    ("GET", "/datasets/nothing/lineage?cursor=WyJ4Il0", None, 422, "cursor"),
    ("PATCH", "/datasets/nothing", {"name": "other"}, 422, "description"),
    ("PUT", "/datasets/nothing/shares", {"shares": [{"kind": "team", "name": "x"}]}, 422, "shares[0].kind"),
    ("PUT", "/datasets/nothing/shares", {"shares": []}, 404, "dataset"),
    ("PUT", "/datasets/nothing/tags/v1", {"version": ""}, 422, "version"),
    ("DELETE", "/datasets/nothing", None, 404, "dataset"),
    ("POST", "/datasets/nothing/commits", {"message": "what?"}, 422, "body"),
    ("POST", "/datasets/nothing/commits", {"tree": "xyz"}, 422, "tree"),
    ("POST", "/datasets/nothing/commits", {"tree": "0" * 64, "from": {"job": "j-1"}}, 422, "body"),
    ("POST", "/datasets/nothing/commits", {"from": {"path": "x"}}, 422, "from"),
    ("POST", "/datasets/nothing/commits", {"from": {"volume": "x", "job": "j-1"}}, 422, "from"),
    ("POST", "/datasets/nothing/commits", {"from": {"volume": "x", "path": "../x"}}, 422, "path"),
    ("POST", "/datasets/nothing/commits", {"from": {"job": "no-such-job"}}, 404, "job"),
    ("POST", "/datasets/nothing/commits", {"tree": "0" * 64}, 404, "dataset"),
    ("GET", "/datasets/nothing/diff?from=", None, 422, "from"),
    ("GET", "/datasets/nothing/versions/latest/content", None, 422, "path"),
    ("POST", "/datasets/nothing/objects:missing", {"ids": ["x"]}, 422, "ids[0]"),
    ("POST", "/datasets/nothing/objects:missing", {"ids": ["0" * 64] * 10_001}, 422, "ids"),
    ("PUT", "/datasets/nothing/objects/abc?index_bytes=1", b"x", 422, "pack"),
    ("PUT", f"/datasets/nothing/objects/{'0' * 64}", b"x", 422, "index_bytes"),
    ("POST", "/dataset-targets/nowhere/collections", {"dry_run": True}, 404, "target"),
    ("POST", "/dataset-targets/default/collections", {"grace_seconds": -1}, 422, "grace_seconds"),
    ("POST", "/dataset-targets", {"name": "t1"}, 422, "storage"),
    ("POST", "/dataset-targets", {"name": "T 1", "storage": {"kind": "directory", "path": "/srv/x"}}, 422, "name"),
    ("POST", "/dataset-targets", {"name": "default", "storage": {"kind": "directory", "path": "/x"}}, 409, "name"),
    ("POST", "/dataset-targets", {"name": "t1", "storage": {"kind": "directory", "path": "x"}}, 422, "storage.path"),
    ("POST", "/dataset-targets", {"name": "t1", "storage": {"kind": "directory", "path": "/"}}, 422, "storage.path"),
    ("POST", "/dataset-targets", {"name": "t1", "storage": {"kind": "tape", "path": "/x"}}, 422, "storage"),
    ("POST", "/dataset-targets", git_target("ext::sh -c id"), 422, "metadata.url"),
    ("POST", "/dataset-targets", git_target("--upload-pack=x"), 422, "metadata.url"),
    ("POST", "/dataset-targets", git_target("https://ann:secret@git.example.org/x.git"), 422, "metadata.url"),
    ("POST", "/dataset-targets", git_target("file:///srv/x.git", branch="-x"), 422, "metadata.branch"),
    ("PATCH", "/dataset-targets/default", {"token": "x"}, 422, "token"),
    ("PATCH", "/dataset-targets/default", {"storage": {"kind": "directory", "path": "/x"}}, 409, "target"),
    ("DELETE", "/dataset-targets/default", None, 409, "target"),
    ("DELETE", "/dataset-targets/nowhere", None, 404, "target"),
    # estimates
    ("GET", "/estimates/accuracy?since=soon", None, 422, "since"),
    ("GET", "/estimates/accuracy?until=now", None, 422, "until"),
    # receipts
    ("GET", "/receipts?since=yesterday-ish", None, 422, "since"),
    ("GET", "/receipts?rule=whim", None, 422, "rule"),
    ("GET", "/receipts?cursor=nonsense", None, 422, "cursor"),
    ("GET", "/receipts?limit=0", None, 422, "limit"),
    ("GET", "/jobs/j-999999/receipts", None, 404, "job"),
    ("POST", "/jobs", {"command": ["true"], "preemptible": "perhaps"}, 422, "preemptible"),
    ("POST", "/queues", {"name": "queue-1", "kinds": ["gaming"]}, 422, "kinds[0]"),
    ("PATCH", "/queues/default", {"max_gpus": -1}, 422, "max_gpus"),
    ("PATCH", "/queues/default", {"name": "other"}, 422, "name"),
    ("PATCH", "/queues/nowhere", {"weight": 2}, 404, "queue"),
    ("GET", "/queues/nowhere/order", None, 404, "queue"),
    ("DELETE", "/queues/default", None, 409, "name"),
    # nodes and GPUs
    ("POST", "/nodes/nowhere/cordon", None, 404, "node"),
    ("POST", "/gpus/none/reset-health", None, 404, "gpu"),
    # alerts and channels
    ("GET", "/alerts?state=sleeping", None, 422, "state[0]"),
    ("GET", "/alerts?severity=fatal", None, 422, "severity[0]"),
    ("GET", "/alerts?since=yesterday", None, 422, "since"),
    ("GET", "/alerts?cursor=xyz", None, 422, "cursor"),
    ("GET", "/alerts/0", None, 422, "alert"),
    ("GET", "/alerts/99999999999999999999999", None, 404, "alert"),
    ("POST", "/alerts/77/acknowledge", {}, 404, "alert"),
    ("POST", "/alerts/77/acknowledge", {"note": 7}, 422, "note"),
    ("POST", "/alert-rules", {"name": "mine"}, 422, "signal"),
    ("POST", "/alert-rules", {"name": "mine", "signal": "colour", "threshold": 1}, 422, "signal"),
    ("POST", "/alert-rules", {"name": "My Rule", "signal": "gpu-memory", "threshold": 1}, 422, "name"),
    ("POST", "/alert-rules", {"name": "gpu-memory", "signal": "gpu-memory", "threshold": 1}, 409, "name"),
    ("POST", "/alert-rules", {"name": "mine", "signal": "gpu-memory", "threshold": "hot"}, 422, "threshold"),
    ("POST", "/alert-rules", b'{"name": "mine", "signal": "gpu-memory", "threshold": NaN}', 422, "threshold"),
    ("PATCH", "/alert-rules/gpu-memory", {"for_seconds": "60d"}, 422, "for_seconds"),
    ("PATCH", "/alert-rules/gpu-memory", {"comparison": "equals"}, 422, "comparison"),
    ("PATCH", "/alert-rules/gpu-memory", {"actions": ["reboot"]}, 422, "actions[0]"),
    ("PATCH", "/alert-rules/queue-length", {"actions": ["stop-job"]}, 422, "actions"),
    ("PATCH", "/alert-rules/gpu-memory", {"channels": ["nowhere"]}, 422, "channels"),
    ("PATCH", "/alert-rules/gpu-memory", {"subjects": [""]}, 422, "subjects"),
    ("PATCH", "/alert-rules/nowhere", {"threshold": 1}, 404, "rule"),
    ("DELETE", "/alert-rules/gpu-memory", None, 409, "name"),
    ("POST", "/silences", {}, 422, "duration"),
    ("POST", "/silences", {"duration": "-2h"}, 422, "duration"),
    ("POST", "/silences", {"duration": 0}, 422, "ends_at"),
    ("POST", "/silences", {"duration": "2h", "rule": ""}, 422, "rule"),
    ("DELETE", "/silences/nowhere", None, 404, "silence"),
    ("POST", "/channels", {"name": "ops"}, 422, "url"),
    ("POST", "/channels", {"name": "ops", "url": "ops@example.org"}, 422, "url"),
    ("POST", "/channels", {"name": "ops", "url": "carrier-pigeon://x"}, 422, "url"),
    ("POST", "/channels", {"name": "ops", "url": "mailto://"}, 422, "url"),
    ("POST", "/channels", {"name": "Ops Team", "url": "json://example.org"}, 422, "name"),
    ("POST", "/channels", {"name": "config-1", "url": "json://example.org"}, 422, "name"),
    ("POST", "/channels", {"name": "ops", "url": "json://example.org", "min_severity": "fatal"}, 422, "min_severity"),
    ("PATCH", "/channels/nowhere", {"enabled": False}, 404, "channel"),
    ("POST", "/channels/nowhere/test", None, 404, "channel"),
    ("GET", "/deliveries?cursor=xyz", None, 422, "cursor"),
    ("POST", "/deliveries/77/resend", None, 404, "delivery"),
    # people
    ("POST", "/users", {"name": "Bad Name"}, 422, "name"),
    ("POST", "/users", {"name": "corral"}, 422, "name"),
    ("POST", "/users", {"name": "operator"}, 409, "name"),
    ("POST", "/users", {"name": "newbie", "password": "short"}, 422, "password"),
    ("POST", "/users", {"name": "newbie", "role": "king"}, 422, "role"),
    ("PATCH", "/users/nobody", {"disabled": True}, 404, "user"),
    ("PATCH", "/users/operator", {"role": "scientist"}, 409, "role"),
    ("PATCH", "/users/operator", {"disabled": True}, 409, "role"),
    ("DELETE", "/users/operator", None, 409, "role"),
    ("PUT", "/users/operator/quota", {"gaming": {}}, 422, "gaming"),
    ("PUT", "/users/operator/quota", {"training": {"gpus": -1}}, 422, "training.gpus"),
    ("PUT", "/users/nobody/quota", {}, 404, "user"),
    ("POST", "/me/tokens", {}, 422, "name"),
    ("POST", "/me/tokens", {"name": "t", "expires_in_days": 0}, 422, "expires_in_days"),
    ("DELETE", "/me/tokens/none", None, 404, "id"),
    ("POST", "/me/password", {"old": "wrong-password", "new": "another-password"}, 422, "old"),
    ("POST", "/auth/login", {"user": "operator"}, 422, "password"),
    ("POST", "/auth/login", {"user": "operator", "password": "wrong"}, 401, ""),
    # tasks
    ("POST", "/tasks", {"task": "a b"}, 422, "name"),
    ("POST", "/tasks", {"task": "big", "gpus": 7}, 409, "gpus"),
    ("POST", "/tasks", {"task": "none", "gpus": 0}, 422, "gpus"),
    ("POST", "/tasks/none/program", {}, 404, "task"),
    ("DELETE", "/tasks/none", None, 404, "task"),
    # workbenches
    ("POST", "/workbenches", {}, 422, "name"),
    ("POST", "/workbenches", {"name": "with space"}, 422, "name"),
    ("POST", "/workbenches", {"name": "bench-1", "jupyter": False}, 422, "jupyter"),
    ("POST", "/workbenches", {"name": "bench-1", "ssh": True}, 409, "ssh"),
    ("POST", "/workbenches", {"name": "bench-1", "jupyter": "yes"}, 422, "jupyter"),
    ("POST", "/workbenches", {"name": "bench-1", "command": ["sh"]}, 422, "command"),
    ("POST", "/workbenches", {"name": "bench-1", "venv": "relative"}, 422, "venv"),
    ("POST", "/workbenches", {"name": "bench-1", "image": ""}, 422, "image"),
    ("POST", "/workbenches", {"name": "bench-1", "idle_stop": 0}, 422, "idle_stop"),
    ("POST", "/workbenches", {"name": "bench-1", "idle_stop": "soon"}, 422, "idle_stop"),
    ("POST", "/workbenches", {"name": "bench-1", "gpus": 1.5}, 422, "gpus"),
    ("POST", "/workbenches", {"name": "bench-1", "package": "big", "gpus": 1}, 422, "gpus"),
    ("POST", "/workbenches", {"name": "taken-name"}, 409, "name"),
    ("GET", "/workbenches/nothing", None, 404, "job"),
    ("GET", "/workbenches/j-1", None, 404, "workbench"),
    ("POST", "/workbenches/j-1/start", None, 404, "workbench"),
    ("DELETE", "/workbenches/j-999", None, 404, "job"),
    ("GET", "/workbenches?cursor=!!!", None, 422, "cursor"),
    ("GET", "/workbenches?state=sleeping", None, 422, "state[0]"),
    # what is not there at all
    ("GET", "/nothing", None, 404, ""),
    ("GET", "/jobs/", None, 404, ""),
    ("PUT", "/jobs", {}, 405, ""),
    ("POST", "/jobs", b"[" + b"1," * 2_200_000 + b"1]", 413, ""),
    # people
    ("POST", "/jobs", job(**{"a[b": 1}), 422, "a[b"),
    ("POST", "/users", {"name": "eve", "group": "nowhere"}, 422, "group"),
    ("POST", "/users", {"name": "eve", "permission_group": "nowhere"}, 404, "permission_group"),
    ("POST", "/users", {"name": "eve", "email": "not an address"}, 422, "email"),
    ("POST", "/users", {"name": "eve", "display_name": "a\nb"}, 422, "display_name"),
    ("PATCH", "/users/operator", {"role": "scientist"}, 409, "role"),
    ("PATCH", "/users/operator", {"group": "default"}, 422, "group"),
    ("PATCH", "/me", {"email": "@"}, 422, "email"),
    ("POST", "/me/tokens", {"name": "x", "scopes": []}, 422, "scopes"),
    ("POST", "/me/tokens", {"name": "x", "scopes": ["root"]}, 422, "scopes[0]"),
    ("POST", "/me/ssh-keys", {"name": "x", "public_key": "nonsense"}, 422, "public_key"),
    ("POST", "/me/ssh-keys", {"name": " ", "public_key": "ssh-ed25519 AAAA"}, 422, "name"),
    ("POST", "/me/ssh-keys", {"name": "x", "public_key": "-----BEGIN RSA PRIVATE KEY-----"}, 422, "public_key"),
    ("DELETE", "/me/ssh-keys/k-1", None, 404, "id"),
    ("POST", "/permission-groups", {"name": "no blanks"}, 422, "name"),
    ("POST", "/permission-groups", {"name": "everyone"}, 409, "name"),
    ("POST", "/permission-groups", {"name": "x", "functions": ["fly"]}, 422, "functions[0]"),
    ("PATCH", "/permission-groups/nowhere", {"functions": []}, 404, "permission_group"),
    ("POST", "/permission-groups/everyone/users", {"users": ["nobody"]}, 422, "users"),
    ("POST", "/permission-groups/everyone/users", {"users": []}, 422, "users"),
    ("DELETE", "/permission-groups/everyone", None, 409, "name"),
    ("PUT", "/about/licence", {"token": "nonsense"}, 422, "token"),
    ("DELETE", "/about/licence", None, 404, "licence"),
    ("GET", "/events/export?format=xml", None, 422, "format"),
    ("GET", "/events?q=", None, 422, "q"),
    # measurements and analysis
    ("GET", "/trends?metric=happiness", None, 422, "metric"),
    ("GET", "/trends?since=yesterday", None, 422, "since"),
    ("GET", "/gpus/nowhere/metrics", None, 404, "gpu"),
    ("GET", "/nodes/nowhere/metrics?step=0", None, 422, "step"),
    ("GET", "/jobs/j-1/metrics?until=2000-01-01", None, 422, "until"),
    ("GET", "/analysis?period=soon", None, 422, "period"),
    ("GET", "/analysis?period=1000d", None, 422, "period"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server() as running:
        with running.http() as http:
            http.post("/jobs", json=job(name="taken-name")).raise_for_status()
        yield running


@pytest.fixture(scope="module")
def http(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


def test_there_are_enough_of_them() -> None:
    assert len(WRONG) >= 60


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "field"), WRONG, ids=[f"{n}-{w[0]}-{w[1][:30]}" for n, w in enumerate(WRONG)]
)
def test_a_wrong_request_is_refused_by_name_and_changes_nothing(
    server: CorralServer, http: httpx.Client, method: str, path: str, body: Any, status: int, field: str
) -> None:
    before = dump(server)
    if isinstance(body, bytes):
        answer = http.request(method, path, content=body, headers={"Content-Type": "application/json"})
    else:
        answer = http.request(method, path, json=body)
    told = problem(answer, status)
    if field:
        assert field in [entry["field"] for entry in told["errors"]], told
        assert all(entry["message"] for entry in told["errors"])
    assert dump(server) == before


def test_an_unknown_field_is_answered_with_what_was_probably_meant(http: httpx.Client) -> None:
    told = problem(http.post("/jobs", json=job(prioritty=3)), 422)
    assert "did you mean 'priority'" in told["errors"][0]["message"]
    told = problem(http.get("/jobs", params={"stat": "running"}), 422)
    assert "did you mean 'state'" in told["errors"][0]["message"]


def test_all_wrong_fields_are_told_at_once(http: httpx.Client) -> None:
    told = problem(http.post("/jobs", json=job(gpus=-1, memory="x", priority=1000)), 422)
    assert {entry["field"] for entry in told["errors"]} == {"gpus", "memory", "priority"}


def test_a_body_that_does_not_say_it_is_json_is_refused(http: httpx.Client) -> None:
    answer = http.post("/jobs", content=b'{"command": ["true"]}', headers={"Content-Type": "text/plain"})
    problem(answer, 422)


def test_a_wrong_last_event_id_is_refused(http: httpx.Client) -> None:
    told = problem(http.get("/stream", headers={"Last-Event-ID": "abc"}), 422)
    assert told["errors"][0]["field"] == "Last-Event-ID"


def test_a_body_of_unknown_length_is_cut_off_at_the_limit(http: httpx.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(6):
            yield b" " * 1024 * 1024

    told = problem(http.post("/jobs", content=endless(), headers={"Content-Type": "application/json"}), 413)
    assert "4194304" in told["detail"]


def test_the_api_prefix_is_where_it_should_be(server: CorralServer) -> None:
    problem(httpx.get(f"{server.url}/jobs"), 404)
    problem(httpx.get(f"{server.url}{API}/jobs"), 401)
