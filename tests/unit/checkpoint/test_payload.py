"""States come back as they were, with torch and without it."""

from __future__ import annotations

import pickle
import sys
import types
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corral.checkpoint import catalog
from corral.checkpoint.keeper import Keeper

Make = Callable[..., Keeper]


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)


@pytest.mark.usefixtures("no_torch")
@pytest.mark.parametrize(
    "state",
    [0, None, (1, (2,)), {1: "a", ("b",): {3}}, OrderedDict(a=1), b"\0" * 3_000_000, float("inf"), [[]] * 3],
    ids=lambda state: repr(state)[:30],
)
def test_anything_that_pickles_comes_back_equal(state: Any, make: Make, tmp_path: Path) -> None:
    make().save(state, step=1)
    restored = make().restore()
    assert restored == state
    assert type(restored) is type(state)
    assert catalog.list_checkpoints(tmp_path / "checkpoints")[0].kind == "pickle"
    assert "torch" not in sys.modules


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """A module with the documented signatures of torch.save and torch.load, and nothing else of torch."""
    calls: list[tuple[Any, ...]] = []

    def save(obj: object, f: Any, pickle_module: Any = pickle, pickle_protocol: int = 2) -> None:
        # The documentation promises to use these two methods of a file-like object; views of memory come too.
        data = pickle_module.dumps(obj, protocol=pickle_protocol)
        f.write(memoryview(b"torch "))
        f.write(data)
        f.flush()

    def load(
        f: Any, map_location: Any = None, pickle_module: Any = pickle, *, weights_only: bool = True, mmap: Any = None
    ) -> Any:
        calls.append((map_location, weights_only))
        assert f.read(6) == b"torch "
        return pickle_module.load(f)

    module = types.ModuleType("torch")
    module.save = save  # type: ignore[attr-defined]
    module.load = load  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", module)
    return calls


def test_with_torch_loaded_its_own_format_is_used(stand_in: list[tuple[Any, ...]], make: Make, tmp_path: Path) -> None:
    make().save({"step": 1}, step=1)
    assert catalog.list_checkpoints(tmp_path / "checkpoints")[0].kind == "torch"
    assert make().restore() == {"step": 1}
    assert make().restore(map_location="cuda:1") == {"step": 1}
    assert stand_in == [("cpu", False), ("cuda:1", False)]


@pytest.mark.usefixtures("stand_in")
def test_payload_saved_without_torch_is_read_with_torch(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "torch")
        make().save([1, 2], step=1)
    assert make().restore() == [1, 2]
