// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns the packet into the one that the switch sends, or drops it. Other fields keep their values.
//
//                        root                       other switch
//   COMPLETED            * RESULT to the children
//   SENT_UP, RESENT                                 contribution to the parent
//   FLUSHED              * RESULT to the children   contribution to the parent
//   RESULT_STORED                                   RESULT to the children
//   RELAYED                                         NOTICE to the children; else to the parent
//   REPLAYED             RESULT with REPLAY to the sender
//   NOTIFIED             NOTICE to the sender
//   MULTICAST            the packet to all children but the sender
//   VALUES_READ          READ with values and version to the sender
//   VALUES_WRITTEN,      WRITE to the switches below; from a root also to the server
//   VALUES_KEPT
//   COLD                 NOTICE with COLD to the sender, unless that is the parent
//   all others           nothing is sent
//
//   * of a hot row: to its server
//
// Packets of the operations up to NOTICE leave in the queue that their priority says, as far as the
// job may; all others leave in the last one.
control ResultHeader(inout headers_t hdr,
                     inout metadata_t md,
                     inout standard_metadata_t standard_metadata) {
    bit<16> missing_flags;

    action fill_result(bit<16> reply_flags) {
        hdr.switchfold.operation = OPERATION_RESULT;
        hdr.switchfold.flags =
            (hdr.switchfold.flags & FLAGS_ECHOED) | md.copy_flags | missing_flags | reply_flags;
        hdr.switchfold.worker_bitmap = md.copy_bitmap;
        hdr.switchfold.num_contributors = md.copy_count;
    }

    action fill_contribution() {
        hdr.switchfold.operation = md.copy_operation;
        hdr.switchfold.flags =
            (hdr.switchfold.flags & FLAGS_ECHOED) | (md.copy_flags & FLAGS_FROM_BELOW);
        hdr.switchfold.worker_bitmap = md.copy_bitmap;
        hdr.switchfold.num_contributors = md.copy_count;
    }

    // If a tree has more workers than bits, the bits mean children.
    action name_as_child() {
        hdr.switchfold.worker_bitmap = md.child_bitmap;
    }

    action fill_notice() {
        hdr.switchfold.operation = OPERATION_NOTICE;
        hdr.switchfold.flags = hdr.switchfold.flags & FLAG_TO_SERVER;
        hdr.switchfold.round = md.copy_round;
        hdr.switchfold.worker_bitmap = md.copy_bitmap;
        hdr.switchfold.num_contributors = md.copy_count;
    }

    // The row is cold, or the copy's state belongs to another generation, which the prober must not
    // see.
    action fill_empty_notice(bit<16> flags) {
        hdr.switchfold.operation = OPERATION_NOTICE;
        hdr.switchfold.flags = flags;
        hdr.switchfold.round = 0;
        hdr.switchfold.worker_bitmap = 0;
        hdr.switchfold.num_contributors = 0;
    }

    action fill_values(round_t version) {
        hdr.switchfold.flags = FLAG_TO_SERVER;
        hdr.switchfold.round = version;
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

    action reply_to_group(bit<16> multicast_group_id) {
        md.reply = REPLY_GROUP;
        standard_metadata.mcast_grp = multicast_group_id;
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
            if (md.is_hot == 1 && md.is_root == 1) {
                reply_to_group(md.server_group_id);
            } else {
                reply_to_group(md.multicast_group_id);
            }
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
                fill_empty_notice(hdr.switchfold.flags & FLAG_TO_SERVER);
            }
            reply_to_sender();
        } else if (md.outcome == OUTCOME_RELAYED) {
            if (hdr.switchfold.operation == OPERATION_NOTICE) {
                reply_to_group(md.multicast_group_id);
            } else {
                send_to_parent();
            }
        } else if (md.outcome == OUTCOME_MULTICAST) {
            keep_multicast_flags();
            if (hdr.ipv4.ecn == ECN_CONGESTION_EXPERIENCED) {
                note_congestion();
            }
            reply_to_group(md.multicast_group_id);
        } else if (md.outcome == OUTCOME_VALUES_READ) {
            fill_values(md.copy_round);
            reply_to_sender();
        } else if ((md.outcome == OUTCOME_VALUES_WRITTEN || md.outcome == OUTCOME_VALUES_KEPT)
                   && md.copies_group_id != 0) {
            fill_values(hdr.switchfold.round);
            reply_to_group(md.copies_group_id);
        } else if (md.outcome == OUTCOME_COLD && md.is_from_parent == 0) {
            fill_empty_notice(FLAG_TO_SERVER | FLAG_COLD);
            reply_to_sender();
        } else {
            mark_to_drop(standard_metadata);
        }

        if (md.reply != REPLY_NONE && hdr.switchfold.operation <= OPERATION_NOTICE) {
            if (hdr.switchfold.priority > (bit<8>)md.max_priority) {
                standard_metadata.priority = md.max_priority;
            } else {
                standard_metadata.priority = (priority_t)hdr.switchfold.priority;
            }
        }
    }
}
