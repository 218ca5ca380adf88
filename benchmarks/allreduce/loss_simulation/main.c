// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Slot streams of the host library over lossy links, in simulated time: what `simulated_loss.py` measures.
#include <stdio.h>

#include "aggregation.h"
#include "clock.h"
#include "flow.h"
#include "jobs.h"
#include "network.h"
#include "settings.h"

int main(int argc, char **argv) {
  settings_read(argc, argv);
  network_init();
  jobs_init();
  flows_init();
  while (now_s < WARM_UP_S + settings.seconds) {
    event_t event = clock_pop();
    switch (event.kind) {
    case AT_LINK: network_forward(event); break;
    case AT_SWITCH: aggregation_take(&event); break;
    case FLOW_BEGIN:
    case FLOW_ARRIVED:
    case FLOW_ACKNOWLEDGED:
    case FLOW_TIMER: flows_step(&event); break;
    default: jobs_step(&event);
    }
  }
  jobs_report();
  flows_report();
  if (settings.bitmaps && fclose(settings.bitmaps)) fail("bitmaps could not be written");
  return 0;
}
