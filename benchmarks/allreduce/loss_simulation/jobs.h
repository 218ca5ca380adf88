// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A job sums one tensor after the other, and every sum is checked. A worker that has missed a result has the sum from
// another one, which takes no time here.
#ifndef SWITCHFOLD_SIMULATED_JOBS_H
#define SWITCHFOLD_SIMULATED_JOBS_H

#include "clock.h"

void jobs_init(void);

// What happens to a job, by the event's kind: BEGIN, BEGIN_LATE, WAKE, AT_WORKER.
void jobs_step(const event_t *);

// Print what jobs and their packets came to.
void jobs_report(void);

#endif
