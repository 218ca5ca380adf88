# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Both fabrics with their workers, which sum by one contender at a time, under one condition."""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TextIO, final

from benchmarks.support.processor import read_times
from benchmarks.transport.conditions import LOSSLESS, LossCondition
from benchmarks.transport.contenders import TransportContender, places
from benchmarks.transport.fabrics import (
    OTHERS,
    SERVER,
    WORKERS,
    PlainFabric,
    adder_name,
    fabric,
    host_named,
    impair_workers,
    module_environment,
    start_module,
)
from benchmarks.transport.readings import LinkReading
from benchmarks.transport.worker import SessionPlan, WorkerPlan
from switchfold.bmv2_topos import Host, Testbed
from switchfold.bmv2_topos.errors import TestbedError
from switchfold.bmv2_topos.processes.processes import ManagedProcess, log_tail

_READY_S: Final = 120.0
_AT_A_SWITCH: Final = {"SWITCHFOLD_INGRESS_PORT", "SWITCHFOLD_MAC"}
_LOOK_S: Final = 1.0
"""Pause between two looks for workers that have ended."""
_SPARE_S: Final = 30.0
"""How much longer than its timeout a sum may take to fail."""


class TransportRunError(Exception):
    """A worker ended, or workers hold different sums: nothing of this run counts."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """One sum that all workers have verified."""

    seconds: float
    """From the first worker's start to the last one's end."""
    coverage: float
    """Share of all contributions that are in the sum."""
    link_bytes: int
    """Frames on the links of the workers and of the server, both directions, as far as they got."""
    busiest_s: float
    """Time that the link direction with most bytes for its rate needs for them."""
    seen: int
    """Packets that came to a place of loss."""
    lost: int
    """Those of them that were lost."""
    sent: int
    """Contributions that were sent by UDP, without those that were sent again."""
    sent_again: int
    flushed: int
    busy_share: float
    """Used share of all processors' time."""
    traffic_bits_per_s: float
    """Rate of other traffic towards the faster of its two hosts."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large a run is."""

    elements: int
    rate_bits_per_s: int
    """Of each host's link."""
    tolerance: float
    timeout_s: float
    """Of one sum."""


@dataclass
class _Workers:
    """The workers of one fabric, and how to tell them what to do."""

    testbed: Testbed
    processes: list[ManagedProcess]
    lines: list[TextIO]

    def say(self, **request: Any) -> None:
        for line in self.lines:
            line.write(json.dumps(request) + "\n")
            line.flush()

    def answers(self) -> list[dict[str, Any]]:
        """Return what each worker says; TransportRunError if one has ended or says nothing."""
        found: list[dict[str, Any]] = []
        for number, line in enumerate(self.lines):
            try:
                text = line.readline()
            except TimeoutError:
                text = ""
            if not text:
                log = log_tail(self.processes[number].log)
                raise TransportRunError(f"worker {number} ended or says nothing:\n{log}")
            found.append(json.loads(text))
        return found


@final
class TransportRig:
    """The testbeds that some contenders need, up until the end of a `with` block."""

    def __init__(self, contenders: Sequence[TransportContender], size: Size) -> None:
        self._contenders = {each.name: each for each in contenders}
        self._size = size
        self._topology = fabric(size.rate_bits_per_s)
        self._stack = ExitStack()
        self._workers: dict[bool, _Workers] = {}  # by whether the fabric is plain
        self._plain: PlainFabric | None = None
        self._control = ""
        """Congestion control of connections that workers make now; "": the default."""
        self._traffic: list[ManagedProcess] = []
        self.condition = LOSSLESS

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _open(self) -> None:
        name = f"tp{os.getpid()}"
        mine = list(self._contenders.values())
        if with_switches := [each for each in mine if not each.is_on_plain_fabric]:
            testbed = self._stack.enter_context(Testbed(self._topology, name=f"{name}s"))
            plans = [
                self._session(f"switches-{_tolerance_name(tolerance)}", tolerance, testbed)
                for tolerance in _job_tolerances(with_switches)
            ]
            self._start_workers(testbed, with_switches, plans, is_plain=False)
        if plain := [each for each in mine if each.is_on_plain_fabric]:
            self._open_plain(plain, f"{name}p")

    def _open_plain(self, contenders: list[TransportContender], name: str) -> None:
        adders: list[str] = []
        plans: list[tuple[str, float | None, dict[str, Any]]] = []
        served: dict[str, Any] = {"switch": adder_name(SERVER)}
        for place, hosts, at in (
            ("server", (SERVER,), served),
            ("shards", WORKERS, {"path": "transposed"}),
        ):
            here = [each for each in contenders if each.place == place]
            adders += hosts if here else ()
            plans += [
                (f"{place}-{_tolerance_name(tolerance)}", tolerance, at)
                for tolerance in _job_tolerances(here)
            ]
        plain = self._stack.enter_context(PlainFabric(self._topology, adders, name=name))
        self._plain = plain
        if "tcp-server" in places(contenders):
            host = host_named(self._topology, SERVER)
            words = [host.address, str(len(WORKERS)), str(self._size.timeout_s), "{ready_fd}"]
            start_module(
                *(plain.testbed, "tcp-server", "tcp_server", words),
                node=host,
                environment=module_environment(),
                ready_timeout_s=_READY_S,
            )
        sessions = [
            self._session(job, tolerance, plain.testbed, **at) for job, tolerance, at in plans
        ]
        self._start_workers(plain.testbed, contenders, sessions, is_plain=True)

    def _session(
        self, job: str, tolerance: float | None, testbed: Testbed, **at: Any
    ) -> SessionPlan:
        return SessionPlan(
            job=job,
            token=secrets.token_hex(16),
            tolerance=tolerance,
            controller=testbed.controller_address,
            **at,
        )

    def _start_workers(
        self,
        testbed: Testbed,
        contenders: list[TransportContender],
        sessions: list[SessionPlan],
        *,
        is_plain: bool,
    ) -> None:
        folder = testbed.run_directory
        hosts = [host_named(self._topology, name) for name in WORKERS]
        plan = WorkerPlan(
            socket=str(folder / "rig.sock"),
            workers=tuple(host.address for host in hosts),
            server=host_named(self._topology, SERVER).address,
            elements=self._size.elements,
            timeout_s=self._size.timeout_s,
            sessions=tuple(sessions),
            contenders={each.name: job_of(each) for each in contenders},
            places={each.name: each.place for each in contenders},
            tolerances={each.name: each.tolerance for each in contenders},
        )
        plan.write(folder / "worker.json")
        listener = self._stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        listener.bind(plan.socket)
        listener.listen()
        listener.settimeout(_LOOK_S)
        processes = [
            start_module(
                *(
                    testbed,
                    f"worker-{number}",
                    "worker",
                    [str(folder / "worker.json"), f"{number}"],
                ),
                node=host,
                environment={**_place(testbed, host, is_plain=is_plain), **module_environment()},
            )
            for number, host in enumerate(hosts)
        ]
        lines: dict[int, TextIO] = {}
        deadline_s = time.monotonic() + _READY_S
        while len(lines) < len(hosts):
            try:
                connection, _ = listener.accept()
            except TimeoutError as exc:
                ended = [each for each in processes if each.popen.poll() is not None]
                if not ended and time.monotonic() < deadline_s:
                    continue
                what = "a worker ended" if ended else f"workers are not ready after {_READY_S:g} s"
                logs = "\n".join(log_tail(process.log) for process in ended or processes)
                raise TransportRunError(f"{what}:\n{logs}") from exc
            self._stack.enter_context(connection)
            connection.settimeout(self._size.timeout_s + _SPARE_S)
            line = self._stack.enter_context(connection.makefile("rw", encoding="utf-8"))
            lines[json.loads(line.readline())["worker"]] = line
        self._workers[is_plain] = _Workers(
            testbed, processes, [lines[number] for number in range(len(hosts))]
        )

    def set_condition(self, condition: LossCondition, *, seed: int) -> None:
        """Impair the links of all workers, and start or end other traffic."""
        for process in self._traffic:
            process.stop()
        self._traffic.clear()
        for workers in self._workers.values():
            impair_workers(workers.testbed, condition, seed=seed)
            if condition.has_traffic:
                self._start_traffic(workers.testbed)
        self.condition = condition

    def _start_traffic(self, testbed: Testbed) -> None:
        """Let two hosts listen, then send to each other."""
        hosts = [host_named(self._topology, name) for name in OTHERS]
        for is_sender in (False, True):
            for host, other in zip(hosts, hosts[::-1], strict=True):
                words = [host.address, other.address if is_sender else "", "{ready_fd}"]
                self._traffic.append(
                    start_module(
                        *(testbed, f"traffic-{host.name}-{is_sender:d}", "traffic", words),
                        node=host,
                        environment=module_environment(),
                        ready_timeout_s=_READY_S,
                    )
                )

    def run(self, name: str, number: int) -> Round | str:
        """Sum once; return the round, or why the contender failed.

        Raises TransportRunError if a sum is wrong or a worker has ended.
        """
        contender = self._contenders[name]
        workers = self._workers[contender.is_on_plain_fabric]
        self._use_control(contender)
        workers.say(contender=name, round=number)
        workers.answers()
        before, times = LinkReading.of(workers.testbed), read_times([])
        workers.say(go=True)
        answers = workers.answers()
        times_after, after = read_times([]), LinkReading.of(workers.testbed)
        if failed := [each["failed"] for each in answers if "failed" in each]:
            workers.say(forget=name)
            workers.answers()
            return failed[0]
        if len({each["checksum"] for each in answers}) != 1:
            raise TransportRunError(f"{name}: workers hold different sums of round {number}")
        if excess := answers[0]["excess"]:
            raise TransportRunError(
                f"{name}: the sum of round {number} lacks {excess} contributions more than are"
                f" tolerated; its coverage is {answers[0]['coverage']:.4f}"
            )
        seconds = max(a["ended_s"] for a in answers) - min(a["began_s"] for a in answers)
        counts = Counter[str]()
        for answer in answers:
            counts.update(answer["counts"])
        busy, total = times_after.busy_s - times.busy_s, times_after.total_s - times.total_s
        return Round(
            seconds=seconds,
            coverage=answers[0]["coverage"],
            link_bytes=after.own_bytes - before.own_bytes,
            busiest_s=after.busiest_s(before),
            seen=after.seen - before.seen,
            lost=after.lost - before.lost,
            sent=counts["value_packets_sent"],
            sent_again=counts["value_packets_retransmitted"],
            flushed=counts["value_packets_flushed"],
            busy_share=busy / total if total else 0.0,
            traffic_bits_per_s=8 * after.most_traffic(before) / seconds,
        )

    def _use_control(self, contender: TransportContender) -> None:
        """Let connections that a contender's workers make use its congestion control."""
        if contender.place == "hosts" and contender.congestion_control != self._control:
            assert self._plain is not None, "workers add among themselves on the plain fabric"
            self._plain.use_congestion_control(contender.congestion_control)
            self._control = contender.congestion_control


def job_of(contender: TransportContender) -> str:
    """Return the job by which a contender sums; "" by TCP."""
    if not contender.has_datagrams:
        return ""
    return f"{contender.place}-{_tolerance_name(contender.tolerance)}"


def _place(testbed: Testbed, host: Host, *, is_plain: bool) -> dict[str, str]:
    """Return what a worker is told of its place.

    On a plain fabric nothing of the switch next to it, which does not add: the controller lists it
    behind a router.
    """
    place = testbed.endpoint(host.worker_id).environment("none")
    return {name: text for name, text in place.items() if not (is_plain and name in _AT_A_SWITCH)}


def _tolerance_name(tolerance: float | None) -> str:
    return "repair" if tolerance is None else "tolerant"


def _job_tolerances(contenders: Sequence[TransportContender]) -> list[float | None]:
    """Return the tolerances of the jobs that contenders of one place need.

    Those that tolerate something share a job: each sum says what it tolerates.
    """
    given = [each.tolerance for each in contenders]
    stated = [each for each in given if each is not None]
    return [None] * (None in given) + stated[:1]


__all__ = ["Round", "Size", "TestbedError", "TransportRig", "TransportRunError", "job_of"]
