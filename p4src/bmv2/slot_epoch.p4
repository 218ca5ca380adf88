// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the packet's (generation, round) with those of its slot copy, in serial-number arithmetic
// (RFC 1982): a difference below 2^31 means newer, any other difference older.
//
//      packet - copy:    0        1 .. 2^31-1       2^31 .. 2^32-1
//      generation        look at  NEWER             SUPERSEDED
//                        round
//      round             SAME     NEWER             OLDER
//
// A newer contribution takes the copy over, and so does the parent's result if rounds can close
// without all children. It also stores the chunk's identity (tensor and range), which must be the
// same in every other packet of the round, and its operation, which must be the same in every other
// contribution; a result does not know the operation. Flushes and probes never take a copy over.
//
// Of the values of a hot row, the round is the version. Newer values take their copy over. A READ
// asks for this version or a newer one, of the row's epoch; the row is cold if the copy has none.
control SlotEpoch(inout headers_t hdr, inout metadata_t md) {
    register<bit<32>>(SLOT_REGISTER_SIZE) slot_generation;
    register<bit<32>>(SLOT_REGISTER_SIZE) slot_round;
    register<bit<32>>(SLOT_REGISTER_SIZE) slot_tensor;
    register<bit<32>>(SLOT_REGISTER_SIZE) slot_range_start;
    register<bit<32>>(SLOT_REGISTER_SIZE) slot_range_end;
    register<bit<8>>(SLOT_REGISTER_SIZE) slot_operation;

    bit<32> held_tensor;
    bit<32> held_range_start;
    bit<32> held_range_end;

    action read_epoch() {
        slot_generation.read(md.copy_generation, md.slot_copy);
        slot_round.read(md.copy_round, md.slot_copy);
    }

    action read_chunk() {
        slot_tensor.read(held_tensor, md.slot_copy);
        slot_range_start.read(held_range_start, md.slot_copy);
        slot_range_end.read(held_range_end, md.slot_copy);
        slot_operation.read(md.copy_operation, md.slot_copy);
    }

    action take_over() {
        slot_generation.write(md.slot_copy, hdr.switchfold.generation);
        slot_round.write(md.slot_copy, hdr.switchfold.round);
        slot_tensor.write(md.slot_copy, hdr.switchfold.tensor_id);
        slot_range_start.write(md.slot_copy, hdr.switchfold.range_start);
        slot_range_end.write(md.slot_copy, hdr.switchfold.range_end);
        slot_operation.write(md.slot_copy, hdr.switchfold.operation);
        md.copy_operation = hdr.switchfold.operation;
    }

    apply {
        if (md.outcome == OUTCOME_NONE) {
            read_epoch();
            bit<32> generations_ahead = hdr.switchfold.generation - md.copy_generation;
            bit<32> rounds_ahead = hdr.switchfold.round - md.copy_round;
            if (generations_ahead != 0) {
                if (generations_ahead < 0x80000000) {
                    md.epoch = EPOCH_NEWER;
                } else {
                    md.epoch = EPOCH_SUPERSEDED;
                }
            } else if (rounds_ahead == 0) {
                md.epoch = EPOCH_SAME;
            } else if (rounds_ahead < 0x80000000) {
                md.epoch = EPOCH_NEWER;
            } else {
                md.epoch = EPOCH_OLDER;
            }

            if (hdr.switchfold.operation == OPERATION_READ) {
                read_chunk();
                if (md.epoch == EPOCH_NEWER || md.epoch == EPOCH_SUPERSEDED
                    || held_tensor != hdr.switchfold.tensor_id) {
                    md.outcome = OUTCOME_COLD;
                }
            } else if (md.epoch == EPOCH_NEWER) {
                if (md.is_contribution == 1
                    || hdr.switchfold.operation == OPERATION_WRITE
                    || (hdr.switchfold.operation == OPERATION_RESULT
                        && md.is_partial_allowed == 1)) {
                    take_over();
                }
            } else if (md.epoch == EPOCH_SAME
                       && hdr.switchfold.operation != OPERATION_PROBE
                       && hdr.switchfold.operation != OPERATION_NOTICE) {
                read_chunk();
                if (held_tensor != hdr.switchfold.tensor_id
                    || held_range_start != hdr.switchfold.range_start
                    || held_range_end != hdr.switchfold.range_end
                    || (md.is_contribution == 1
                        && md.copy_operation != hdr.switchfold.operation
                        && md.copy_operation != OPERATION_RESULT)) {
                    md.outcome = OUTCOME_MISMATCH;
                }
            }
        }
    }
}
