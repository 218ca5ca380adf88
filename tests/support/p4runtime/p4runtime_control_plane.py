# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Entities of the control_plane program, which has one of each object that P4Runtime writes."""

import grpc
import pytest
from finsy.proto import p4r

from p4runtime_fixtures import CONTROL_PLANE, BareClient, update_errors

IDS = CONTROL_PLANE.ids


def refused(
    client: BareClient,
    *updates: p4r.Update,
    atomicity: int = p4r.WriteRequest.CONTINUE_ON_ERROR,
) -> list[tuple[int, str]]:
    """Write and return code and text of each update; the write must fail."""
    with pytest.raises(grpc.RpcError) as caught:
        client.write(*updates, atomicity=atomicity)
    return update_errors(caught.value)


def codes(client: BareClient, *updates: p4r.Update) -> list[int]:
    """Write and return the code of each update; the write must fail."""
    return [code for code, _ in refused(client, *updates)]


def host(address: int, port: int = 1, **fields: int) -> p4r.TableEntry:
    """Return an entry with direct counter, direct meter and idle timeout."""
    entry = p4r.TableEntry(table_id=IDS["host"], **fields)  # pyright: ignore[reportArgumentType]
    entry.match.add(field_id=1).exact.value = bytes([address])
    entry.action.action.CopyFrom(CONTROL_PLANE.action("known", bytes([port])))
    return entry


def next_hop(prefix: bytes, prefix_len: int, **reference: int) -> p4r.TableEntry:
    """Return an entry that refers to the profile `hops`."""
    entry = p4r.TableEntry(table_id=IDS["next_hop"])
    lpm = entry.match.add(field_id=1).lpm
    lpm.value, lpm.prefix_len = prefix, prefix_len
    for name, value in reference.items():
        setattr(entry.action, name, value)
    return entry


def path(address: int, **reference: int) -> p4r.TableEntry:
    """Return an entry that refers to the selector `paths`."""
    entry = p4r.TableEntry(table_id=IDS["path"])
    entry.match.add(field_id=1).exact.value = bytes([address])
    for name, value in reference.items():
        setattr(entry.action, name, value)
    return entry


def one_shot(address: int, *ports: tuple[int, int]) -> p4r.TableEntry:
    """Return an entry with a set of (egress port, weight)."""
    entry = path(address)
    for port, weight in ports:
        item = entry.action.action_profile_action_set.action_profile_actions.add(weight=weight)
        item.action.CopyFrom(CONTROL_PLANE.action("forward", bytes([port])))
    return entry


def hop_member(number: int, port: int = 1) -> p4r.ActionProfileMember:
    """Return a member of the profile `hops`."""
    action = CONTROL_PLANE.action("forward_to", bytes([port]), b"\xaa")
    return p4r.ActionProfileMember(action_profile_id=IDS["hops"], member_id=number, action=action)


def path_member(number: int, port: int = 1) -> p4r.ActionProfileMember:
    """Return a member of the selector `paths`."""
    action = CONTROL_PLANE.action("forward", bytes([port]))
    return p4r.ActionProfileMember(action_profile_id=IDS["paths"], member_id=number, action=action)


def path_group(number: int, *members: tuple[int, int], max_size: int = 0) -> p4r.ActionProfileGroup:
    """Return a group of (member, weight) of the selector `paths`."""
    group = p4r.ActionProfileGroup(
        action_profile_id=IDS["paths"], group_id=number, max_size=max_size
    )
    for member, weight in members:
        group.members.add(member_id=member, weight=weight)
    return group
