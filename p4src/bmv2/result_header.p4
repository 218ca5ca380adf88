// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns the packet into the one that the switch sends, or drops it. Other fields keep their values.
//
//                        root                       other switch
//   COMPLETED            RESULT to the children
//   SENT_UP, RESENT                                 contribution to the parent
//   FLUSHED              RESULT to the children     contribution to the parent
//   RESULT_STORED                                   RESULT to the children
//   RELAYED                                         NOTICE to the children; else to the parent
//   REPLAYED             RESULT with REPLAY to the sender
//   NOTIFIED             NOTICE to the sender
//   MULTICAST            the packet to all children but the sender
//   all others           nothing is sent
control ResultHeader(inout headers_t hdr,
                     inout metadata_t md,
                     inout standard_metadata_t standard_metadata) {
    bit<16> missing_flags;

    action fill_result(bit<16> reply_flags) {
        hdr.switchfold.operation = OPERATION_RESULT;
        hdr.switchfold.flags =
            (hdr.switchfold.flags & FLAG_LAST) | md.copy_flags | missing_flags | reply_flags;
        hdr.switchfold.worker_bitmap = md.copy_bitmap;
        hdr.switchfold.num_contributors = md.copy_count;
    }

    action fill_contribution() {
        hdr.switchfold.operation = md.copy_operation;
        hdr.switchfold.flags =
            (hdr.switchfold.flags & FLAG_LAST) | (md.copy_flags & FLAGS_FROM_BELOW);
        hdr.switchfold.worker_bitmap = md.copy_bitmap;
        hdr.switchfold.num_contributors = md.copy_count;
    }

    // If a tree has more workers than bits, the bits mean children.
    action name_as_child() {
        hdr.switchfold.worker_bitmap = md.child_bitmap;
    }

    action fill_notice() {
        hdr.switchfold.operation = OPERATION_NOTICE;
        hdr.switchfold.flags = 0;
        hdr.switchfold.round = md.copy_round;
        hdr.switchfold.worker_bitmap = md.copy_bitmap;
        hdr.switchfold.num_contributors = md.copy_count;
    }

    // The copy's state belongs to another generation, which the prober must not see.
    action fill_empty_notice() {
        hdr.switchfold.operation = OPERATION_NOTICE;
        hdr.switchfold.flags = 0;
        hdr.switchfold.round = 0;
        hdr.switchfold.worker_bitmap = 0;
        hdr.switchfold.num_contributors = 0;
    }

    action keep_multicast_flags() {
        hdr.switchfold.flags = hdr.switchfold.flags & FLAGS_OF_MULTICASTS;
    }

    // A multicast is a new packet: its header reports the congestion that the original met.
    action note_congestion() {
        hdr.switchfold.flags = hdr.switchfold.flags | FLAG_ECN_ECHO;
    }

    action reply_to_sender() {
        md.reply = REPLY_SENDER;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    action reply_to_children() {
        md.reply = REPLY_CHILDREN;
        standard_metadata.mcast_grp = md.multicast_group_id;
    }

    action send_to_parent() {
        md.reply = REPLY_PARENT;
        standard_metadata.egress_spec = md.parent_port;
        hdr.switchfold.worker_id = md.child_id;
    }

    apply {
        missing_flags = 0;
        if (md.is_root == 1 && md.copy_count < md.num_workers) {
            missing_flags = FLAG_PARTIAL;
        }

        if (md.outcome == OUTCOME_COMPLETED
            || md.outcome == OUTCOME_RESULT_STORED
            || (md.outcome == OUTCOME_FLUSHED && md.is_root == 1)) {
            fill_result(0);
            reply_to_children();
        } else if (md.outcome == OUTCOME_SENT_UP
                   || md.outcome == OUTCOME_RESENT
                   || md.outcome == OUTCOME_FLUSHED) {
            fill_contribution();
            if (md.child_bitmap != 0) {
                name_as_child();
            }
            send_to_parent();
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
        } else if (md.outcome == OUTCOME_RELAYED) {
            if (hdr.switchfold.operation == OPERATION_NOTICE) {
                reply_to_children();
            } else {
                send_to_parent();
            }
        } else if (md.outcome == OUTCOME_MULTICAST) {
            keep_multicast_flags();
            if (hdr.ipv4.ecn == ECN_CONGESTION_EXPERIENCED) {
                note_congestion();
            }
            reply_to_children();
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}
