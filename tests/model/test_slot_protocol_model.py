# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The Promela models hold, and the checker finds what goes wrong without their checks."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

_CHECK = Path(__file__).with_name("check.py")


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("model_check", _CHECK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["model_check"] = module
    spec.loader.exec_module(module)
    return module


MODEL_CHECK = _load()
VARIANTS = [variant for variant in MODEL_CHECK.VARIANTS if not variant.is_long]


@pytest.mark.skipif(
    shutil.which("spin") is None, reason="spin is not on the PATH (apt-get install spin)"
)
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_model_variant_ends_as_expected(variant: object) -> None:
    verdict = MODEL_CHECK.check(variant)
    assert verdict.is_as_expected, f"{verdict.num_errors} errors\n{verdict.trail[-2000:]}"
    assert bool(verdict.trail) == verdict.variant.has_error
