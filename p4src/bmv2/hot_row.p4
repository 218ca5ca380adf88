// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Places the packets about hot rows, whose slot_index is the number of a row. A row has a slot for
// the pushes of the workers, and a slot copy for the values that workers pull. No packet gets past
// this table to a row: without an entry, or with another epoch in its tensor_id, the row is cold.
control HotRow(inout headers_t hdr, inout metadata_t md) {
    action cold() {
        md.outcome = OUTCOME_COLD;
    }

    // `exponent` replaces the packet's: what the server gets is scaled as the controller says. Rounds
    // of pushes may close without all workers.
    action place_row(slot_index_t slot,
                     slot_copy_t value_copy,
                     bit<32> epoch,
                     exponent_t exponent,
                     bit<16> server_group_id,
                     bit<16> copies_group_id) {
        md.slot_copy = (slot << 1) | (hdr.switchfold.round & 1);
        if (hdr.switchfold.operation >= OPERATION_READ) {
            md.slot_copy = value_copy;
        }
        md.row_epoch = epoch;
        hdr.switchfold.exponent = exponent;
        md.server_group_id = server_group_id;
        md.copies_group_id = copies_group_id;
        md.is_partial_allowed = 1;
    }

    // server_group_id: where the root sends the sum of a round. copies_group_id: where a switch sends
    // the values that it has stored: to the server, as its receipt, and to the switches below.
    table hot_row {
        key = {
            hdr.switchfold.job_id: exact @name("job_id");
            hdr.switchfold.slot_index: exact @name("row");
        }
        actions = {
            place_row;
            @defaultonly cold;
        }
        const default_action = cold();
        size = HOT_ROW_TABLE_SIZE;
    }

    apply {
        if (md.outcome == OUTCOME_NONE && md.is_hot == 1) {
            hot_row.apply();
            if (md.outcome == OUTCOME_NONE && hdr.switchfold.tensor_id != md.row_epoch) {
                md.outcome = OUTCOME_COLD;
            }
        }
    }
}
