# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Drives a switch with p4runtime-shell; runs in an environment that has nothing else.

Arguments: address, P4Info file, JSON file. Lines on stdout ask the test to do its part.
"""

import sys
from collections.abc import Callable

import p4runtime_sh.shell as sh

PAYLOAD = bytes(range(64))


def tell(word: str) -> None:
    print(word, flush=True)


def answer() -> None:
    assert sys.stdin.readline().strip() == "done"


def refusal_of(call: Callable[[], object]) -> str:
    """Return what the shell says of a call that fails; the type differs between versions."""
    try:
        call()
    except Exception as error:
        return str(error)
    return ""


def main() -> None:
    address, p4info, program = sys.argv[1:]
    sh.setup(
        device_id=1,
        grpc_addr=address,
        election_id=(0, 1),
        config=sh.FwdPipeConfig(p4info, program),
    )
    entry = sh.TableEntry("TheIngress.host")(action="TheIngress.known")
    entry.match["src"] = "00:00:00:00:00:05"
    entry.action["port"] = "2"
    entry.insert()
    assert "ALREADY_EXISTS" in refusal_of(entry.insert)
    found = list(sh.TableEntry("TheIngress.host").read())
    assert len(found) == 1, found
    assert found[0].action["port"].value == b"\x02"

    group = sh.MulticastGroupEntry(3)
    group.add(2, 1).add(3, 1)
    group.insert()
    assert len(list(sh.MulticastGroupEntry(3).read())) == 1
    session = sh.CloneSessionEntry(7)
    session.add(3, 1)
    session.insert()
    member = sh.ActionProfileMember("TheIngress.hops")(member_id=1, action="TheIngress.forward_to")
    member.action["port"] = "2"
    member.action["mac"] = "00:00:00:00:00:aa"
    member.insert()
    assert len(list(sh.ActionProfileMember("TheIngress.hops").read())) == 1
    meter = sh.MeterEntry("TheIngress.port_meter")
    meter.index = 2
    meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 2, 3, 4
    meter.modify()

    punt = sh.TableEntry("TheIngress.special")(action="TheIngress.punt")
    punt.match["ether_type"] = "0x1234&&&0xffff"
    punt.priority = 1
    punt.insert()

    packet_out = sh.PacketOut(PAYLOAD, egress_port="2", _pad="0")
    packet_out.send()
    tell("expect")
    answer()

    packets = sh.PacketIn()
    tell("send")
    answer()
    packet = packets.packet_in_queue.get(timeout=60)
    assert packet.packet.payload[12:14] == b"\x12\x34"
    direct = next(iter(sh.DirectCounterEntry("TheIngress.host_counter").read()))
    assert direct.data.packet_count == 1, direct
    counters = list(sh.CounterEntry("TheIngress.kinds").read())
    assert sum(item.data.packet_count for item in counters) == 1, counters
    entry.delete()
    assert not list(sh.TableEntry("TheIngress.host").read())
    sh.teardown()
    tell("ok")


main()
