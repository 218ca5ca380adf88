# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The `softswitch` command as a user meets it: a process, its ports, its exit status."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import finsy
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap

from refused_program import refused_problems, write_refused
from switchfold import p4src
from switchfold.softswitch import compile_program
from switchfold.softswitch.compilation.runtime_library import build_runtime

COMMAND = (sys.executable, "-m", "switchfold.softswitch")
READY_S = 240.0
ERROR_S = 240.0
MAC = "02:00:00:00:00:09"
MADE = p4src.artefacts("narrow")


def host_socket() -> socket.socket:
    host = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    host.bind(("127.0.0.1", 0))
    host.settimeout(60)
    return host


@dataclass
class Running:
    process: subprocess.Popen[str]
    grpc_address: str
    ports: dict[int, tuple[str, int]]
    """Addresses of the udp ports."""


@contextmanager
def running(*options: str) -> Generator[Running]:
    """Run a switch until the block ends; SIGTERM must end it with status 0."""
    reader, writer = os.pipe()
    command = [*COMMAND, "run", *options, "--ready-fd", str(writer)]
    with (
        os.fdopen(reader) as ready,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=(writer,),
        ) as process,
    ):
        os.close(writer)
        try:
            assert select.select([ready], [], [], READY_S)[0], "not ready in time"
            assert ready.read() == "ready\n", process.communicate()[1]
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"ready: P4Runtime on (\S+); ports: (.*)\n", line)
            assert found is not None, line
            ports = re.findall(r"(\d+)=udp:([\d.]+):(\d+)", found[2])
            addresses = {int(number): (host, int(port)) for number, host, port in ports}
            yield Running(process, found[1], addresses)
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=READY_S)
            assert process.returncode == 0, errors
            assert "Traceback" not in errors
        finally:
            process.kill()


async def forward(address: str, port: int) -> None:
    """Push the program unless it runs, and route 10.0.0.0/24 to a port."""
    options = finsy.SwitchOptions(p4info=MADE.p4info, p4blob=MADE.json)
    async with finsy.Switch("s1", address, options) as client:
        entry = finsy.P4TableEntry(
            "ipv4_forward",
            match=finsy.P4TableMatch(dst_address="10.0.0.0/24"),
            action=finsy.P4TableAction("forward", port=port, mac=MAC),
        )
        await client.write([+entry])


def packet() -> bytes:
    return bytes(Ether(dst=MAC) / IP(src="10.0.1.1", dst="10.0.0.9") / UDP(dport=9) / (b"x" * 64))


@pytest.mark.parametrize("start", ["with a program", "empty"])
def test_packets_pass_with_impairments_and_capture(tmp_path: Path, start: str) -> None:
    program = [str(MADE.json), "--p4info", str(MADE.p4info)] if start != "empty" else []
    grpc = "127.0.0.1:0" if start != "empty" else f"unix:{tmp_path}/s.sock"
    captures = tmp_path / "captures"
    with host_socket() as left, host_socket() as right:
        left_at, right_at = (f"127.0.0.1:{end.getsockname()[1]}" for end in (left, right))
        options = (
            *("--port", f"1=udp:127.0.0.1:0-{left_at}", "--port", f"2=udp:127.0.0.1:0-{right_at}"),
            *("--grpc", grpc, "--pcap-dir", str(captures)),
            *("--impair", "2:out:duplication=1,seed=3"),
        )
        with running(*program, *options) as switch:
            asyncio.run(asyncio.wait_for(forward(switch.grpc_address, 2), READY_S))
            left.sendto(packet(), switch.ports[1])
            arrived = [Ether(right.recv(2048)) for _ in range(2)]
    assert [(frame[Ether].dst, frame[IP].ttl) for frame in arrived] == [(MAC, 63)] * 2
    assert [bytes(frame) for frame in rdpcap(str(captures / "port1.pcap"))] == [packet()]
    assert [bytes(frame) for frame in rdpcap(str(captures / "port2.pcap"))] == [
        bytes(frame) for frame in arrived
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["captures"]


def failing(*words: str, status: int = 1, env: dict[str, str] | None = None) -> str:
    """Run a command that must fail soon; return its error text, without the log above it."""
    done = subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=ERROR_S,
        env=os.environ | (env or {}),
    )
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    (start,) = [index for index, line in enumerate(lines) if line.startswith("Error: ")]
    assert "Traceback" not in done.stderr
    return "\n".join(lines[start:])


@pytest.fixture(scope="module", autouse=True)
def _programs_are_built() -> None:
    build_runtime()
    compile_program(MADE.json)  # takes longer than a client waits


@pytest.fixture(autouse=True)
def _patient_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("finsy.p4client._DEFAULT_RPC_TIMEOUT", READY_S)


def test_file_that_is_missing() -> None:
    text = failing("run", "none.json", "--p4info", str(MADE.p4info), status=2)
    assert "'none.json' does not exist" in text


@pytest.mark.parametrize("command", ["run", "show", "build"])
def test_file_that_is_no_program(command: str) -> None:
    words = ("--p4info", str(MADE.p4info)) if command == "run" else ()
    text = failing(command, str(MADE.p4info), *words)
    assert "1 problem(s)" in text
    assert "not JSON" in text
    assert "Compile the P4 program with p4c-bm2-ss" in text


def test_unsupported_program_lists_all_problems(tmp_path: Path) -> None:
    options = ("--p4info", str(MADE.p4info), "--grpc", f"unix:{tmp_path}/s.sock")
    text = failing("run", str(write_refused(tmp_path)), *options)
    count = len(refused_problems())
    assert f"cannot be loaded, {count} problem(s)" in text
    assert text.count("\n") == count
    assert text.count("\n  replication.p4(") == count


def test_program_and_p4info_that_do_not_match(tmp_path: Path) -> None:
    other = p4src.artefacts("wide").p4info
    program = (str(MADE.json), "--p4info", str(other))
    text = failing("run", *program, "--grpc", f"unix:{tmp_path}/s.sock")
    assert "P4Info does not match p4_device_config; take both from one run of p4c-bm2-ss" in text


def test_no_compiler(tmp_path: Path) -> None:
    if importlib.util.find_spec("ziglang") is not None:
        pytest.skip("the ziglang package is a compiler")
    text = failing("run", env={"PATH": str(tmp_path)})
    assert "no C compiler: looked for cc, gcc and clang" in text
    assert "apt install gcc" in text
    assert "\n" not in text


def test_port_that_is_taken(tmp_path: Path) -> None:
    with host_socket() as holder:
        spec = f"1=udp:127.0.0.1:{holder.getsockname()[1]}"
        text = failing("run", "--port", spec, "--grpc", f"unix:{tmp_path}/s.sock")
    assert "port 1" in text
    assert "another socket holds it" in text
    assert "\n" not in text


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="veth ports need root")
def test_interface_that_is_missing(tmp_path: Path) -> None:
    text = failing("run", "--port", "1=veth:nothere", "--grpc", f"unix:{tmp_path}/s.sock")
    assert "there is no interface 'nothere' in this network namespace" in text
    assert "\n" not in text


def test_grpc_address_that_is_taken() -> None:
    with running("--grpc", "127.0.0.1:0") as first:
        text = failing("run", "--grpc", first.grpc_address)
    assert f"cannot bind {first.grpc_address}: the address is taken" in text
    assert "\n" not in text


def test_capture_folder_that_cannot_be_made() -> None:
    text = failing("run", "--pcap-dir", "/dev/null/captures")
    assert text.endswith("--pcap-dir /dev/null/captures: Not a directory; choose another place")
    assert "\n" not in text


def test_trace_file_that_cannot_be_written(tmp_path: Path) -> None:
    text = failing("run", "--trace", "/dev/null/t", "--grpc", f"unix:{tmp_path}/s.sock")
    assert text.endswith("--trace /dev/null/t: Not a directory; choose another place")
    assert "\n" not in text


def test_options_are_logged_in_words(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/s.sock"
    words = ("run", "--port", "255=mem", "--port", "3=veth:nothere", "--cpu-port", "9")
    done = subprocess.run(
        [*COMMAND, *words, "--grpc", address],
        capture_output=True,
        text=True,
        check=False,
        timeout=READY_S,
    )
    assert f"ports=255=mem 3=veth:nothere, grpc_address={address}, device_id=1" in done.stderr
    assert "port 255 (mem): super-frames none" in done.stderr
    assert "None" not in done.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((str(MADE.json),), "PROGRAM and --p4info go together"),
        (("--port", "1"), "'1' is not NUMBER=SPEC"),
        (("--port", "1=mem", "--port", "1=mem"), "port 1 is given twice"),
        (("--port", "1=tcp:x"), "expected mem, interface:IFNAME"),
        (("--port", "7@s1-eth1"), "'7@s1-eth1' is not NUMBER=SPEC, e.g. 7=interface:s1-eth1"),
        (("--port", "1=lo"), "the interface lo is interface:lo"),
        (("--port", "255=mem"), "port 255 is the CPU port: open another number"),
        (("--port", "7=mem", "--cpu-port", "7"), "port 7 is the CPU port"),
        (("--grpc", "9559"), "'9559' is not HOST:PORT or unix:PATH"),
        (("--grpc", "localhost:http"), "'localhost:http' is not HOST:PORT or unix:PATH"),
        (("--impair", "1:in:loss=0.1"), "ports that no --port opens: 1"),
        (("--port", "1=mem", "--impair", "1:in:loss=2"), "must be a probability"),
        (("--ready-fd", "77"), "no such file descriptor"),
        (("--device-id", "0"), "0 is not in the range"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], complaint: str) -> None:
    assert complaint in failing("run", *words, status=2)


def printed(*words: str) -> str:
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, check=True, timeout=READY_S
    )
    return done.stdout


def test_show_prints_the_program_in_c() -> None:
    assert "static void p4_control_ingress" in printed("show", str(MADE.json))


def test_build_prints_libraries_and_seconds() -> None:
    lines = printed("build", str(MADE.json)).splitlines()
    assert len(lines) == 2
    for line, name in zip(lines, ("switchfold_narrow", "runtime"), strict=True):
        found = re.fullmatch(r"(\S+)  (\d+\.\d\d) s", line)
        assert found is not None
        assert Path(found[1]).name.startswith(name)
        assert Path(found[1]).exists()


@pytest.mark.parametrize("words", [(), ("run",), ("build",), ("show",)])
def test_help_has_examples(words: tuple[str, ...]) -> None:
    assert f"softswitch {words[0] if words else 'run'} " in printed(*words, "--help")
    assert "Example" in printed(*words, "-h")


def test_version() -> None:
    assert re.fullmatch(r"softswitch, version \d+\.\d+\.\d+\n", printed("--version"))
