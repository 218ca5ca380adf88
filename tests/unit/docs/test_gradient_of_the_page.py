# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/life_of_a_gradient.md against a run of its example: order of calls, and numbers."""

from __future__ import annotations

import re
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gradient_page import PAGE, ROOT, STEPS, WORDS, Name, integer, named, table
from loopback import LOOPBACK
from switchfold.controller.config import ControllerConfig
from switchfold.hostlib.engine.allreduce_task import POSITION_BITS
from switchfold.hostlib.options import Precision, SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots import wire
from switchfold.hostlib.slots.switch_reducer import split_slots
from switchfold.hostlib.slots.wire import Outcome
from switchfold.hostlib.summation import exact, exact_chunks, quantization
from switchfold.hostlib.summation.chunks import TensorChunks
from switchfold.hostlib.transports.udp import UdpTransport
from udp_switch import UdpSwitch

WORKERS, ELEMENTS, VALUES = 4, 1000, wire.VALUES_PER_PACKET_WIDE
SLOTS = ControllerConfig.default_slots
EXPONENT_SLOTS, VALUE_SLOTS = split_slots(SLOTS)
FIRST_ELEMENTS = (0.5, 0.25, -1.5, 2.0)
PATIENT = SessionOptions(initial_rto_s=20.0, min_rto_s=20.0, max_rto_s=20.0)
"""Timers send nothing again, however slow the machine is."""
PRECISIONS: tuple[Precision, ...] = ("block", "exact")


def arrays() -> list[NDArray[np.float32]]:
    """The example: its largest magnitudes lie between 2 and 4 in each chunk."""
    normal = [np.random.default_rng(i).standard_normal(ELEMENTS) for i in range(WORKERS)]
    result = [values.astype(np.float32) for values in normal]
    for values, first in zip(result, FIRST_ELEMENTS, strict=True):
        values[0] = first
    return result


def initial_chunks() -> int:
    """Return the window of a new stream."""
    source = (ROOT / "hostlib/native/slots/stream.c").read_text(encoding="utf-8")
    found = re.search(r"^#define INITIAL_CHUNKS (\d+)u", source, re.MULTILINE)
    assert found is not None
    return int(found[1])


@dataclass(frozen=True, kw_only=True)
class Run:
    """The example, run through the fake switch."""

    results: list[NDArray[Any]]
    calls: dict[str, list[Name]]
    """What worker 3 called, by thread."""
    switch: UdpSwitch
    statistics: dict[str, int | float]


def run_example(precision: Precision) -> Run:
    calls: dict[str, list[Name]] = {}

    def record(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            code = frame.f_code
            thread = threading.current_thread().name
            calls.setdefault(thread, []).append((code.co_filename, code.co_qualname))

    transports = [UdpTransport(LOOPBACK) for _ in range(WORKERS)]
    switch = UdpSwitch(transports, values_per_packet=VALUES, slot_count=SLOTS)
    with ExitStack() as stack:
        stack.enter_context(switch.running())
        sessions: list[Session] = []
        for worker_id, transport in enumerate(transports):
            if worker_id == WORKERS - 1:
                threading.setprofile(record)
            try:
                session = Session.direct(switch.job_view(worker_id), transport, PATIENT)
            finally:
                threading.setprofile(None)
            sessions.append(stack.enter_context(session))
        *others, (last, array) = zip(sessions, arrays(), strict=True)
        futures = [session.allreduce(array, precision=precision) for session, array in others]
        profile = sys.getprofile()
        sys.setprofile(record)
        try:
            results = [last.allreduce(array, precision=precision).result(60)]
        finally:
            sys.setprofile(profile)
        results += [future.result(60) for future in futures]
        statistics = last.statistics
    below = {filename: Path(filename).resolve() for seq in calls.values() for filename, _ in seq}
    return Run(
        results=results,
        calls={
            thread: [
                (str(below[filename].relative_to(ROOT)), name)
                for filename, name in seq
                if below[filename].is_relative_to(ROOT)
            ]
            for thread, seq in calls.items()
        },
        switch=switch,
        statistics=statistics,
    )


@pytest.fixture(scope="module")
def runs() -> dict[Precision, Run]:
    return {precision: run_example(precision) for precision in PRECISIONS}


def code_of(name: Name) -> Name:
    """Return what runs for a name: of a class, its constructor."""
    path, last = name[0], name[1].rsplit(".", 1)[-1]
    return (path, f"{name[1]}.__init__") if last[0].isupper() else name


def assert_in_order(names: list[Name], calls: list[Name], start: Name | None = None) -> None:
    """Each name is called after the one before it."""
    assert set(map(code_of, names)) <= set(calls), "these are not called"
    place = calls.index(start) if start is not None else 0
    for name in map(code_of, names):
        assert name in calls[place:], f"{name} is not called after the names before it"
        place = calls.index(name, place) + 1


def test_steps_in_python_run_in_this_order(runs: dict[Precision, Run]) -> None:
    calls = runs["block"].calls
    threads: dict[str, list[Name]] = {"caller": [], "io": []}
    for step in STEPS:
        # Calls within the C library are not seen here.
        names = [name for name in step.names if name[0].endswith(".py")]
        if not names:
            continue
        if step.title.endswith("then the caller's thread."):
            threads["caller"].append(names.pop())
        is_io = "`switchfold-io`" in step.title
        threads["io" if is_io else "caller"] += names
    assert len(threads["caller"]) > 5
    assert len(threads["io"]) > 15
    assert_in_order(threads["caller"], calls[threading.current_thread().name])
    # Before the tensor came, the thread had turns of its own.
    queue = ("hostlib/engine/view_runner.py", "ViewRunner.queue")
    first, *rest = threads["io"]
    assert first == ("hostlib/engine/engine.py", "Engine._take_inbox")
    assert rest[0] == queue
    assert first in calls["switchfold-io"]
    assert_in_order(rest, calls["switchfold-io"], start=queue)


def test_steps_of_the_exact_mode_run_in_this_order(runs: dict[Precision, Run]) -> None:
    section = PAGE.partition("## The exact mode\n")[2].partition("\n\nWithout")[0]
    names = named(section)
    assert len(names) > 8
    # Calls within the C library are not seen here.
    in_python = [name for name in names if name[0].endswith(".py")]
    assert_in_order(in_python, runs["exact"].calls["switchfold-io"])


def test_all_workers_get_the_sum(runs: dict[Precision, Run]) -> None:
    true = np.sum([array.astype(np.float64) for array in arrays()], axis=0)
    for precision, run in runs.items():
        assert len({result.tobytes() for result in run.results}) == 1
        assert run.results[0][0] == sum(FIRST_ELEMENTS) == 1.25
        bound = quantization.error_bound(2, WORKERS, np.float32) if precision == "block" else 0.0
        half_ulp = np.spacing(np.abs(true).astype(np.float32)).astype(np.float64)
        assert (np.abs(run.results[0] - true) <= bound + half_ulp).all()


def test_numbers_of_both_precisions_are_those_of_a_run(runs: dict[Precision, Run]) -> None:
    rows = {name: cells for name, *cells in table("example")}
    for column, precision in enumerate(PRECISIONS):
        run = runs[precision]
        told = {name: integer(cells[column]) for name, cells in rows.items()}
        exponents = int(run.statistics["exponent_packets_sent"])
        values = int(run.statistics["value_packets_sent"])
        lanes = 1 if precision == "block" else exact_layout_lanes()
        size = wire.datagram_bytes(VALUES)
        completed = run.switch.outcomes[Outcome.COMPLETED]
        absorbed = run.switch.outcomes[Outcome.ABSORBED]
        assert list(told.values()) == [
            exponents,
            VALUES // lanes,
            values,
            (exponents + values) * size,
            completed + absorbed,
            absorbed,
            completed,
            completed * WORKERS,
        ]
        assert values == -(-ELEMENTS // (VALUES // lanes))


def exact_layout_lanes() -> int:
    """Lanes of a value of the example."""
    ranges = np.max([exact.group_ranges(array[None]) for array in arrays()], axis=0)
    layout = exact_chunks.ExactLayout(
        ELEMENTS, VALUES, dtype="float32", num_workers=WORKERS, ranges=ranges.reshape(-1)
    )
    (group,) = layout.groups
    assert not group["limbs"]["has_specials"]
    return int(group["limbs"]["count"])


def test_header_is_that_of_the_packet(runs: dict[Precision, Run]) -> None:
    switch = runs["block"].switch
    packets = switch.unpacked(switch.contributions)["header"]
    is_last = (packets["worker_id"] == 2) & (packets["operation"] == 1) & (packets["flags"] == 16)
    (header,) = np.unique(packets[is_last])
    told: dict[str, int] = {}
    for fields, values, _ in table("header"):
        names = re.findall(r"`(\w+)`", fields)
        told |= dict(zip(names, map(int, values.split(", ")), strict=True))
    assert wire.HEADER_DTYPE.names is not None
    assert set(wire.HEADER_DTYPE.names) - told.keys() == {"priority", "expected"}
    assert told == {name: int(header[name]) for name in told}
    assert f"job {header['job_id']}, and" in WORDS
    assert f"its **generation**: {header['generation']}." in WORDS
    assert header["flags"] == wire.Flag.LAST
    assert header["exponent"] == 2 + wire.EXPONENT_BIAS


def test_lanes_are_those_of_the_packets(runs: dict[Precision, Run]) -> None:
    switch = runs["block"].switch
    packets = switch.unpacked(switch.contributions)
    header = packets["header"]
    is_first = (header["operation"] == wire.Operation.AGGREGATE_ADD) & (header["chunk_index"] == 0)
    total = 0
    for worker in range(WORKERS):
        (sent,) = set(packets[is_first & (header["worker_id"] == worker)]["values"][:, 0].tolist())
        assert f"{sent:,} on worker {worker}" in WORDS
        total += sent
    assert f"lane 0 is {total:,}." in WORDS
    assert f"{total:,} * 2^-26 = {total * 2.0**-26}" in WORDS
    assert f"gives {total * 2.0**-26 / WORKERS}." in WORDS


def test_results_are_as_told(runs: dict[Precision, Run]) -> None:
    for run in runs.values():
        answers = run.switch.unpacked(run.switch.answers)["header"]
        assert set(answers["operation"]) == {wire.Operation.RESULT}
        assert set(answers["worker_bitmap"]) == {(1 << WORKERS) - 1}
        assert set(answers["num_contributors"]) == {WORKERS}
    assert "operation 5 (RESULT), `worker_bitmap` 15, `num_contributors` 4." in WORDS
    assert "children (bitmap 15)" in WORDS
    assert "completes the bitmap 15" in WORDS


def test_slots_of_the_packets_are_as_told(runs: dict[Precision, Run]) -> None:
    switch = runs["block"].switch
    header = switch.unpacked(switch.contributions)["header"]
    is_value = header["operation"] == wire.Operation.AGGREGATE_ADD
    assert set(header["round"]) == {1}
    assert set(header["slot_index"][~is_value]) == {0}
    slots = sorted(set(map(int, header["slot_index"][is_value])))
    assert "slots {}, {} and {}, round 1.".format(*slots) in WORDS
    assert slots == list(range(EXPONENT_SLOTS, EXPONENT_SLOTS + 3))
    row = slots[2] << 1 | 1
    assert f"slot {slots[2]} in round 1 is row ({slots[2]} << 1) | 1 = {row}" in WORDS


def test_sizes_are_the_codes() -> None:
    options = SessionOptions()
    chunks = TensorChunks(arrays()[0], VALUES)
    last = ELEMENTS - VALUES * (chunks.num_chunks - 1)
    size = wire.datagram_bytes(VALUES)
    udp = size + wire.UDP_BYTES
    forward, _, _ = quantization.scales(np.array([2], np.int32), WORKERS, np.float32)
    sum_shift = int(np.log2(forward[0]))
    most = exact_chunks.SMALL_LANES // exact.full_lanes("float32", WORKERS)
    assert exact_chunks.is_small(most, "float32", WORKERS, None)
    assert not exact_chunks.is_small(most + 1, "float32", WORKERS, None)
    listed = "{}, {}, {} and {}".format(*FIRST_ELEMENTS)
    for text in (
        f"Element 0 is {listed} on workers 0 to {WORKERS - 1}, so its sum is {sum(FIRST_ELEMENTS)}",
        f"row of {VALUES} lanes",
        f"each run of {VALUES} values the largest magnitude",
        f"upper {32 - POSITION_BITS} bits",
        f"In: {ELEMENTS:,} values",
        f"Out: {chunks.num_chunks} exponents",
        f"Here all {chunks.num_chunks} leave together",
        f"takes all {chunks.num_chunks} datagrams",
        f"elements {ELEMENTS - last} to {ELEMENTS - 1} |",
        f"E + {wire.EXPONENT_BIAS}",
        f"stays within 2^{quantization.LANE_BITS}",
        f"Out: {WORKERS} frames, one to each worker",
        f"`num_contributors` is {WORKERS}.",
        f"Each has an array of {ELEMENTS:,} float32 values",
        f"A packet has {VALUES} **lanes**",
        f"has {SLOTS} slots, the controller's default: the first {EXPONENT_SLOTS} carry exponents,"
        f" the other {VALUE_SLOTS} carry values",
        f"{chunks.num_chunks} chunks, one for each packet, of {VALUES}, {VALUES} and {last} values",
        f"padded with {VALUES - last} zeros",
        f"those of {VALUES} chunks. Here E = 2",
        f"30 - E - ceil(log2 n) = {sum_shift}",
        f"factors 2^{sum_shift} and 2^-{sum_shift}",
        f"rint(x * 2^{sum_shift})",
        f"slot k mod {VALUE_SLOTS} in **round** k // {VALUE_SLOTS} + 1",
        f"the first value slot is slot {EXPONENT_SLOTS}",
        f"Chunk {VALUE_SLOTS} takes slot {EXPONENT_SLOTS} again, in round 2",
        f"{initial_chunks()} at first, at most {options.window}",
        f"datagram of {size:,} bytes",
        f"header of {wire.HEADER_BYTES} bytes and {VALUES} big-endian int32 lanes",
        f"frames of {wire.frame_bytes(VALUES):,} bytes",
        f"UDP port {wire.UDP_PORT}",
        f"(IPv4 {udp + wire.IPV4_BYTES:,} and UDP {udp:,} bytes)",
        f"`chunk_index` * {VALUES}",
        f"up to {options.batch} datagrams",
        f"each group of {exact_chunks.GROUP_VALUES:,} values",
        f"all are finite: {exact.RANGE_LANES} lanes",
        f"limbs of {exact.limb_bits(WORKERS)} bits, here {exact_layout_lanes()}",
        f"at most {most} float32 values",
    ):
        assert text in WORDS, text
    assert quantization.error_bound(2, WORKERS, np.float32) == 2.0**-25
    assert "error of a sum is at most 2^-25" in WORDS


def test_example_has_the_exponents_that_the_page_says() -> None:
    exponents = [
        [
            quantization.chunk_exponents(values[start : start + VALUES][None])[0]
            for values in arrays()
        ]
        for start in range(0, ELEMENTS, VALUES)
    ]
    assert [max(chunk) for chunk in exponents] == [2, 2, 2]
