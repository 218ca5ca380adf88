# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Random cases and campaigns over the programs of this repository."""

from __future__ import annotations

import json
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format

from differential.case import Case, Packet, Step, Write
from differential.comparison import Result, run_case
from differential.entries import PORTS, EntryGenerator
from differential.packets import PacketGenerator
from differential.program_layout import Json, ProgramLayout
from differential.shrink import shrink

ROOT = Path(__file__).parents[2]
CASES = ROOT / "build" / "differential"
"""Where reproductions are kept."""
PROGRAMS = CASES / "programs"
FOLDERS = (ROOT / "tests" / "pipeline" / "programs", ROOT / "p4src" / "build")
REFUSED_PREFIX = "refused"
"""Programs whose names begin with this must be refused at load."""
CPU_PORT = 255
REGISTER_CELLS = 65536
COUNTER_CELLS = 512


@dataclass(frozen=True)
class Found:
    """A program that both switches can run."""

    json: Path
    p4info: Path

    @property
    def name(self) -> str:
        return self.json.stem

    @staticmethod
    def of(json: Path) -> Found:
        """Return the program of a JSON with the P4Info that lies next to it."""
        return Found(json, json.with_name(f"{json.stem}.p4info.txtpb"))


def programs() -> list[Found]:
    """Return all programs that have a JSON and a P4Info; not those meant to be refused."""
    jsons = sorted(path for folder in FOLDERS for path in folder.rglob("*.json"))
    pairs = [Found.of(path) for path in jsons]
    return [
        pair for pair in pairs if pair.p4info.exists() and not pair.name.startswith(REFUSED_PREFIX)
    ]


def prepared(program: Found) -> Found:
    """Return one of `programs()` for both switches: one of the tests is made comparable."""
    return comparable(program) if program.json.parent == FOLDERS[0] else program


def comparable(program: Found) -> Found:
    """Return the program without what BMv2 leaves undefined.

    Its arrays become so large that random indices stay within them, because BMv2 writes out of
    bounds for others. A parser state before the first one sets all fields of headers to 0, because
    BMv2 shows what earlier packets left in invalid headers.
    """
    held = json.loads(program.json.read_text(encoding="utf-8"))
    info = text_format.Parse(program.p4info.read_text(encoding="utf-8"), p4i.P4Info())
    for kind, messages, cells in (
        ("register_arrays", info.registers, REGISTER_CELLS),
        ("counter_arrays", info.counters, COUNTER_CELLS),
        ("meter_arrays", info.meters, COUNTER_CELLS),
    ):
        arrays = [item for item in held[kind] if not item.get("is_direct")]
        for array in (*arrays, *messages):
            if isinstance(array, dict):
                array["size"] = max(array["size"], cells)
            else:
                array.size = max(array.size, cells)
    for parser in held["parsers"]:
        _clear_headers(held, parser)
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    enlarged = Found(PROGRAMS / program.json.name, PROGRAMS / f"{program.json.stem}.p4info.txtpb")
    _replace(enlarged.json, json.dumps(held))
    _replace(enlarged.p4info, text_format.MessageToString(info))
    return enlarged


def _clear_headers(held: Json, parser: Json) -> None:
    types = {item["name"]: item["fields"] for item in held["header_types"]}
    headers = [item for item in held["headers"] if not item["metadata"]]
    fields = [
        [header["name"], field[0]]
        for header in headers
        for field in types[header["header_type"]]
        if field[1] != "*"
    ]
    zero = {"type": "hexstr", "value": "0x0"}
    state = {
        "name": "$clear",
        "id": 1 + max(item["id"] for item in parser["parse_states"]),
        "parser_ops": [
            {"op": "set", "parameters": [{"type": "field", "value": field}, zero]}
            for field in fields
        ],
        "transitions": [
            {"type": "default", "value": None, "mask": None, "next_state": parser["init_state"]}
        ],
        "transition_key": [],
    }
    parser["parse_states"].append(state)
    parser["init_state"] = state["name"]


def _replace(path: Path, text: str) -> None:
    """Write a file so that other processes read either the old text or the new one."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    Path(file.name).replace(path)


def make_case(program: Found, seed: int, num_packets: int) -> Case:
    """Return the case of a seed: entries, packets, and changes of entries between packets."""
    rng = random.Random(f"{program.name} {seed}")
    layout = ProgramLayout(program.json)
    packets = PacketGenerator(layout, rng)
    frames = [packets.frame() for _ in range(num_packets)]
    entries = EntryGenerator(layout, program.p4info, rng, packets.seen)
    updates = list(entries.state())
    steps: list[Step] = [Write(update) for update in updates]
    for frame in frames:
        if rng.random() < 0.05:
            change = entries.change(updates)
            steps += [Write(change)] if change is not None else []
        port = CPU_PORT if rng.random() < 0.03 else rng.choice(PORTS)
        steps.append(Packet(port, frame))
    return Case(json=program.json, p4info=program.p4info, seed=seed, steps=tuple(steps))


def check(case: Case, name: str, *, shrink_s: float = 60.0) -> tuple[Result, Path | None]:
    """Run a case; shrink a difference and save it in the folder that is returned."""
    result = run_case(case)
    if result.difference is None:
        return result, None
    small = run_case(shrink(case, shrink_s))
    kept = small if small.difference is not None else result
    folder = CASES / f"{name}-{case.seed}"
    kept.case.save(folder)
    (folder / "difference.txt").write_text(f"{kept.difference}\n", encoding="utf-8")
    return kept, folder
