# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold certs`: an authority of one's own, and the certificates of all processes."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from ...hostlib.credentials.roles import Role
from ..certificates.authority import AUTHORITY_DAYS, DEFAULT_DAYS, CertificateAuthority
from ..errors import CertificateError
from .output import print_table

_FOLDER = click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
_DAYS = click.option(
    "--days",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_DAYS,
    show_default=True,
    help="How long the certificate is valid.",
)


@click.group()
def certs() -> None:
    """Make, renew and revoke the certificates that processes show each other.

    \b
    Examples:
      switchfold certs init authority
      switchfold certs issue authority --role controller c1
      switchfold certs issue authority --role worker w1 w2 w3
      SWITCHFOLD_CREDENTIALS=authority/issued/w1 python train.py
    """


@certs.command()
@_FOLDER
@click.option(
    "--days",
    type=click.FloatRange(min=0, min_open=True),
    default=AUTHORITY_DAYS,
    show_default=True,
    help="How long the authority is valid.",
)
def init(directory: Path, days: float) -> None:
    """Make an authority in a new DIRECTORY. Whoever has its ca.key can make any certificate."""
    CertificateAuthority.create(directory, days=days)
    click.echo(
        f"authority in {directory}; keep {directory / 'ca.key'} secret, and issue certificates "
        f"with 'switchfold certs issue {directory} --role ROLE NAME'"
    )


@certs.command()
@_FOLDER
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--role", type=click.Choice([str(role) for role in Role]), required=True)
@click.option(
    "--address",
    "addresses",
    multiple=True,
    metavar="ADDRESS",
    help="IP address or DNS name, only for programs that are not Switchfold's; repeatable.",
)
@_DAYS
def issue(
    directory: Path, names: tuple[str, ...], role: str, addresses: tuple[str, ...], days: float
) -> None:
    """Make a key and a certificate for each NAME, and print their folders.

    Copy a folder to the process's machine, and name it there with --credentials, or in
    SWITCHFOLD_CREDENTIALS. A switch's NAME is that of the controller's configuration.
    """
    authority = CertificateAuthority(directory)
    for name in names:
        click.echo(authority.issue(Role(role), name, days=days, addresses=addresses).folder)


@certs.command()
@_FOLDER
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option(
    "--within-days",
    type=click.FloatRange(min=0),
    help="All that end within so many days and are not revoked.",
)
@_DAYS
def renew(directory: Path, names: tuple[str, ...], within_days: float | None, days: float) -> None:
    """Replace certificates before they end; keys stay, and running processes go on.

    Copy each new cert.pem to its machine. It counts from the next connection on.
    """
    if bool(names) == (within_days is not None):
        raise CertificateError("give names, or --within-days, and not both")
    authority = CertificateAuthority(directory)
    if within_days is not None:
        limit = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=within_days)
        issued = authority.list_issued()
        names = tuple(one.name for one in issued if not one.is_revoked and one.not_after <= limit)
    for name in names:
        click.echo(authority.renew(name, days=days).folder)


@certs.command()
@_FOLDER
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def revoke(directory: Path, names: tuple[str, ...]) -> None:
    """Revoke the certificates of NAMEs; new connections and calls with them are refused.

    Copy the new crl.pem into the folders on other machines.
    """
    authority = CertificateAuthority(directory)
    for name in names:
        authority.revoke(name)
        click.echo(f"{name}: revoked; copy {directory / 'crl.pem'} to all other machines")


@certs.command(name="list")
@_FOLDER
def list_certificates(directory: Path) -> None:
    """List the newest certificate of each name."""
    now = datetime.datetime.now(datetime.UTC)
    rows = [
        (
            one.name,
            str(one.role),
            f"{one.not_after:%Y-%m-%d %H:%M}Z",
            "revoked" if one.is_revoked else "expired" if one.not_after <= now else "valid",
        )
        for one in CertificateAuthority(directory).list_issued()
    ]
    print_table(f"Certificates of {directory}", ("name", "role", "valid until", "state"), rows)
