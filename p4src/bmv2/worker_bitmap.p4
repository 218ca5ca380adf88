// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides what happens to the packet: who has contributed to the slot copy's round, and whether the
// round is over. At the root of a tree a round goes from OPEN to CLOSED. At every other switch it
// goes to SENT_UP, and to CLOSED when the parent's result is back.
//
//   epoch \ packet   contribution              flush           probe           result
//   NEWER            take over: ABSORBED       FLUSH_IGNORED   NOTIFIED        * RESULT_STORED
//   SAME, OPEN       bit clear: ABSORBED       *** FLUSHED     NOTIFIED        * RESULT_STORED
//                    bit set: DUPLICATE
//   SAME, SENT_UP    RESENT                    *** RELAYED     RELAYED         RESULT_STORED
//   SAME, CLOSED     REPLAYED                  REPLAYED        NOTIFIED        RESULT_IGNORED
//   OLDER            ** STALE                  NOTIFIED        NOTIFIED        STALE
//   SUPERSEDED       STALE                     STALE           NOTIFIED        STALE
//
//   *   RESULT_IGNORED where rounds cannot close without everybody
//   **  NOTIFIED where they can
//   *** FLUSH_IGNORED where the flush does not reach so high: its num_contributors is the highest
//       level that it ends. Those below shall end their rounds before those above.
//
// ABSORBED becomes COMPLETED (root) or SENT_UP (others) when all children have contributed, or when
// the root has its quorum. A late contribution to a round that is over is not added. Notices are
// RELAYED whatever the copy holds: what they say is about the parent's.
control WorkerBitmap(inout headers_t hdr, inout metadata_t md) {
    register<bit<32>>(SLOT_REGISTER_SIZE) slot_arrived; // children of this switch
    register<bit<32>>(SLOT_REGISTER_SIZE) slot_bitmap;  // workers, as the contributions name them
    register<bit<16>>(SLOT_REGISTER_SIZE) slot_count;
    register<bit<2>>(SLOT_REGISTER_SIZE) slot_state;

    action read_contributors() {
        slot_arrived.read(md.copy_arrived, md.slot_copy);
        slot_bitmap.read(md.copy_bitmap, md.slot_copy);
        slot_count.read(md.copy_count, md.slot_copy);
        slot_state.read(md.copy_state, md.slot_copy);
    }

    action write_contributors() {
        slot_arrived.write(md.slot_copy, md.copy_arrived);
        slot_bitmap.write(md.slot_copy, md.copy_bitmap);
        slot_count.write(md.slot_copy, md.copy_count);
        slot_state.write(md.slot_copy, md.copy_state);
    }

    action start_round() {
        md.copy_arrived = md.worker_bit;
        md.copy_bitmap = hdr.switchfold.worker_bitmap;
        md.copy_count = hdr.switchfold.num_contributors;
        md.copy_state = SLOT_STATE_OPEN;
        md.slot_access = SLOT_ACCESS_OVERWRITE;
        md.outcome = OUTCOME_ABSORBED;
    }

    action join_round(slot_access_t access) {
        md.copy_arrived = md.copy_arrived | md.worker_bit;
        md.copy_bitmap = md.copy_bitmap | hdr.switchfold.worker_bitmap;
        md.copy_count = md.copy_count + hdr.switchfold.num_contributors;
        md.slot_access = access;
        md.outcome = OUTCOME_ABSORBED;
    }

    action end_round(outcome_t outcome, slot_state_t state) {
        md.copy_state = state;
        md.outcome = outcome;
    }

    action store_result() {
        md.copy_bitmap = hdr.switchfold.worker_bitmap;
        md.copy_count = hdr.switchfold.num_contributors;
        md.slot_access = SLOT_ACCESS_OVERWRITE;
        end_round(OUTCOME_RESULT_STORED, SLOT_STATE_CLOSED);
    }

    action repeat(outcome_t outcome) {
        md.slot_access = SLOT_ACCESS_READ;
        md.outcome = outcome;
    }

    apply {
        if (md.outcome == OUTCOME_NONE) {
            read_contributors();
            if (hdr.switchfold.operation == OPERATION_NOTICE) {
                md.outcome = OUTCOME_RELAYED;
            } else if (hdr.switchfold.operation == OPERATION_PROBE) {
                if (md.epoch == EPOCH_SAME && md.copy_state == SLOT_STATE_SENT_UP) {
                    md.outcome = OUTCOME_RELAYED;
                } else {
                    md.outcome = OUTCOME_NOTIFIED;
                }
            } else if (md.epoch == EPOCH_SUPERSEDED) {
                md.outcome = OUTCOME_STALE;
            } else if (md.epoch == EPOCH_OLDER) {
                if (md.is_partial_allowed == 1 && hdr.switchfold.operation != OPERATION_RESULT) {
                    md.outcome = OUTCOME_NOTIFIED;
                } else {
                    md.outcome = OUTCOME_STALE;
                }
            } else if (hdr.switchfold.operation == OPERATION_RESULT) {
                if ((md.epoch == EPOCH_SAME && md.copy_state == SLOT_STATE_SENT_UP)
                    || (md.is_partial_allowed == 1
                        && (md.epoch == EPOCH_NEWER || md.copy_state == SLOT_STATE_OPEN))) {
                    store_result();
                } else {
                    md.outcome = OUTCOME_RESULT_IGNORED;
                }
            } else if (md.epoch == EPOCH_NEWER) {
                if (md.is_contribution == 1) {
                    start_round();
                } else {
                    md.outcome = OUTCOME_FLUSH_IGNORED;
                }
            } else if (md.copy_state == SLOT_STATE_CLOSED) {
                repeat(OUTCOME_REPLAYED);
            } else if (md.copy_state == SLOT_STATE_SENT_UP) {
                if (md.is_contribution == 1) {
                    repeat(OUTCOME_RESENT);
                } else if (hdr.switchfold.num_contributors > md.level) {
                    md.outcome = OUTCOME_RELAYED;
                } else {
                    md.outcome = OUTCOME_FLUSH_IGNORED;
                }
            } else if (md.is_contribution == 0) {
                if (hdr.switchfold.num_contributors >= md.level) {
                    repeat(OUTCOME_FLUSHED);
                } else {
                    md.outcome = OUTCOME_FLUSH_IGNORED;
                }
            } else if ((md.copy_arrived & md.worker_bit) != 0) {
                md.outcome = OUTCOME_DUPLICATE;
            } else if (hdr.switchfold.operation == OPERATION_AGGREGATE_ADD) {
                join_round(SLOT_ACCESS_ADD);
            } else {
                join_round(SLOT_ACCESS_MAX);
            }

            if (md.outcome == OUTCOME_ABSORBED || md.outcome == OUTCOME_FLUSHED) {
                if (md.is_root == 0) {
                    if (md.outcome == OUTCOME_FLUSHED) {
                        end_round(OUTCOME_FLUSHED, SLOT_STATE_SENT_UP);
                    } else if (md.copy_arrived == md.children_bitmap) {
                        end_round(OUTCOME_SENT_UP, SLOT_STATE_SENT_UP);
                    }
                } else if (md.outcome == OUTCOME_FLUSHED) {
                    end_round(OUTCOME_FLUSHED, SLOT_STATE_CLOSED);
                } else if (md.copy_arrived == md.children_bitmap || md.copy_count >= md.quorum) {
                    end_round(OUTCOME_COMPLETED, SLOT_STATE_CLOSED);
                }
                write_contributors();
            } else if (md.outcome == OUTCOME_RESULT_STORED) {
                write_contributors();
            }
        }
    }
}
