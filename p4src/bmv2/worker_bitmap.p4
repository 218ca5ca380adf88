// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides what happens to the packet: who has contributed to the slot copy's round, and whether the
// round is over.
//
//   epoch \ packet   contribution              flush                    probe
//   NEWER            take over: ABSORBED       FLUSH_IGNORED            NOTIFIED
//   SAME, open       bit clear: ABSORBED       close: FLUSHED           NOTIFIED
//                    bit set: DUPLICATE
//   SAME, over       REPLAYED                  REPLAYED                 NOTIFIED
//   OLDER            NOTIFIED, or STALE where rounds cannot close without everybody
//   SUPERSEDED       STALE                     STALE                    NOTIFIED
//
// ABSORBED becomes COMPLETED when the contribution was the last one. A round is over when all
// workers have contributed or a flush closed it; a late contribution to a closed round is not
// added.
control WorkerBitmap(inout headers_t hdr, inout metadata_t md) {
    register<bit<32>>(SLOT_REGISTER_SIZE) slot_bitmap;
    register<bit<16>>(SLOT_REGISTER_SIZE) slot_count;
    register<bit<1>>(SLOT_REGISTER_SIZE) slot_closed;

    action read_contributors() {
        slot_bitmap.read(md.copy_bitmap, md.slot_copy);
        slot_count.read(md.copy_count, md.slot_copy);
        slot_closed.read(md.copy_is_closed, md.slot_copy);
    }

    action write_contributors() {
        slot_bitmap.write(md.slot_copy, md.copy_bitmap);
        slot_count.write(md.slot_copy, md.copy_count);
        slot_closed.write(md.slot_copy, md.copy_is_closed);
    }

    action start_round() {
        md.copy_bitmap = md.worker_bit;
        md.copy_count = hdr.switchfold.num_contributors;
        md.copy_is_closed = 0;
        md.slot_access = SLOT_ACCESS_OVERWRITE;
        md.outcome = OUTCOME_ABSORBED;
    }

    action join_round(slot_access_t access) {
        md.copy_bitmap = md.copy_bitmap | md.worker_bit;
        md.copy_count = md.copy_count + hdr.switchfold.num_contributors;
        md.slot_access = access;
        md.outcome = OUTCOME_ABSORBED;
    }

    action close_round() {
        md.copy_is_closed = 1;
        md.slot_access = SLOT_ACCESS_READ;
        md.outcome = OUTCOME_FLUSHED;
    }

    action replay() {
        md.slot_access = SLOT_ACCESS_READ;
        md.outcome = OUTCOME_REPLAYED;
    }

    apply {
        if (md.outcome == OUTCOME_NONE) {
            read_contributors();
            if (hdr.switchfold.operation == OPERATION_PROBE) {
                md.outcome = OUTCOME_NOTIFIED;
            } else if (md.epoch == EPOCH_SUPERSEDED) {
                md.outcome = OUTCOME_STALE;
            } else if (md.epoch == EPOCH_OLDER) {
                if (md.is_partial_allowed == 1) {
                    md.outcome = OUTCOME_NOTIFIED;
                } else {
                    md.outcome = OUTCOME_STALE;
                }
            } else if (md.epoch == EPOCH_NEWER) {
                if (md.is_contribution == 1) {
                    start_round();
                } else {
                    md.outcome = OUTCOME_FLUSH_IGNORED;
                }
            } else if (md.copy_is_closed == 1 || md.copy_count >= md.num_workers) {
                replay();
            } else if (md.is_contribution == 0) {
                close_round();
            } else if ((md.copy_bitmap & md.worker_bit) != 0) {
                md.outcome = OUTCOME_DUPLICATE;
            } else if (hdr.switchfold.operation == OPERATION_AGGREGATE_ADD) {
                join_round(SLOT_ACCESS_ADD);
            } else {
                join_round(SLOT_ACCESS_MAX);
            }

            if (md.outcome == OUTCOME_ABSORBED || md.outcome == OUTCOME_FLUSHED) {
                write_contributors();
            }
            if (md.outcome == OUTCOME_ABSORBED && md.copy_count >= md.num_workers) {
                md.outcome = OUTCOME_COMPLETED;
            }
        }
    }
}
