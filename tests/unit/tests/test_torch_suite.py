# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The record of which of PyTorch's own tests pass, and the verdict on a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from torch_suite.__main__ import judge
from torch_suite.floor import FLOOR, floor_of, floor_version, read_floor, write_floor


def test_floor_is_kept_for_each_number_of_ranks(tmp_path: Path) -> None:
    path = tmp_path / "floor.txt"
    write_floor(3, ["test_b", "test_a"], "2.13.0", path)
    write_floor(2, ["test_b", "test_c"], "2.13.0", path)
    assert read_floor(path) == {"test_a": {3}, "test_b": {2, 3}, "test_c": {2}}
    write_floor(2, ["test_a"], "2.14.0", path)
    assert floor_of(2, path) == {"test_a"}
    assert floor_of(3, path) == {"test_a", "test_b"}
    assert floor_version(path) == "2.14.0"


def test_a_test_that_fell_fails_the_run_and_a_new_one_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert judge({"test_a", "test_b"}, {"test_a"}) == 0
    assert "new, for floor.txt (--renew writes it): test_b" in capsys.readouterr().out
    assert judge({"test_b"}, {"test_a", "test_b"}) == 1
    assert "below the floor: test_a" in capsys.readouterr().out


@pytest.mark.parametrize("num_ranks", [2, 3, 4])
def test_committed_floor_holds_most_of_the_suite(num_ranks: int) -> None:
    """Of about 200 tests that Gloo passes."""
    assert len(floor_of(num_ranks)) > 180, FLOOR
