# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The timeline of live transfers, as JSON lines."""

from __future__ import annotations

import errno
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from controller_fixtures import run
from fake_station import UPDATE_BYTES, FakeStation, stations, transfer_controller
from switchfold.controller.errors import ConfigError
from switchfold.controller.transfers.transfer_log import TransferLog
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb
from time_bound import until


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_every_event_has_a_line(tmp_path: Path):
    path = tmp_path / "transfers.jsonl"

    async def scenario() -> list[int]:
        async with (
            transfer_controller(tmp_path, transfers={"log": path}) as controller,
            stations(controller.address, 2, tau_max=0) as (server, (one, other)),
        ):
            await one.push(one.first_id)
            await one.granted()
            await other.push(other.first_id)
            await other.dropped()
            rate = pb.RateObserved(transfer_id=one.first_id, size_bytes=UPDATE_BYTES, seconds=1.25)
            await one.send(rate_observed=rate)
            await server.deliver(0, one.first_id)
            await server.deliver(1, other.first_id + 9, is_granted=False)
            place = controller.transfers.job("train").workers[1]
            await until(lambda: place.counts.ungranted == 1)
            worker = controller.transfers.job("train").workers[0]
            await until(lambda: worker.achieved_bits_per_s > 0)
            assert worker.achieved_bits_per_s == pytest.approx(80_000_000)
            assert worker.granted_bits_per_s == pytest.approx(100_000_000)
            return [one.first_id, other.first_id]

    first, second = run(scenario())
    lines = lines_of(path)
    times = [line.pop("time") for line in lines]
    assert times == sorted(times)
    assert all(line.pop("job") == "train" for line in lines)
    one = {"worker": 0, "server": 0, "transfer": first, "bytes": UPDATE_BYTES}
    two = {"worker": 1, "server": 0, "transfer": second, "bytes": UPDATE_BYTES}
    grant = {"sequence": 0, "delay": 0}
    events = [line["event"] for line in lines]
    assert sorted(events) == [
        *("committed", "delivered", "dropped", "granted"),
        *("observed", "requested", "requested", "ungranted"),
    ]
    for expected in (
        {"event": "requested"} | one,
        {"event": "granted", "begins": 0.0, "ends": 1.0} | one | grant,
        {"event": "requested"} | two,
        {"event": "dropped", "delay": 1, "reason": "too old"} | two,
        {"event": "observed", "seconds": 1.25} | one,
        {"event": "delivered"} | one | grant,
        {"event": "committed"} | one | grant,
        {"event": "ungranted", "worker": 1, "server": 0, "transfer": second + 9},
    ):
        assert expected in lines


def test_file_that_cannot_be_opened(tmp_path: Path):
    with pytest.raises(ConfigError, match="cannot write the transfer log"):
        TransferLog(tmp_path / "missing" / "transfers.jsonl")


def test_lines_are_added_to_a_file(tmp_path: Path):
    path = tmp_path / "transfers.jsonl"
    for number in range(2):
        log = TransferLog(path)
        log.note("granted", worker=number, server=None)
        log.close()
        log.note("granted", worker=9)
    assert [(line["worker"], "server" in line) for line in lines_of(path)] == [
        (0, False),
        (1, False),
    ]


def test_full_disk_ends_the_log_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.ERROR)

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path, transfers={"log": Path("/dev/full")}) as controller,
            stations(controller.address, 1) as (_, (worker,)),
        ):
            await push_two(worker)

    async def push_two(worker: FakeStation) -> None:
        for number in range(2):
            await worker.push(worker.first_id + number)
            await worker.granted()

    run(scenario())
    said = [text for text in caplog.messages if "transfer log" in text]
    assert said == [f"the transfer log /dev/full ends here: {os.strerror(errno.ENOSPC)}"]
