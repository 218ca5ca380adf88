// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A table of the site's own: counts the Switchfold packets of each sender that it names, and refuses
// those of some. What it refuses is counted as OUTCOME_FOREIGN_WORKER, and reaches no slot.
control Sender(in headers_t hdr, inout metadata_t md) {
    direct_counter(CounterType.packets_and_bytes) sender_packets;

    action account() {
        sender_packets.count();
    }

    action refuse() {
        sender_packets.count();
        md.outcome = OUTCOME_FOREIGN_WORKER;
    }

    action pass_by() {
    }

    table sender {
        key = {
            hdr.ipv4.src_address: exact @name("source_address") @format(IPV4_ADDRESS);
        }
        actions = {
            account;
            refuse;
            @defaultonly pass_by;
        }
        const default_action = pass_by();
        counters = sender_packets;
        size = 256;
    }

    apply {
        if (md.outcome == OUTCOME_NONE) {
            sender.apply();
        }
    }
}
