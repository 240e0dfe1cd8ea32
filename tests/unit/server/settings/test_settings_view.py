"""The settings as operators see them: all of them, by section, and no secret."""

from __future__ import annotations

from pathlib import Path

from corral.server.schemas.system.settings import MASK, settings_view
from corral.server.settings.settings import SettingsFile
from corral.server.settings.settings_sources import load_settings

CONFIG = """
storage: {database: "postgresql://corral:hidden-1@db/corral"}
notification: {channels: ["slack://hidden-2/b/c"]}
program_template: {env_vars: {API_KEY: hidden-3, MODE: fast}}
monitoring: {interval_seconds: 2, scrape: ["http://ann:hidden-4@node-1:9400/metrics"]}
"""


def test_everything_is_there_with_its_source_and_secrets_are_masked(tmp_path: Path) -> None:
    config = tmp_path / "corral.yaml"
    config.write_text(CONFIG)
    view = settings_view(load_settings(config=config, environ={"CORRAL_HOME": str(tmp_path)}))
    assert [section.name for section in view.sections] == list(SettingsFile.model_fields)
    assert view.config_file == str(config)
    assert "hidden" not in view.model_dump_json()
    found = {f"{section.name}.{item.key}": item for section in view.sections for item in section.settings}
    assert found["monitoring.interval_seconds"].value == 2
    assert not found["monitoring.interval_seconds"].is_default
    assert "corral.yaml" in found["monitoring.interval_seconds"].source
    assert found["scheduling.algorithm"].is_default
    assert found["program_template.env_vars.API_KEY"].value == MASK
    assert found["program_template.env_vars.MODE"].value == "fast"


def test_clusters_are_a_section_of_their_own(tmp_path: Path) -> None:
    view = settings_view(load_settings(environ={"CORRAL_HOME": str(tmp_path)}))
    assert view.config_file is None
    [cluster, *_] = view.sections
    assert cluster.name == "cluster"
    assert all(item.is_default for item in cluster.settings)
