# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold tree plan`: text, JSON and picture of a plan from a configuration file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.__main__ import run

CONFIG = """
variant = "wide"
[[switch]]
name = "s1"
address = "127.0.0.1:1"
service_address = "10.9.0.1"
[[switch.host]]
name = "h1"
port = 1
address = "10.0.1.1"
mac = "02:00:00:00:00:01"
rate_bits_per_s = 100000000
[[switch]]
name = "s2"
address = "127.0.0.1:2"
service_address = "10.9.0.2"
[[switch.host]]
name = "h2"
port = 1
address = "10.0.2.1"
mac = "02:00:00:00:00:02"
rate_bits_per_s = 100000000
[[link]]
a = "s1"
a_port = 2
b = "s2"
b_port = 2
rate_bits_per_s = 50000000
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "controller.toml"
    path.write_text(CONFIG, "utf-8")
    return path


def test_plan_is_printed(config: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["tree", "plan", "--config", str(config), "--bytes", "352k", "--slots", "10"]) == 0
    printed = capsys.readouterr().out
    assert "1 tree, root s1; 2 workers" in printed
    assert "slowest link: s1 -> s2, 375 kB at 50 Mbit/s" in printed
    assert "├─ h1  port 1  worker 0" in printed
    assert "└─ s2  port 2 up to port 2  slots 0..9" in printed
    assert "next best: ring among the hosts" in printed


def test_plan_as_json_and_picture(config: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    for suffix, magic in ((".svg", b"<?xml"), (".png", b"\x89PNG")):
        picture = tmp_path / f"trees{suffix}"
        arguments = ["tree", "plan", "--config", str(config), "--json", "--picture", str(picture)]
        assert run([*arguments, "--workers", "h2,h1", "--int", "--bytes", "1408"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert [node["switch"] for node in report["trees"][0]["nodes"]] == ["s1", "s2"]
        assert {load["predicted_bytes"] for load in report["loads"]} == {1494.0}
        assert picture.read_bytes().startswith(magic)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--workers", "h9"], "no host h9; hosts in the configuration: h1, h2"),
        (["--workers", "h1,h1"], "named twice"),
        (["--avoid", "s2"], "worker 1 at switch s2, which is down or to be avoided"),
        (["--avoid", "s1-s2"], "joins worker 0 with worker 1; down or to be avoided: s1:2-s2:2"),
        (["--avoid", "s9"], "no link 's9'"),
        (["--picture", "trees.bmp"], "does not end in .svg"),
    ],
)
def test_plan_refuses(
    config: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], what: str
):
    assert run(["tree", "plan", "--config", str(config), *arguments]) == 1
    assert what in capsys.readouterr().err


def test_plan_refuses_sizes(config: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["tree", "plan", "--config", str(config), "--bytes", "lots"]) == 2
    assert "not a size" in capsys.readouterr().err
