# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options by which a testbed's switches write traces, captures and rates."""

from __future__ import annotations

from pathlib import Path

import pytest

from switchfold.bmv2_topos import Testbed, single_switch
from switchfold.bmv2_topos.processes.debugging import SwitchDebugging, of_switch


def test_each_softswitch_gets_files_of_its_own(tmp_path: Path) -> None:
    debugging = SwitchDebugging(
        trace_dir=tmp_path / "t", trace_count=5, pcap_dir=tmp_path / "deep" / "p"
    )
    words = of_switch(debugging.options("softswitch"), "s2")
    assert words == [
        *("--trace", f"{tmp_path}/t/s2.trace", "--trace-count", "5"),
        *("--pcap-dir", f"{tmp_path}/deep/p/s2"),
    ]
    assert (tmp_path / "t").is_dir()
    live = SwitchDebugging(live_dir=tmp_path / "l").options("softswitch")
    assert of_switch(live, "s1") == ["--live-file", f"{tmp_path}/l/s1.live"]


def test_bmv2_captures_into_a_folder_that_is_there(tmp_path: Path) -> None:
    words = SwitchDebugging(pcap_dir=tmp_path).options("bmv2")
    assert of_switch(words, "s3") == [f"--pcap={tmp_path}/s3"]
    assert (tmp_path / "s3").is_dir()


@pytest.mark.parametrize("kind", ["trace_dir", "live_dir"])
def test_bmv2_neither_traces_nor_shows_rates(tmp_path: Path, kind: str) -> None:
    debugging = SwitchDebugging(**{kind: tmp_path})
    with pytest.raises(ValueError, match="choose target softswitch"):
        Testbed(single_switch(1), target="bmv2", mode="veth", debugging=debugging)


def test_options_that_exclude_each_other_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="choose one"):
        SwitchDebugging(trace_dir=tmp_path, live_dir=tmp_path)
    with pytest.raises(ValueError, match="needs a folder"):
        SwitchDebugging(trace_count=3)
