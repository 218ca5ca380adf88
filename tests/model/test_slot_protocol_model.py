# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The Promela models hold, and the checker finds what goes wrong without their checks."""

from __future__ import annotations

import shutil

import pytest
from model_check import check
from model_variant import Variant
from model_variants import VARIANTS


@pytest.mark.skipif(
    shutil.which("spin") is None, reason="spin is not on the PATH (apt-get install spin)"
)
@pytest.mark.parametrize(
    "variant", [one for one in VARIANTS if not one.is_long], ids=lambda variant: variant.name
)
def test_model_variant_ends_as_expected(variant: Variant) -> None:
    verdict = check(variant)
    assert verdict.is_as_expected, f"{verdict.num_errors} errors\n{verdict.trail[-2000:]}"
    assert bool(verdict.trail) == variant.has_error
