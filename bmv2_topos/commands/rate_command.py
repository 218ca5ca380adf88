# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold testbed rate`: change the rates of links while a testbed runs."""

from __future__ import annotations

import time
from pathlib import Path

import click

from ..network.rate_trace import LinkRateChange, follow, read_trace
from ..testbed import Testbed
from ..topology.topology_options import RATE
from .command_errors import errors_shown


@click.command()
@click.option("--name", default="main", show_default=True, help="Name of the testbed.")
@click.option("--from", "sender", metavar="NODE", help="Only what this end of the link sends.")
@click.option(
    "--trace",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Make the changes of a file, each at its time from now on; ends after the last one.",
)
@click.option("--restore", is_flag=True, help="Give LINK, or all, the topology's rates again.")
@click.argument("link", required=False)
@click.argument("new_rate", required=False, type=RATE, metavar="[RATE]")
def rate(
    *,
    name: str,
    sender: str | None,
    trace: Path | None,
    restore: bool,
    link: str | None,
    new_rate: int | None,
) -> None:
    """Give LINK of a running testbed (mode veth) another RATE, such as 50M; 0: unshaped.

    Both directions change at once, and nothing is lost. Nobody is told: the controller's file keeps
    the rate of the topology. The rate stays until it is changed again, also if the link is cut and
    mended meanwhile. `switchfold testbed status` shows it.

    \b
    A trace has one JSON object a line, in the order of times:
      {"time_s": 5.0, "link": "h1-s1", "rate_bits_per_s": 50000000}
      {"time_s": 7.5, "link": "h2-s1", "rate_bits_per_s": 25000000, "sender": "h2"}

    \b
    Examples:
      switchfold testbed rate h1-s1 50M
      switchfold testbed rate h1-s1 10M --from h1
      switchfold testbed rate --trace rates.jsonl
      switchfold testbed rate --restore

    \b
    Exit codes: 0 changed, 1 error, 2 wrong use. After an error, links are as before.
    """  # fmt: skip
    with errors_shown():
        if (new_rate is not None) + (trace is not None) + restore != 1:
            raise click.UsageError("give LINK and RATE, or --trace FILE, or --restore")
        if sender is not None and new_rate is None:
            raise click.UsageError("--from needs LINK and RATE")
        if trace is not None and link is not None:
            raise click.UsageError("--trace names its links itself: leave LINK out")
        testbed = Testbed.attach(name)
        rates = testbed.link_rates
        chosen = None if link is None else testbed.topology.link_named(link)
        if trace is not None:
            began_s = time.monotonic()
            changes = read_trace(trace, testbed.topology)
            follow(
                rates,
                changes,
                on_changed=lambda each: _show_change(each, time.monotonic() - began_s),
            )
            return
        if restore:
            ends = rates.restore(chosen)
            for end in ends:
                click.echo(
                    f"{end.sender} to {end.receiver}: no longer {_speed(end.rate_bits_per_s)}"
                )
            if not ends:
                click.echo("no rate was changed")
            return
        assert chosen is not None, "a rate follows its link"
        rates.set(chosen, new_rate or None, sender=sender)
        for end in rates.ends(chosen):
            click.echo(f"{end.sender} to {end.receiver}: {_speed(end.rate_bits_per_s)}")


def _show_change(change: LinkRateChange, now_s: float) -> None:
    sender = f" from {change.sender}" if change.sender else ""
    click.echo(f"{now_s:.3f} s: {change.link}{sender} {_speed(change.rate_bits_per_s)}")


def _speed(rate_bits_per_s: int | None) -> str:
    return f"{rate_bits_per_s / 1e6:g} Mbit/s" if rate_bits_per_s else "unshaped"
