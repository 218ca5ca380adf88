# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`softswitch trace`: each step of a packet, with values and P4 lines, as text and as JSON."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet

from switchfold.softswitch.commands.command import main
from switchfold.softswitch.compilation.compiler import compile_traced
from switchfold.softswitch.errors import ProgramError
from switchfold.softswitch.generator import generate, generate_traced
from switchfold.softswitch.program.bmv2_json import read_program
from switchfold.softswitch.trace.values import format_value

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "softswitch"
PROGRAMS = Path(__file__).parent / "programs"
ROUTER = EXAMPLE / "router.json"
Step = dict[str, Any]


def p4_line(text: str, name: str = "router.p4") -> int:
    lines = (EXAMPLE / name).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def packet(dst: str = "10.0.2.2", *, ttl: int = 64) -> Packet:
    ethernet = Ether(src="02:00:00:00:01:02", dst="02:00:00:00:01:01")
    return ethernet / IP(src="10.0.1.2", dst=dst, ttl=ttl) / UDP(sport=7, dport=9) / b"payload"


def trace_output(*frames: Packet | bytes, options: tuple[str, ...] = ()) -> str:
    words = ["trace", str(ROUTER), "--p4info", str(EXAMPLE / "router.p4info.txtpb")]
    words += ["--entries", str(EXAMPLE / "entries.txt"), "--port", "1"]
    for frame in frames:
        words += ["--frame", bytes(frame).hex()]
    result = CliRunner().invoke(main, [*words, *options])
    assert result.exit_code == 0, result.output
    return result.stdout


def trace(*frames: Packet | bytes, options: tuple[str, ...] = ()) -> list[Step]:
    text = trace_output(*frames, options=("--json", *options))
    return [json.loads(line) for line in text.splitlines()]


def steps_of(steps: list[Step], kind: str) -> list[Step]:
    return [step for step in steps if step["kind"] == kind]


def test_parser_states_headers_and_selects_are_told() -> None:
    steps = trace(packet())
    states = [step["name"] for step in steps_of(steps, "state")]
    assert states == ["start", "parse_ipv4", "parse_ports"]
    source = steps_of(steps, "state")[1]["source"]
    assert (source["file"], source["line"]) == ("router.p4", p4_line("state parse_ipv4"))
    transition = steps_of(steps, "transition")[1]
    assert transition["keys"] == {"ipv4.fragment_offset": 0, "ipv4.protocol": 17}
    assert transition["next"] == "parse_ports"
    extract = steps_of(steps, "operation")[1]
    assert extract["changes"]["ipv4.dst_addr"]["after"] == 0x0A000202
    accept = steps_of(steps, "accept")[0]
    assert (accept["parsed_bytes"], accept["left_bytes"]) == (14 + 20 + 4, 4 + 7)


def test_tables_tell_key_entry_and_action_with_parameters() -> None:
    steps = trace(packet())
    tables = {step["table"]: step for step in steps_of(steps, "table")}
    route = tables["RouterIngress.routes"]
    assert route["hit"] is True
    assert route["keys"] == {"dst_addr": 0x0A000202}
    assert "(0x0a000200/24)" in route["text"]
    assert route["source"]["line"] == p4_line("table routes {")
    assert tables["RouterIngress.access_list"]["hit"] is False
    action = next(
        step for step in steps_of(steps, "action") if step["name"] == "RouterIngress.forward"
    )
    assert action["parameters"] == {
        "port": 2,
        "src_addr": 0x020000000201,
        "dst_addr": 0x020000000202,
    }


def test_statements_tell_what_they_change_and_their_line() -> None:
    statements = steps_of(trace(packet()), "statement")
    ttl = next(step for step in statements if "ipv4.ttl" in step["changes"])
    assert ttl["changes"]["ipv4.ttl"] == {"before": 64, "after": 63}
    assert ttl["source"]["text"] == "hdr.ipv4.ttl = hdr.ipv4.ttl - 1;"
    assert ttl["source"]["line"] == p4_line("hdr.ipv4.ttl = hdr.ipv4.ttl - 1;")


def test_checksums_emissions_and_the_way_out_are_told() -> None:
    steps = trace(packet())
    outcomes = [(step["target"], step["outcome"]) for step in steps_of(steps, "checksum")]
    assert outcomes == [("ipv4.checksum", "right"), ("ipv4.checksum", "changed")]
    assert [step["header"] for step in steps_of(steps, "emit")] == ["ethernet", "ipv4", "ports"]
    sent = steps_of(steps, "sent")[0]
    assert sent["port"] == 2
    out = Ether(bytes.fromhex(sent["frame"]))
    assert (out[IP].ttl, out.dst) == (63, "02:00:00:00:02:02")


def test_drop_tells_the_statement_that_dropped() -> None:
    steps = trace(packet(ttl=1))
    drop = steps_of(steps, "drop")[0]
    assert "drop port" in drop["reason"]
    assert drop["source"]["line"] == p4_line("mark_to_drop(sm);")
    conditions = [step for step in steps_of(steps, "condition") if "ttl" in step["text"]]
    assert [step["result"] for step in conditions] == [True]
    assert not steps_of(steps, "sent")


def test_wrong_checksum_is_told() -> None:
    frame = bytearray(bytes(packet()))
    frame[24] ^= 1
    steps = trace(bytes(frame))
    assert steps_of(steps, "checksum")[0]["outcome"] == "wrong"
    assert steps_of(steps, "drop")


def test_parser_error_names_what_failed() -> None:
    steps = trace(bytes(packet())[:20])
    error = steps_of(steps, "parser_error")[0]
    assert error["error"] == "PacketTooShort"
    assert "extract ipv4" in error["text"]


def test_port_that_does_not_exist_is_a_reason() -> None:
    steps = trace(packet(), options=("--ports", "1"))
    assert steps_of(steps, "drop")[0]["reason"] == "dropped: port 2 does not exist"


def test_packets_are_numbered_and_arp_is_answered() -> None:
    request = Ether(src="02:00:00:00:01:02", dst="ff:ff:ff:ff:ff:ff") / ARP(
        hwsrc="02:00:00:00:01:02", psrc="10.0.1.2", pdst="10.0.1.1"
    )
    steps = trace(request, packet(), options=("--count", "2"))
    assert [step["packet"] for step in steps_of(steps, "sent")] == [1, 2]
    answer = Ether(bytes.fromhex(steps_of(steps, "sent")[0]["frame"]))[ARP]
    assert (answer.op, answer.hwsrc, answer.pdst) == (2, "02:00:00:00:01:01", "10.0.1.2")


def test_frames_of_a_capture_are_traced(tmp_path: Path) -> None:
    capture = tmp_path / "in.pcap"
    telnet = Ether() / IP(src="10.0.1.2", dst="10.0.2.2") / TCP(dport=23)
    body = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for frame in (bytes(packet()), bytes(telnet)):
        body += struct.pack("<4I", 0, 0, len(frame), len(frame)) + frame
    capture.write_bytes(body)
    steps = trace(options=("--pcap", str(capture)))
    hits = [step for step in steps_of(steps, "table") if "access_list" in step["table"]]
    assert [step["hit"] for step in hits] == [False, True]
    assert "priority 10" in hits[1]["text"]


def test_text_form_has_lines_of_the_program_at_the_right() -> None:
    text = trace_output(packet(), options=("--color", "never"))
    assert "\x1b" not in text
    line = next(line for line in text.splitlines() if "ipv4.ttl =" in line)
    assert line.endswith("hdr.ipv4.ttl = hdr.ipv4.ttl - 1;")
    assert f"router.p4:{p4_line('hdr.ipv4.ttl = hdr.ipv4.ttl - 1;')}" in line
    assert "\x1b[" in trace_output(packet(), options=("--color", "always"))


def test_values_have_the_names_of_their_constants() -> None:
    text = trace_output(packet())
    assert "ethertype=2048 (0x800) ETHERTYPE_IPV4" in text
    assert "select(ethernet.ethertype=2048 (0x800) ETHERTYPE_IPV4) -> parse_ipv4" in text


def test_registers_and_counters_tell_their_cells() -> None:
    words = ["trace", str(PROGRAMS / "externs.json"), "--frame", "a503000700000001", "--json"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    steps = [json.loads(line) for line in result.stdout.splitlines()]
    text = CliRunner().invoke(main, words[:-1]).stdout
    assert "TheIngress.commands[3]" in text
    assert "total[7] = 1" in text
    reads = [step for step in steps if step.get("operation") == "register_read"]
    assert reads[0]["source"]["text"].startswith("total.read(")


def test_entries_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    entries = tmp_path / "entries.txt"
    entries.write_text("table_add routes set_next_hop 10.0.0.0/8 => 1 2\n", "utf-8")
    words = ["trace", str(ROUTER), "--p4info", str(EXAMPLE / "router.p4info.txtpb")]
    words += ["--entries", str(entries), "--frame", "00"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1
    assert "line 1" in result.output
    assert "set_next_hop takes 1 parameters, 2 given" in result.output


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.json")), ids=lambda path: path.stem)
def test_traced_build_of_every_program_compiles_without_warnings(path: Path) -> None:
    try:
        generate(read_program(path))
    except ProgramError as refusal:
        with pytest.raises(type(refusal)):
            compile_traced(path)
        return
    compiled = compile_traced(path, cflags=("-Werror",))
    assert {"state", "end"} <= {point.kind for point in compiled.points}


def test_ordinary_build_has_no_trace_in_its_text() -> None:
    program = read_program(ROUTER)
    assert "trace" not in generate(program).lower()
    text, points = generate_traced(program)
    assert text.count("TRACE_POINT(") == len(points)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("table_add routez set_next_hop 10.0.0.0/8 => 1", "no P4Table named 'routez'"),
        ("table_add routes set_next_hop 10.0.0.0/8 => 1 2 3", "takes 1 parameters, 3 given"),
        ("mirroring_add 5 1", "'mirroring_add 5 1' is none of: table_add TABLE"),
    ],
)
def test_entries_that_are_wrong_are_told_with_their_line(
    tmp_path: Path, line: str, complaint: str
) -> None:
    entries = tmp_path / "entries.txt"
    entries.write_text(f"# a comment\n{line}\n", "utf-8")
    words = ["trace", str(EXAMPLE / "router.json"), "--p4info"]
    words += [str(EXAMPLE / "router.p4info.txtpb"), "--entries", str(entries), "--frame", "00"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: {entries}: line 2: ")
    assert complaint in result.output


def test_values_have_the_form_that_tells_most() -> None:
    assert format_value(0x20010DB8 << 96 | 5, 128, "ip6.dst") == "2001:db8::5"
    assert format_value(5, 128, "key.material") == "5"
    assert format_value(0x0A000001, 32, "ip.src") == "10.0.0.1"
    assert format_value(300, 48, "start_time") == "300 (0x12c)"
