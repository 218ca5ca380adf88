// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Isolation: a packet reaches a slot only if job, worker, ingress port and source address belong
// together, its generation is the job's, and the slot lies in the job's range. Results and notices
// must come from the parent of a switch, and so must the values of hot rows; at a root, these come
// from a server. A multicast needs no slot; only the single switch of a job replicates it, and it
// names its sender. Packets about hot rows get their slot from the table hot_row.
control WorkerAdmission(inout headers_t hdr,
                        inout metadata_t md,
                        in standard_metadata_t standard_metadata) {
    action foreign_job() {
        md.outcome = OUTCOME_FOREIGN_JOB;
    }

    action admit_root(generation_t generation,
                      slot_index_t slot_base,
                      slot_index_t slot_count,
                      worker_bitmap_t children_bitmap,
                      bit<16> quorum,
                      bit<16> num_workers,
                      bit<16> multicast_group_id,
                      bit<1> allow_partial,
                      bit<16> level,
                      priority_t max_priority) {
        md.is_root = 1;
        md.job_generation = generation;
        md.slot_base = slot_base;
        md.slot_count = slot_count;
        md.children_bitmap = children_bitmap;
        md.quorum = quorum;
        md.num_workers = num_workers;
        md.multicast_group_id = multicast_group_id;
        md.is_partial_allowed = allow_partial;
        md.level = level;
        md.max_priority = max_priority;
    }

    action admit_inner(generation_t generation,
                       slot_index_t slot_base,
                       slot_index_t slot_count,
                       worker_bitmap_t children_bitmap,
                       bit<16> multicast_group_id,
                       bit<1> allow_partial,
                       bit<16> level,
                       priority_t max_priority,
                       port_t parent_port,
                       ipv4_address_t parent_address,
                       worker_id_t child_id,
                       worker_bitmap_t child_bitmap) {
        md.job_generation = generation;
        md.slot_base = slot_base;
        md.slot_count = slot_count;
        md.children_bitmap = children_bitmap;
        md.multicast_group_id = multicast_group_id;
        md.is_partial_allowed = allow_partial;
        md.level = level;
        md.max_priority = max_priority;
        md.parent_port = parent_port;
        md.parent_address = parent_address;
        md.child_id = child_id;
        md.child_bitmap = child_bitmap;
    }

    // The jobs of this switch, the range of their slots, and the switch's role in their trees.
    table job {
        key = {
            hdr.switchfold.job_id: exact @name("job_id");
        }
        actions = {
            admit_root;
            admit_inner;
            @defaultonly foreign_job;
        }
        const default_action = foreign_job();
        size = JOB_TABLE_SIZE;
    }

    action foreign_worker() {
        md.outcome = OUTCOME_FOREIGN_WORKER;
    }

    action admit_worker(worker_bitmap_t worker_bit,
                        worker_bitmap_t contributor_mask,
                        bit<16> max_contributors) {
        md.worker_bit = worker_bit;
        md.contributor_mask = contributor_mask;
        md.max_contributors = max_contributors;
    }

    // A server contributes nothing: it has no bit. It writes values, and asks.
    action admit_server() {
        md.worker_bit = 0;
        md.contributor_mask = 0;
        md.max_contributors = 0;
    }

    // The port and address of each child, a worker or a switch, and the workers that it sends for; of
    // a root also the servers of hot rows.
    table worker {
        key = {
            hdr.switchfold.job_id: exact @name("job_id");
            hdr.switchfold.worker_id: exact @name("worker_id");
            standard_metadata.ingress_port: exact @name("ingress_port");
            hdr.ipv4.src_address: exact @name("source_address");
        }
        actions = {
            admit_worker;
            admit_server;
            @defaultonly foreign_worker;
        }
        const default_action = foreign_worker();
        size = WORKER_TABLE_SIZE;
    }

    apply {
        if (md.outcome == OUTCOME_NONE) {
            job.apply();
        }
        if (md.outcome == OUTCOME_NONE) {
            if (hdr.switchfold.operation == OPERATION_RESULT
                || hdr.switchfold.operation == OPERATION_NOTICE
                || (hdr.switchfold.operation == OPERATION_WRITE && md.is_root == 0)) {
                md.is_from_parent = 1;
            }
            if (md.is_from_parent == 0) {
                worker.apply();
            } else if (md.is_root == 1
                       || standard_metadata.ingress_port != md.parent_port
                       || hdr.ipv4.src_address != md.parent_address) {
                md.outcome = OUTCOME_FOREIGN_RESULT;
            }
        }
        if (md.outcome == OUTCOME_NONE) {
            slot_index_t slot = md.slot_base + hdr.switchfold.slot_index;
            bit<1> is_misnamed = 0;
            if (hdr.switchfold.operation >= OPERATION_READ
                || ((hdr.switchfold.flags & FLAG_TO_SERVER) != 0
                    && hdr.switchfold.operation != OPERATION_MULTICAST)) {
                md.is_hot = 1;
            }
            if (hdr.switchfold.operation == OPERATION_AGGREGATE_ADD
                || hdr.switchfold.operation == OPERATION_AGGREGATE_MAX) {
                md.is_contribution = 1;
                if (hdr.switchfold.expected != 0 && md.is_hot == 0
                    && md.is_partial_allowed == 0) {
                    is_misnamed = 1;
                }
            }
            if (hdr.switchfold.worker_bitmap == 0
                || (hdr.switchfold.worker_bitmap & ~md.contributor_mask) != 0
                || hdr.switchfold.num_contributors == 0
                || hdr.switchfold.num_contributors > md.max_contributors) {
                is_misnamed = 1;
            }
            if (hdr.switchfold.generation != md.job_generation) {
                md.outcome = OUTCOME_BAD_GENERATION;
            } else if (hdr.switchfold.operation == OPERATION_MULTICAST) {
                if (md.is_root == 0 || md.level != 0) {
                    md.outcome = OUTCOME_MULTICAST_REFUSED;
                } else if (is_misnamed == 1) {
                    md.outcome = OUTCOME_BAD_CONTRIBUTION;
                } else {
                    md.outcome = OUTCOME_MULTICAST;
                }
            } else if (md.is_hot == 0
                       && (hdr.switchfold.slot_index >= md.slot_count || slot >= NUM_SLOTS)) {
                md.outcome = OUTCOME_BAD_SLOT;
            } else if (md.is_contribution == 1 && is_misnamed == 1) {
                md.outcome = OUTCOME_BAD_CONTRIBUTION;
            } else if (hdr.switchfold.operation == OPERATION_FLUSH && md.is_hot == 0
                       && md.is_partial_allowed == 0) {
                md.outcome = OUTCOME_BAD_OPERATION;
            } else if (hdr.switchfold.operation == OPERATION_WRITE && md.is_from_parent == 0
                       && md.worker_bit != 0) {
                md.outcome = OUTCOME_WRITE_REFUSED;
            } else {
                md.slot_copy = (slot << 1) | (hdr.switchfold.round & 1);
            }
        }
    }
}
