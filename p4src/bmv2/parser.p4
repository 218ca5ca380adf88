// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
//                           +-> packet_out (CPU port) -+
//  start --+                                           v
//          +---------------------------------------> ethernet -- not IPv4 --> accept (to controller)
//                                                      v
//                                                     ipv4 -- not UDP, options, fragment --> accept
//                                                      v
//                                                     udp -- other port --> accept
//                                                      v
//                                                  switchfold -> lanes -> accept
//
// A frame that ends early stops with PacketTooShort: the header that did not fit stays invalid, and
// the ingress control checks that. Bytes after the lanes (padding of the link) stay in the
// payload.
parser SwitchfoldParser(packet_in packet,
                        out headers_t hdr,
                        inout metadata_t md,
                        inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ethertype) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.ihl,
                          hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (IPV4_VERSION, IPV4_IHL_WITHOUT_OPTIONS, 0, IPV4_PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            UDP_PORT: parse_switchfold;
            default: accept;
        }
    }

    state parse_switchfold {
        packet.extract(hdr.switchfold);
        packet.extract(hdr.lanes);
        transition accept;
    }
}

control SwitchfoldDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.switchfold);
        packet.emit(hdr.lanes);
    }
}
