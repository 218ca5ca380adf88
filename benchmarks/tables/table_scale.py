# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables with many entries: memory, insertion rate, lookup time and longest stall, with their aims.

The first part runs in this process, on tables of tests/pipeline/programs/table_kinds.p4 through the
pipeline seam: every answer is verified before it is timed, and times are CPU time of the thread.
The second part goes through P4Runtime to a switch in another process: times are wall clock, and all
entries are read back. The exit status is 1 if an aim is missed.
"""

import argparse
import ctypes
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.tables import table_p4runtime  # noqa: E402
from switchfold.softswitch.compilation.compiler import (  # noqa: E402
    FLAGS,
    RUNTIME,
    compile_program,
    find_compiler,
)
from switchfold.softswitch.switch.pipeline import PHV_ALIGNMENT, PipelineOps, open_pipeline  # noqa: E402

PROGRAM = ROOT / "tests/pipeline/programs/table_kinds.json"
KINDS = {"exact_large": 2, "prefixes": 3, "masks": 4, "ranges": 5}
MEMORY_AIM_MB = 300.0
INSERT_AIM_S = {20_000: 2.0}
"""Aim in seconds of wall clock through P4Runtime, by number of entries."""
STALL_AIM_MS = 10.0
CASES = (
    ("exact_large", 1_000),
    ("exact_large", 100_000),
    ("exact_large", 1_000_000),
    ("prefixes", 1_000),
    ("prefixes", 100_000),
    ("masks", 1_000),
    ("masks", 20_000),
    ("ranges", 1_000),
    ("ranges", 20_000),
)


class Subject(ctypes.Structure):
    """`subject_t` of table_scale.c."""

    _fields_ = [
        ("ops", ctypes.POINTER(PipelineOps)),
        ("pipeline", ctypes.c_void_p),
        ("phv", ctypes.c_void_p),
        ("table", ctypes.c_uint32),
        ("action", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
    ]


@dataclass(frozen=True)
class Result:
    """Measurement of one case."""

    table: str
    entries: int
    megabytes: float
    inserts_per_s: float
    deletes_per_s: float
    lookup_ns: float
    worst_stall_ms: float


def resident_mb() -> float:
    """Return the memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6


def build_probe(folder: Path) -> ctypes.CDLL:
    """Compile table_scale.c."""
    library = folder / "table_scale.so"
    source = Path(__file__).with_suffix(".c")
    command = [*find_compiler(), *FLAGS, f"-I{RUNTIME}", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    probe = ctypes.CDLL(str(library))
    subject, number = ctypes.POINTER(Subject), ctypes.c_uint32
    probe.scale_change.restype = probe.scale_ask.restype = ctypes.c_double
    worst = ctypes.POINTER(ctypes.c_double)
    probe.scale_change.argtypes = [subject, number, number, ctypes.c_int, worst]
    probe.scale_ask.argtypes = [subject, number, number, ctypes.c_int]
    return probe


def measure(probe: ctypes.CDLL, table: str, entries: int, lookups: int) -> Result:
    """Fill a table of a new pipeline, look up its entries, and empty it."""
    program = compile_program(PROGRAM)
    held, ops = open_pipeline(program.library)
    model = next(item for item in program.model.tables if item.name.endswith(f".{table}"))
    action = next(item for item in model.actions if item.name.endswith(".answer"))
    memory = ctypes.create_string_buffer(ops.phv_bytes + PHV_ALIGNMENT)
    phv = ctypes.addressof(memory) + -ctypes.addressof(memory) % PHV_ALIGNMENT
    before = resident_mb()
    state = ops.create()
    subject = Subject(
        ctypes.pointer(ops), state, phv, model.position, action.position, KINDS[table]
    )
    worst = ctypes.c_double()
    try:
        insert_s = probe.scale_change(subject, 0, entries, 0, worst)
        if insert_s < 0:
            raise SystemExit(f"{table}: an insertion was refused")
        megabytes = resident_mb() - before
        if probe.scale_ask(subject, entries, min(lookups, 200_000), 1) < 0:
            raise SystemExit(f"{table} with {entries} entries: a lookup gave a wrong answer")
        spans = [probe.scale_ask(subject, entries, lookups, 0) for _ in range(3)]
        subject.kind = 0
        bare = min(probe.scale_ask(subject, entries, lookups, 0) for _ in range(3))
        subject.kind = KINDS[table]
        other = ctypes.c_double()
        delete_s = probe.scale_change(subject, 0, entries, 1, other)
        if delete_s < 0:
            raise SystemExit(f"{table}: a removal was refused")
        return Result(
            table,
            entries,
            megabytes,
            entries / insert_s,
            entries / delete_s,
            (min(spans) - bare) / lookups * 1e9,
            max(worst.value, other.value) * 1e3,
        )
    finally:
        ops.destroy(state)
        del held


def report_p4runtime() -> bool:
    """Measure and print entries through P4Runtime; return whether an aim is missed."""
    print("\nthrough P4Runtime, batches of 5,000, read back and compared; MB of the whole process")
    columns = ("entries", "insert s", "inserts/s", "read s", "reads/s", "MB", "aims")
    print("{:>9} {:>9} {:>10} {:>8} {:>10} {:>7}  {}".format(*columns))
    is_missed = False
    for entries in (20_000, 1_000_000):
        found = table_p4runtime.measure(entries)
        missed = ["memory"] if found.megabytes > MEMORY_AIM_MB else []
        if found.insert_s > INSERT_AIM_S.get(entries, found.insert_s):
            missed.append("insertion")
        is_missed = is_missed or bool(missed)
        print(
            f"{entries:9} {found.insert_s:9.2f} {entries / found.insert_s:10.0f} "
            f"{found.read_s:8.2f} {entries / found.read_s:10.0f} {found.megabytes:7.1f}  "
            f"{'missed: ' + ', '.join(missed) if missed else 'met'}"
        )
    return is_missed


def main() -> int:
    """Run all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lookups", type=int, default=1_000_000, help="timed packets per case")
    arguments = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}; {arguments.lookups} lookups, best of 3")
    print(
        f"aims: at most {MEMORY_AIM_MB:.0f} MB, worst stall at most {STALL_AIM_MS:.0f} ms; "
        f"20,000 entries through P4Runtime in {INSERT_AIM_S[20_000]:.0f} s"
    )
    columns = ("table", "entries", "MB", "inserts/s", "deletes/s", "lookup ns", "stall ms", "aims")
    print("{:12} {:>9} {:>7} {:>10} {:>10} {:>10} {:>9}  {}".format(*columns))
    is_missed = False
    with tempfile.TemporaryDirectory() as folder:
        probe = build_probe(Path(folder))
        for table, entries in CASES:
            found = measure(probe, table, entries, arguments.lookups)
            missed = [
                name
                for name, value, aim in (
                    ("memory", found.megabytes, MEMORY_AIM_MB),
                    ("stall", found.worst_stall_ms, STALL_AIM_MS),
                )
                if value > aim
            ]
            is_missed = is_missed or bool(missed)
            print(
                f"{found.table:12} {found.entries:9} {found.megabytes:7.1f} "
                f"{found.inserts_per_s:10.0f} {found.deletes_per_s:10.0f} "
                f"{found.lookup_ns:10.1f} {found.worst_stall_ms:9.2f}  "
                f"{'missed: ' + ', '.join(missed) if missed else 'met'}"
            )
    is_missed = report_p4runtime() or is_missed
    return 1 if is_missed else 0


if __name__ == "__main__":
    sys.exit(main())
