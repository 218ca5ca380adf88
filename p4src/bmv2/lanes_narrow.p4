// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Written by p4src/generate_lanes.py: change that, not this.
//
// The slot copy's 32 lanes: one register each. A packet runs at most one of the actions,
// hence one read-modify-write per register. After each action the packet's lanes hold what the
// copy holds.
//
// Lanes are two's complement; registers hold bit<32>, since that is all v1model promises, and
// casts make sum and maximum signed. A lane has saturated exactly where the saturated sum differs
// from the wrapped one.
control Lanes(inout headers_t hdr, inout metadata_t md) {
    register<bit<32>>(SLOT_REGISTER_SIZE) lane000;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane001;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane002;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane003;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane004;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane005;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane006;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane007;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane008;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane009;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane010;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane011;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane012;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane013;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane014;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane015;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane016;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane017;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane018;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane019;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane020;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane021;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane022;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane023;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane024;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane025;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane026;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane027;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane028;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane029;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane030;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane031;

    bit<32> held;
    bit<32> wrapped;

    action lanes_overwrite() {
        lane000.write(md.slot_copy, hdr.lanes.v000);
        lane001.write(md.slot_copy, hdr.lanes.v001);
        lane002.write(md.slot_copy, hdr.lanes.v002);
        lane003.write(md.slot_copy, hdr.lanes.v003);
        lane004.write(md.slot_copy, hdr.lanes.v004);
        lane005.write(md.slot_copy, hdr.lanes.v005);
        lane006.write(md.slot_copy, hdr.lanes.v006);
        lane007.write(md.slot_copy, hdr.lanes.v007);
        lane008.write(md.slot_copy, hdr.lanes.v008);
        lane009.write(md.slot_copy, hdr.lanes.v009);
        lane010.write(md.slot_copy, hdr.lanes.v010);
        lane011.write(md.slot_copy, hdr.lanes.v011);
        lane012.write(md.slot_copy, hdr.lanes.v012);
        lane013.write(md.slot_copy, hdr.lanes.v013);
        lane014.write(md.slot_copy, hdr.lanes.v014);
        lane015.write(md.slot_copy, hdr.lanes.v015);
        lane016.write(md.slot_copy, hdr.lanes.v016);
        lane017.write(md.slot_copy, hdr.lanes.v017);
        lane018.write(md.slot_copy, hdr.lanes.v018);
        lane019.write(md.slot_copy, hdr.lanes.v019);
        lane020.write(md.slot_copy, hdr.lanes.v020);
        lane021.write(md.slot_copy, hdr.lanes.v021);
        lane022.write(md.slot_copy, hdr.lanes.v022);
        lane023.write(md.slot_copy, hdr.lanes.v023);
        lane024.write(md.slot_copy, hdr.lanes.v024);
        lane025.write(md.slot_copy, hdr.lanes.v025);
        lane026.write(md.slot_copy, hdr.lanes.v026);
        lane027.write(md.slot_copy, hdr.lanes.v027);
        lane028.write(md.slot_copy, hdr.lanes.v028);
        lane029.write(md.slot_copy, hdr.lanes.v029);
        lane030.write(md.slot_copy, hdr.lanes.v030);
        lane031.write(md.slot_copy, hdr.lanes.v031);
    }

    action lanes_add() {
        lane000.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v000;
        hdr.lanes.v000 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v000);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v000);
        lane000.write(md.slot_copy, hdr.lanes.v000);
        lane001.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v001;
        hdr.lanes.v001 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v001);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v001);
        lane001.write(md.slot_copy, hdr.lanes.v001);
        lane002.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v002;
        hdr.lanes.v002 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v002);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v002);
        lane002.write(md.slot_copy, hdr.lanes.v002);
        lane003.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v003;
        hdr.lanes.v003 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v003);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v003);
        lane003.write(md.slot_copy, hdr.lanes.v003);
        lane004.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v004;
        hdr.lanes.v004 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v004);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v004);
        lane004.write(md.slot_copy, hdr.lanes.v004);
        lane005.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v005;
        hdr.lanes.v005 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v005);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v005);
        lane005.write(md.slot_copy, hdr.lanes.v005);
        lane006.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v006;
        hdr.lanes.v006 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v006);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v006);
        lane006.write(md.slot_copy, hdr.lanes.v006);
        lane007.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v007;
        hdr.lanes.v007 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v007);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v007);
        lane007.write(md.slot_copy, hdr.lanes.v007);
        lane008.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v008;
        hdr.lanes.v008 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v008);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v008);
        lane008.write(md.slot_copy, hdr.lanes.v008);
        lane009.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v009;
        hdr.lanes.v009 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v009);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v009);
        lane009.write(md.slot_copy, hdr.lanes.v009);
        lane010.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v010;
        hdr.lanes.v010 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v010);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v010);
        lane010.write(md.slot_copy, hdr.lanes.v010);
        lane011.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v011;
        hdr.lanes.v011 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v011);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v011);
        lane011.write(md.slot_copy, hdr.lanes.v011);
        lane012.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v012;
        hdr.lanes.v012 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v012);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v012);
        lane012.write(md.slot_copy, hdr.lanes.v012);
        lane013.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v013;
        hdr.lanes.v013 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v013);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v013);
        lane013.write(md.slot_copy, hdr.lanes.v013);
        lane014.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v014;
        hdr.lanes.v014 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v014);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v014);
        lane014.write(md.slot_copy, hdr.lanes.v014);
        lane015.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v015;
        hdr.lanes.v015 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v015);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v015);
        lane015.write(md.slot_copy, hdr.lanes.v015);
        lane016.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v016;
        hdr.lanes.v016 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v016);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v016);
        lane016.write(md.slot_copy, hdr.lanes.v016);
        lane017.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v017;
        hdr.lanes.v017 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v017);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v017);
        lane017.write(md.slot_copy, hdr.lanes.v017);
        lane018.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v018;
        hdr.lanes.v018 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v018);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v018);
        lane018.write(md.slot_copy, hdr.lanes.v018);
        lane019.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v019;
        hdr.lanes.v019 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v019);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v019);
        lane019.write(md.slot_copy, hdr.lanes.v019);
        lane020.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v020;
        hdr.lanes.v020 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v020);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v020);
        lane020.write(md.slot_copy, hdr.lanes.v020);
        lane021.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v021;
        hdr.lanes.v021 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v021);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v021);
        lane021.write(md.slot_copy, hdr.lanes.v021);
        lane022.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v022;
        hdr.lanes.v022 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v022);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v022);
        lane022.write(md.slot_copy, hdr.lanes.v022);
        lane023.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v023;
        hdr.lanes.v023 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v023);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v023);
        lane023.write(md.slot_copy, hdr.lanes.v023);
        lane024.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v024;
        hdr.lanes.v024 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v024);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v024);
        lane024.write(md.slot_copy, hdr.lanes.v024);
        lane025.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v025;
        hdr.lanes.v025 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v025);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v025);
        lane025.write(md.slot_copy, hdr.lanes.v025);
        lane026.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v026;
        hdr.lanes.v026 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v026);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v026);
        lane026.write(md.slot_copy, hdr.lanes.v026);
        lane027.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v027;
        hdr.lanes.v027 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v027);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v027);
        lane027.write(md.slot_copy, hdr.lanes.v027);
        lane028.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v028;
        hdr.lanes.v028 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v028);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v028);
        lane028.write(md.slot_copy, hdr.lanes.v028);
        lane029.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v029;
        hdr.lanes.v029 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v029);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v029);
        lane029.write(md.slot_copy, hdr.lanes.v029);
        lane030.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v030;
        hdr.lanes.v030 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v030);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v030);
        lane030.write(md.slot_copy, hdr.lanes.v030);
        lane031.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v031;
        hdr.lanes.v031 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v031);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v031);
        lane031.write(md.slot_copy, hdr.lanes.v031);
    }

    action lanes_max() {
        lane000.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v000) {
            hdr.lanes.v000 = held;
        }
        lane000.write(md.slot_copy, hdr.lanes.v000);
        lane001.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v001) {
            hdr.lanes.v001 = held;
        }
        lane001.write(md.slot_copy, hdr.lanes.v001);
        lane002.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v002) {
            hdr.lanes.v002 = held;
        }
        lane002.write(md.slot_copy, hdr.lanes.v002);
        lane003.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v003) {
            hdr.lanes.v003 = held;
        }
        lane003.write(md.slot_copy, hdr.lanes.v003);
        lane004.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v004) {
            hdr.lanes.v004 = held;
        }
        lane004.write(md.slot_copy, hdr.lanes.v004);
        lane005.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v005) {
            hdr.lanes.v005 = held;
        }
        lane005.write(md.slot_copy, hdr.lanes.v005);
        lane006.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v006) {
            hdr.lanes.v006 = held;
        }
        lane006.write(md.slot_copy, hdr.lanes.v006);
        lane007.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v007) {
            hdr.lanes.v007 = held;
        }
        lane007.write(md.slot_copy, hdr.lanes.v007);
        lane008.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v008) {
            hdr.lanes.v008 = held;
        }
        lane008.write(md.slot_copy, hdr.lanes.v008);
        lane009.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v009) {
            hdr.lanes.v009 = held;
        }
        lane009.write(md.slot_copy, hdr.lanes.v009);
        lane010.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v010) {
            hdr.lanes.v010 = held;
        }
        lane010.write(md.slot_copy, hdr.lanes.v010);
        lane011.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v011) {
            hdr.lanes.v011 = held;
        }
        lane011.write(md.slot_copy, hdr.lanes.v011);
        lane012.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v012) {
            hdr.lanes.v012 = held;
        }
        lane012.write(md.slot_copy, hdr.lanes.v012);
        lane013.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v013) {
            hdr.lanes.v013 = held;
        }
        lane013.write(md.slot_copy, hdr.lanes.v013);
        lane014.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v014) {
            hdr.lanes.v014 = held;
        }
        lane014.write(md.slot_copy, hdr.lanes.v014);
        lane015.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v015) {
            hdr.lanes.v015 = held;
        }
        lane015.write(md.slot_copy, hdr.lanes.v015);
        lane016.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v016) {
            hdr.lanes.v016 = held;
        }
        lane016.write(md.slot_copy, hdr.lanes.v016);
        lane017.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v017) {
            hdr.lanes.v017 = held;
        }
        lane017.write(md.slot_copy, hdr.lanes.v017);
        lane018.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v018) {
            hdr.lanes.v018 = held;
        }
        lane018.write(md.slot_copy, hdr.lanes.v018);
        lane019.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v019) {
            hdr.lanes.v019 = held;
        }
        lane019.write(md.slot_copy, hdr.lanes.v019);
        lane020.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v020) {
            hdr.lanes.v020 = held;
        }
        lane020.write(md.slot_copy, hdr.lanes.v020);
        lane021.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v021) {
            hdr.lanes.v021 = held;
        }
        lane021.write(md.slot_copy, hdr.lanes.v021);
        lane022.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v022) {
            hdr.lanes.v022 = held;
        }
        lane022.write(md.slot_copy, hdr.lanes.v022);
        lane023.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v023) {
            hdr.lanes.v023 = held;
        }
        lane023.write(md.slot_copy, hdr.lanes.v023);
        lane024.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v024) {
            hdr.lanes.v024 = held;
        }
        lane024.write(md.slot_copy, hdr.lanes.v024);
        lane025.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v025) {
            hdr.lanes.v025 = held;
        }
        lane025.write(md.slot_copy, hdr.lanes.v025);
        lane026.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v026) {
            hdr.lanes.v026 = held;
        }
        lane026.write(md.slot_copy, hdr.lanes.v026);
        lane027.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v027) {
            hdr.lanes.v027 = held;
        }
        lane027.write(md.slot_copy, hdr.lanes.v027);
        lane028.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v028) {
            hdr.lanes.v028 = held;
        }
        lane028.write(md.slot_copy, hdr.lanes.v028);
        lane029.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v029) {
            hdr.lanes.v029 = held;
        }
        lane029.write(md.slot_copy, hdr.lanes.v029);
        lane030.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v030) {
            hdr.lanes.v030 = held;
        }
        lane030.write(md.slot_copy, hdr.lanes.v030);
        lane031.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v031) {
            hdr.lanes.v031 = held;
        }
        lane031.write(md.slot_copy, hdr.lanes.v031);
    }

    action lanes_read() {
        lane000.read(hdr.lanes.v000, md.slot_copy);
        lane001.read(hdr.lanes.v001, md.slot_copy);
        lane002.read(hdr.lanes.v002, md.slot_copy);
        lane003.read(hdr.lanes.v003, md.slot_copy);
        lane004.read(hdr.lanes.v004, md.slot_copy);
        lane005.read(hdr.lanes.v005, md.slot_copy);
        lane006.read(hdr.lanes.v006, md.slot_copy);
        lane007.read(hdr.lanes.v007, md.slot_copy);
        lane008.read(hdr.lanes.v008, md.slot_copy);
        lane009.read(hdr.lanes.v009, md.slot_copy);
        lane010.read(hdr.lanes.v010, md.slot_copy);
        lane011.read(hdr.lanes.v011, md.slot_copy);
        lane012.read(hdr.lanes.v012, md.slot_copy);
        lane013.read(hdr.lanes.v013, md.slot_copy);
        lane014.read(hdr.lanes.v014, md.slot_copy);
        lane015.read(hdr.lanes.v015, md.slot_copy);
        lane016.read(hdr.lanes.v016, md.slot_copy);
        lane017.read(hdr.lanes.v017, md.slot_copy);
        lane018.read(hdr.lanes.v018, md.slot_copy);
        lane019.read(hdr.lanes.v019, md.slot_copy);
        lane020.read(hdr.lanes.v020, md.slot_copy);
        lane021.read(hdr.lanes.v021, md.slot_copy);
        lane022.read(hdr.lanes.v022, md.slot_copy);
        lane023.read(hdr.lanes.v023, md.slot_copy);
        lane024.read(hdr.lanes.v024, md.slot_copy);
        lane025.read(hdr.lanes.v025, md.slot_copy);
        lane026.read(hdr.lanes.v026, md.slot_copy);
        lane027.read(hdr.lanes.v027, md.slot_copy);
        lane028.read(hdr.lanes.v028, md.slot_copy);
        lane029.read(hdr.lanes.v029, md.slot_copy);
        lane030.read(hdr.lanes.v030, md.slot_copy);
        lane031.read(hdr.lanes.v031, md.slot_copy);
    }

    apply {
        if (md.slot_access == SLOT_ACCESS_OVERWRITE) {
            lanes_overwrite();
        } else if (md.slot_access == SLOT_ACCESS_ADD) {
            lanes_add();
        } else if (md.slot_access == SLOT_ACCESS_MAX) {
            lanes_max();
        } else if (md.slot_access == SLOT_ACCESS_READ) {
            lanes_read();
        }
    }
}
