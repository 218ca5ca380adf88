// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns the packet into the switch's answer, or drops it. What is not set here echoes the packet.
//
//   COMPLETED, FLUSHED   RESULT to all workers
//   REPLAYED             RESULT with REPLAY to the sender
//   NOTIFIED             NOTICE to the sender
//   all others           nothing is sent
control ResultHeader(inout headers_t hdr,
                     inout metadata_t md,
                     inout standard_metadata_t standard_metadata) {
    bit<16> closing_flags;

    action fill_result(bit<16> reply_flags) {
        hdr.switchfold.operation = OPERATION_RESULT;
        hdr.switchfold.flags =
            (hdr.switchfold.flags & FLAG_LAST) | md.copy_flags | closing_flags | reply_flags;
        hdr.switchfold.worker_bitmap = md.copy_bitmap;
        hdr.switchfold.num_contributors = md.copy_count;
        hdr.switchfold.exponent = md.copy_exponent;
    }

    action fill_notice() {
        hdr.switchfold.operation = OPERATION_NOTICE;
        hdr.switchfold.flags = 0;
        hdr.switchfold.round = md.copy_round;
        hdr.switchfold.worker_bitmap = md.copy_bitmap;
        hdr.switchfold.num_contributors = md.copy_count;
    }

    // The copy's state belongs to another life of the job: nothing that a prober may see.
    action fill_empty_notice() {
        hdr.switchfold.operation = OPERATION_NOTICE;
        hdr.switchfold.flags = 0;
        hdr.switchfold.round = 0;
        hdr.switchfold.worker_bitmap = 0;
        hdr.switchfold.num_contributors = 0;
    }

    action reply_to_sender() {
        md.reply = REPLY_SENDER;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    action reply_to_workers() {
        md.reply = REPLY_WORKERS;
        standard_metadata.mcast_grp = md.multicast_group_id;
    }

    apply {
        // A round that a flush closed lacks at least one worker.
        closing_flags = 0;
        if (md.copy_is_closed == 1) {
            closing_flags = FLAG_PARTIAL | FLAG_FLUSHED;
        }

        if (md.outcome == OUTCOME_COMPLETED || md.outcome == OUTCOME_FLUSHED) {
            fill_result(0);
            reply_to_workers();
        } else if (md.outcome == OUTCOME_REPLAYED) {
            fill_result(FLAG_REPLAY);
            reply_to_sender();
        } else if (md.outcome == OUTCOME_NOTIFIED) {
            if (md.copy_generation == md.job_generation) {
                fill_notice();
            } else {
                fill_empty_notice();
            }
            reply_to_sender();
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}
