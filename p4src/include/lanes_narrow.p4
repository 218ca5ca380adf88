// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Written by p4src/generate_lanes.py: change that, not this.
// 32 lanes per packet.
#ifndef SWITCHFOLD_LANES_P4
#define SWITCHFOLD_LANES_P4

const bit<32> VALUES_PER_PACKET = 32;

// The one datagram size of this variant.
const bit<16> UDP_LENGTH = UDP_BYTES + HEADER_BYTES + 32 * VALUE_BYTES;
const bit<16> IPV4_TOTAL_LENGTH = IPV4_BYTES + UDP_LENGTH;

header lanes_h {
    bit<32> v000;
    bit<32> v001;
    bit<32> v002;
    bit<32> v003;
    bit<32> v004;
    bit<32> v005;
    bit<32> v006;
    bit<32> v007;
    bit<32> v008;
    bit<32> v009;
    bit<32> v010;
    bit<32> v011;
    bit<32> v012;
    bit<32> v013;
    bit<32> v014;
    bit<32> v015;
    bit<32> v016;
    bit<32> v017;
    bit<32> v018;
    bit<32> v019;
    bit<32> v020;
    bit<32> v021;
    bit<32> v022;
    bit<32> v023;
    bit<32> v024;
    bit<32> v025;
    bit<32> v026;
    bit<32> v027;
    bit<32> v028;
    bit<32> v029;
    bit<32> v030;
    bit<32> v031;
}

#endif
