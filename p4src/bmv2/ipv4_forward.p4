// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Forwards ordinary IPv4 traffic. The checksum is updated, not recomputed (RFC 1141), so that
// options need no parsing and a damaged header stays damaged. A packet that a worker could take for
// a result is not forwarded.
control Ipv4Forward(inout headers_t hdr,
                    inout standard_metadata_t standard_metadata,
                    out bit<32> ordinary_outcome) {
    action forward(port_t port, mac_address_t mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_address = hdr.ethernet.dst_address;
        hdr.ethernet.dst_address = mac;
        ordinary_outcome = ORDINARY_FORWARDED;
    }

    action drop_packet() {
        mark_to_drop(standard_metadata);
        ordinary_outcome = ORDINARY_NO_ROUTE;
    }

    // Port and station for each destination address.
    table ipv4_forward {
        key = {
            hdr.ipv4.dst_address: lpm @name("dst_address");
        }
        actions = {
            forward;
            drop_packet;
        }
        default_action = drop_packet();
        size = IPV4_FORWARD_TABLE_SIZE;
    }

    action decrement_ttl() {
        // The TTL is the high byte of its 16-bit word: one less there is 0x0100 more in the
        // complemented sum, with the carry added at the end.
        bit<17> sum = (bit<17>)hdr.ipv4.checksum + 0x100;
        hdr.ipv4.checksum = (bit<16>)(sum + (sum >= 0xffff ? 17w1 : 17w0));
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    apply {
        ordinary_outcome = ORDINARY_FORWARDED;
        if (hdr.ipv4.version != IPV4_VERSION
            || hdr.ipv4.ihl < IPV4_IHL_WITHOUT_OPTIONS
            || standard_metadata.checksum_error == 1) {
            mark_to_drop(standard_metadata);
            ordinary_outcome = ORDINARY_BAD_IPV4;
        } else if (hdr.udp.isValid() && hdr.udp.src_port == UDP_PORT
                   || hdr.ipv4.protocol == IPV4_PROTOCOL_UDP
                      && hdr.ipv4.ihl != IPV4_IHL_WITHOUT_OPTIONS) {
            // Only switches send from UDP_PORT: this packet could be taken for a result. After
            // options the ports are not parsed.
            mark_to_drop(standard_metadata);
            ordinary_outcome = ORDINARY_SPOOFED;
        } else if (hdr.ipv4.ttl <= 1) {
            mark_to_drop(standard_metadata);
            ordinary_outcome = ORDINARY_TTL_EXPIRED;
        } else {
            decrement_ttl();
            ipv4_forward.apply();
        }
    }
}
