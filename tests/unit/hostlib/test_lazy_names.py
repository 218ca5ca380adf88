# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packages whose names are imported when first used."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

PACKAGES = (
    "switchfold.controller",
    "switchfold.hostlib.parameter_server",
    "switchfold.softswitch",
)
"""torch's is tried where torch is."""
LOADED = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_found(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None, name


@pytest.mark.parametrize("package", PACKAGES)
def test_any_other_name_is_an_attribute_error(package: str) -> None:
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_alone_loads_no_grpc(package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, package], capture_output=True, text=True, check=True
    )
    modules = json.loads(done.stdout)
    assert package in modules
    assert "grpc" not in modules
