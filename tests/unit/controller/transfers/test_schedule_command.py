# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold schedule show`: text of at most 80 columns, JSON, and who may call it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from controller_fixtures import command, run
from fake_station import FakeStation, stations, transfer_controller
from switchfold.controller.api.operator_api import schedule_pb2 as pb
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.cli.schedule import command as schedule_command
from switchfold.controller.cli.schedule.text import chart_lines, head_lines
from switchfold.controller.errors import OperatorRefusedError
from switchfold.controller.server import ControllerServer
from switchfold.hostlib.credentials import Role
from time_bound import until

__all__ = ["command"]
Command = Callable[..., Coroutine[Any, Any, tuple[int, str, str]]]


async def let_something_happen(
    controller: ControllerServer, server: FakeStation, workers: list[FakeStation]
) -> None:
    """Of four updates one is applied, one under way, one dropped; one waits for server 9."""
    applied, under_way, dropped, parked = workers
    await applied.push(applied.first_id)
    await applied.granted()
    await server.deliver(0, applied.first_id)
    job = controller.transfers.job("train")
    await until(lambda: job.workers[0].counts.commits == 1)
    await under_way.push(under_way.first_id, version=1)
    await under_way.granted()
    await dropped.push(dropped.first_id)
    await dropped.dropped()
    await parked.push(parked.first_id, server_id=9)
    await until(lambda: bool(job.workers[3].records))


def test_text_and_json(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 4, tau_max=1) as (server, workers),
        ):
            await let_something_happen(controller, server, workers)
            at = ("--controller", controller.address, "--insecure")
            code, out, err = await command("schedule", "show", "train", *at)
            assert (code, err.count("error")) == (0, 0)
            assert max(map(len, out.splitlines())) <= 80
            assert "job train: tau_max 1; for" in out
            assert "1 wait, 1 under way; 3 decisions in 3 batches" in out
            assert "dropped: 1 too old" in out
            assert "server 9 is not registered" in " ".join(out.replace("│", " ").split())
            for word in ("pushes", "ungranted", "first open place", "# granted"):
                assert word in out
            code, out, _ = await command("schedule", "show", "train", "--json", *at)
            report = json.loads(out)
            assert (code, report["tau_max"], report["div_max"]) == (0, 1, None)
            assert [each["state"] for each in report["transfers"]] == [
                *("committed", "granted", "dropped", "parked")
            ]
            tallies = [(w["grants"], w["commits"], w["drops"]) for w in report["workers"]]
            assert tallies == [(1, 1, 0), (1, 0, 0), (0, 0, 1), (0, 0, 0)]
            assert [w["drop_ratio"] for w in report["workers"]] == [0, 0, 1, 0]
            assert [w["host"] for w in report["workers"]] == ["h2", "h3", "h4", "h5"]
            (place,) = report["servers"]
            assert (place["version"], place["open_sequence"], place["next_sequence"]) == (1, 1, 2)
            assert report["decide_s"] > 0
            code, _, err = await command("schedule", "show", "nobody", *at)
            assert code == 1
            assert "no job 'nobody' has registered workers or servers" in err
            assert "jobs that have: train" in err

    run(scenario())


def test_watch_shows_it_again(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1),
        ):
            rests: list[float] = []

            def rest(seconds: float) -> None:
                rests.append(seconds)
                if len(rests) == 3:
                    raise KeyboardInterrupt

            # Not `sleep` itself: other threads rest, too.
            monkeypatch.setattr(schedule_command, "time", SimpleNamespace(sleep=rest))
            monkeypatch.setattr(click, "clear", lambda: click.echo("CLEAR"))
            at = ("--controller", controller.address, "--insecure")
            code, out, _ = await command("schedule", "show", "train", "--watch", *at)
            assert code == 130
            assert out.count("CLEAR") == out.count("job train: no bound on delays") == 3

    run(scenario())


def test_read_only_token_is_enough(tmp_path: Path):
    tokens = {"token": "work", "operator_token": "rule", "read_only_token": "look"}

    async def scenario() -> None:
        async with transfer_controller(tmp_path, **tokens) as controller:
            server = FakeStation(controller.address, Role.SERVER, token="work")
            await server.register()
            address = controller.address

            def show(token: str) -> pb.ScheduleReport:
                return OperatorClient(address, token, insecure=True).show_schedule("train")

            for token in ("look", "rule"):
                assert (await asyncio.to_thread(show, token)).job == "train"
            with pytest.raises(OperatorRefusedError, match="not for calls that need"):
                await asyncio.to_thread(show, "work")
            await server.close()

    run(scenario())


def transfer(state: str, start_s: float, end_s: float, **fields: Any) -> pb.ScheduledTransfer:
    return pb.ScheduledTransfer(
        state=state, start_s=start_s, end_s=end_s, size_bytes=12_500_000, **fields
    )


def test_chart_has_the_plans_over_time():
    report = pb.ScheduleReport(
        transfers=[
            transfer("committed", -2.0, -1.0),
            transfer("granted", -1.0, 0.5, worker_id=1, sequence=1),
            transfer("withdrawn", 0.5, 1.0, worker_id=2, sequence=2),
            transfer("granted", 1.0, 2.6, worker_id=3, sequence=41),
            transfer("waiting", 0.0, 0.0),
        ]
    )
    axis, *rows, legend = chart_lines(report)
    assert axis[33:].split() == ["-2.0", "s", "now", "+2.6", "s"]
    bars = [row[33:] for row in rows]
    assert [bar.count(mark) for bar, mark in zip(bars, "=#x#", strict=True)] == [10, 15, 5, 16]
    assert bars[0].startswith("==========")
    assert bars[3].endswith("#" * 16)
    assert len(rows) == 4, "what only waits has no plan"
    assert all(len(line) <= 80 for line in (axis, *rows, legend))
    assert [row.split()[:3] for row in rows][3] == ["3", "0", "41"]


def test_nothing_granted_has_no_chart():
    assert chart_lines(pb.ScheduleReport(transfers=[transfer("waiting", 0.0, 0.0)])) == []
    assert head_lines(pb.ScheduleReport(job="a", tau_max=2, div_max=0.5))[0] == (
        "job a: tau_max 2, div_max 0.5; for 0 s"
    )
