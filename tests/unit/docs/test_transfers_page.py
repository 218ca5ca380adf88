# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/transfers.md: its options, counters and calls are those of the code."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from switchfold.hostlib import errors
from switchfold.hostlib.control.stations import allreduce_terms
from switchfold.hostlib.parameter_server import command, transfers
from switchfold.hostlib.parameter_server.transfers import (
    committed_update,
    fabric_worker,
    grant_requests,
    update_service,
)
from switchfold.hostlib.parameter_server.transfers.allreduces import fabric_member, vector_pieces
from switchfold.hostlib.parameter_server.transfers.allreduces.member_message import MemberKind
from switchfold.hostlib.parameter_server.transfers.arrivals import grant_pace
from switchfold.hostlib.parameter_server.transfers.models import model_chains, model_service

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "transfers.md").read_text("utf-8")


def test_options_are_those_of_the_command() -> None:
    told = dict(re.findall(r"^\| `(--[\w-]+)` \| `(\w+)` \|", PAGE, re.MULTILINE))
    fields = {field.name for field in dataclasses.fields(transfers.TransferOptions)}
    assert set(told.values()) <= fields
    own = {option: field for option, (field, *_) in command._TRANSFER_OPTIONS.items()}
    assert {option: told[option] for option in own} == own
    assert set(told) - set(own) == {"--controller", "--transfer-job"}


def test_counters_are_those_of_the_server() -> None:
    classes = update_service.UpdateService, model_service.ModelService, model_chains.ModelChains
    text = "".join(each.__doc__ or "" for each in classes)
    named = set(re.findall(r"\b(\w+_(?:updates|places|sums|models|relays))\b", text))
    told = set(re.findall(r"^\| `(\w+)` \|", PAGE.split("## What is counted")[1], re.MULTILINE))
    assert told == named | {"commits"}
    parts = (update_service, grant_pace, committed_update, model_service, model_chains)
    source = "".join(Path(part.__file__).read_text("utf-8") for part in parts)
    # Those of requests have the kind of what is requested in their names.
    asked = {f"{fate}_models" for fate in ("granted", "ungranted", "refused")}
    assert all(f'"{name}"' in source for name in named - asked)
    requests = Path(grant_requests.__file__).read_text("utf-8")
    assert all(f'f"{name.removesuffix("_models")}_{{self._what}}"' in requests for name in asked)


def test_calls_and_errors_exist() -> None:
    for call in re.findall(r"`FabricWorker\.(\w+)", PAGE):
        assert hasattr(fabric_worker.FabricWorker, call) or call == "counters"
    for name in re.findall(r"`(\w+Error)`", PAGE):
        assert issubclass(getattr(errors, name), errors.HostlibError)
    assert f"({fabric_worker.FabricWorker.__init__.__kwdefaults__['most_open']})" in PAGE


def test_counters_and_bounds_of_members_are_those_of_the_code() -> None:
    told = PAGE.split("`FabricMember.counters` has")[1].split("\n\n")[0]
    names = set(re.findall(r"`(\w*allreduces)`", told))
    assert names == set(
        re.findall(r"\b(\w*allreduces)\b", fabric_member.FabricMember.__doc__ or "")
    )
    section = PAGE.split("## Sums of all members")[1].split("\n## ")[0]
    assert f"up to {vector_pieces.MOST_BYTES >> 20} MiB" in section
    assert f"2 to {allreduce_terms.MOST_MEMBERS} members" in section
    kinds = re.findall(r"^\| ([\d, ]+) \|", PAGE.split("## On the wire")[1], re.MULTILINE)
    assert sorted(int(kind) for row in kinds for kind in row.split(", ")) == [*MemberKind]
    for call in re.findall(r"`FabricMember\.(\w+)", PAGE):
        assert hasattr(fabric_member.FabricMember, call) or call == "counters"
