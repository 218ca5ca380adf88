# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Commands with the longest names that are allowed, in a terminal of 80 columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from controller_fixtures import command, fake_switch, join_all, make_config, run, serving
from switchfold.controller.config import ControllerConfig, LinkConfig
from switchfold.controller.server import ControllerServer

__all__ = ["command"]
Command = Callable[..., Coroutine[Any, Any, tuple[int, str, str]]]
JOB, ONE, OTHER, HOST = ("".join((each, "-", each.upper() * 61)) for each in "jsth")


def with_long_names(config: ControllerConfig) -> ControllerConfig:
    """Two switches that a link joins; the first one has hosts."""
    one, other = config.switches
    hosts = (dataclasses.replace(one.hosts[0], name=HOST), *one.hosts[1:])
    one = dataclasses.replace(one, name=ONE, hosts=hosts, service_address="10.0.255.1")
    other = dataclasses.replace(other, name=OTHER, service_address="10.0.255.2")
    link = LinkConfig(a=ONE, a_port=9, b=OTHER, b_port=1, rate_bits_per_s=8_000_000)
    return dataclasses.replace(config, switches=(one, other), links=(link,))


def check_lines(out: str) -> None:
    """Check that no line is longer than the terminal, and nothing is cut off."""
    assert max(map(len, out.splitlines())) <= 80, out
    assert "…" not in out


async def start_job(server: ControllerServer) -> list[Any]:
    workers = await join_all(server.address, 2, job_name=JOB)
    for worker in workers:
        await worker.join_reply()
    await server.fabric_watch.meter.sample()
    return workers


@pytest.mark.parametrize(
    ("words", "title", "names"),
    [
        (("job", "list"), "Jobs of", (JOB, ONE)),
        (("job", "show", JOB), "Views", (ONE,)),
        (("switch", "list"), "Switches of", (ONE, OTHER)),
        (("switch", "show", ONE), "Frames by port", (HOST,)),
        (("link", "list"), "Links of", (ONE, OTHER)),
        (("tree", "show", JOB, "--hosts"), "Links", (ONE, HOST)),
    ],
    ids=["job list", "job show", "switch list", "switch show", "link list", "tree show"],
)
def test_tables_fit_with_the_longest_names(
    tmp_path: Path,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    *,
    words: tuple[str, ...],
    title: str,
    names: tuple[str, ...],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    async def scenario() -> None:
        async with (
            fake_switch() as one,
            fake_switch() as other,
            serving(with_long_names(make_config(tmp_path, one, other))) as server,
        ):
            workers = await start_job(server)
            at = ("--controller", server.address, "--insecure")
            code, out, err = await command(*words, *at)
            for worker in workers:
                await worker.close()
        assert code == 0, err
        _, found, tables = out.partition(title)  # sentences before are the terminal's to wrap
        assert found
        check_lines(tables)
        # Cells may be folded, beside others: no other word has these letters.
        assert [name for name in names if tables.count(name[2]) < len(name) - 2] == []

    run(scenario())
