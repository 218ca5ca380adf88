// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Keeps the largest block exponent of a round's contributions. The wire carries exponents biased,
// so that an unsigned comparison orders them.
control BlockExponent(inout headers_t hdr, inout metadata_t md) {
    register<bit<8>>(SLOT_REGISTER_SIZE) slot_exponent;

    action overwrite_exponent() {
        md.copy_exponent = hdr.switchfold.exponent;
        slot_exponent.write(md.slot_copy, md.copy_exponent);
    }

    action read_exponent() {
        slot_exponent.read(md.copy_exponent, md.slot_copy);
    }

    action raise_exponent() {
        slot_exponent.read(md.copy_exponent, md.slot_copy);
        if (hdr.switchfold.exponent > md.copy_exponent) {
            md.copy_exponent = hdr.switchfold.exponent;
        }
        slot_exponent.write(md.slot_copy, md.copy_exponent);
    }

    apply {
        if (md.slot_access == SLOT_ACCESS_OVERWRITE) {
            overwrite_exponent();
        } else if (md.slot_access == SLOT_ACCESS_READ) {
            read_exponent();
        } else if (md.slot_access != SLOT_ACCESS_NONE) {
            raise_exponent();
        }
    }
}
