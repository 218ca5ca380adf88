# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold p4`: compile P4 programs, and compare compiled ones with their sources."""

from __future__ import annotations

from pathlib import Path

import click

from ....p4src import VARIANTS, program_name, stale_program, stale_variant
from ....p4src.artefacts import artefact_dir
from ....p4src.own_program import compile_own, copy_sources

_EXIT_CODES = "Exit codes: 0 done, 1 an error, or a compiled program that is old."


@click.group(epilog=_EXIT_CODES)
def p4() -> None:
    """Compile P4 programs, and compare compiled ones with their sources."""


@p4.command("compile", epilog=_EXIT_CODES)
@click.argument("program", type=click.Path(path_type=Path))
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the compiled program.  [default: build/NAME beside PROGRAM]",
)
def compile_p4(program: Path, folder: Path | None) -> None:
    """Compile PROGRAM, P4_16 for v1model, with the p4c-bm2-ss on the PATH.

    The folder then holds the BMv2 JSON, the P4Info and a manifest: digests of every source, by
    which 'switchfold p4 check' and 'switchfold testbed up --program' notice a later change.

    \b
    Examples:
      switchfold p4 compile router.p4
      switchfold p4 compile mine/bmv2/switchfold_wide.p4 --out mine/build
    """
    made, remarks = compile_own(program, folder or program.parent / "build" / program.stem)
    if remarks:
        click.echo(remarks, err=True)
    click.echo(f"{made.folder} holds {made.json.name} and {made.p4info.name}")


@p4.command("sources", epilog=_EXIT_CODES)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def copy_p4_sources(folder: Path) -> None:
    """Copy the sources of the aggregation program into FOLDER, to be changed there.

    \b
    Examples:
      switchfold p4 sources mine
      switchfold p4 compile mine/bmv2/switchfold_wide.p4
    """
    programs = copy_sources(folder)
    names = " and ".join(f"{program_name(variant)}.p4" for variant in VARIANTS)
    click.echo(f"{programs} holds {names}; compile one with 'switchfold p4 compile'")


@p4.command("check", epilog=_EXIT_CODES)
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path, exists=True, file_okay=False))
def check_p4(folders: tuple[Path, ...]) -> int:
    """Compare compiled programs with their P4 sources: those in FOLDERS, else the package's.

    \b
    Examples:
      switchfold p4 check
      switchfold p4 check mine/bmv2/build/switchfold_wide
    """
    if folders:
        found = {str(folder): stale_program(folder) for folder in folders}
    else:
        found = {str(artefact_dir(variant)): stale_variant(variant) for variant in VARIANTS}
    for folder, problem in found.items():
        click.echo(problem or f"{folder} is what its sources say")
    return int(any(found.values()))
