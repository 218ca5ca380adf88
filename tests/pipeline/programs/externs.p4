// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Parser errors, lookahead, advance, masks, registers, hashes, exit.
#include <core.p4>
#include <v1model.p4>

error { BadMagic }
header frame_h { bit<8> magic; bit<8> command; bit<16> index; }
header value_h { bit<32> value; }
header reply_h { bit<32> parser_error; bit<16> crc16; bit<32> crc32; bit<16> sum; bit<16> port; bit<32> held; bit<8> seen; }
struct headers_t { frame_h frame; value_h value; reply_h reply; }
struct metadata_t { bit<8> seen; bit<32> bounded; }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start {
        md.seen = packet.lookahead<bit<8>>();
        packet.extract(hdr.frame);
        verify(hdr.frame.magic == 0xa5, error.BadMagic);
        transition select(hdr.frame.command, hdr.frame.index) { (0x10 &&& 0xf0, _): skip; (1, 0x0007): accept; default: value; }
    }
    state skip { packet.advance(16); transition value; }
    state value { packet.extract(hdr.value); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
register<bit<32>>(16) total;
register<bit<20>>(4) odd;
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    counter(8, CounterType.packets_and_bytes) commands;
    action reply() {
        bit<32> held;
        total.read(held, (bit<32>)hdr.frame.index);
        held = held + hdr.value.value;
        total.write((bit<32>)hdr.frame.index, held);
        hdr.reply.setValid();
        hdr.reply.held = held;
        hdr.reply.seen = md.seen;
        if (sm.parser_error == error.PacketTooShort) { hdr.reply.parser_error = 1; }
        if (sm.parser_error == error.BadMagic) { hdr.reply.parser_error = 2; }
    }
    apply {
        commands.count((bit<32>)hdr.frame.command & 0xf);
        odd.write(1, (bit<20>)hdr.value.value);
        reply();
        hash(hdr.reply.crc16, HashAlgorithm.crc16, 16w0, { hdr.frame.magic, hdr.frame.command, hdr.frame.index, hdr.value.value }, 32w65536);
        hash(hdr.reply.crc32, HashAlgorithm.crc32, 32w0, { hdr.frame.magic, hdr.frame.command, hdr.frame.index, hdr.value.value }, 64w0x100000000);
        hash(hdr.reply.sum, HashAlgorithm.csum16, 16w0, { hdr.frame.magic, hdr.frame.command, hdr.frame.index, hdr.value.value }, 32w65536);
        hash(md.bounded, HashAlgorithm.crc32, 32w10, { hdr.value.value }, 32w5);
        hdr.reply.port = (bit<16>)sm.ingress_port;
        sm.egress_spec = 3;
        if (hdr.frame.command == 5) { exit; }
        if (hdr.frame.command == 6) { mark_to_drop(sm); exit; }
        hdr.frame.magic = 0x5a;
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    apply { }
}
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
