# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden files of what the generator writes and refuses, so that a review sees each change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from switchfold.softswitch.errors import UnsupportedError
from switchfold.softswitch.generator import generate
from switchfold.softswitch.program.bmv2_json import read_program

PROGRAMS = Path(__file__).with_name("programs")


def test_generated_c_of_a_small_program(check_golden: Callable[[Path, str], None]) -> None:
    text = generate(read_program(PROGRAMS / "forward.json"))
    check_golden(PROGRAMS / "forward.golden.c", text)


def test_diagnostics_of_a_refused_program(check_golden: Callable[[Path, str], None]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        generate(read_program(PROGRAMS / "refused.json"))
    text = str(caught.value).replace(f"{PROGRAMS}/", "")
    check_golden(PROGRAMS / "refused.golden.txt", text + "\n")
