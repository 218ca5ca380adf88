// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Stores the flags of a round: OVERFLOW if a lane saturated in any contribution, here or below;
// ECN_ECHO if a contribution met congestion, here or below; FLUSHED if a flush closed the round; and
// the flags of the parent's result. It runs after the lanes, which detect
// saturation.
control RoundFlags(inout headers_t hdr, inout metadata_t md) {
    register<bit<16>>(SLOT_REGISTER_SIZE) slot_flags;

    bit<16> held_flags;

    action overwrite_flags() {
        slot_flags.write(md.slot_copy, md.copy_flags);
    }

    action read_flags() {
        slot_flags.read(md.copy_flags, md.slot_copy);
    }

    action add_flags() {
        slot_flags.read(held_flags, md.slot_copy);
        md.copy_flags = md.copy_flags | held_flags;
        slot_flags.write(md.slot_copy, md.copy_flags);
    }

    apply {
        if (md.slot_access != SLOT_ACCESS_NONE) {
            if (md.outcome == OUTCOME_FLUSHED) {
                md.copy_flags = FLAG_FLUSHED;
            } else {
                md.copy_flags = hdr.switchfold.flags & FLAGS_FROM_BELOW;
                if (md.outcome == OUTCOME_RESULT_STORED) {
                    md.copy_flags = hdr.switchfold.flags & FLAGS_FROM_ABOVE;
                }
                if (md.saturated_bits != 0) {
                    md.copy_flags = md.copy_flags | FLAG_OVERFLOW;
                }
                if (hdr.ipv4.ecn == ECN_CONGESTION_EXPERIENCED) {
                    md.copy_flags = md.copy_flags | FLAG_ECN_ECHO;
                }
            }
            if (md.slot_access == SLOT_ACCESS_OVERWRITE) {
                overwrite_flags();
            } else if (md.slot_access == SLOT_ACCESS_READ && md.outcome != OUTCOME_FLUSHED) {
                read_flags();
            } else {
                add_flags();
            }
        }
    }
}
