# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A folder that is called torch is no PyTorch; a package with files is."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from switchfold.controller.cli.installed_torch import has_torch


def test_folder_of_that_name_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "torch"
    package.mkdir()
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert not has_torch()
    (package / "__init__.py").write_text("")
    importlib.invalidate_caches()
    assert has_torch()
