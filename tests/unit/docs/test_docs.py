# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The pages in docs/ say what the code says: tables, sizes, the worked example, links, pictures."""

from __future__ import annotations

import re
import struct
from dataclasses import fields
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

from switchfold.controller.config import ControllerConfig
from switchfold.controller.transfers.transfer_config import TransferConfig
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.slots import wire
from switchfold.hostlib.summation.quantization import scales

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("*/README.md")])


def read_table(page: str, after: str) -> list[list[str]]:
    """Return the cells of the first table behind a line, without its head."""
    text = (DOCS / page).read_text("utf-8")
    assert after in text, f"{page} lacks {after!r}"
    lines = text[text.index(after) :].splitlines()[1:]
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows: list[list[str]] = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def plain(cell: str) -> str:
    return cell.strip("`")


def header_fields() -> list[tuple[int, int, str]]:
    """Return (offset, bits, name) of every header field, in order."""
    assert wire.HEADER_DTYPE.fields is not None
    fields = wire.HEADER_DTYPE.fields.items()
    return [(int(field[1]), field[0].itemsize * 8, str(name)) for name, field in fields]


EXAMPLES = ("example", "hot example")


def example_frame(which: str = "example") -> bytes:
    text = (DOCS / "wire_format.md").read_text("utf-8")
    block = text[text.index(f"<!-- {which} frame -->") :].split("```")[1]
    rows = re.findall(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)$", block, re.MULTILINE)
    frame = b"".join(bytes.fromhex(row[1]) for row in rows)
    assert [int(row[0], 16) for row in rows] == list(range(0, len(frame), 16))
    return frame


def example_datagram(which: str = "example") -> NDArray[np.void]:
    layers = wire.ETHERNET_BYTES + wire.IPV4_BYTES + wire.UDP_BYTES
    buffer = np.frombuffer(example_frame(which)[layers:], np.uint8)[None, :]
    return wire.view_datagrams(buffer, wire.VALUES_PER_PACKET_NARROW)[0]


def ones_complement_sum(data: bytes) -> int:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def test_field_table_is_the_header_dtype() -> None:
    rows = read_table("wire_format.md", "<!-- fields:")
    documented = [(int(row[0]), int(row[1]), plain(row[2])) for row in rows]
    assert documented == header_fields()


def test_operation_table_is_the_enum() -> None:
    rows = read_table("wire_format.md", "### Operations")
    documented = {plain(row[1]): int(row[0]) for row in rows}
    assert documented == {operation.name: operation.value for operation in wire.Operation}


def test_flag_table_is_the_enum() -> None:
    rows = read_table("wire_format.md", "### Flags")
    documented = {plain(row[1]): 1 << int(row[0]) for row in rows}
    assert documented == {flag.name: flag.value for flag in wire.Flag}


def test_outcome_table_is_the_enum() -> None:
    rows = read_table("protocol.md", "<!-- outcomes:")
    documented = {plain(row[1]): int(row[0]) for row in rows}
    assert documented == {outcome.name: outcome.value for outcome in wire.Outcome}


def test_controller_defaults_are_documented() -> None:
    defaults = {field.name: field.default for field in fields(ControllerConfig)}
    for name, documented, _ in read_table("operations.md", "## Configuration of the controller"):
        default = defaults.pop(plain(name), None)
        if isinstance(default, float):
            assert f"{default:g}" == documented, name
        elif isinstance(default, int) and not isinstance(default, bool):
            assert str(default) == documented, name
    assert set(defaults) == {"switches", "links", "transfers"}


def test_defaults_of_live_transfers_are_documented() -> None:
    defaults = {field.name: field.default for field in fields(TransferConfig)}
    rows = list(read_table("live_transfers.md", "## Options"))
    assert [plain(name) for name, _, _ in rows] == list(defaults)
    for name, documented, _ in rows:
        default = defaults[plain(name)]
        shown = f"{default:g}" if isinstance(default, float) else str(default or "none")
        assert shown == documented, name


def test_worker_defaults_are_documented() -> None:
    page = (DOCS / "protocol.md").read_text("utf-8")
    options = SessionOptions()
    assert f"`window` chunks ({options.window})" in page
    assert f"starts at {options.initial_rto_s:g} s" in page
    assert f"at most {options.max_rto_s:g} s" in page
    assert f"| allreduce | {options.timeout_s:g} s" in page


def test_size_table_is_computed() -> None:
    rows = {row[0].split(" = ")[0]: row[1:] for row in read_table("wire_format.md", "## A frame")}
    for column, values in enumerate((wire.VALUES_PER_PACKET_NARROW, wire.VALUES_PER_PACKET_WIDE)):
        assert rows["lanes (`VALUES_PER_PACKET`)"][column] == str(values)
        assert rows["datagram"][column] == str(wire.datagram_bytes(values))
        assert rows["frame without check sequence"][column] == str(wire.frame_bytes(values))
        on_the_wire = wire.frame_bytes(values) + 4 + 20  # check sequence, preamble and gap
        assert rows["payload efficiency"][column] == f"{4 * values / on_the_wire:.3f}"


@pytest.mark.parametrize("which", EXAMPLES)
def test_example_frame_has_the_narrow_size_and_right_checksums(which: str) -> None:
    frame = example_frame(which)
    assert len(frame) == wire.frame_bytes(wire.VALUES_PER_PACKET_NARROW)
    ipv4 = frame[wire.ETHERNET_BYTES :][: wire.IPV4_BYTES]
    udp = frame[wire.ETHERNET_BYTES + wire.IPV4_BYTES :]
    assert ones_complement_sum(ipv4) == 0xFFFF
    pseudo_header = ipv4[12:20] + struct.pack(">HH", 17, len(udp))
    assert ones_complement_sum(pseudo_header + udp) == 0xFFFF
    assert struct.unpack(">H", udp[2:4])[0] == wire.UDP_PORT


def documented_fields(which: str) -> list[str]:
    """Compare the fields that the page tells with the frame; return their names."""
    frame, datagram = example_frame(which), example_datagram(which)
    header, values = datagram["header"], datagram["values"]
    seen: list[str] = []
    for where, name, hexadecimal, value in read_table("wire_format.md", f"<!-- {which} fields -->"):
        if plain(hexadecimal).endswith("..."):
            continue
        first, _, last = where.partition("-")
        part = frame[int(first, 16) : int(last or first, 16) + 1]
        assert part == bytes.fromhex(plain(hexadecimal)), name
        if name.startswith("`"):
            assert int(header[plain(name)]) == int(value), name
            seen.append(plain(name))
        elif name.startswith("lane "):
            assert int(values[int(name.removeprefix("lane "))]) == int(value), name
    return seen


def test_example_fields_are_in_the_frame() -> None:
    assert tuple(documented_fields("example")) == wire.HEADER_DTYPE.names


def test_fields_in_which_the_hot_example_differs_are_all_told() -> None:
    first, hot = example_datagram()["header"], example_datagram("hot example")["header"]
    assert wire.HEADER_DTYPE.names is not None
    differing = [name for name in wire.HEADER_DTYPE.names if first[name] != hot[name]]
    assert documented_fields("hot example") == differing


def test_hot_example_is_a_push_that_follows_the_rules() -> None:
    header = example_datagram("hot example")["header"]
    assert header["operation"] == wire.Operation.AGGREGATE_ADD
    assert header["flags"] == wire.Flag.TO_SERVER
    assert header["chunk_index"] == header["slot_index"]
    assert header["range_start"] == header["chunk_index"] * wire.VALUES_PER_PACKET_NARROW
    assert header["range_end"] == header["range_start"] + wire.VALUES_PER_PACKET_NARROW


def test_example_is_a_contribution_that_follows_the_rules() -> None:
    header, values = example_datagram()["header"], example_datagram()["values"]
    assert header["version"] == wire.WIRE_VERSION
    assert header["operation"] == wire.Operation.AGGREGATE_ADD
    assert header["range_start"] == header["chunk_index"] * wire.VALUES_PER_PACKET_NARROW
    assert header["worker_bitmap"] == 1 << int(header["worker_id"])
    length = int(header["range_end"] - header["range_start"])
    assert not values[length:].any()
    exponent = np.array([int(header["exponent"]) - wire.EXPONENT_BIAS], np.int32)
    shift = int(np.log2(scales(exponent, 4, np.float32)[0][0]))
    assert [float(np.ldexp(float(v), -shift)) for v in values[:length]] == [
        2.0**-30,
        -(2.0**-30),
        1 / 16,
        -1 / 8,
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        name, _, heading = target.partition("#")
        path = page.parent / name if name else page
        assert path.exists(), f"{page}: {target}"
        if heading:
            titles = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", t).lower().replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_files_that_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    folders = "bmv2_topos|benchmarks|controller|docs|examples|hostlib|p4src|softswitch|tests"
    named = re.findall(rf"`((?:{folders})/[\w./-]+\.(?:py|p4|md|h|c|pml|proto|svg))`", text)
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing, f"{page.name} names {missing}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_verbs_that_exist(page: Path) -> None:
    verbs = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    text = page.read_text("utf-8")
    named = re.findall(r"`make ([a-z][a-z0-9 -]*)`", text) + re.findall(
        r"^make ([a-z][a-z0-9 -]*?) *(?:#.*)?$", text, re.MULTILINE
    )
    missing = {verb for words in named for verb in words.split()} - verbs
    assert not missing, f"{page.name} names make {', '.join(sorted(missing))}"


def test_failure_catalogue_names_tests_and_errors_that_exist() -> None:
    text = (DOCS / "operations.md").read_text("utf-8")
    start = text.index("## Failure catalogue")
    catalogue = text[start : text.index("\n## ", start + 1)]
    sources = [path.read_text("utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    tests = {name for source in sources for name in re.findall(r"^def (test_\w+)", source, re.M)}
    status = ROOT / "softswitch" / "p4runtime" / "service" / "status.py"
    modules = [*ROOT.glob("*/errors.py"), status]
    classes = "".join(path.read_text("utf-8") for path in modules)
    rows = [line for line in catalogue.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) > 40
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 5, row
        if cells[-1] == "test":
            continue
        assert plain(cells[-1]) in tests, f"{cells[0]}: no test {cells[-1]}"
        for error in re.findall(r"`(\w+Error)`", row):
            assert f"class {error}(" in classes, f"{cells[0]}: no {error}"


@pytest.mark.parametrize("picture", sorted(DOCS.rglob("*.svg")), ids=lambda path: path.name)
def test_pictures_are_well_formed_and_titled(picture: Path) -> None:
    root = ElementTree.parse(picture).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.find("{http://www.w3.org/2000/svg}title") is not None


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(path.name[:4]) for path in sorted((DOCS / "decisions").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))
