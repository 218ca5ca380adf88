# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the messages about one update take beside the update itself."""

from __future__ import annotations

from pathlib import Path

from controller_fixtures import command, run
from fake_station import stations, transfer_controller
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb

__all__ = ["command"]
SMALL_BYTES = 65_536
PREFIX_BYTES = 5
"""Of each message in a gRPC stream."""


def test_messages_about_an_update_take_less_than_a_hundredth_of_a_small_one(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 2) as (server, workers),
        ):
            worker = workers[1]
            fields = {"transfer_id": worker.first_id, "size_bytes": SMALL_BYTES, "norm": 1.5}
            asked = pb.StationMessage(
                requested=pb.TransferRequested(**fields, sum_key=(1 << 32) - 1)
            )
            await worker.send(requested=asked.requested)
            granted, expected = await worker.receive(), await server.receive()
            assert granted.HasField("granted")
            assert expected.HasField("expected")
            reports = [
                pb.StationMessage(
                    delivered=pb.TransferDelivered(
                        worker_id=1, transfer_id=worker.first_id, is_granted=True
                    )
                ),
                pb.StationMessage(
                    committed=pb.UpdatesCommitted(version=1 << 40, next_sequence=1 << 40)
                ),
                pb.StationMessage(
                    rate_observed=pb.RateObserved(
                        transfer_id=worker.first_id,
                        size_bytes=SMALL_BYTES,
                        seconds=0.1,
                        network_wait_s=0.1,
                    )
                ),
            ]
            messages = [asked, granted, expected, *reports]
            total = sum(message.ByteSize() + PREFIX_BYTES for message in messages)
            assert total < SMALL_BYTES / 100

    run(scenario())
