// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides the packet's outcome by the contributions to the slot copy's round and by the round's
// state. At the root of a tree a round goes from OPEN to CLOSED. At every other switch it goes to
// SENT_UP, and to CLOSED when the parent's result has arrived. The code follows this table column by
// column, and in each column row by row.
//
//   epoch \ packet   contribution              flush           result              probe
//   SUPERSEDED       STALE                     STALE           STALE               NOTIFIED
//   OLDER            ** STALE                  NOTIFIED        STALE               NOTIFIED
//   NEWER            take over: ABSORBED       FLUSH_IGNORED   * RESULT_STORED     NOTIFIED
//   SAME, OPEN       bit clear: ABSORBED       *** FLUSHED     * RESULT_STORED     NOTIFIED
//                    bit set: **** DUPLICATE
//   SAME, SENT_UP    RESENT                    *** RELAYED     RESULT_STORED       RELAYED
//   SAME, CLOSED     REPLAYED                  REPLAYED        RESULT_IGNORED      NOTIFIED
//
//   *    RESULT_IGNORED if rounds cannot close without all children
//   **   NOTIFIED if they can
//   ***  FLUSH_IGNORED if the switch is above the flush's num_contributors, the highest level that
//        the flush ends: lower switches must end their rounds before higher ones. FLUSHED, too, is
//        FLUSH_IGNORED while fewer workers are in the sum than the flush expects.
//   **** NOTIFIED in a hot row: the result goes to the server, so this is the worker's receipt
//
// ABSORBED becomes COMPLETED (root) or SENT_UP (others) when all children have contributed, or when
// the root has its quorum: what the contribution expects, or else what the table job says. A late
// contribution to a closed round is not added. Notices are RELAYED in every state of the copy: they
// describe the parent's copy.
//
// The values of a hot row have a copy of their own, whose round is their version:
//
//   version          write                     read
//   newer            VALUES_WRITTEN            cold, see slot_epoch
//   same             VALUES_KEPT               VALUES_READ
//   older            root: NOTIFIED            VALUES_READ
//                    others: STALE
control WorkerBitmap(inout headers_t hdr, inout metadata_t md) {
    register<bit<32>>(SLOT_REGISTER_SIZE) slot_arrived; // children of this switch
    register<bit<32>>(SLOT_REGISTER_SIZE) slot_bitmap;  // workers that the contributions name
    register<bit<16>>(SLOT_REGISTER_SIZE) slot_count;
    register<bit<2>>(SLOT_REGISTER_SIZE) slot_state;

    bool is_copy_changed;

    action read_copy() {
        slot_arrived.read(md.copy_arrived, md.slot_copy);
        slot_bitmap.read(md.copy_bitmap, md.slot_copy);
        slot_count.read(md.copy_count, md.slot_copy);
        slot_state.read(md.copy_state, md.slot_copy);
        is_copy_changed = false;
    }

    action write_copy() {
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
        is_copy_changed = true;
    }

    action join_round(slot_access_t access) {
        md.copy_arrived = md.copy_arrived | md.worker_bit;
        md.copy_bitmap = md.copy_bitmap | hdr.switchfold.worker_bitmap;
        md.copy_count = md.copy_count + hdr.switchfold.num_contributors;
        md.slot_access = access;
        md.outcome = OUTCOME_ABSORBED;
        is_copy_changed = true;
    }

    action end_round(outcome_t outcome, slot_state_t state) {
        md.copy_state = state;
        md.outcome = outcome;
        is_copy_changed = true;
    }

    action store_result() {
        md.copy_bitmap = hdr.switchfold.worker_bitmap;
        md.copy_count = hdr.switchfold.num_contributors;
        md.slot_access = SLOT_ACCESS_OVERWRITE;
        end_round(OUTCOME_RESULT_STORED, SLOT_STATE_CLOSED);
    }

    action store_values() {
        md.copy_arrived = 0;
        md.copy_bitmap = 0;
        md.copy_count = 0;
        md.slot_access = SLOT_ACCESS_OVERWRITE;
        end_round(OUTCOME_VALUES_WRITTEN, SLOT_STATE_CLOSED);
    }

    action repeat(outcome_t outcome) {
        md.slot_access = SLOT_ACCESS_READ;
        md.outcome = outcome;
    }

    action answer(outcome_t outcome) {
        md.outcome = outcome;
    }

    apply {
        if (md.outcome == OUTCOME_NONE) {
            read_copy();
            if (md.is_contribution == 1) {
                if (md.epoch == EPOCH_SUPERSEDED) {
                    answer(OUTCOME_STALE);
                } else if (md.epoch == EPOCH_OLDER) {
                    if (md.is_partial_allowed == 1) {
                        answer(OUTCOME_NOTIFIED);
                    } else {
                        answer(OUTCOME_STALE);
                    }
                } else if (md.epoch == EPOCH_NEWER) {
                    start_round();
                } else if (md.copy_state == SLOT_STATE_OPEN) {
                    if ((md.copy_arrived & md.worker_bit) != 0) {
                        if (md.is_hot == 1) {
                            answer(OUTCOME_NOTIFIED);
                        } else {
                            answer(OUTCOME_DUPLICATE);
                        }
                    } else if (hdr.switchfold.operation == OPERATION_AGGREGATE_ADD) {
                        join_round(SLOT_ACCESS_ADD);
                    } else {
                        join_round(SLOT_ACCESS_MAX);
                    }
                } else if (md.copy_state == SLOT_STATE_SENT_UP) {
                    repeat(OUTCOME_RESENT);
                } else {
                    repeat(OUTCOME_REPLAYED);
                }
                if (md.outcome == OUTCOME_ABSORBED) {
                    bit<16> quorum = md.quorum;
                    if (hdr.switchfold.expected != 0) {
                        quorum = (bit<16>)hdr.switchfold.expected;
                    }
                    if (md.is_root == 0) {
                        if (md.copy_arrived == md.children_bitmap) {
                            end_round(OUTCOME_SENT_UP, SLOT_STATE_SENT_UP);
                        }
                    } else if (md.copy_arrived == md.children_bitmap
                               || md.copy_count >= quorum) {
                        end_round(OUTCOME_COMPLETED, SLOT_STATE_CLOSED);
                    }
                }
            } else if (hdr.switchfold.operation == OPERATION_FLUSH) {
                if (md.epoch == EPOCH_SUPERSEDED) {
                    answer(OUTCOME_STALE);
                } else if (md.epoch == EPOCH_OLDER) {
                    answer(OUTCOME_NOTIFIED);
                } else if (md.epoch == EPOCH_NEWER) {
                    answer(OUTCOME_FLUSH_IGNORED);
                } else if (md.copy_state == SLOT_STATE_OPEN) {
                    if (hdr.switchfold.num_contributors < md.level
                        || md.copy_count < (bit<16>)hdr.switchfold.expected) {
                        answer(OUTCOME_FLUSH_IGNORED);
                    } else {
                        repeat(OUTCOME_FLUSHED);
                        if (md.is_root == 0) {
                            end_round(OUTCOME_FLUSHED, SLOT_STATE_SENT_UP);
                        } else {
                            end_round(OUTCOME_FLUSHED, SLOT_STATE_CLOSED);
                        }
                    }
                } else if (md.copy_state == SLOT_STATE_SENT_UP) {
                    if (hdr.switchfold.num_contributors <= md.level) {
                        answer(OUTCOME_FLUSH_IGNORED);
                    } else {
                        answer(OUTCOME_RELAYED);
                    }
                } else {
                    repeat(OUTCOME_REPLAYED);
                }
            } else if (hdr.switchfold.operation == OPERATION_RESULT) {
                if (md.epoch == EPOCH_SUPERSEDED || md.epoch == EPOCH_OLDER) {
                    answer(OUTCOME_STALE);
                } else if (md.epoch == EPOCH_NEWER || md.copy_state == SLOT_STATE_OPEN) {
                    if (md.is_partial_allowed == 1) {
                        store_result();
                    } else {
                        answer(OUTCOME_RESULT_IGNORED);
                    }
                } else if (md.copy_state == SLOT_STATE_SENT_UP) {
                    store_result();
                } else {
                    answer(OUTCOME_RESULT_IGNORED);
                }
            } else if (hdr.switchfold.operation == OPERATION_PROBE) {
                if (md.epoch == EPOCH_SAME && md.copy_state == SLOT_STATE_SENT_UP) {
                    answer(OUTCOME_RELAYED);
                } else {
                    answer(OUTCOME_NOTIFIED);
                }
            } else if (hdr.switchfold.operation == OPERATION_READ) {
                repeat(OUTCOME_VALUES_READ);
            } else if (hdr.switchfold.operation == OPERATION_WRITE) {
                if (md.epoch == EPOCH_NEWER) {
                    store_values();
                } else if (md.epoch == EPOCH_SAME) {
                    repeat(OUTCOME_VALUES_KEPT);
                } else if (md.epoch == EPOCH_OLDER && md.is_root == 1) {
                    answer(OUTCOME_NOTIFIED);
                } else {
                    answer(OUTCOME_STALE);
                }
            } else {
                answer(OUTCOME_RELAYED);
            }
            if (is_copy_changed) {
                write_copy();
            }
        }
    }
}
