# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Action profiles: members, groups, one-shot sets, and the entries that refer to them."""

from finsy.proto import p4r, rpc_code

from p4runtime_control_plane import (
    IDS,
    codes,
    hop_member,
    next_hop,
    one_shot,
    path,
    path_group,
    path_member,
    refused,
)
from p4runtime_fixtures import CONTROL_PLANE, delete, insert, loaded, modify
from switchfold.softswitch.p4runtime.service.dataplane import ProfileGroup, ProfileMember

INVALID = rpc_code.INVALID_ARGUMENT
HOPS, PATHS = 0, 1


def test_members_come_back_and_entries_hold_them() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(hop_member(1, 3)), insert(hop_member(2)))
        entry = next_hop(b"\x0a\x00\x00\x00", 8, action_profile_member_id=1)
        client.write(insert(entry))
        params = bytes.fromhex("00030000000000aa")
        position = dataplane.members[HOPS, 1][0]
        assert dataplane.members[HOPS, 1] == (position, params)
        assert [item["indirect"] for item in dataplane.options.values()] == [ProfileMember(1)]
        assert client.read_tables(p4r.TableEntry(table_id=IDS["next_hop"])) == [entry]
        query = p4r.Entity(action_profile_member=p4r.ActionProfileMember())
        found = [item.action_profile_member for item in client.read(query)]
        assert found == [hop_member(1, 3), hop_member(2)]
        query.action_profile_member.action_profile_id = IDS["hops"]
        query.action_profile_member.member_id = 2
        assert [item.action_profile_member for item in client.read(query)] == [hop_member(2)]
        query.action_profile_member.action_profile_id = IDS["paths"]
        assert client.read(query) == []
        client.write(modify(hop_member(1, 4)))
        assert dataplane.members[HOPS, 1][1][:2] == b"\x00\x04"
        ((code, text),) = refused(client, delete(hop_member(1)))
        assert code == rpc_code.FAILED_PRECONDITION
        assert "1 groups or entries" in text
        client.write(modify(next_hop(b"\x0a\x00\x00\x00", 8, action_profile_member_id=2)))
        client.write(delete(hop_member(1)), delete(entry))
        client.write(delete(hop_member(2)))
        assert not dataplane.members


def test_bad_members_are_refused() -> None:
    without = hop_member(5)
    without.ClearField("action")
    foreign = hop_member(5)
    foreign.action.CopyFrom(CONTROL_PLANE.action("punt"))
    wide = hop_member(5)
    wide.action.params[0].value = b"\x02\x00"
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(hop_member(1)))
        assert codes(
            client,
            insert(hop_member(1)),
            modify(hop_member(2)),
            delete(hop_member(2)),
            insert(hop_member(0)),
            insert(without),
            insert(foreign),
            insert(wide),
            insert(p4r.ActionProfileMember(action_profile_id=9, member_id=1)),
            insert(p4r.ActionProfileGroup(action_profile_id=IDS["hops"], group_id=1)),
        ) == [
            rpc_code.ALREADY_EXISTS,
            rpc_code.NOT_FOUND,
            rpc_code.NOT_FOUND,
            INVALID,
            INVALID,
            INVALID,
            rpc_code.OUT_OF_RANGE,
            rpc_code.NOT_FOUND,
            INVALID,
        ]
        client.write(*(insert(hop_member(number)) for number in range(2, 33)))
        assert codes(client, insert(hop_member(33))) == [rpc_code.RESOURCE_EXHAUSTED]
        assert len(dataplane.members) == 32


def test_groups_and_their_members() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(*(insert(path_member(number, number)) for number in (1, 2, 3)))
        group = path_group(7, (1, 1), (2, 3), max_size=8)
        client.write(insert(group))
        entry = path(5, action_profile_group_id=7)
        client.write(insert(entry))
        assert dataplane.selector_groups == {(PATHS, 7): [(1, 1), (2, 3)]}
        assert [item["indirect"] for item in dataplane.options.values()] == [ProfileGroup(7)]
        assert client.read_tables(p4r.TableEntry(table_id=IDS["path"])) == [entry]
        query = p4r.Entity(action_profile_group=p4r.ActionProfileGroup())
        assert [item.action_profile_group for item in client.read(query)] == [group]
        assert (
            codes(client, delete(path_member(1)), delete(group))
            == [rpc_code.FAILED_PRECONDITION] * 2
        )
        client.write(modify(path_group(7, (3, 2), max_size=8)))
        client.write(delete(path_member(1)))
        client.write(delete(entry))
        client.write(delete(group), delete(path_member(3)))
        assert not dataplane.selector_groups
        assert list(dataplane.members) == [(PATHS, 2)]


def test_bad_groups_are_refused() -> None:
    watched = path_group(8, (1, 1))
    watched.members[0].watch_port = b"\x01"
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(path_member(1)), insert(path_member(2)))
        client.write(insert(path_group(7, (1, 1), max_size=4)))
        before = dataplane.state
        assert codes(
            client,
            insert(path_group(7)),
            modify(path_group(8)),
            insert(path_group(0)),
            insert(path_group(8, (9, 1))),
            insert(path_group(8, (1, 0))),
            insert(path_group(8, (1, -1))),
            insert(path_group(8, (1, 1), (1, 1))),
            modify(path_group(7, (1, 1), max_size=5)),
            modify(path_group(7, (1, 3), (2, 2), max_size=4)),
            insert(path_group(8, max_size=-1)),
            insert(watched),
            insert(path(5, action_profile_group_id=8)),
            insert(path(5, action_profile_member_id=8)),
            insert(next_hop(b"\x0a", 32, action_profile_group_id=7)),
        ) == [
            rpc_code.ALREADY_EXISTS,
            rpc_code.NOT_FOUND,
            INVALID,
            rpc_code.NOT_FOUND,
            INVALID,
            INVALID,
            INVALID,
            INVALID,
            rpc_code.RESOURCE_EXHAUSTED,
            INVALID,
            rpc_code.UNIMPLEMENTED,
            rpc_code.NOT_FOUND,
            rpc_code.NOT_FOUND,
            INVALID,
        ]
        direct = path(5)
        direct.action.action.CopyFrom(CONTROL_PLANE.action("forward", b"\x01"))
        assert codes(client, insert(direct), insert(path(5))) == [INVALID] * 2
        assert dataplane.state == before


def test_one_shot_sets_come_and_go_with_their_entry() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(one_shot(1, (1, 1), (2, 2))), insert(one_shot(2, (3, 1))))
        assert len(dataplane.members) == 3
        weights = sorted([weight for _, weight in item] for item in _groups(dataplane))
        assert weights == [[1], [1, 2]]
        found = client.read_tables(p4r.TableEntry(table_id=IDS["path"]))
        assert found == [one_shot(1, (1, 1), (2, 2)), one_shot(2, (3, 1))]
        for query in (
            p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
            p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
        ):
            assert client.read(query) == []
        client.write(modify(one_shot(1, (4, 1))))
        assert len(dataplane.members) == 2
        assert len(dataplane.selector_groups) == 2
        client.write(delete(path(1)), delete(path(2)))
        assert not dataplane.members
        assert not dataplane.selector_groups
        client.write(insert(path_member(1)))


def _groups(dataplane: object) -> list[list[tuple[int, int]]]:
    return list(dataplane.selector_groups.values())  # pyright: ignore


def test_one_shots_and_members_do_not_mix() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(path_member(1)))
        assert codes(client, insert(one_shot(1, (1, 1)))) == [INVALID]
        client.write(delete(path_member(1)))
        client.write(insert(one_shot(1, (1, 1))))
        before = dataplane.state
        assert (
            codes(
                client,
                insert(path_member(5)),
                insert(path_group(5)),
                insert(path(2, action_profile_member_id=1)),
            )
            == [INVALID] * 3
        )
        assert dataplane.state == before


def test_a_one_shot_that_fails_leaves_nothing() -> None:
    watched = one_shot(2, (1, 1))
    actions = watched.action.action_profile_action_set.action_profile_actions
    actions[0].watch_port = b"\x01"
    random = one_shot(2, (1, 1))
    random.action.action_profile_action_set.action_selection_mode = (
        p4r.ActionProfileActionSet.RANDOM
    )
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(*(insert(one_shot(number, (1, 1))) for number in range(1, 33)))
        before = dataplane.state
        assert codes(
            client,
            insert(one_shot(40, (1, 1), (2, 1))),  # the table is full
            modify(one_shot(1, *((1, 1) for _ in range(40)))),  # the profile is
            modify(one_shot(1, (1, 0))),
            modify(watched),
            modify(random),
            insert(one_shot(1, (1, 1))),
            modify(one_shot(50, (1, 1))),
        ) == [
            rpc_code.RESOURCE_EXHAUSTED,
            rpc_code.RESOURCE_EXHAUSTED,
            INVALID,
            rpc_code.UNIMPLEMENTED,
            rpc_code.UNIMPLEMENTED,
            rpc_code.ALREADY_EXISTS,
            rpc_code.NOT_FOUND,
        ]
        assert dataplane.state == before


def test_the_default_entry_of_an_indirect_table_is_constant() -> None:
    query = p4r.TableEntry(table_id=IDS["path"], is_default_action=True)
    with loaded(CONTROL_PLANE) as (client, _):
        (found,) = client.read_tables(query)
        assert found.action.action.action_id == IDS["NoAction"]
        changed = p4r.TableEntry(table_id=IDS["path"], is_default_action=True)
        changed.action.action.CopyFrom(CONTROL_PLANE.action("forward", b"\x01"))
        assert codes(client, modify(changed)) == [rpc_code.PERMISSION_DENIED]
