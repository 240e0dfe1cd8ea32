"""The generated reference of the configuration: current, and with a meaning for every key."""

from __future__ import annotations

from pathlib import Path

from corral.server.settings.settings import Settings
from corral.server.settings.settings_sources import load_settings
from corral.server.settings.shown_settings import show_settings
from tests.unit.scripts import load_script

script = load_script("configuration_page.py")


def test_configuration_page_is_current() -> None:
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "run `make openapi`"


def test_every_key_has_a_meaning_and_a_type() -> None:
    keys = [key for name, model in script.sections() for key in script.keys(name, model)]
    assert len(keys) > 150
    assert [key.name for key in keys if not key.meaning or not key.type] == []


def test_configuration_page_has_every_key_of_config_show(tmp_path: Path) -> None:
    known = {key.name for name, model in script.sections() for key in script.keys(name, model)}
    shown = {line.key for line in show_settings(load_settings(environ={"CORRAL_HOME": str(tmp_path)}))}
    # Mappings are shown entry by entry, a section that is not set as one value.
    missing = [
        key
        for key in shown
        if key.partition(".")[0] in Settings.model_fields
        and not any(key == one or key.startswith(f"{one}.") or one.startswith(f"{key}.") for one in known)
    ]
    assert missing == ["home"]
