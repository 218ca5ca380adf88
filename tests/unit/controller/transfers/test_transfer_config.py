# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options of live transfers: the controller's file and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from switchfold.controller.config import load_config
from switchfold.controller.errors import ConfigError
from switchfold.controller.transfers.transfer_config import TransferConfig

SWITCH = '[[switch]]\nname = "s1"\naddress = "127.0.0.1:1"\n'


def load(folder: Path, text: str, **overrides: Any) -> TransferConfig:
    path = folder / "controller.toml"
    path.write_text(text, "utf-8")
    return load_config(path, **overrides).transfers


def test_table_of_the_file(tmp_path: Path):
    config = load(
        tmp_path,
        '[transfers]\ngrant_wait_s = 2\nbatch_max = 8\nlog = "transfers.jsonl"\n' + SWITCH,
    )
    assert config == TransferConfig(grant_wait_s=2, batch_max=8, log=Path("transfers.jsonl"))
    assert load(tmp_path, SWITCH) == TransferConfig()


def test_command_line_chooses_the_log(tmp_path: Path):
    text = '[transfers]\nlog = "one.jsonl"\n' + SWITCH
    assert load(tmp_path, text, transfer_log=Path("other")).log == Path("other")
    assert load(tmp_path, text, transfer_log=None).log == Path("one.jsonl")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("grant_wait_s = 0", "grant_wait_s must lie in 0.001..86400 s"),
        ("grant_wait_s = nan", "grant_wait_s must lie in"),
        ("grant_wait_s = 20", "grant_wait_s is 20, above server_wait_s (10)"),
        ("batch_max = 0", "batch_max must be at least 1"),
        ("batch_max = true", "batch_max = True is not of type int"),
        ("batch_wait_s = -1", "batch_wait_s must lie in 0..86400 s"),
        ("default_rate_bits_per_s = 999", "default_rate_bits_per_s must be at least 1000"),
        ("payload_share = 1.1", "payload_share must lie in 0.1..1"),
        ("most_queued_updates = -1", "most_queued_updates must lie in 0..1e6"),
        ("relay_max = 0", "relay_max must be at least 1"),
        ("relay_max = 65", "relay_max must lie in 1..64"),
        ("relay_slack_s = 0", "relay_slack_s must lie in 0.001..86400 s"),
        (
            "relay_max = 2\nmost_queued_updates = 3",
            "relay_max is 2, and most_queued_updates 3: models that are relayed do not wait",
        ),
        ("overdue_ratio = 0.5", "overdue_ratio must lie in 1..1000"),
        ("join_ratio = 0.5", "join_ratio must lie in 1..1000"),
        ('learning_rate = "half"', "learning_rate 'half' is none of none, square_root, inverse"),
        ("kappa = -1", "kappa must lie in 0..1e6"),
        ("max_stations = 0", "max_stations must be at least 1"),
        ("grant_wait = 1", "unknown option 'grant_wait'"),
    ],
)
def test_options_are_checked(tmp_path: Path, line: str, text: str):
    with pytest.raises(ConfigError, match=r"\[transfers\]") as refusal:
        load(tmp_path, f"[transfers]\n{line}\n{SWITCH}")
    assert text in str(refusal.value)


def test_models_with_relays_do_not_wait_for_updates(tmp_path: Path):
    relaying = load(tmp_path, f"[transfers]\nrelay_max = 64\n{SWITCH}")
    assert (relaying.relay_max, relaying.relay_slack_s, relaying.most_queued) == (64, 0.5, None)
    assert load(tmp_path, SWITCH).most_queued == 1e6
    waiting = load(tmp_path, f"[transfers]\nmost_queued_updates = 3\n{SWITCH}")
    assert waiting.most_queued == 3


def test_transfers_is_a_table(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"write \[transfers\]"):
        load(tmp_path, f"transfers = 1\n{SWITCH}")
