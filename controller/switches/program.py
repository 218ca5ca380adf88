# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The P4 program that switches must run: its artefacts, and how to tell it from others."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, cast

from finsy import P4Schema, pbutil
from finsy.proto import p4i, p4r

from ...hostlib.slots import wire
from ...p4src.artefacts import Variant
from ...p4src.errors import ProgramFilesError
from ...p4src.freshness import stale_program, stale_variant
from ...p4src.own_program import program_files_in
from ..errors import ProgramMissingError

_LOGGER = logging.getLogger(__name__)

PROGRAM_NAME = "switchfold"
_VARIANT_VALUES: Final = {"32": "narrow", "352": "wide"}
"""Values per packet, as in the program's version, and the variant that has them."""


def describe(p4info: p4i.P4Info) -> str:
    """Return "name version" of a program as users know it."""
    info = p4info.pkg_info
    if not info.name and not info.version:
        return "a program without name"
    return f"{info.name or 'unnamed'} {info.version or '(no version)'}"


def variant_of(program: str) -> str:
    """Return narrow or wide by what `describe` has returned, "" if it is no variant of ours."""
    name, _, version = program.partition(" ")
    values = version.rpartition(".")[2]
    return _VARIANT_VALUES.get(values, "") if name == PROGRAM_NAME else ""


def variant_text(program: str) -> str:
    """Return what `describe` has returned, followed by what the variant is called."""
    variant = variant_of(program)
    values = program.rpartition(".")[2]
    return f"{program} ({variant}: {values} values per packet)" if variant else program


@dataclass(frozen=True)
class AggregationProgram:
    """Compiled artefacts of one variant."""

    p4info_path: Path
    p4blob_path: Path

    @cached_property
    def p4info(self) -> p4i.P4Info:
        """P4Info of the program."""
        return pbutil.from_text(self.p4info_path.read_text("utf-8"), p4i.P4Info)

    @cached_property
    def schema(self) -> P4Schema:
        """Names and widths, for encoding entities."""
        return P4Schema(self.p4info_path, self.p4blob_path)

    @property
    def values_per_packet(self) -> int:
        """Lanes of a packet; second part of the program's version."""
        return int(self.p4info.pkg_info.version.rpartition(".")[2])

    @property
    def wire_version(self) -> int:
        """Wire format; first part of the program's version."""
        return int(self.p4info.pkg_info.version.partition(".")[0])

    def matches(self, config: p4r.ForwardingPipelineConfig) -> bool:
        """Return whether a switch's pipeline is this program (same name, version and P4Info)."""
        return self.schema.has_p4info(config.p4info)


def wrong_program_text(running: p4i.P4Info, wanted: p4i.P4Info) -> str:
    """Return what a switch runs instead of a wanted program, and what to do about it."""
    runs, needs = variant_text(describe(running)), variant_text(describe(wanted))
    variant, ours = variant_of(describe(running)), variant_of(describe(wanted))
    if variant and ours and variant != ours:
        return (
            f"runs {runs}, this controller needs {needs}; start the controller with --variant "
            f"{variant} to use what is loaded, or with --replace-program to load the {ours} program"
        )
    return (
        f"runs {runs}, this controller needs {needs} as compiled here; start it with "
        "--replace-program to load it"
    )


def load_program(variant: str, program_dir: Path | None = None) -> AggregationProgram:
    """Return the artefacts of a variant, from the package or from `program_dir`.

    There they may have any name, as long as there is one program or one of the variant's name.
    Logs a warning when they are not those of their P4 sources.
    """
    name = f"{PROGRAM_NAME}_{variant}"
    if program_dir is None:
        problem = stale_variant(cast("Variant", variant))
        program_dir = Path(__file__).parents[2] / "p4src" / "build" / name
    else:
        problem = stale_program(program_dir)
        if not (program_dir / f"{name}.json").is_file():
            try:
                name = program_files_in(program_dir).name
            except ProgramFilesError as exc:
                raise ProgramMissingError(str(exc)) from exc
    if problem:
        _LOGGER.warning("%s", problem)
    program = AggregationProgram(program_dir / f"{name}.p4info.txtpb", program_dir / f"{name}.json")
    for path in (program.p4info_path, program.p4blob_path):
        if not path.is_file():
            raise ProgramMissingError(
                f"compiled program {path} is missing; run 'make p4' or reinstall the package"
            )
    if program.wire_version != wire.WIRE_VERSION:
        raise ProgramMissingError(
            f"{program.p4info_path} speaks wire version {program.wire_version}, this controller "
            f"{wire.WIRE_VERSION}; run 'make p4'"
        )
    return program
