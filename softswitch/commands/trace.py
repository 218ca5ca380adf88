# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`softswitch trace` shows what a program does to given frames, without a network."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..compilation.compiler import TracedProgram, compile_program, compile_traced
from ..switch.switch import MAX_PRIORITY_QUEUES, Switch
from ..trace import Narrator, Recorder, Step, write_json, write_text
from ..trace.pcap import read_pcap
from .options import PROGRAM_FILE, errors_in_words

if TYPE_CHECKING:
    from ..p4runtime.entities.entry_names import EntryNames

_EXAMPLE = """\b
Examples:
  softswitch trace router.json --port 1 --frame 0200000001010200000001020806...
  softswitch trace router.json --p4info router.p4info.txtpb --entries entries.txt \\
    --port 1 --pcap port1.pcap --count 3
  softswitch trace router.json --port 1 --pcap port1.pcap --json | jq 'select(.kind == "table")'

\b
--entries: *.json has the form of the P4 tutorials, *.txtpb is a P4Runtime WriteRequest as text,
any other file has lines such as 'table_add routes set_next_hop 10.0.1.0/24 => 1'.
P4 files are searched next to PROGRAM and in each --p4-source.
"""
PORTS = 511


def _parse_frames(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[bytes, ...]:
    del context, parameter
    try:
        return tuple(bytes.fromhex(text.removeprefix("0x")) for text in values)
    except ValueError as exc:
        raise click.BadParameter(f"not hexadecimal bytes: {exc}") from exc


def _parse_numbers(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> frozenset[int]:
    del context, parameter
    numbers: set[int] = set()
    for part in value.split(",") if value else ():
        low, _, high = part.partition("-")
        if not low.isdigit() or not (high or low).isdigit():
            raise click.BadParameter(f"{part!r} is not a port or range of ports, e.g. 1-4,7")
        numbers |= set(range(int(low), int(high or low) + 1))
    return frozenset(number for number in numbers if number < PORTS) or frozenset(range(PORTS))


@click.command(epilog=_EXAMPLE)
@click.argument("program", type=PROGRAM_FILE)
@click.option("--p4info", type=PROGRAM_FILE, help="P4Info text file; goes with --entries.")
@click.option("--entries", type=PROGRAM_FILE, help="Entries and groups to start with.")
@click.option("--port", default=1, show_default=True, type=click.IntRange(0, PORTS - 1))
@click.option("--frame", "frames", multiple=True, callback=_parse_frames, metavar="HEX")
@click.option("--pcap", type=PROGRAM_FILE, help="Frames from a capture.")
@click.option("--count", type=click.IntRange(min=1), help="Trace the first frames only.")
@click.option(
    "--ports",
    callback=_parse_numbers,
    metavar="LIST",
    help="Ports of the switch, such as 1-4,7.  [default: all]",
)
@click.option(
    "--priority-queues",
    default=1,
    show_default=True,
    type=click.IntRange(1, MAX_PRIORITY_QUEUES),
    help="Queues of a port; a packet whose standard_metadata.priority has none is dropped.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per step and line.")
@click.option(
    "--p4-source",
    "p4_sources",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="P4 file, or folder with P4 files.",
)
@click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True
)
def trace(  # noqa: PLR0913, PLR0917 - click passes options by name
    program: Path,
    p4info: Path | None,
    entries: Path | None,
    port: int,
    frames: tuple[bytes, ...],
    pcap: Path | None,
    count: int | None,
    ports: frozenset[int],
    priority_queues: int,
    as_json: bool,
    p4_sources: tuple[Path, ...],
    color: str,
) -> None:
    """Show what PROGRAM (BMv2 JSON) does to frames that arrive at a port.

    Prints every step with its values and its P4 line: parser states and headers, tables with key,
    entry and action, statements, registers and counters, checksums, copies, drops, frames sent.
    """
    if not frames and pcap is None:
        raise click.UsageError("give frames: --frame HEX, or --pcap FILE")
    if entries is not None and p4info is None:
        raise click.UsageError("--entries needs --p4info: entries are written through P4Runtime")
    with errors_in_words():
        compiled = compile_traced(program)
        given = [*frames, *(read_pcap(pcap) if pcap is not None else ())][:count]
        with Switch(compiled, priority_queues=priority_queues) as switch:
            for number in ports | {port}:
                if number != switch.cpu_port:
                    switch.ports.add(number, "mem")
            names = _load(switch, compiled, p4info, entries)
            recorder = Recorder(compiled)
            narrator = Narrator(
                compiled,
                recorder.layout,
                json_path=program,
                p4_sources=p4_sources,
                entry_text=names.describe if names is not None else lambda _table, _entry: None,
            )
            recorder.start()
            with contextlib.suppress(BrokenPipeError):
                _write(_steps(switch, recorder, narrator, port, given), as_json, color)


def _steps(
    switch: Switch, recorder: Recorder, narrator: Narrator, port: int, frames: list[bytes]
) -> Iterator[Step]:
    for frame in frames:
        switch.process(port, frame)
        yield from narrator.tell(recorder.take())
        yield from narrator.finish()


def _write(steps: Iterator[Step], as_json: bool, color: str) -> None:
    if as_json:
        write_json(steps, sys.stdout)
    else:
        is_coloured = color == "always" or (color == "auto" and sys.stdout.isatty())
        write_text(steps, sys.stdout, is_coloured=is_coloured)


def _load(
    switch: Switch, compiled: TracedProgram, p4info: Path | None, entries: Path | None
) -> EntryNames | None:
    """Write the entries, and return an object that describes them; None without a P4Info."""
    if p4info is None:
        return None
    from finsy.proto import p4r  # noqa: PLC0415 - finsy only when it is needed

    from ..p4runtime.entities.entries import load_entries  # noqa: PLC0415
    from ..p4runtime.entities.entry_names import EntryNames  # noqa: PLC0415
    from ..p4runtime.service.pipeline_config import PipelineConfig  # noqa: PLC0415
    from ..p4runtime.service.serve import read_p4info  # noqa: PLC0415

    config = PipelineConfig(switch, compile_program)
    blob = json.dumps(compiled.model.json).encode()
    info = read_p4info(p4info)
    config.adopt(p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=blob), compiled.model)
    if entries is not None:
        load_entries(config.current(), entries)
    return EntryNames(switch, lambda: config.running, config.current().stores.read)
