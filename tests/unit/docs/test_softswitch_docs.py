# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/softswitch.md says what the command and the runtime say: options, verbs, statistics."""

from __future__ import annotations

import re
from pathlib import Path

import click

from switchfold.softswitch.commands.command import main
from switchfold.softswitch.compilation.stages import STAGES

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "softswitch.md").read_text("utf-8")


def section(title: str) -> str:
    start = PAGE.index(f"\n{title}\n")
    level = title.split(maxsplit=1)[0]
    end = PAGE.find(f"\n{level} ", start + 1)
    return PAGE[start : end if end >= 0 else len(PAGE)]


def option_rows(marker: str) -> dict[str, str]:
    """Return the options of the first table behind a marker, with their documented defaults."""
    lines = PAGE[PAGE.index(marker) :].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows: dict[str, str] = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
        for name in re.findall(r"--[a-z0-9-]+", cells[0]):
            rows[name] = cells[1].strip("`")
    return rows


def options_of(verb: str) -> dict[str, click.Option]:
    command = main.get_command(click.Context(main), verb)
    assert command is not None
    return {option.opts[0]: option for option in command.params if isinstance(option, click.Option)}


def check_options(marker: str, verb: str) -> None:
    documented, actual = option_rows(marker), options_of(verb)
    assert set(documented) == set(actual)
    for name, default in documented.items():
        if default:
            assert str(actual[name].default) == default, name


def test_options_of_run_are_documented() -> None:
    check_options("<!-- options of run:", "run")


def test_options_of_trace_are_documented() -> None:
    check_options("<!-- options of trace:", "trace")


def test_stages_are_documented() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", section("## Show and check"), re.MULTILINE)
    assert set(rows) == {"c", *STAGES}


def test_verbs_are_documented() -> None:
    for verb in main.list_commands(click.Context(main)):
        assert f"softswitch {verb}" in PAGE, verb


def test_statistics_are_documented() -> None:
    source = (ROOT / "softswitch" / "runtime" / "ports" / "ports.c").read_text("utf-8")
    table = source[source.index("port_statistic_names[") : source.index("};")]
    names = set(re.findall(r'"(\w+)"', table))
    documented = set(re.findall(r"`(\w+)`", section("## Statistics")))
    impairments = section("## Impairments")
    for name in names - {"impaired_in", "impaired_out"}:
        assert name in documented, name
    assert "impaired_in_lost" in impairments


def test_migration_table_names_options_that_exist() -> None:
    known = set(options_of("run"))
    for line in section("## Migrating from simple_switch_grpc").splitlines():
        if not line.startswith("| `"):
            continue
        ours = re.split(r"(?<!\\)\|", line.strip("|"))[1]
        for option in re.findall(r"--[a-z0-9-]+", ours):
            assert option in known, option
