# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold completion`: what makes a shell complete commands and options of both programs."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from .programs import PROGRAMS, program_context

SHELLS: Final = ("bash", "zsh", "fish")


@click.command(epilog="Exit codes: 0 done.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script by which SHELL completes `switchfold` and `softswitch`.

    \b
    Examples:
      switchfold completion bash >~/.local/share/bash-completion/completions/switchfold
      source <(switchfold completion bash)                   # in ~/.bashrc
      source <(switchfold completion zsh)                    # in ~/.zshrc, after compinit
      switchfold completion fish >~/.config/fish/completions/switchfold.fish

    \b
    The scripts ask the program at each Tab. A file of a shell's completions folder is loaded at the
    first Tab after `switchfold`, so `softswitch` is completed from then on.
    """
    script = get_completion_class(shell)
    assert script is not None, shell
    for program in PROGRAMS:
        variable = f"_{program.upper()}_COMPLETE"
        made = script(program_context(program).command, {}, program, variable)
        # In fish, click's script ends what is said of a word at the first comma.
        click.echo(made.source().replace('string split ","', 'string split --max 1 ","'))
