# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Every P4 program of this repository: random tables and packets, softswitch against BMv2."""

from __future__ import annotations

import time

import pytest

from differential.bmv2_switch import RefusedError, missing_reason
from differential.campaign import Found, check, make_case, prepared, programs

PROGRAMS = programs()
BUDGET_S = 15.0
"""For all programs together, which share it equally."""
PACKETS = 40
FIRST_SEED = 1
"""The same in every run; a campaign (python -m differential fuzz) tries new seeds."""
_reason = missing_reason()


def test_there_are_programs_to_compare() -> None:
    assert {"switchfold_narrow", "switchfold_wide", "tables"} <= {item.name for item in PROGRAMS}


@pytest.mark.bmv2
@pytest.mark.skipif(_reason is not None, reason=str(_reason))
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda item: item.name)
def test_both_switches_agree(program: Found) -> None:
    program = prepared(program)
    end_s = time.monotonic() + BUDGET_S / len(PROGRAMS)
    seed = FIRST_SEED
    while seed == FIRST_SEED or time.monotonic() < end_s:
        print(f"{program.name}: seed {seed}")
        case = make_case(program, seed, PACKETS)
        try:
            result, folder = check(case, program.name)
        except RefusedError as exc:
            pytest.skip(str(exc))
        assert folder is None, (
            f"{result.difference}\nreplay, in tests/: python -m differential replay {folder}"
        )
        seed += 1
