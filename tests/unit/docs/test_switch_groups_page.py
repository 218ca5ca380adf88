# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/switch_groups.md: its options and counters are those of the code."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from switchfold.hostlib.parameter_server import command
from switchfold.hostlib.parameter_server.switch_groups import member, server
from switchfold.hostlib.parameter_server.switch_groups.options import SwitchGroupOptions

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "switch_groups.md").read_text("utf-8")


def test_options_are_those_of_the_command() -> None:
    told = dict(re.findall(r"^\| `(--[\w-]+)` \| `(\w+)` \|", PAGE, re.MULTILINE))
    assert told == {option: field for option, (field, *_) in command._GROUP_OPTIONS.items()}
    fields = {field.name: field.default for field in dataclasses.fields(SwitchGroupOptions)}
    assert set(told.values()) <= set(fields)
    assert f"({fields['rows']})" in PAGE
    assert f"({fields['give_up_s']:g} s)" in PAGE
    for option in ("--group-rows", "--group-give-up"):
        assert option in PAGE


def counters_of(text: str | None) -> set[str]:
    assert text is not None
    return set(re.findall(r"\b(\w+_\w+|groups) \(", text.split("`counters`:")[1])) | set(
        re.findall(r"\b(switched_packets)\b", text)
    )


def test_counters_are_those_of_the_code() -> None:
    told = set(re.findall(r"^\| `(\w+)` \| \D", PAGE.split("## What is counted")[1], re.MULTILINE))
    assert told == counters_of(server.SwitchGroupServer.__doc__)
    for name in counters_of(member.SwitchGroupMember.__doc__):
        assert f"`{name}`" in PAGE
    for module in (server, member):
        source = Path(module.__file__).read_text("utf-8")
        kind = module.SwitchGroupServer if module is server else module.SwitchGroupMember
        assert all(f'"{name}"' in source for name in counters_of(kind.__doc__))
