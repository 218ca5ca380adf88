# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Raw frames of every outcome in a live testbed: counted by cause, told apart by doctor."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller_fixtures import FakeWorker, join_all, run
from live_testbed import LiveTestbed
from packet_frames import Job, contribution, to_switch
from switchfold.bmv2_topos import state
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.slots import wire
from switchfold.hostlib.slots.wire import Flag, Operation, Outcome
from time_bound import wait_until

COUNTED_S = 60.0
"""Within this time a packet is in the counters that commands show."""
JOBS = {"strict": False, "partial": True}
"""Name, and whether the job allows partial results."""


@pytest.fixture
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveTestbed]:
    root: Path = tmp_path_factory.mktemp("r")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "records_directory", lambda: root)
        # No worker of these tests is evicted because this process stood still.
        with LiveTestbed(3, controller_options=("--lease", "60")) as made:
            yield made


@pytest.fixture
def long_grace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveTestbed]:
    """A testbed whose controller waits for workers that lost their connection."""
    root: Path = tmp_path_factory.mktemp("r")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "records_directory", lambda: root)
        with LiveTestbed(
            3, controller_options=("--lease", "60", "--reconnect-grace", "600")
        ) as made:
            yield made


class Cables:
    """The hosts' ends of all links; hosts are numbered from 0."""

    def __init__(self, live: LiveTestbed) -> None:
        self._ends: list[tuple[socket.socket, tuple[str, int]]] = []
        for number in range(len(live.made.topology.hosts)):
            endpoint = live.made.endpoint(number)
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.bind(("127.0.0.1", endpoint.host_udp_port))
            self._ends.append((sock, ("127.0.0.1", endpoint.switch_udp_port)))

    def send(self, host: int, frame: bytes) -> None:
        sock, switch = self._ends[host]
        sock.sendto(frame, switch)

    def close(self) -> None:
        for sock, _ in self._ends:
            sock.close()


def lawful_frames(job: Job) -> list[tuple[Outcome, int, bytes]]:
    """Return (outcome, host, frame) that workers may send, in the order in which they must go."""
    first, second = contribution(job, 0), contribution(job, 1)
    third_round = contribution(job, 0, round=3)
    probe = contribution(job, 0, operation=Operation.PROBE)
    return [
        (Outcome.ABSORBED, 0, to_switch(job, 0, first)),
        (Outcome.DUPLICATE, 0, to_switch(job, 0, first)),
        (Outcome.MISMATCH, 1, to_switch(job, 1, contribution(job, 1, tensor_id=9))),
        (Outcome.COMPLETED, 1, to_switch(job, 1, second)),
        (Outcome.REPLAYED, 0, to_switch(job, 0, first)),
        (Outcome.NOTIFIED, 0, to_switch(job, 0, probe)),
        (Outcome.ABSORBED, 0, to_switch(job, 0, third_round)),
        (Outcome.STALE, 1, to_switch(job, 1, second)),
        (
            Outcome.MULTICAST,
            0,
            to_switch(job, 0, contribution(job, 0, operation=Operation.MULTICAST)),
        ),
    ]


def partial_frames(job: Job) -> list[tuple[Outcome, int, bytes]]:
    """Return the same for flushes, which need a job with partial results."""
    flush = contribution(job, 0, operation=Operation.FLUSH)
    return [
        (Outcome.FLUSH_IGNORED, 0, to_switch(job, 0, flush)),
        (Outcome.ABSORBED, 0, to_switch(job, 0, contribution(job, 0))),
        (Outcome.FLUSHED, 0, to_switch(job, 0, flush)),
    ]


def malformed_frames(job: Job) -> list[tuple[Outcome, int, bytes]]:
    """Return frames that no healthy worker sends."""
    good = contribution(job, 0)

    def changed(outcome: Outcome, **fields: int) -> tuple[Outcome, int, bytes]:
        return (outcome, 0, to_switch(job, 0, contribution(job, 0, **fields)))

    return [
        (Outcome.BAD_LENGTH, 0, to_switch(job, 0, good.tobytes()[:-4])),
        (Outcome.BAD_LENGTH, 0, to_switch(job, 0, good.tobytes() + bytes(4))),
        (Outcome.BAD_LENGTH, 0, to_switch(job, 0, good)[:-1]),
        (Outcome.BAD_CHECKSUM, 0, to_switch(job, 0, good, udp_fields={"checksum_error": 1})),
        changed(Outcome.BAD_VERSION, version=wire.WIRE_VERSION + 1),
        changed(Outcome.BAD_OPERATION, operation=99),
        changed(Outcome.FOREIGN_RESULT, operation=Operation.RESULT),
        changed(Outcome.BAD_OPERATION, operation=Operation.FLUSH),
        changed(Outcome.BAD_RANGE, range_end=0),
        changed(Outcome.BAD_RANGE, range_end=job.values_per_packet + 1),
        changed(Outcome.OFF_GRID, range_start=1),
        changed(Outcome.OFF_GRID, chunk_index=2),
        changed(Outcome.BAD_GENERATION, generation=job.generation - 1),
        changed(Outcome.BAD_SLOT, slot_index=job.slot_count),
        changed(Outcome.BAD_CONTRIBUTION, worker_bitmap=3),
        changed(Outcome.BAD_CONTRIBUTION, num_contributors=2),
        changed(Outcome.BAD_CONTRIBUTION, expected=1),
        changed(Outcome.WRITE_REFUSED, operation=Operation.WRITE),
        changed(Outcome.COLD, operation=Operation.READ),
        changed(Outcome.COLD, flags=Flag.TO_SERVER),
        (Outcome.FOREIGN_WORKER, 2, to_switch(job, 0, good)),
        (Outcome.FOREIGN_WORKER, 0, to_switch(job, 1, contribution(job, 1))),
    ]


def jobless_frames(job: Job) -> list[tuple[Outcome, int, bytes]]:
    """Return packets that belong to no job, so that only the switch counts them."""
    good = contribution(job, 0)
    return [
        (Outcome.BAD_LENGTH, 0, to_switch(job, 0, b"short")),
        (Outcome.FOREIGN_JOB, 2, to_switch(job, 0, contribution(job, 0, job_id=0xFFF0))),
        (Outcome.BAD_LENGTH, 2, to_switch(job, 0, good)[:60]),
    ]


def nonzero(counts: dict[str, Any]) -> Counter[str]:
    return Counter({name: count["packets"] for name, count in counts.items() if count["packets"]})


def expected(frames: list[tuple[Outcome, int, bytes]]) -> Counter[str]:
    return Counter(outcome.name.lower() for outcome, _, _ in frames)


def send_all(
    live: LiveTestbed, cables: Cables, frames: list[tuple[Outcome, int, bytes]]
) -> Counter[str]:
    """Send frames one after the other, each once the one before is counted; return the increase."""
    before = nonzero(live.show("switch", "show", "s1")["counts"])
    for number, (_, host, frame) in enumerate(frames, before.total() + 1):
        cables.send(host, frame)
        wait_until(
            lambda number=number: (
                nonzero(live.show("switch", "show", "s1")["counts"]).total() == number
            ),
            f"{number} packets counted",
            COUNTED_S,
        )
    return nonzero(live.show("switch", "show", "s1")["counts"]) - before


async def start_jobs(address: str) -> tuple[dict[str, Job], list[FakeWorker]]:
    jobs: dict[str, Job] = {}
    all_workers: list[FakeWorker] = []
    for name, allow_partial in JOBS.items():
        straggler = pb.Straggler(deadline_s=60.0 if allow_partial else 0.0)
        workers = await join_all(address, 2, job_name=name, straggler=straggler)
        join_replies = [await worker.join_reply() for worker in workers]
        view = join_replies[0].view
        jobs[name] = Job(
            job_id=view.trees[0].tree_id,
            generation=view.generation,
            values_per_packet=join_replies[0].values_per_packet,
            slot_count=view.trees[0].slot_count,
            allow_partial=allow_partial,
        )
        all_workers += workers
    return jobs, all_workers


def test_every_outcome_is_counted_by_cause_and_shown(live: LiveTestbed) -> None:
    cables = Cables(live)

    async def scenario() -> None:
        jobs, workers = await start_jobs(live.made.controller_address)
        await asyncio.to_thread(check, jobs)
        for worker in workers:
            await worker.close()

    def check(jobs: dict[str, Job]) -> None:
        strict = lawful_frames(jobs["strict"]) + malformed_frames(jobs["strict"])
        partial = partial_frames(jobs["partial"])
        jobless = jobless_frames(jobs["strict"])
        everything = strict + partial + jobless
        never_at_a_root = {
            Outcome.NONE,
            Outcome.SENT_UP,
            Outcome.RESENT,
            Outcome.RESULT_STORED,
            Outcome.RESULT_IGNORED,
            Outcome.RELAYED,
            Outcome.MULTICAST_REFUSED,
        }
        of_hot_rows = {Outcome.VALUES_READ, Outcome.VALUES_WRITTEN, Outcome.VALUES_KEPT}
        assert {outcome for outcome, _, _ in everything} == (
            set(Outcome) - never_at_a_root - of_hot_rows
        )
        assert send_all(live, cables, everything) == expected(everything)
        assert nonzero(live.show("job", "show", "strict")["counts"]) == expected(strict)
        assert nonzero(live.show("job", "show", "partial")["counts"]) == expected(partial)
        code, text, _ = live.command("job", "show", "strict")
        assert code == 0
        assert all(outcome.name.lower() in text for outcome, _, _ in strict)

    try:
        run(scenario())
    finally:
        cables.close()


def test_doctor_tells_packets_apart(live: LiveTestbed) -> None:
    cables = Cables(live)
    symptoms = {
        "foreign": {Outcome.FOREIGN_WORKER, Outcome.FOREIGN_RESULT},
        "version": {Outcome.BAD_VERSION},
        "checksum": {Outcome.BAD_CHECKSUM},
        "generation": {Outcome.BAD_GENERATION},
        "malformed": {
            Outcome.BAD_LENGTH,
            Outcome.BAD_OPERATION,
            Outcome.BAD_RANGE,
            Outcome.OFF_GRID,
            Outcome.BAD_SLOT,
            Outcome.BAD_CONTRIBUTION,
            Outcome.WRITE_REFUSED,
        },
    }

    async def scenario() -> None:
        jobs, workers = await start_jobs(live.made.controller_address)
        await asyncio.to_thread(check, jobs["strict"])
        for worker in workers:
            await worker.close()

    def check(job: Job) -> None:
        frames = malformed_frames(job)
        shown: set[str] = set()
        for symptom, outcomes in symptoms.items():
            send_all(live, cables, [frame for frame in frames if frame[0] in outcomes])
            code, found = live.doctor()
            shown.add(symptom)
            assert code == 0, "remarks are no failures"
            remarks = {name for name, (status, _) in found.items() if status == "warn"}
            for subject in ("job strict", "switch s1"):
                wanted = {f"{subject} {name}" for name in shown}
                assert {name for name in remarks if name.startswith(subject)} == wanted
            text = found[f"job strict {symptom}"][1]
            assert all(outcome.name.lower() in text for outcome in outcomes)
            assert found["job partial packets"][0] == "ok"

    try:
        run(scenario())
    finally:
        cables.close()


def test_doctor_on_foreign_packets_without_a_job(live: LiveTestbed) -> None:
    cables = Cables(live)
    job = Job(job_id=7, generation=1, values_per_packet=32)
    try:
        send_all(live, cables, [(Outcome.FOREIGN_JOB, 2, to_switch(job, 2, contribution(job, 2)))])
        code, found = live.doctor()
    finally:
        cables.close()
    assert code == 0
    status, text = found["switch s1 foreign"]
    assert status == "warn"
    assert "1 of 1 packets so far (foreign_job 1)" in text


def test_worker_that_dies_is_named_to_the_others(live: LiveTestbed) -> None:
    async def scenario() -> None:
        first, second = await join_all(live.made.controller_address, 2, min_workers=2)
        await first.join_reply()
        await second.join_reply()
        await second.close()
        assert "worker 1" in (await first.receive()).job_ended.reason
        await first.close()

    run(scenario())


def test_worker_that_dies_is_named_by_doctor(long_grace: LiveTestbed) -> None:
    async def scenario() -> None:
        first, second = await join_all(long_grace.made.controller_address, 2)
        await first.join_reply()
        await second.join_reply()
        await second.close()
        found: dict[str, tuple[str, str]] = {}

        def is_named() -> bool:
            code, verdicts = long_grace.doctor()
            found.update(verdicts)
            return code == 1

        await asyncio.to_thread(wait_until, is_named, "a verdict")
        assert found["job train"][0] == "fail"
        assert "worker 1 has no session" in found["job train"][1]
        await first.close()

    run(scenario())
