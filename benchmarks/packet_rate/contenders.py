# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The processes whose packet rates are compared: softswitch, BMv2 and a bare forwarder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.packet_rate import traffic
from benchmarks.packet_rate.load_generator import LoadGenerator, build_forwarder
from benchmarks.packet_rate.wires import Wires
from bmv2_options import BINARY, thrift_options
from p4runtime_control import P4RuntimeControl
from packet_frames import CPU_PORT
from packet_target import Entry, job_entries
from switchfold import p4src
from switchfold.softswitch.compilation.compiler import compile_program

START_TIMEOUT_S = 60.0
PROGRAMS = Path(__file__).parent / "programs"
L3_PROGRAM = p4src.Artefacts(
    json=PROGRAMS / "l3_forward.json",
    p4info=PROGRAMS / "l3_forward.p4info.txtpb",
    manifest=PROGRAMS / "l3_forward.p4",
)
Setup = Callable[[P4RuntimeControl], None]


@dataclass(frozen=True)
class Contender:
    """A running process on wires of its own, and the load generator at their other ends."""

    name: str
    pid: int
    load: LoadGenerator

    def cpu_s(self) -> float:
        """Return the processor time of all its threads, with softirqs in their calls."""
        return time.clock_gettime(
            ~self.pid << 3 | 2
        )  # linux: MAKE_PROCESS_CPUCLOCK, CPUCLOCK_SCHED


def has_bmv2() -> bool:
    """Return whether BMv2's gRPC switch is on the PATH."""
    return shutil.which(BINARY) is not None


def program(name: str) -> p4src.Artefacts:
    """Return the compiled program of a workload: narrow, wide or l3."""
    return L3_PROGRAM if name == "l3" else p4src.artefacts("narrow" if name == "narrow" else "wide")


def setup(name: str, slots: int) -> Setup:
    """Return the function that fills the tables of a workload's program on any switch."""

    def aggregate(control: P4RuntimeControl) -> None:
        job = traffic.job("narrow" if name == "narrow" else "wide", slots)
        for entry in job_entries(job):
            control.insert(entry)
        ports = [(port, port) for port in range(1, traffic.NUM_PORTS + 1)]
        control.set_multicast_group(job.multicast_group_id, ports)

    def forward(control: P4RuntimeControl) -> None:
        for port in range(1, traffic.NUM_PORTS + 1):
            network = (traffic.L3_NETWORK + (port << 8), 24)
            params = {"port": port, "mac": traffic.l3_mac(port)}
            control.insert(
                Entry(
                    table="route", match={"dst_address": network}, action="forward", params=params
                )
            )

    return forward if name == "l3" else aggregate


def _start(wires: Wires, command: Sequence[str], cores: set[int], log: IO[bytes], **options: int):
    def start() -> subprocess.Popen[bytes]:
        os.sched_setaffinity(0, cores)  # the process inherits this thread's affinity
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, **options
        )

    return wires.at_switch(start)


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def _running(
    wires: Wires, name: str, command: Sequence[str], cores: set[int]
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], str]]]:
    with ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())
        process = _start(wires, command, cores, log)
        stack.callback(_stop, process)

        def said() -> str:
            log.seek(0)
            text = log.read()[-2000:].decode(errors="replace")
            return f"{name}, exit status {process.poll()}, output: {text}"

        yield process, said


def _await(is_there: Callable[[], bool], process: subprocess.Popen[bytes], said: Callable[[], str]):
    deadline = time.monotonic() + START_TIMEOUT_S
    while not is_there():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"a switch did not start: {said()}")
        time.sleep(0.01)


@contextmanager
def bare_forwarder(
    wires: Wires, cores: set[int], *, super_frames: bool = False
) -> Iterator[Contender]:
    """Run the bare forwarder on new wires."""
    pairs = wires.add(traffic.NUM_PORTS)
    words = ["--super-frames"] if super_frames else []
    command = [str(build_forwarder()), *words, *(at_switch for at_switch, _ in pairs)]
    with ExitStack() as stack:
        process, said = stack.enter_context(_running(wires, "bare forwarder", command, cores))
        _await(lambda: "ready" in said(), process, said)
        at_load = [name for _, name in pairs]
        load = wires.at_load(lambda: LoadGenerator(at_load, super_frames=super_frames))
        stack.callback(load.close)
        yield Contender("bare-super" if super_frames else "bare", process.pid, load)


@contextmanager
def switch(
    name: str, wires: Wires, cores: set[int], artefacts: p4src.Artefacts, fill: Setup
) -> Iterator[Contender]:
    """Run softswitch, also with super-frames, or BMv2; P4Runtime sets its program and tables.

    The switch named `softswitch-super` gets and gives super-frames, the others single frames.
    """
    super_frames = name == "softswitch-super"
    if name != "bmv2":
        compile_program(
            artefacts.json
        )  # fills the cache: a P4Runtime client would not wait for the compiler
    pairs = wires.add(traffic.NUM_PORTS)
    ports = {number: pair[0] for number, pair in enumerate(pairs, 1)}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = f"unix:{folder / 'grpc'}"
        command = _bmv2(ports, address) if name == "bmv2" else _softswitch(ports, address)
        command += ["--frame-by-frame"] if name == "softswitch" else []
        process, said = stack.enter_context(_running(wires, name, command, cores))
        _await((folder / "grpc").exists, process, said)
        control = P4RuntimeControl(artefacts, address, said)
        try:
            fill(control)
        finally:
            control.close()
        at_load = [name for _, name in pairs]
        load = wires.at_load(lambda: LoadGenerator(at_load, super_frames=super_frames))
        stack.callback(load.close)
        yield Contender(name, process.pid, load)


def _softswitch(ports: dict[int, str], address: str) -> list[str]:
    words = [word for port, name in ports.items() for word in ("--port", f"{port}=veth:{name}")]
    options = ["--grpc", address, "--cpu-port", str(CPU_PORT)]
    return [sys.executable, "-m", "switchfold.softswitch", "run", *words, *options]


def _bmv2(ports: dict[int, str], address: str) -> list[str]:
    interfaces = [f"--interface={port}@{name}" for port, name in ports.items()]
    options = [f"--grpc-server-addr={address}", f"--cpu-port={CPU_PORT}"]
    return [BINARY, "--no-p4", "--device-id=1", *thrift_options(), *interfaces, "--", *options]
