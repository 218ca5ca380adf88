# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What Wireshark and scapy show of packets is what the wire format's own dtype says of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib import resources
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

from switchfold.controller.__main__ import run
from switchfold.hostlib.captures.scapy_layer import SwitchfoldPacket
from switchfold.hostlib.slots.wire import (
    EXPONENT_BIAS,
    HEADER_BYTES,
    HEADER_DTYPE,
    UDP_PORT,
    VALUES_PER_PACKET_NARROW,
    VALUES_PER_PACKET_WIDE,
    WIRE_VERSION,
    Flag,
    Operation,
    datagram_dtype,
)

FIELDS = HEADER_DTYPE.names or ()
LUA = resources.files("switchfold.hostlib.captures").joinpath("switchfold.lua").read_text("utf-8")
LIMIT_S = 120

has_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not on the PATH (apt-get install tshark)"
)


def random_datagrams(lanes: int, count: int, seed: int) -> NDArray[np.void]:
    """Return datagrams of all operations with random fields, whose ranges fit the grid."""
    chance = np.random.default_rng(seed)
    raw = chance.integers(0, 256, (count, datagram_dtype(lanes).itemsize), np.uint8)
    found = raw.view(datagram_dtype(lanes))[:, 0]
    header = found["header"]
    header["version"] = WIRE_VERSION
    header["operation"] = 1 + np.arange(count) % len(Operation)
    header["flags"] &= sum(Flag)
    header["chunk_index"] &= 0xFFFF
    header["range_start"] = header["chunk_index"] * np.uint32(lanes)
    header["range_end"] = header["range_start"] + 1 + np.arange(count) % lanes
    return found


def frame_of(datagram: bytes, *, is_answer: bool = False) -> Packet:
    """Return a frame from a worker to a switch, or back."""
    ports = (
        {"sport": UDP_PORT, "dport": 40000} if is_answer else {"sport": 40000, "dport": UDP_PORT}
    )
    return Ether() / IP(src="10.0.0.3", dst="10.0.255.254") / UDP(**ports) / Raw(datagram)


def shown(folder: Path, datagrams: Sequence[bytes], *fields: str) -> list[list[str]]:
    """Return what tshark says of each datagram; several values of a field have commas between."""
    capture, script = folder / "frames.pcap", folder / "switchfold.lua"
    frames = [frame_of(each, is_answer=number % 2 == 1) for number, each in enumerate(datagrams)]
    wrpcap(str(capture), frames)
    script.write_text(LUA, "utf-8")
    asked = [word for field in fields for word in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-X", f"lua_script:{script}", "-r", str(capture), "-T", "fields", *asked],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin:/usr/local/bin"},
    )
    assert done.returncode == 0, done.stderr
    assert "Lua" not in done.stderr, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


@has_tshark
@pytest.mark.parametrize("lanes", [VALUES_PER_PACKET_NARROW, VALUES_PER_PACKET_WIDE])
def test_wireshark_shows_every_field_and_lane(tmp_path: Path, lanes: int) -> None:
    datagrams = random_datagrams(lanes, 90, seed=lanes)
    names = [f"switchfold.{name}" for name in FIELDS]
    rows = shown(tmp_path, [each.tobytes() for each in datagrams], *names, "switchfold.lane")
    assert len(rows) == len(datagrams)
    for row, datagram in zip(rows, datagrams, strict=True):
        header = datagram["header"]
        assert [int(text, 0) for text in row[:-1]] == [int(header[name]) for name in FIELDS]
        used = int(header["range_end"] - header["range_start"])
        assert [int(lane) for lane in row[-1].split(",")] == datagram["values"][:used].tolist()


@has_tshark
def test_wireshark_and_scapy_sum_up_packets_alike(tmp_path: Path) -> None:
    datagrams = [each.tobytes() for each in random_datagrams(32, 200, seed=3)]
    lines = [row[0] for row in shown(tmp_path, datagrams, "_ws.col.Info")]
    assert lines == [SwitchfoldPacket(each).mysummary() for each in datagrams]
    assert lines[0].startswith("AGGREGATE_ADD job=")


@has_tshark
def test_wireshark_names_each_flag_and_both_parts_of_a_tensor(tmp_path: Path) -> None:
    datagrams = random_datagrams(32, 100, seed=4)
    names = [f"switchfold.flags.{(flag.name or '').lower()}" for flag in Flag]
    parts = ["switchfold.tensor.position", "switchfold.tensor.signature"]
    rows = shown(tmp_path, [each.tobytes() for each in datagrams], *names, *parts)
    for row, header in zip(rows, datagrams["header"], strict=True):
        flags, tensor = int(header["flags"]), int(header["tensor_id"])
        assert [text in {"1", "True"} for text in row[:-2]] == [bool(flags & flag) for flag in Flag]
        assert [int(text, 0) for text in row[-2:]] == [tensor & 0xFFFFF, tensor >> 20]


@has_tshark
@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("version", 1, "another version"),
        ("operation", 99, "unknown operation"),
        ("range_start", 33, "do not fit the grid"),
        ("flags", int(Flag.OVERFLOW), "saturated"),
    ],
)
def test_wireshark_marks_what_a_switch_would_drop(
    tmp_path: Path, field: str, value: int, what: str
) -> None:
    good = random_datagrams(32, 1, seed=5)
    good["header"]["flags"] = 0
    bad = good.copy()
    bad["header"][field] = value
    datagrams = [good[0].tobytes(), bad[0].tobytes()]
    (of_good,), (of_bad,) = shown(tmp_path, datagrams, "_ws.expert.message")
    assert of_good == ""
    assert what in of_bad


@has_tshark
def test_wireshark_marks_a_cut_datagram_and_leaves_short_ones_alone(tmp_path: Path) -> None:
    whole = random_datagrams(32, 1, seed=6)[0].tobytes()
    datagrams = [whole[:-4], whole[: HEADER_BYTES - 1], whole[:HEADER_BYTES], b""]
    rows = shown(tmp_path, datagrams, "_ws.expert.message", "switchfold.version")
    assert "no variant's length" in rows[0][0]
    assert rows[1] == ["", ""]
    assert "no variant's length" in rows[2][0]
    assert rows[3] == ["", ""]


def test_the_numbers_are_those_of_the_wire_format() -> None:
    constants = {name: int(value) for name, value in re.findall(r"local ([A-Z_]+) = (\d+)", LUA)}
    assert constants == {
        "UDP_PORT": UDP_PORT,
        "WIRE_VERSION": WIRE_VERSION,
        "HEADER_BYTES": HEADER_BYTES,
        "VALUE_BYTES": 4,
        "EXPONENT_BIAS": EXPONENT_BIAS,
    }
    operations = re.search(r"local OPERATIONS = \{(.*?)\}", LUA, re.DOTALL)
    flags = re.search(r"local FLAGS = \{(.*?)\}", LUA, re.DOTALL)
    layout = re.search(r"local LAYOUT = \{(.*?)\n\}", LUA, re.DOTALL)
    assert operations
    assert flags
    assert layout
    assert re.findall(r'\[(\d+)\] = "(\w+)"', operations[1]) == [
        (str(each.value), each.name) for each in Operation
    ]
    assert re.findall(r'"(\w+)"', flags[1]) == [flag.name for flag in Flag]
    sizes = [HEADER_DTYPE[name].itemsize for name in FIELDS]
    places = accumulate(sizes[:-1], initial=0)
    assert re.findall(r'"(\w+)", (\d+), (\d+)', layout[1]) == [
        (name, str(place), str(size))
        for name, place, size in zip(FIELDS, places, sizes, strict=True)
    ]


@pytest.mark.parametrize("lanes", [VALUES_PER_PACKET_NARROW, VALUES_PER_PACKET_WIDE])
def test_scapy_reads_and_writes_every_field_and_lane(lanes: int) -> None:
    for datagram in random_datagrams(lanes, 50, seed=lanes + 1):
        raw = datagram.tobytes()
        packet = Ether(bytes(frame_of(raw)))[SwitchfoldPacket]
        header = datagram["header"]
        assert [int(getattr(packet, name)) for name in FIELDS] == [int(header[n]) for n in FIELDS]
        assert packet.lanes == datagram["values"].tolist()
        made = SwitchfoldPacket(
            **{name: int(header[name]) for name in FIELDS}, lanes=datagram["values"].tolist()
        )
        assert bytes(made) == raw


def test_scapy_shows_answers_and_names() -> None:
    packet = SwitchfoldPacket(
        operation="RESULT", job_id=7, worker_id=2, slot_index=19, round=5, tensor_id=0x22700003,
        range_start=96, range_end=100, num_contributors=3, flags="PARTIAL+FLUSHED",
    )  # fmt: skip
    frame = Ether(bytes(Ether() / IP() / UDP(sport=UDP_PORT, dport=40000) / packet))
    assert frame[SwitchfoldPacket].mysummary() == (
        "RESULT job=7 worker=2 slot=19 round=5 tensor=3 [96,100) of 3 PARTIAL|FLUSHED"
    )


def test_command_prints_the_dissector_and_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run(["dissector"]) == 0
    assert capsys.readouterr().out == LUA
    assert run(["dissector", "--install"]) == 0
    file = tmp_path / ".local/lib/wireshark/plugins/switchfold.lua"
    assert str(file) in capsys.readouterr().out
    assert file.read_text("utf-8") == LUA


def test_command_says_what_to_do_if_it_cannot_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".local").write_text("a file", "utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run(["dissector", "--install"]) == 1
    assert "switchfold dissector >switchfold.lua" in capsys.readouterr().err
