# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options that say what hosts and switch of a prediction can carry: measured, named or stated."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ....hostlib.errors import CalibrationError, SchemeError
from ....hostlib.schemes.calibration_file import Calibration, load_calibration
from ....hostlib.schemes.capacity import Capacity
from ....hostlib.schemes.hardware import (
    DEFAULT_HOSTS,
    DEFAULT_SWITCH,
    HOSTS,
    SWITCHES,
    HostProfile,
    SwitchProfile,
    capacity_of,
    find_hosts,
    find_switch,
)

CALIBRATED: Final = "calibrated"
_F = TypeVar("_F", bound=Callable[..., Any])
_P = TypeVar("_P", HostProfile, SwitchProfile)


def default_calibration() -> Path:
    """Return the file in which `switchfold calibrate` leaves its figures for predictions."""
    return Path(click.get_app_dir("switchfold")) / "calibration.json"


def calibration_option(function: _F) -> _F:
    """Add --calibration, which also `switchfold calibrate` takes, as its file to write."""
    return click.option(
        "--calibration",
        "calibration_path",
        type=click.Path(dir_okay=False, path_type=Path),
        envvar="SWITCHFOLD_CALIBRATION",
        show_envvar=True,
        metavar="FILE",
        help="File of 'switchfold calibrate'.  [default: calibration.json in the user's folder of"
        " settings]",
    )(function)


def hardware_options(function: _F) -> _F:
    """Add the options for the capacity of hosts and switch; `described_hardware` takes them."""
    for option in reversed((
        click.option(
            "--hosts",
            type=click.Choice([CALIBRATED, *HOSTS]),
            help=f"What the hosts can carry.  [default: {CALIBRATED} if there is a calibration, "
            f"else {DEFAULT_HOSTS}]",
        ),
        click.option(
            "--switch",
            type=click.Choice([CALIBRATED, *SWITCHES]),
            help=f"What the switch can carry.  [default: {CALIBRATED} if the calibration has a"
            f" switch, else {DEFAULT_SWITCH}]",
        ),
        calibration_option,
        click.option(
            "--worker-us",
            type=click.FloatRange(0),
            help="Stated: processor time of a worker per chunk sent and received.",
        ),
        click.option(
            "--switch-us",
            type=click.FloatRange(0),
            help="Stated: processor time of the switch per packet; 0: it keeps up with its links.",
        ),
        click.option(
            "--tcp-ns",
            type=click.FloatRange(0),
            help="Stated: processor time of a host per byte that it sends over TCP.",
        ),
        click.option(
            "--cores",
            default=0,
            show_default=True,
            type=click.IntRange(0),
            help="Cores that all workers and the switch share, as on a testbed; 0: one for each.",
        ),
    )):  # fmt: skip
        function = option(function)
    return function


@dataclass(frozen=True, kw_only=True)
class DescribedHardware:
    """Hosts around a switch, as the options describe them."""

    hosts: HostProfile
    switch: SwitchProfile
    shared_cores: int

    @property
    def capacity(self) -> Capacity:
        """What they can carry."""
        return capacity_of(self.hosts, self.switch, self.shared_cores)

    def describe(self) -> list[str]:
        """Return the assumptions, a line each."""
        lines = [self.hosts.describe(), self.switch.describe()]
        if self.shared_cores:
            lines.append(f"cores: all workers and the switch share {self.shared_cores}")
        else:
            lines.append("cores: each worker and the switch have one of their own")
        lines = [f"assumed {line}" for line in lines]
        if self.hosts.name in HOSTS:
            lines.append("run 'switchfold calibrate' on one of your hosts for figures of its own")
        return lines

    def check_rates(self, rates_bits_per_s: Iterable[float]) -> None:
        """Raise SchemeError for links that are faster than any port of the switch."""
        most = self.switch.most_bits_per_s
        for rate in rates_bits_per_s:
            if most and rate > most:
                raise SchemeError(
                    f"links of {rate / 1e9:g} Gbit/s: the ports of switch {self.switch.name} carry"
                    f" at most {most / 1e9:g} Gbit/s; give another --rate or --switch"
                )


def described_hardware(options: dict[str, Any]) -> DescribedHardware:
    """Return the hardware that the options of `hardware_options` describe, and take them out.

    Raises CalibrationError if the calibration is wanted and missing or damaged.
    """
    hosts, switch = options.pop("hosts"), options.pop("switch")
    found = _calibration(options.pop("calibration_path"), is_wanted=CALIBRATED in (hosts, switch))
    if switch == CALIBRATED and found is not None and found.switch is None:
        raise CalibrationError(
            "the calibration has no switch: run 'switchfold calibrate' without --no-switch, or name"
            f" a --switch: {', '.join(SWITCHES)}"
        )
    measured_switch = None if found is None else found.switch
    chosen_hosts = (
        found.hosts
        if found is not None and hosts in (None, CALIBRATED)
        else find_hosts(hosts or DEFAULT_HOSTS)
    )
    chosen_switch = (
        measured_switch
        if measured_switch is not None and switch in (None, CALIBRATED)
        else find_switch(switch or DEFAULT_SWITCH)
    )
    worker_us, tcp_ns = options.pop("worker_us"), options.pop("tcp_ns")
    switch_us = options.pop("switch_us")
    return DescribedHardware(
        hosts=_stated(chosen_hosts, worker_chunk_s=(worker_us, 1e-6), tcp_byte_s=(tcp_ns, 1e-9)),
        switch=_stated(chosen_switch, switch_packet_s=(switch_us, 1e-6)),
        shared_cores=options.pop("cores"),
    )


def _calibration(path: Path | None, *, is_wanted: bool) -> Calibration | None:
    """Return the calibration; None if there is none, and nobody has asked for one."""
    if path is None and not is_wanted and not default_calibration().exists():
        return None
    return load_calibration(path or default_calibration())


def _stated(profile: _P, **stated: tuple[float | None, float]) -> _P:
    """Return the profile with values that an option gives, each with its unit in seconds."""
    given = {name: value * unit for name, (value, unit) in stated.items() if value is not None}
    if not given:
        return profile
    return dataclasses.replace(profile, name=f"{profile.name} with stated times", **given)
