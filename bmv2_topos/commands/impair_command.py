# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold testbed impair`: lose, delay and reorder packets of a link while it runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

import click

from ...softswitch.switch.impairments import parse_settings
from ..impairment.impaired_links import DROPS, ImpairedDirection
from ..testbed import Testbed
from .command_errors import errors_shown

_EFFECTS = ("duplicated", "corrupted", "reordered", "delayed")


@click.command()
@click.option("--name", default="main", show_default=True, help="Name of the testbed.")
@click.option("--from", "sender", metavar="NODE", help="Only what this end of the link sends.")
@click.option("--clear", is_flag=True, help="Take the impairments off LINK, or off all links.")
@click.option("--show", is_flag=True, help="Show what is set on LINK, or on all, with counters.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list, one object per direction.")
@click.argument("link", required=False)
@click.argument("settings", required=False, metavar="[NAME=VALUE,...]")
def impair(  # noqa: PLR0913 - click passes options by name
    *,
    name: str,
    sender: str | None,
    clear: bool,
    show: bool,
    as_json: bool,
    link: str | None,
    settings: str | None,
) -> None:
    """Impair LINK of a running testbed (mode veth), in place of what was set there before.

    \b
    Settings:
      loss=P                          each packet is lost with probability P
      burst_start=P,burst_end=R       bursts (Gilbert, Elliott): one begins with probability P per
        [,burst_loss=Q]               packet, ends with R; within it, Q (1) replaces loss
      script=LENGTH:P/LENGTH:P/...    loss P for 100p (packets), 50ms or 2s each, from the first
        [/repeat]                     packet on; replaces loss and bursts while it lasts
      delay_s=S                       every packet is late
      reordering=P,reordering_delay_s=S (or reordering_packets=N)
                                      packets are held while later ones pass
      rate_bits_per_s=B               less than the link's own rate
      queue_packets=N                 that may wait for rate and delay (1000)
      duplication=P, corruption=P     a packet comes twice; one bit of it is flipped
      seed=N                          of the random numbers (1)

    \b
    Examples:
      switchfold testbed impair h1-s1 loss=0.01
      switchfold testbed impair s1-s3 burst_start=0.001,burst_end=0.1,seed=7 --from s1
      switchfold testbed impair h2-s1 script=950ms:0/50ms:0.6/repeat,delay_s=0.002
      switchfold testbed impair --show
      switchfold testbed impair h2-s1 --clear

    \b
    Exit codes: 0 set, cleared or shown, 1 error, 2 wrong use. After an error, links are as before.
    """  # fmt: skip
    with errors_shown():
        if (settings is not None) + clear + show != 1:
            raise click.UsageError(
                "give LINK with settings such as loss=0.01, or --show, or --clear"
            )
        testbed = Testbed.attach(name)
        chosen = None if link is None else testbed.topology.link_named(link)
        if chosen is None and sender is not None:
            raise click.UsageError("--from needs LINK, one end of which it names")
        links = testbed.impaired_links
        if clear:
            shown = links.clear(chosen, sender=sender)
        else:
            if settings is not None and chosen is not None:
                links.impair(chosen, parse_settings(settings), sender=sender)
            shown = [
                each
                for each in links.show()
                if (chosen is None or {each.sender, each.receiver} == set(chosen.ends))
                and sender in {None, each.sender}
            ]
        if as_json:
            click.echo(json.dumps([dataclasses.asdict(each) for each in shown], indent=2))
        else:
            _print(shown, is_cleared=clear)


def _print(shown: Sequence[ImpairedDirection], *, is_cleared: bool) -> None:
    for each in shown:
        what = "no longer " if is_cleared else ""
        click.echo(f"{each.sender} to {each.receiver}: {what}{each.settings}")
        counted = each.counters
        line = f"  {counted['seen']} packets seen, {counted['sent']} sent, {each.dropped} dropped"
        causes = [f"{cause} {counted[cause]}" for cause in DROPS if counted[cause]]
        line += f" ({', '.join(causes)})" if causes else ""
        effects = [f"{counted[effect]} {effect}" for effect in _EFFECTS if counted[effect]]
        click.echo(", ".join([line, *effects]))
    if not shown:
        click.echo("no link was impaired" if is_cleared else "no link is impaired")
