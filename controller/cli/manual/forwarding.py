# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Commands whose words go, as they are, to a parser of argparse in another package."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, Final, final

import click
from click.shell_completion import CompletionItem

_OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
SETTINGS: Final[dict[str, Any]] = {"ignore_unknown_options": True, "help_option_names": []}
"""Settings of such a command's context: click looks at no word, `--help` included."""


@final
class ForwardingCommand(click.Command):
    """A command that has its options from argparse, for its manual page and for completion."""

    def __init__(
        self, *words: Any, make_parser: Callable[[str], argparse.ArgumentParser], **options: Any
    ) -> None:
        """`make_parser`: called with what users call the command."""
        super().__init__(*words, **options)
        self._make_parser = make_parser

    def parser_help(self, program: str) -> str:
        """Return the parser's help: usage, description, options."""
        return self._make_parser(program).format_help()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the parser's options that begin like this."""
        options = dict.fromkeys(_OPTION.findall(self.parser_help(ctx.command_path)))
        return [CompletionItem(option) for option in options if option.startswith(incomplete)]
