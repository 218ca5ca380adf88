// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Flows like TCP's beside a job: over the link to host 0, and over the one from it.
//
// The window is that of CUBIC (RFC 9438) where round trips are short: slow start, then 0.53 packets for each round trip, and
// 0.7 of it after a loss or a mark, at most once per round trip. Three later acknowledgements show a loss. If nothing comes
// back for 0.2 s, the window is one packet. There is always more to send, and acknowledgements are never lost.
#ifndef SWITCHFOLD_SIMULATED_FLOW_H
#define SWITCHFOLD_SIMULATED_FLOW_H

#include "clock.h"

void flows_init(void);

// What happens to a flow, by the event's kind: FLOW_BEGIN, FLOW_ARRIVED, FLOW_ACKNOWLEDGED, FLOW_TIMER.
void flows_step(const event_t *);

// Print the packets a second that came over.
void flows_report(void);

#endif
