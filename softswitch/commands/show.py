# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`softswitch show` prints stages of a program, `softswitch check` says whether it would run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..compilation.stages import STAGES, dot, format_stage
from ..errors import ProgramError
from ..generator import generate
from ..program.bmv2_json import read_program
from ..program.model import Program
from .options import PROGRAM_FILE, errors_in_words

_SHOW_EXAMPLE = """\b
Examples:
  softswitch show router.json > router.c
  softswitch show router.json --stage tables --table routes
  softswitch show router.json --stage parser --dot | dot -Tsvg > parser.svg
  softswitch show router.json --stage resources --json
"""
_CHECK_EXAMPLE = """\b
Examples:
  softswitch check program.json
  softswitch check router.json --p4info router.p4info.txtpb
  softswitch check build/*.json --json
Exit codes: 0 all programs would run, 1 some are refused.
"""


@click.command(epilog=_SHOW_EXAMPLE)
@click.argument("program", type=PROGRAM_FILE)
@click.option("--stage", type=click.Choice(["c", *STAGES]), default="c", show_default=True)
@click.option("--table", "tables", multiple=True, help="Only items with this in their names.")
@click.option("--dot", "as_dot", is_flag=True, help="Graphviz graph of parser or control.")
@click.option("--json", "as_json", is_flag=True, help="The stage as JSON.")
def show(program: Path, stage: str, tables: tuple[str, ...], as_dot: bool, as_json: bool) -> None:
    """Print a stage of the compilation of PROGRAM (BMv2 JSON), by default the C text."""
    with errors_in_words():
        read = read_program(program)
        if as_dot:
            try:
                click.echo(dot(stage, read), nl=False)
            except ValueError as exc:
                raise click.UsageError(str(exc)) from exc
            return
        if stage == "c":
            click.echo(json.dumps(generate(read)) if as_json else generate(read), nl=as_json)
            return
        data = STAGES[stage](read)
        if tables:
            data = {key: data[key] for key in data if any(word in key for word in tables)}
        click.echo(json.dumps(data, indent=2) if as_json else "\n".join(format_stage(data)))


@click.command(epilog=_CHECK_EXAMPLE)
@click.argument("programs", type=PROGRAM_FILE, nargs=-1, required=True)
@click.option("--p4info", type=PROGRAM_FILE, help="Also compare the one PROGRAM with its P4Info.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per program, in a line.")
@click.pass_context
def check(
    context: click.Context, programs: tuple[Path, ...], p4info: Path | None, as_json: bool
) -> None:
    """Say whether PROGRAMS (BMv2 JSON) would run, and list everything that is refused."""
    if p4info is not None and len(programs) != 1:
        raise click.UsageError("--p4info describes one program: give one")
    is_refused = False
    for path in programs:
        problems: list[dict[str, Any]] = []
        warnings: list[str] = []
        try:
            read = read_program(path)
            generate(read)
            if p4info is not None:
                with errors_in_words():
                    warnings = _compare(read, p4info)
        except ProgramError as exc:
            is_refused = True
            problems = [
                {"where": item.where, "what": item.what, "why": item.why, "remedy": item.remedy}
                for item in exc.problems
            ]
        if as_json:
            click.echo(
                json.dumps(
                    {
                        "program": str(path),
                        "runs": not problems,
                        "problems": problems,
                        "warnings": warnings,
                    }
                )
            )
            continue
        click.echo(f"{path}: {'runs' if not problems else f'refused, {len(problems)} problem(s)'}")
        for item in problems:
            click.echo(f"  {item['where']}: {item['what']}: {item['why']}. {item['remedy']}.")
        for warning in warnings:
            click.echo(f"  warning: {warning}")
    context.exit(1 if is_refused else 0)


def _compare(program: Program, p4info: Path) -> list[str]:
    """Return the harmless differences to a P4Info; raise PipelineConfigError with the others."""
    from ..p4runtime.p4info.p4info import build_schema  # noqa: PLC0415 - protobuf when needed
    from ..p4runtime.service.serve import read_p4info  # noqa: PLC0415

    return list(build_schema(read_p4info(p4info), program).warnings)
