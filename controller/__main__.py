# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The `switchfold` command: loads each subcommand when it is used, shows errors as one line."""

from __future__ import annotations

import gc
import importlib
import sys
from importlib import metadata
from typing import Final, cast

try:
    import click
    from click.shell_completion import CompletionItem

    from ..hostlib.observing.logs import escaped
    from .errors import ToolError
except ModuleNotFoundError as exc:  # the package was installed for workers that join nothing
    sys.exit(
        f"error: 'switchfold' needs the Python module {exc.name}, which is missing; run"
        " pip install '.[controller]' or 'make deps' in a checkout"
    )

EXIT_CODES: Final = """\b
Exit codes:
  0  done, all is well
  1  an error, or a check that failed
  2  wrong use of the command line
  3  nothing is there to talk to or to do"""

COMMANDS: Final = {
    "bench": (
        "switchfold.controller.cli.bench:bench",
        "Measure sums, training, and parts of them.",
    ),
    "calibrate": (
        "switchfold.controller.cli.calibrate.command:calibrate",
        "Measure what this machine can carry, for predictions.",
    ),
    "certs": ("switchfold.controller.cli.certs:certs", "Make and revoke certificates."),
    "completion": (
        "switchfold.controller.cli.manual.completion:completion",
        "Print what makes a shell complete commands and options.",
    ),
    "controller": ("switchfold.controller.cli.controller:controller", "Run the control plane."),
    "demo": (
        "switchfold.controller.cli.demo.command:demo",
        "Train a real model through a P4 switch.",
    ),
    "deploy": (
        "switchfold.controller.cli.deploy.command:deploy",
        "Deploy on machines of your own.",
    ),
    "dissector": (
        "switchfold.controller.cli.traces.dissector:dissector",
        "Show packets field by field in Wireshark.",
    ),
    "doctor": (
        "switchfold.controller.cli.doctor_command:doctor",
        "Find out what is wrong, and what to do.",
    ),
    "job": ("switchfold.controller.cli.job:job", "Look at jobs and end them."),
    "link": ("switchfold.controller.cli.link:link", "Look at links and take them out of use."),
    "man": (
        "switchfold.controller.cli.manual.command:man",
        "Print or install manual pages of all commands.",
    ),
    "p4": ("switchfold.controller.cli.p4.command:p4", "Compile P4 programs, and find old ones."),
    "report": ("switchfold.controller.cli.report:report", "Make pages of what runs have logged."),
    "ps": ("switchfold.controller.cli.ps:ps", "Run parameter servers."),
    "schedule": (
        "switchfold.controller.cli.schedule.command:schedule",
        "Look at live transfers of updates.",
    ),
    "scheme": (
        "switchfold.controller.cli.schemes.command:scheme",
        "Choose and predict PS, INA or factors.",
    ),
    "shell": ("switchfold.controller.cli.shell:shell", "Open p4runtime-shell on a switch."),
    "switch": ("switchfold.controller.cli.switch:switch", "Look at switches and their counters."),
    "tolerance": (
        "switchfold.controller.cli.tolerance.command:tolerance",
        "Find how much loss the training of a model bears.",
    ),
    "top": (
        "switchfold.controller.cli.top.command:top",
        "Show what jobs, trees, links and switches do now.",
    ),
    "tree": ("switchfold.controller.cli.tree:tree", "Look at aggregation trees, and plan them."),
    "trace": (
        "switchfold.controller.cli.traces.command:trace",
        "Look at traces of training: draw, sum up.",
    ),
    "testbed": (
        "switchfold.bmv2_topos.commands.testbed:testbed",
        "Set up and take down a network to try things.",
    ),
}
_LINE_BREAK: Final = "\n"


class LazyGroup(click.Group):
    """A group that imports a subcommand's module only when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all subcommands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a subcommand; ToolError names a package that is missing."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        try:
            return cast("click.Command", getattr(importlib.import_module(module), attribute))
        except ModuleNotFoundError as exc:
            raise ToolError(
                f"'switchfold {cmd_name}' needs the Python module {exc.name}, which is missing; "
                "run pip install '.[controller]' or 'make deps' in a checkout"
            ) from exc
        finally:
            _collect_again()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete subcommands without importing them."""
        options = click.Command.shell_complete(self, ctx, incomplete)
        named = [CompletionItem(name, help=text) for name, (_, text) in sorted(COMMANDS.items())]
        return [item for item in named if item.value.startswith(incomplete)] + options

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(COMMANDS.items())])


def _version() -> str:
    try:
        return metadata.version("switchfold")
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"


@click.group(
    cls=LazyGroup, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(_version(), prog_name="switchfold")
def switchfold() -> None:
    """Sum gradients inside P4 switches.

    \b
    Examples:
      switchfold demo              train a model through a switch, with proofs
      switchfold testbed up        a switch and four workers to try things on
      switchfold deploy init       files, certificates and units for machines of your own
      switchfold doctor            what is wrong, and what to do
      switchfold job show train    workers, slots and counters of a job
    """


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code; typed errors become one line on stderr."""
    try:
        result = switchfold.main(arguments, prog_name="switchfold", standalone_mode=False)
    except click.ClickException as exc:
        exc.show()
        return exc.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except Exception as exc:
        # Typed errors of our own speak for themselves; anything else is a defect of ours.
        if type(exc).__module__.partition(".")[0] != "switchfold":
            raise
        click.echo(f"error: {escaped(str(exc), keep=_LINE_BREAK)}", err=True)
        return int(getattr(exc, "exit_code", 1))
    return result if isinstance(result, int) else 0


def _collect_again() -> None:
    """End what `main` began; what is loaded stays, so collections need not look at it."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def main() -> None:
    """Enter the command line."""
    # To load a command makes no garbage; to look for it again and again takes a third of the time.
    gc.disable()
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
