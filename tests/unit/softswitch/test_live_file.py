# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The live view in a file: whole at any time, renewed, and kept after its end."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from switchfold.softswitch.live import LiveFile, Sample, Sampler, view
from time_bound import wait_until


class CountingSampler:
    """Samples whose program's name counts them."""

    def __init__(self) -> None:
        self.taken = 0

    def sample(self) -> Sample:
        self.taken += 1
        return Sample(
            program=f"sample {self.taken}", cpu=0.5, ports=(), tables=(), entries=(),
            parser_errors={},
        )  # fmt: skip


def live_file(path: Path) -> tuple[CountingSampler, LiveFile]:
    sampler = CountingSampler()
    return sampler, LiveFile(cast(Sampler, sampler), path)


def test_file_is_there_at_once_and_is_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "INTERVAL_S", 0.001)
    path = tmp_path / "s1.live"
    sampler, live = live_file(path)
    assert "sample 1 " in path.read_text("utf-8")
    assert "q ends" not in path.read_text("utf-8"), "there is no key to press"
    live.start()
    wait_until(lambda: "sample 1 " not in path.read_text("utf-8"), "no second sample")
    live.close()
    assert f"sample {sampler.taken} " in path.read_text("utf-8")
    assert [each.name for each in tmp_path.iterdir()] == ["s1.live"]


def test_folder_that_is_missing_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        live_file(tmp_path / "missing" / "s1.live")


def test_file_that_fails_later_ends_the_view_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(view, "INTERVAL_S", 0.001)
    folder = tmp_path / "l"
    folder.mkdir()
    _, live = live_file(folder / "s1.live")
    (folder / "s1.live").unlink()
    folder.rmdir()
    live.start()
    wait_until(lambda: "cannot write the live view" in caplog.text, "no warning")
    live.close()
