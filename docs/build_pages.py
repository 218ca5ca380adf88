# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Hook of mkdocs: pages that are made, and links that lead out of docs/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File, Files

from switchfold.controller.cli.manual.forwarding import ForwardingCommand
from switchfold.controller.cli.manual.programs import PROGRAMS, contexts_below, program_context

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = {
    "hostlib": "switchfold.hostlib",
    "torch": "switchfold.hostlib.torch",
    "parameter_server": "switchfold.hostlib.parameter_server",
    "hot_rows": "switchfold.hostlib.hot_rows",
    "schemes": "switchfold.hostlib.schemes",
    "controller": "switchfold.controller",
    "bmv2_topos": "switchfold.bmv2_topos",
    "softswitch": "switchfold.softswitch",
    "p4src": "switchfold.p4src",
}
"""Page of the reference: the package whose public names it has."""
LINK = re.compile(r"(?P<text>!?\[[^\]]*\])\((?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the first page, which is README.md, and the pages of the reference."""
    readme = (ROOT / "README.md").read_text("utf-8")
    files.append(File.generated(config, "index.md", content=readme.replace("](docs/", "](")))
    for name, package in REFERENCE.items():
        content = f"# {package}\n\n::: {package}\n"
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    files.append(File.generated(config, "reference/commands.md", content=commands_page()))
    return files


def commands_page() -> str:
    """Return the page that has the help of every command."""
    parts = [
        "# Commands\n\nWhat `--help` of each command says. `switchfold man` makes manual pages.\n"
    ]
    for program in PROGRAMS:
        for context in contexts_below(program_context(program)):
            heading = "##" if context.parent is None else "###"
            parts.append(f"{heading} {context.command_path}\n\n```text\n{help_of(context)}\n```\n")
    return "\n".join(parts)


def help_of(context: click.Context) -> str:
    """Return what `--help` prints."""
    if isinstance(context.command, ForwardingCommand):
        return context.command.parser_help(context.command_path)
    return context.command.get_help(context)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Name files of the repository outside docs/ instead of linking to them."""
    folder = ROOT if page.file.src_uri == "index.md" else ROOT / "docs"
    here = (folder / page.file.src_uri).parent

    def replace(found: re.Match[str]) -> str:
        target = (here / found["path"]).resolve()
        if not target.exists() or target.is_relative_to(ROOT / "docs"):
            return found[0]  # a dead link is for mkdocs to find
        return f"{found['text'].lstrip('!')[1:-1]} (`{target.relative_to(ROOT)}`)"

    return LINK.sub(replace, markdown)
