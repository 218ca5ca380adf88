# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The backend is found by PyTorch through the package's entry point, in any order of imports."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from switchfold.hostlib.torch.process_group import program_end
from torch_ranks import require_torch

require_torch()
ROOT = Path(__file__).resolve().parents[4]


def test_entry_point_names_what_registers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["torch.backends"]
    assert points == {"switchfold": "switchfold.hostlib.torch.backend:register"}
    assert any(extra.startswith("torch>=") for extra in project["optional-dependencies"]["torch"])


def test_one_import_of_torch_registers_whatever_was_imported_before() -> None:
    """A stand-in for the installed entry point, as an editable install may lack the new one."""
    code = """
import importlib.metadata, sys
what = ("switchfold", "switchfold.hostlib.torch.backend:register", "torch.backends")
point = importlib.metadata.EntryPoint(*what)
importlib.metadata.entry_points = lambda **chosen: [point]
import switchfold.hostlib.torch
assert "torch" not in sys.modules and "grpc" not in sys.modules
import switchfold.hostlib.torch.process_group.process_group  # torch registers meanwhile
import torch.distributed as dist
assert dist.is_backend_available("switchfold")
assert dist.Backend("SWITCHFOLD") == "switchfold"
assert dist.Backend.backend_capability["switchfold"] == ["cpu", "cuda"]
assert dist.Backend.default_device_backend_map["cpu"] == "gloo"
before = list(dist.Backend.backend_list)
switchfold.hostlib.torch.register()
assert dist.Backend.backend_list == before
assert "grpc" not in sys.modules
print("registered")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.stdout.strip() == "registered", done.stderr


class _Group:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def wait_for_others(self) -> None:
        self.calls.append("wait")

    def close(self) -> None:
        self.calls.append("close")


def test_programs_that_failed_leave_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    group = _Group()
    monkeypatch.setattr(program_end, "open_groups", {group})
    for name in ("last_exc", "last_value"):
        monkeypatch.setattr(sys, name, None, raising=False)
    program_end.leave_all()
    monkeypatch.setattr(sys, "last_value", ValueError())  # by Python 3.11, which has no last_exc
    program_end.leave_all()
    assert group.calls == ["wait", "close", "close"]
