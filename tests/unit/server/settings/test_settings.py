"""Settings: which source wins, and the messages for mistakes."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from corral.core.model import JobKind
from corral.core.people.quota import Quota
from corral.core.snapshot.installation import DEFAULT_BACKFILL, DEFAULT_PREEMPTION, BackfillRules, PreemptionRules
from corral.core.storage.volumes import VolumeType
from corral.server.settings.config_file import ConfigError
from corral.server.settings.gpu_manager_import import import_config
from corral.server.settings.sections.cluster_sections import SlurmRestSettings, SlurmSettings
from corral.server.settings.settings_sources import check_config, load_settings
from corral.server.settings.shown_settings import show_settings


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "corral.yaml"
    path.write_text(dedent(text))
    return path


def load(tmp_path: Path, text: str = "", overrides: dict[str, Any] | None = None, **environ: str) -> Any:
    return load_settings(
        config=write(tmp_path, text) if text else None,
        overrides=overrides,
        environ={"CORRAL_HOME": str(tmp_path), **environ},
    )


def test_without_any_configuration_no_user_is_limited(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.home == tmp_path
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8470)
    limits = settings.limits
    assert (limits.max_gpus_per_user, limits.max_gpus_per_job, limits.max_total_gpus, limits.max_seconds) == (None,) * 4
    assert settings.scheduling.algorithm == "fair-share"
    assert settings.allocation.placement == "fragmentation"
    assert settings.allocation.rack_label == settings.control_policies.allocation.rack_label == "rack"
    assert settings.database_url == f"sqlite:///{tmp_path / 'corral.db'}"


def test_the_default_quota_becomes_that_of_new_users(tmp_path: Path) -> None:
    assert load(tmp_path).control_policies.default_quota == {}
    text = "policies: {default_quota: {workbench: {gpus: 3, memory: 2GiB}, volumes: {block: 1TiB}}}\n"
    policies = load(tmp_path, text).control_policies
    assert policies.default_quota == {JobKind.WORKBENCH: Quota(gpu_milli=3000, memory_bytes=2 * 1024**3)}
    assert policies.default_volume_bytes == {VolumeType.BLOCK: 1024**4}


def test_the_nearer_source_wins(tmp_path: Path) -> None:
    text = "server: {port: 1001}\n"
    assert load(tmp_path, text).server.port == 1001
    assert load(tmp_path, text, CORRAL_PORT="1002").server.port == 1002
    assert load(tmp_path, text, {"server.port": 1003}, CORRAL_PORT="1002").server.port == 1003
    assert load(tmp_path, text, {"server.port": None}).server.port == 1001


def test_the_file_in_the_home_directory_is_found(tmp_path: Path) -> None:
    write(tmp_path, "server: {port: 1001}\n")
    assert load(tmp_path).server.port == 1001


def test_virtual_nodes_from_the_command_line_replace_virtual_gpus_of_the_file(tmp_path: Path) -> None:
    settings = load(tmp_path, "local: {virtual_gpus: 8xA100-80G}\n", {"local.virtual_nodes": "11x4xA10"})
    assert (settings.local.virtual_gpus, settings.local.virtual_nodes) == (None, "11x4xA10")


def test_the_example_of_the_reference_is_valid_and_names_every_key(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "configuration.md").read_text()
    example = page.partition("```yaml\n")[2].partition("```")[0]
    settings = load(tmp_path, example)
    assert settings.cluster[0].name == "GPU-Cluster-01"
    assert settings.limits.max_seconds == 48 * 3600
    defaults = [line.key for line in show_settings(settings) if line.source == "default"]
    assert defaults == ["local.virtual_nodes"]  # it stands beside virtual_gpus, which the example has


def test_the_reference_explains_every_key_of_slurm() -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "configuration-jobs.md").read_text()
    rest = [f"rest.{name}" for name in SlurmRestSettings.model_fields]
    keys = [f"cluster.slurm.{name}" for name in (*SlurmSettings.model_fields, *rest) if name != "rest"]
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [key for key in keys if not any(f"`{key}`" in row.split("|")[1] for row in rows)] == []


#: the file, where the first problem is, its key, and words of its message
MISTAKES: list[tuple[str, int, str, str]] = [
    ("polices: {}\n", 1, "polices", "did you mean 'policies'"),
    ("policies:\n  max_gpu_per_user: 8\n", 2, "policies.max_gpu_per_user", "did you mean 'max_gpus_per_user'"),
    ("policies:\n  zzz: 8\n", 2, "policies.zzz", "allowed: default_quota, defragment_at, enable_preemption"),
    (
        "policies:\n  default_quota:\n    workbench:\n      gpu: 3\n",
        4,
        "policies.default_quota.workbench.gpu",
        "did you mean 'gpus'",
    ),
    (
        "policies:\n  default_quota:\n    training: {gpus: -1}\n",
        3,
        "policies.default_quota.training.gpus",
        "at least 0",
    ),
    (
        "policies:\n  default_quota:\n    volumes:\n      block: much\n",
        4,
        "policies.default_quota.volumes.block",
        "is not a size",
    ),
    ("policies:\n  default_quota: {gaming: {gpus: 1}}\n", 2, "policies.default_quota.gaming", "unknown"),
    ("policies: {max_gpus_per_user: -1}\n", 1, "policies.max_gpus_per_user", "at least 0"),
    ("policies: {max_gpus_per_user: lots}\n", 1, "policies.max_gpus_per_user", "whole number"),
    ("policies: {max_gpus_per_user: 1.5}\n", 1, "policies.max_gpus_per_user", "whole number"),
    ("policies: {enable_preemption: 1}\n", 1, "policies.enable_preemption", "true or false"),
    ("policies: {max_job_duration_hours: 0}\n", 1, "policies.max_job_duration_hours", "greater than 0"),
    ("policies: 8\n", 1, "policies", "mapping"),
    ("server:\n  port: 99999\n", 2, "server.port", "at most 65535"),
    ("server:\n  port: '8470'\n", 2, "server.port", "whole number"),
    ("server: {port: 1, port: 2}\n", 1, "server.port", "given twice"),
    ("server: {}\nlocal: {}\nserver: {}\n", 3, "server", "given twice; the first one is on line 1"),
    ("server: {log_file_size: 1KiB}\n", 1, "server.log_file_size", "at least 4096"),
    ("program_template: {notify: SIGKILL}\n", 1, "program_template.notify", "a signal such as SIGUSR1"),
    ("server: {log_format: xml}\n", 1, "server.log_format", "'plain' or 'json'"),
    ("server: {session_hours: .nan}\n", 1, "server.session_hours", "finite number"),
    ("scheduling:\n  algorithm: fairshare\n", 2, "scheduling.algorithm", "did you mean 'fair-share'"),
    ("scheduling: {blocking: hard}\n", 1, "scheduling.blocking", "'strict' or 'backfill'"),
    ("scheduling: {ageing: 0}\n", 1, "scheduling.ageing", "at least 0.001"),
    ("scheduling: {unknown_run_hours: 0}\n", 1, "scheduling.unknown_run_hours", "greater than 0"),
    ("scheduling: {weights: {age: 0}}\n", 1, "scheduling.weights.age", "at least 0.001"),
    ("scheduling: {weights: {size: -1}}\n", 1, "scheduling.weights.size", "at least 0"),
    ("scheduling: {weights: {luck: 1}}\n", 1, "scheduling.weights.luck", "unknown"),
    ("scheduling: {smallest_share: 0}\n", 1, "scheduling.smallest_share", "at least 0.001"),
    ("scheduling: {protected_starts: 0}\n", 1, "scheduling.protected_starts", "at least 1"),
    ("policies: {preemption_min_run_minutes: -1}\n", 1, "policies.preemption_min_run_minutes", "at least 0"),
    ("policies: {preemption_margin: 1}\n", 1, "policies.preemption_margin", "less than 1"),
    ("scheduling: {size_power: 3}\n", 1, "scheduling.size_power", "at most 2"),
    ("scheduling: {max_queue_size: 0}\n", 1, "scheduling.max_queue_size", "at least 1"),
    ("allocation: {placement: best}\n", 1, "allocation.placement", "allowed: "),
    ("allocation: {reserved_ratio: 1.3}\n", 1, "allocation.reserved_ratio", "at most 1"),
    ("allocation: {rack_label: 4}\n", 1, "allocation.rack_label", "must be a text"),
    ("allocation: {strategy: chaos}\n", 1, "allocation.strategy", "'hybrid'"),
    ("cluster: {engine: local\n", 2, "", "not valid YAML"),
    ("cluster:\n\t- x\n", 2, "", "not valid YAML"),
    ("cluster: {engine: nomad}\n", 1, "cluster.engine", "unknown engine"),
    ("cluster: []\n", 1, "cluster", "must not be empty"),
    ("cluster:\n- {name: a}\n- {name: b}\n", 1, "cluster", "only one cluster can be local"),
    ("cluster:\n- name: a\n  size: 3\n", 3, "cluster[0].size", "unknown key"),
    ("cluster: {slurm: {rest: {token_file: /t}}}\n", 1, "cluster.slurm.rest.url", "is required"),
    (
        "cluster: {slurm: {rest: {url: login1, token_file: /t}}}\n",
        1,
        "cluster.slurm.rest.url",
        "form http://login1:6820",
    ),
    ("cluster: {slurm: {rest: {url: 'unix:x'}}}\n", 1, "cluster.slurm.rest.url", "form unix:/run"),
    ("cluster: {slurm: {rest: {url: 'http://s:1'}}}\n", 1, "cluster.slurm.rest", "give token_file or token_command"),
    (
        "cluster: {slurm: {rest: {url: 'http://s:1', token_file: /t, token_command: [a]}}}\n",
        1,
        "cluster.slurm.rest",
        "not both",
    ),
    (
        "cluster: {slurm: {rest: {url: 'http://s:1', token_file: t}}}\n",
        1,
        "cluster.slurm.rest.token_file",
        "absolute path",
    ),
    ("cluster: {slurm: {rest: {url: 'unix:/s', user: 'a b'}}}\n", 1, "cluster.slurm.rest.user", "of the form corral"),
    (
        "cluster: {slurm: {rest: {url: 'unix:/s', api_version: v0.0.36}}}\n",
        1,
        "cluster.slurm.rest.api_version",
        "v0.0.38",
    ),
    ("cluster: {slurm: {rest: {url: 'unix:/s'}, options: [--exclusive]}}\n", 1, "cluster.slurm", "through slurmrestd"),
    ("scaling: {min_gpus: 5, max_gpus: 4}\n", 1, "scaling", "min_gpus (5)"),
    ("scaling: {scale_up_threshold: 0.2}\n", 1, "scaling", "below scale_up_threshold"),
    ("program_template: {command: ''}\n", 1, "program_template.command", "must not be empty"),
    ("program_template: {task_prefix: 'a b'}\n", 1, "program_template.task_prefix", "of the form task_"),
    ("program_template: {env_vars: {'A B': x}}\n", 1, "program_template.env_vars", "environment variable"),
    ("program_template: {args: --gpus}\n", 1, "program_template.args", "must be a list"),
    ("storage: {database: mysql://x}\n", 1, "storage.database", "postgresql://"),
    ("storage: {metrics: influx}\n", 1, "storage.metrics", "Prometheus"),
    ("local: {virtual_gpus: eight}\n", 1, "local.virtual_gpus", "8xA100-80G"),
    ("local: {virtual_nodes: 4xA10}\n", 1, "local.virtual_nodes", "NODESxGPUSxMODEL"),
    ("local: {virtual_gpus: 8xA10, virtual_nodes: 2x4xA10}\n", 1, "local", "not both"),
    ("local: {log_limit_bytes: huge}\n", 1, "local.log_limit_bytes", "not a size"),
    ("a: &x {}\nb: *x\n", 2, "", "aliases"),
    ("- just\n- a list\n", 1, "", "mapping of sections"),
    ("monitoring: {interval_seconds: 0.1}\n", 1, "monitoring.interval_seconds", "at least 0.5"),
    (
        "monitoring: {alert_thresholds: {temprature: 80}}\n",
        1,
        "monitoring.alert_thresholds.temprature",
        "'temperature'",
    ),
    ("fault_tolerance: {max_retries: 1000}\n", 1, "fault_tolerance.max_retries", "at most 100"),
    ("server: {host: !!python/object:os.system x}\n", 1, "server.host", "cannot be read"),
]


@pytest.mark.parametrize(("text", "line", "key", "words"), MISTAKES)
def test_a_mistake_is_named_with_line_key_and_what_is_allowed(
    tmp_path: Path, text: str, line: int, key: str, words: str
) -> None:
    path = tmp_path / "corral.yaml"
    path.write_text(text)
    problems = check_config(path)
    assert [problem.origin for problem in problems[:1]] == [f"{path}:{line}"]
    assert problems[0].key == key
    assert words in problems[0].message
    with pytest.raises(ConfigError):
        load_settings(config=path, environ={"CORRAL_HOME": str(tmp_path)})


def test_a_mistake_in_the_environment_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"environment CORRAL_PORT: server.port: must be a whole number"):
        load(tmp_path, CORRAL_PORT="http")
    with pytest.raises(ConfigError, match="CORRAL_BOOTSTRAP_PASSWORD: must have at least 8"):
        load(tmp_path, CORRAL_BOOTSTRAP_PASSWORD="short")


def test_a_mistake_on_the_command_line_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"command line: server.port: must be at most 65535"):
        load(tmp_path, overrides={"server.port": 70000})


def test_a_missing_file_and_a_binary_file_are_named(tmp_path: Path) -> None:
    assert "cannot be read" in check_config(tmp_path / "none.yaml")[0].message
    (tmp_path / "bytes.yaml").write_bytes(b"server: {}\n\xff\xfe")
    assert str(check_config(tmp_path / "bytes.yaml")[0]) == f"{tmp_path / 'bytes.yaml'}:2: is not UTF-8 text"


def test_every_problem_of_a_file_is_reported_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "server: {port: -1}\npolicies: {max_gpus_per_user: x}\nnonsense: 1\n")
    assert {problem.key for problem in check_config(path)} == {"server.port", "policies.max_gpus_per_user", "nonsense"}


def test_show_has_the_source_of_every_value_and_hides_passwords(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        "policies:\n  max_gpus_per_user: 8\nstorage: {database: 'postgresql://corral:secret@db/corral'}\n",
        {"server.port": 9000},
        CORRAL_LOG_LEVEL="debug",
        CORRAL_BOOTSTRAP_PASSWORD="a long secret",
    )
    lines = {line.key: line for line in show_settings(settings)}
    assert (lines["policies.max_gpus_per_user"].value, lines["policies.max_gpus_per_user"].source) == (
        8,
        f"{tmp_path / 'corral.yaml'}:2",
    )
    assert lines["server.port"].source == "command line"
    assert lines["server.log_level"].source == "environment CORRAL_LOG_LEVEL"
    assert lines["server.host"].source == "default"
    assert lines["storage.database"].value == "postgresql://corral:***@db/corral"
    assert lines["cluster.name"].value == "local"
    assert "secret" not in repr(lines)
    assert "secret" not in repr(settings.bootstrap_password)


SEED = """{
  "monitor_interval": 5,           // 监控间隔（秒）
  "max_gpus_per_task": 4,         // 每个任务最大 GPU 数
  "auto_scale": true,             // 是否启用自动扩展
  "program_template": {            // 程序启动模板
    "command": "python train.py",
    "args": ["--gpus", "{gpu_list}"],
    "env_vars": {"CUDA_VISIBLE_DEVICES": "{gpu_list}", "HUB": "http://hub//x"}
  },
  "scaling": {"enabled": true, "min_gpus": 1, "max_gpus": 4, "scale_up_threshold": 0.8, "scale_down_threshold": 0.3},
  "max_total_gpus": 8, "max_manual_gpus": 6,
  "notification": {"enabled": true, "email": "someone@example.org", "gpu_available_threshold": 1},
  "colour": "blue"
}
"""


def test_the_old_json_becomes_a_file_that_works(tmp_path: Path) -> None:
    imported = import_config(SEED, "gpu_manager_config.json")
    settings = load(tmp_path, imported.yaml_text)
    assert settings.monitoring.interval_seconds == 5
    assert settings.policies.max_gpus_per_task == 4
    assert settings.policies.max_total_gpus == 8
    assert settings.program_template.env_vars["HUB"] == "http://hub//x"
    assert settings.notification.channels == ("mailto://someone@example.org",)
    assert imported.unknown == ("colour",)
    assert "monitor_interval -> monitoring.interval_seconds" in imported.mapped
    assert not any("auto_scale" in remark for remark in imported.remarks), "both switches are on"
    off = import_config(SEED.replace('"auto_scale": true', '"auto_scale": false'), "gpu_manager_config.json")
    assert not load(tmp_path, off.yaml_text).scaling.enabled
    assert any("auto_scale and scaling.enabled differ" in remark for remark in off.remarks)


def test_an_imported_address_names_what_its_delivery_needs() -> None:
    (remark,) = [text for text in import_config(SEED, "old.json").remarks if "email" in text]
    assert "mailto://USER:PASSWORD@MAIL-SERVER?to=someone@example.org" in remark


def test_the_old_json_is_read_in_place_of_a_yaml_file(tmp_path: Path) -> None:
    file = tmp_path / "gpu_manager_config.json"
    file.write_text(SEED.replace(',\n  "colour": "blue"', ""), encoding="utf-8")
    settings = load_settings(config=file, environ={"CORRAL_HOME": str(tmp_path)})
    assert (settings.policies.max_total_gpus, settings.scaling.enabled) == (8, True)
    assert settings.alert_thresholds.free_gpus == 1
    assert any("MAIL-SERVER" in note for note in settings.notes)
    assert check_config(file) == []
    file.write_text(SEED, encoding="utf-8")
    (problem,) = check_config(file)
    assert (problem.line, problem.key) == (13, "colour")
    assert "corral config import" in problem.message
    file.write_text('{\n\t"monitor_interval": 5,\n\t"max_manual_gpus": "six"\n}', encoding="utf-8")
    (problem,) = check_config(file)
    assert (problem.line, problem.key) == (3, "policies.max_manual_gpus")


def test_sections_written_as_json_are_read_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "corral.json"
    file.write_text('{"scaling": {"max_gpus": 8, "window_minutes": 1}, "server": {"port": 1}}')
    settings = load_settings(config=file, environ={"CORRAL_HOME": str(tmp_path)})
    assert (settings.scaling.max_gpus, settings.scaling.window_minutes) == (8, 1)


def test_the_log_file_is_in_the_home_unless_the_configuration_differs(tmp_path: Path) -> None:
    assert load(tmp_path).log_path == tmp_path / "corral.log"
    assert load(tmp_path, "server: {log_file: /var/log/corral.log}\n").log_path == Path("/var/log/corral.log")
    assert load(tmp_path, "server: {log_file: null}\n").log_path is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"monitor_interval": "five"}', "old.json: monitor_interval: must be a number"),
        ('{"scaling": {"min_gpus": 0}}', r"old.json: scaling.min_gpus: must be at least 1"),
        ("{", r"old.json:1: is not valid JSON"),
        ("[]", "must be a JSON object"),
    ],
)
def test_an_old_value_that_cannot_be_used_is_named_as_it_was_written(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        import_config(text, "old.json")


def test_when_jobs_are_preempted_and_starts_protected(tmp_path: Path) -> None:
    def rules(text: str) -> tuple[PreemptionRules, BackfillRules]:
        (tmp_path / "corral.yaml").write_text(text)
        policies = load_settings(environ={"CORRAL_HOME": str(tmp_path)}).control_policies
        return policies.preemption, policies.backfill

    assert rules("{}") == (DEFAULT_PREEMPTION, DEFAULT_BACKFILL)
    changed = (
        "policies: {enable_preemption: false, preemption_min_run_minutes: 0.5, gang_patience_hours: null, "
        "preemption_patience_minutes: 0.2}\n"
        "scheduling: {protected_starts: 9, hold_after_hours: 0, backfill_slack: 0.5}\n"
    )
    expected = PreemptionRules(enabled=False, min_run_seconds=30.0, patience_seconds=12.0)
    assert rules(changed) == (expected, BackfillRules(protected=9, slack=0.5))


def test_only_thresholds_of_the_file_raise_alerts(tmp_path: Path) -> None:
    usual = load(tmp_path).alert_thresholds
    assert (usual.temperature_celsius, usual.temperature_seconds) == (85, 15)
    assert (usual.utilization_percent, usual.memory_percent, usual.power_watts) == (None, None, None)
    asked = load(tmp_path, "monitoring: {alert_thresholds: {utilization: 95, power_watts: 400}}\n").alert_thresholds
    assert (asked.utilization_percent, asked.memory_percent, asked.power_watts) == (95, None, 400)
    assert (asked.duration_seconds, asked.temperature_seconds) == (60, 15)
    long = load(tmp_path, "monitoring: {alert_thresholds: {memory: 90, duration_seconds: 600}}\n").alert_thresholds
    assert (long.memory_percent, long.duration_seconds, long.temperature_seconds) == (90, 600, 600)
