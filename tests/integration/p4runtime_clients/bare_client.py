# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Drives a switch with nothing but grpcio and the protobufs, in a process of its own.

Arguments: address, P4Info file, JSON file. Lines on stdout ask the test to do its part.
"""

import queue
import sys
from pathlib import Path

import grpc
from finsy.proto import p4i, p4r, p4r_grpc
from google.protobuf import text_format

PAYLOAD = bytes(range(64))
DEADLINE_S = 250.0  # a C compiler may run for the program on a loaded machine


def tell(word: str) -> None:
    print(word, flush=True)


def answer() -> None:
    assert sys.stdin.readline().strip() == "done"


def main() -> None:
    address, p4info, program = sys.argv[1:]
    info = text_format.Parse(Path(p4info).read_text(), p4i.P4Info())
    ids = {
        item.preamble.alias: item.preamble.id
        for items in (info.tables, info.actions, info.counters)
        for item in items
    }
    requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
    election_id = p4r.Uint128(low=1)
    with grpc.insecure_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        stream = stub.StreamChannel(iter(requests.get, None), timeout=DEADLINE_S)
        update = p4r.MasterArbitrationUpdate(device_id=1, election_id=election_id)
        requests.put(p4r.StreamMessageRequest(arbitration=update))
        assert next(stream).arbitration.status.code == 0

        config = p4r.ForwardingPipelineConfig(
            p4info=info, p4_device_config=Path(program).read_bytes()
        )
        config.cookie.cookie = 7
        stub.SetForwardingPipelineConfig(
            p4r.SetForwardingPipelineConfigRequest(
                device_id=1,
                election_id=election_id,
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                config=config,
            )
        )
        request = p4r.GetForwardingPipelineConfigRequest(device_id=1)
        assert stub.GetForwardingPipelineConfig(request).config == config

        entry = p4r.TableEntry(table_id=ids["host"])
        entry.match.add(field_id=1).exact.value = b"\x05"
        entry.action.action.action_id = ids["known"]
        entry.action.action.params.add(param_id=1, value=b"\x02")
        punt = p4r.TableEntry(table_id=ids["special"], priority=1)
        ternary = punt.match.add(field_id=1).ternary
        ternary.value, ternary.mask = b"\x12\x34", b"\xff\xff"
        punt.action.action.action_id = ids["punt"]
        write = p4r.WriteRequest(device_id=1, election_id=election_id)
        for item in (entry, punt):
            write.updates.add(type=p4r.Update.INSERT).entity.table_entry.CopyFrom(item)
        stub.Write(write)
        query = p4r.ReadRequest(device_id=1)
        query.entities.add().table_entry.table_id = ids["host"]
        found = [entity for response in stub.Read(query) for entity in response.entities]
        assert [entity.table_entry for entity in found] == [entry], found

        packet = p4r.PacketOut(payload=PAYLOAD)
        packet.metadata.add(metadata_id=1, value=b"\x02")
        packet.metadata.add(metadata_id=2, value=b"\x00")
        requests.put(p4r.StreamMessageRequest(packet=packet))
        tell("expect")
        answer()
        tell("send")
        answer()
        received = next(stream).packet
        assert received.payload[12:14] == b"\x12\x34", received
        assert received.metadata[0].value == b"\x01"

        query.entities[0].table_entry.counter_data.SetInParent()
        query.entities.add().counter_entry.counter_id = ids["kinds"]
        found = [entity for response in stub.Read(query) for entity in response.entities]
        assert found[0].table_entry.counter_data.packet_count == 1
        assert [item.counter_entry.data.packet_count for item in found[1:]] == [1, 0, 0, 0]
        requests.put(None)
    tell("ok")


main()
