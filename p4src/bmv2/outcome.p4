// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Counts every Switchfold packet once by outcome, and by job and outcome where the controller has
// set an entry.
control Outcome(in headers_t hdr, in metadata_t md) {
    counter(OUTCOME_COUNTER_SIZE, CounterType.packets_and_bytes) outcomes;
    direct_counter(CounterType.packets_and_bytes) job_outcomes;

    action count_outcome() {
        job_outcomes.count();
    }

    action not_counted() {
    }

    // One entry per job and outcome that is counted for the job.
    table outcome {
        key = {
            hdr.switchfold.job_id: exact @name("job_id");
            md.outcome: exact @name("outcome");
        }
        actions = {
            count_outcome;
            @defaultonly not_counted;
        }
        const default_action = not_counted();
        counters = job_outcomes;
        size = OUTCOME_TABLE_SIZE;
    }

    apply {
        outcomes.count((bit<32>)md.outcome);
        // A packet that ends inside its header names no job.
        if (hdr.switchfold.isValid()) {
            outcome.apply();
        }
    }
}
