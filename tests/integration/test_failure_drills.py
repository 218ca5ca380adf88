# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Drills: a link, a switch or the controller fails while a job sums; docs/operations.md promises.

A drill waits for the outcome of the failure; the documentation says how long that may take.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from finsy import Switch, SwitchOptions

from job_workers import Workers, agree
from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.bmv2_topos.processes.daemons import program_files
from switchfold.controller.__main__ import run as run_command
from switchfold.controller.config import SwitchConfig
from switchfold.controller.switches.switch_call import switch_credentials
from time_bound import wait_until

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
MakeTestbed = Callable[..., Testbed]


@pytest.fixture
def make_testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeTestbed]:
    """Make a testbed of 4 hosts at one switch; arguments go to its controller."""
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path / "records")
    with ExitStack() as stack:

        def make(*controller_options: str) -> Testbed:
            made = Testbed(
                single_switch(4),
                name=f"test-drill-{os.getpid()}",
                variant="narrow",
                controller_options=controller_options,
            )
            return stack.enter_context(made)

        yield make


@pytest.mark.parametrize("path", ["auto", "host"])
def test_worker_behind_a_dead_link_is_evicted(make_testbed: MakeTestbed, path: str) -> None:
    testbed = make_testbed()
    with Workers(testbed, "cut", 4, SWITCHFOLD_PATH=path) as workers:
        testbed.cut_link("h2", "s1")
        others = [workers[0], *workers[2:]]
        for worker in others:
            worker.until_members(0, 2, 3)
            worker.next()
        agree(others)
        error = workers[1].until_error()
        assert error.startswith("JobEndedError")
        assert "h2 (10.0.0.2)" in error


def test_switch_that_is_gone_for_good_is_named_to_all(make_testbed: MakeTestbed) -> None:
    testbed = make_testbed()
    with Workers(testbed, "gone", 4) as workers:
        testbed.stop_switch("s1")
        for worker in workers:
            error = worker.until_error()
            assert error.startswith("JobEndedError")
            assert "switch s1 is out of reach" in error


def test_switch_that_comes_back_is_used_again(make_testbed: MakeTestbed) -> None:
    testbed = make_testbed("--no-route", "600")
    with Workers(testbed, "back", 4) as workers:
        testbed.stop_switch("s1")
        # Two such views in turn: the hosts have found that they do not reach each other.
        wait_until(lambda: paths_of(testbed, "back")[-2:] == ["host", "host"], "retreat from hosts")
        testbed.start_switch("s1")
        back_s = time.monotonic()
        for worker in workers:
            assert worker.until_later(back_s)["members"] == [0, 1, 2, 3]
        agree(workers)


def test_tables_that_a_foreign_client_deletes_come_back(make_testbed: MakeTestbed) -> None:
    testbed = make_testbed()
    with Workers(testbed, "tables", 4) as workers:
        asyncio.run(delete_all_tables(testbed))
        deleted_s = time.monotonic()
        for worker in workers:
            assert worker.until_later(deleted_s + 0.5)["members"] == [0, 1, 2, 3]
        agree(workers)


def test_controller_and_a_worker_killed_together(make_testbed: MakeTestbed) -> None:
    testbed = make_testbed()
    with Workers(testbed, "both", 4) as workers:
        workers[3].kill()
        testbed.restart_controller()
        for worker in workers[:3]:
            worker.until_members(0, 1, 2)
            worker.next()
        agree(workers[:3])


def paths_of(testbed: Testbed, job: str) -> list[str]:
    """Return the paths of a job's newest views, oldest first."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run_command(["job", "show", job, "--json", "--controller", testbed.controller_address])
    return [view["path"] for view in json.loads(out.getvalue())["views"]]


async def delete_all_tables(testbed: Testbed) -> None:
    """Become primary with a higher election id, delete what is there, and go away."""
    _, p4info = program_files("narrow")
    config = SwitchConfig(
        name=testbed.switch.name,
        address=testbed.switch_address,
        credentials=testbed.switch_operator.folder,
    )
    options = SwitchOptions(
        p4info=p4info, initial_election_id=20, channel_credentials=switch_credentials(config)
    )
    async with Switch("foreign", config.address, options) as switch:
        await switch.delete_all()
