// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Addresses the packets that the switch sends. An answer goes back to the sender's port and address,
// each replica of a multicast to its child, and a packet up the tree to the parent. The source is
// always the address that the packet was sent to. If a worker's multicast goes to the other workers,
// this control drops the replica for the sender.
control ResultDelivery(inout headers_t hdr,
                       inout metadata_t md,
                       inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets_and_bytes) undelivered_results;
    direct_counter(CounterType.packets_and_bytes) delivered_results;

    action set_worker_address(mac_address_t mac, ipv4_address_t address, bit<16> udp_port) {
        hdr.ethernet.src_address = hdr.ethernet.dst_address;
        hdr.ethernet.dst_address = mac;
        hdr.ipv4.src_address = hdr.ipv4.dst_address;
        hdr.ipv4.dst_address = address;
        hdr.udp.src_port = UDP_PORT;
        hdr.udp.dst_port = udp_port;
        delivered_results.count();
    }

    action drop_undelivered() {
        mark_to_drop(standard_metadata);
        md.is_undelivered = 1;
    }

    // Address of the child of a multicast replica, whose replica_id is the child id + 1. Unicast has
    // the replica_id 0, which stands for the parent.
    table worker_address {
        key = {
            hdr.switchfold.job_id: exact @name("job_id");
            standard_metadata.egress_rid: exact @name("replica_id");
        }
        actions = {
            set_worker_address;
            @defaultonly drop_undelivered;
        }
        const default_action = drop_undelivered();
        counters = delivered_results;
        size = WORKER_ADDRESS_TABLE_SIZE;
    }

    action return_to_sender() {
        mac_address_t mac = hdr.ethernet.src_address;
        hdr.ethernet.src_address = hdr.ethernet.dst_address;
        hdr.ethernet.dst_address = mac;
        ipv4_address_t address = hdr.ipv4.src_address;
        hdr.ipv4.src_address = hdr.ipv4.dst_address;
        hdr.ipv4.dst_address = address;
        hdr.udp.dst_port = hdr.udp.src_port;
        hdr.udp.src_port = UDP_PORT;
    }

    // The switch sends a new packet: it has already noted the congestion mark of the packet that
    // came.
    action originate() {
        hdr.ipv4.identification = 0;
        hdr.ipv4.flags = IPV4_DONT_FRAGMENT;
        hdr.ipv4.ttl = IPV4_RESULT_TTL;
        if (hdr.ipv4.ecn == ECN_CONGESTION_EXPERIENCED || md.reply == REPLY_PARENT) {
            hdr.ipv4.ecn = ECN_CAPABLE;
        }
    }

    apply {
        if (md.reply != REPLY_NONE) {
            originate();
            if (md.reply == REPLY_SENDER) {
                return_to_sender();
            } else if (md.outcome == OUTCOME_MULTICAST
                       && standard_metadata.egress_rid
                              == (bit<16>)hdr.switchfold.worker_id + 1) {
                drop_undelivered();
            } else {
                worker_address.apply();
                if (md.is_undelivered == 1) {
                    undelivered_results.count(0);
                }
            }
        }
    }
}
