// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "schedule.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frames.h"
#include "network.h"
#include "random.h"
#include "reducer.h"
#include "slot_switch.h"
#include "socket_transport.h"
#include "tensors.h"

#define GENERATION 0x01020304u
#define MOST_TREES 3u
#define MOST_SLOTS 32u
#define TICK_S 0.0002
#define MOST_TICKS 20000
#define HOSTILE_TICKS 60
#define RECEIVE_BUFFER (1 << 22)

uint64_t random_state;

typedef struct {
  int fd, wake_fd;
  socket_transport_t *transport;
  reducer_t *reducer;
  uint32_t num_enqueued[NUM_STREAMS];
  uint8_t *withheld;
  uint64_t num_received, num_results; // datagrams that the reducer got
} worker_t;

typedef struct {
  bool is_hostile, has_frames; // whether packets are frames; those of SUPER_FRAMES are datagrams
  bool is_packet_socket;
  messages_t messages;
  uint32_t num_workers, num_trees, values_per_packet, datagram_bytes, packet_bytes;
  uint32_t slot_count, exponent_slots;
  uint16_t tree_ids[MOST_TREES];
  uint32_t tree_slots[MOST_TREES], first_slot[MOST_TREES];
  slot_place_t places[MOST_SLOTS];
  uint32_t num_tensors[NUM_STREAMS];
  tensor_t tensors[NUM_STREAMS][MOST_TENSORS];
  slot_switch_t held;
  frames_t frames; // from the switch
  worker_t workers[MOST_WORKERS];
  port_t ports[MOST_WORKERS];
  queue_t in;
  uint64_t num_damaged;
  const char *failure;
} schedule_t;

static void check(schedule_t *schedule, bool holds, const char *failure) {
  if (!holds && !schedule->failure) schedule->failure = failure;
}

static void draw_places(schedule_t *schedule) {
  schedule->slot_count = 0;
  for (uint32_t tree = 0; tree < schedule->num_trees; tree++) {
    schedule->tree_ids[tree] = (uint16_t)(7 + 11 * tree);
    schedule->tree_slots[tree] = between(2, MOST_SLOTS / schedule->num_trees);
    schedule->first_slot[tree] = schedule->slot_count;
    for (uint32_t local = 0; local < schedule->tree_slots[tree]; local++) {
      schedule->places[schedule->slot_count++] = (slot_place_t){tree, local};
    }
  }
  for (uint32_t i = 0; i < schedule->slot_count; i++) {
    uint32_t j = draw(schedule->slot_count);
    slot_place_t place = schedule->places[i];
    schedule->places[i] = schedule->places[j];
    schedule->places[j] = place;
  }
  schedule->exponent_slots = between(1, schedule->slot_count - 1);
}

static void draw_tensors(schedule_t *schedule) {
  for (uint32_t stream = 0; stream < NUM_STREAMS; stream++) {
    uint64_t start = 0;
    schedule->num_tensors[stream] = between(1, MOST_TENSORS);
    for (uint32_t i = 0; i < schedule->num_tensors[stream]; i++) {
      tensor_t *tensor = &schedule->tensors[stream][i];
      tensor_init(tensor, stream == EXPONENTS ? AGGREGATE_MAX : AGGREGATE_ADD, start, 100 + i, schedule->num_workers,
                  schedule->values_per_packet, !schedule->is_hostile);
      start += tensor->num_chunks;
    }
  }
}

// Connect a worker's socket with its port of the switch.
static void connect_both(int worker_fd, int switch_fd) {
  int fds[] = {worker_fd, switch_fd}, size = RECEIVE_BUFFER, discovery = IP_PMTUDISC_PROBE;
  struct sockaddr_in addresses[2];
  for (int i = 0; i < 2; i++) {
    socklen_t bytes = sizeof addresses[i];
    addresses[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    setsockopt(fds[i], IPPROTO_IP, IP_MTU_DISCOVER, &discovery, sizeof discovery); // ignore ICMP
    if (bind(fds[i], (struct sockaddr *)&addresses[i], bytes) < 0) abort();
    if (getsockname(fds[i], (struct sockaddr *)&addresses[i], &bytes) < 0) abort();
  }
  for (int i = 0; i < 2; i++) {
    if (connect(fds[i], (struct sockaddr *)&addresses[1 - i], sizeof addresses[i]) < 0) abort();
  }
}

static int open_transport(const schedule_t *schedule, socket_transport_t *transport, const frames_t *frames) {
  if (schedule->is_packet_socket) {
    bool has_offload_header = schedule->messages == SUPER_FRAMES;
    const packet_link_t link = {"lo", has_offload_header, has_offload_header ? draw(JOIN_ALWAYS + 1) : JOIN_NEVER};
    socket_transport_open_packets(transport, frames, &link);
    return 0;
  }
  return socket_transport_open(transport, schedule->datagram_bytes, schedule->has_frames ? frames : NULL);
}

static void open_worker(schedule_t *schedule, uint32_t id, const weather_t *weather) {
  worker_t *worker = &schedule->workers[id];
  const endpoint_t local = {{2, 0, 0, 0, 0, 1}, {10, 0, 0, 1}, 5000}, remote = {{2, 0, 0, 0, 0, 2}, {10, 0, 0, 2}, 6000};
  worker->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  worker->wake_fd = eventfd(0, EFD_NONBLOCK);
  int switch_fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (worker->fd < 0 || worker->wake_fd < 0 || switch_fd < 0) abort();
  connect_both(worker->fd, switch_fd);
  worker->transport = socket_transport_new(worker->fd, worker->wake_fd);
  frames_t frames = frames_new(&local, &remote, schedule->datagram_bytes);
  schedule->frames = frames_new(&remote, &local, schedule->datagram_bytes);
  port_init(&schedule->ports[id], switch_fd, schedule->messages, &schedule->frames, weather);
  if (open_transport(schedule, worker->transport, &frames) < 0) abort();

  const stream_options_t options = {
      .generation = GENERATION,
      .worker_bitmap = UINT32_C(1) << id,
      .child_id = id,
      .num_workers = schedule->num_workers,
      .values_per_packet = schedule->values_per_packet,
      .num_trees = schedule->num_trees,
      .straggler_s = schedule->is_hostile ? 0.003 : INFINITY,
      .initial_rto_s = 0.01,
      .minimum_rto_s = 0.001,
      .maximum_rto_s = 0.05,
      .window = between(2, 64),
  };
  worker->reducer = reducer_new(socket_transport_base(worker->transport), &options, schedule->tree_ids, schedule->tree_slots,
                                schedule->places, schedule->slot_count, schedule->exponent_slots, draw(2));
}

static void open_schedule(schedule_t *schedule, bool is_hostile) {
  static const uint32_t values[] = {1, 2, 8, 32, 352};
  const weather_t weather = {.loss = draw(100),
                             .duplication = draw(150),
                             .delay = draw(150),
                             .damage = draw(is_hostile ? 900 : 200),
                             .truncation = draw(100),
                             .disorder = draw(300),
                             .bad_heads = is_hostile ? draw(300) : 0};
  uint32_t kind = draw(4); // UDP, a tunnel, packet sockets without and with super-frames
  *schedule = (schedule_t){
      .is_hostile = is_hostile,
      .has_frames = kind == 1 || kind == 2,
      .is_packet_socket = kind >= 2,
      .messages = kind < 2 ? JOINED : kind == 2 ? SINGLE : SUPER_FRAMES,
      .num_workers = between(1, MOST_WORKERS),
      .num_trees = between(1, MOST_TREES),
      .values_per_packet = values[draw(is_hostile ? 5 : 4)],
      .in.packets = malloc(MOST_QUEUED * sizeof(packet_t)),
  };
  schedule->datagram_bytes = HEADER_BYTES + VALUE_BYTES * schedule->values_per_packet;
  schedule->packet_bytes = schedule->datagram_bytes + (schedule->has_frames ? LAYERS_BYTES : 0);
  draw_places(schedule);
  draw_tensors(schedule);
  slot_switch_init(&schedule->held, schedule->num_workers, schedule->slot_count, schedule->values_per_packet);
  for (uint32_t id = 0; id < schedule->num_workers; id++) open_worker(schedule, id, &weather);
}

static void close_schedule(schedule_t *schedule) {
  for (uint32_t id = 0; id < schedule->num_workers; id++) {
    worker_t *worker = &schedule->workers[id];
    reducer_free(worker->reducer);
    socket_transport_free(worker->transport);
    close(worker->fd);
    close(worker->wake_fd);
    close(schedule->ports[id].fd);
    port_close(&schedule->ports[id]);
    free(worker->withheld);
  }
  for (uint32_t stream = 0; stream < NUM_STREAMS; stream++) {
    for (uint32_t i = 0; i < schedule->num_tensors[stream]; i++) {
      tensor_close(&schedule->tensors[stream][i], schedule->num_workers);
    }
  }
  slot_switch_close(&schedule->held);
  free(schedule->in.packets);
}

static bool slot_of(const schedule_t *schedule, const uint8_t *datagram, uint32_t *tree, uint32_t *local) {
  *local = load32(datagram + SLOT_AT);
  for (*tree = 0; *tree < schedule->num_trees; (*tree)++) {
    if (schedule->tree_ids[*tree] == load16(datagram + TREE_AT)) return *local < schedule->tree_slots[*tree];
  }
  return false;
}

static bool is_chunk_of(const schedule_t *schedule, const tensor_t *tensor, uint32_t stream, uint32_t slot, const uint8_t *at) {
  uint32_t first = stream == EXPONENTS ? 0 : schedule->exponent_slots, chunk = load32(at + CHUNK_AT);
  uint32_t count = stream == EXPONENTS ? schedule->exponent_slots : schedule->slot_count - schedule->exponent_slots;
  uint64_t place = tensor->start + chunk;
  return load32(at + TENSOR_AT) == tensor->tensor_id && chunk < tensor->num_chunks && slot == first + place % count &&
         load32(at + ROUND_AT) == place / count + 1;
}

// The sums of the chunk whose result a datagram could be, as far as a worker can see; NULL: of none.
static const int32_t *sums_of(const schedule_t *schedule, const uint8_t *at) {
  uint32_t tree, local, slot = 0;
  if (at[VERSION_AT] != WIRE_VERSION || at[OPERATION_AT] != RESULT || load32(at + GENERATION_AT) != GENERATION) return NULL;
  if (!slot_of(schedule, at, &tree, &local)) return NULL;
  while (schedule->places[slot].tree != tree || schedule->places[slot].local != local) slot++;
  uint32_t stream = slot < schedule->exponent_slots ? EXPONENTS : VALUES;
  for (uint32_t i = 0; i < schedule->num_tensors[stream]; i++) {
    const tensor_t *tensor = &schedule->tensors[stream][i];
    if (!is_chunk_of(schedule, tensor, stream, slot, at)) continue;
    return tensor->expected + (size_t)load32(at + CHUNK_AT) * schedule->values_per_packet;
  }
  return NULL;
}

// Whether a worker has no means to notice that a packet's values are wrong.
static bool is_deceptive(const schedule_t *schedule, const packet_t *packet) {
  if (packet->bytes != schedule->packet_bytes) return false;
  const uint8_t *at = packet->data + (schedule->has_frames ? LAYERS_BYTES : 0);
  const int32_t *sums = sums_of(schedule, at);
  if (!sums || (schedule->has_frames && !has_good_checksum(packet->data, packet->bytes))) return false;
  for (uint32_t i = 0; i < schedule->values_per_packet; i++) {
    if (load32(at + HEADER_BYTES + VALUE_BYTES * i) != (uint32_t)sums[i]) return true;
  }
  return false;
}

// A damaged twin of a packet leaves as well.
static void send_damaged(schedule_t *schedule, port_t *port, const packet_t *packet) {
  static packet_t twin, other;
  if (happens(1000 - port->weather.damage)) return;
  twin = *packet;
  damage(&twin, schedule->has_frames ? LAYERS_BYTES : 0, other.bytes ? &other : packet);
  other = *packet;
  // A chunk without result must not look as if it had one.
  uint32_t contributors_at = (schedule->has_frames ? LAYERS_BYTES : 0) + CONTRIBUTORS_AT;
  if (twin.bytes >= contributors_at + 2 && load16(twin.data + contributors_at) == UNTOUCHED) return;
  if (!schedule->is_hostile && is_deceptive(schedule, &twin)) return;
  schedule->num_damaged++;
  port_reply(port, &twin);
}

static void reply_to(schedule_t *schedule, uint32_t id, const uint8_t *datagram) {
  static packet_t packet;
  packet.bytes = schedule->packet_bytes;
  if (schedule->has_frames) frames_wrap_rows(&schedule->frames, datagram, 1, packet.data);
  else memcpy(packet.data, datagram, schedule->datagram_bytes);
  port_reply(&schedule->ports[id], &packet);
  send_damaged(schedule, &schedule->ports[id], &packet);
}

static void switch_turn(schedule_t *schedule, uint32_t id) {
  uint8_t reply[MOST_BYTES];
  schedule->in.count = 0;
  port_receive(&schedule->ports[id], &schedule->in);
  check(schedule, !schedule->ports[id].has_bad_frame, "a worker sent a wrong frame");
  for (uint32_t i = 0; i < schedule->in.count; i++) {
    const packet_t *packet = &schedule->in.packets[i];
    const uint8_t *datagram = packet->data + (schedule->has_frames ? LAYERS_BYTES : 0);
    uint32_t tree, local;
    check(schedule, packet->bytes == schedule->packet_bytes && slot_of(schedule, datagram, &tree, &local),
          "a worker sent what is no contribution");
    if (schedule->failure) return;
    check(schedule, !schedule->has_frames || has_good_checksum(packet->data, packet->bytes), "a worker's checksum is wrong");
    reply_t to = slot_switch_process(&schedule->held, schedule->first_slot[tree] + local, datagram, reply);
    for (uint32_t other = 0; other < schedule->num_workers; other++) {
      if (to == REPLY_TO_ALL || (to == REPLY_TO_SENDER && other == id)) reply_to(schedule, other, reply);
    }
  }
}

static uint64_t refused_by(const worker_t *worker) {
  uint64_t sum = 0;
  for (int i = 0; i < REFUSALS; i++) sum += reducer_refused(worker->reducer)[i];
  return sum;
}

static uint64_t dropped_by(const worker_t *worker) {
  const socket_counters_t *counters = socket_transport_counters(worker->transport);
  return counters->length + counters->other_traffic + counters->checksum;
}

// Hand datagrams to the reducer: each is a result, another's or refused by a cause.
static void take(schedule_t *schedule, worker_t *worker, const uint8_t *const *datagrams, uint32_t count, double now_s,
                 totals_t *totals) {
  static arrivals_t arrivals;
  arrivals.num_results = arrivals.num_events = arrivals.num_others = 0;
  uint64_t refused = refused_by(worker);
  check(schedule, reducer_take(worker->reducer, datagrams, count, now_s, &arrivals) == 0, "reducer_take failed");
  refused = refused_by(worker) - refused;
  check(schedule, arrivals.num_results + arrivals.num_others + refused == count, "a datagram was not counted once");
  for (uint32_t i = 0; i < arrivals.num_others; i++) {
    check(schedule, arrivals.others[i][OPERATION_AT] == MULTICAST, "a datagram is no other's");
  }
  worker->num_results += arrivals.num_results;
  totals->results += arrivals.num_results;
  totals->others += arrivals.num_others;
  totals->refused += refused;
}

static void receive(schedule_t *schedule, uint32_t id, double now_s, totals_t *totals) {
  worker_t *worker = &schedule->workers[id];
  const uint8_t *datagrams[BATCH];
  transport_t *transport = socket_transport_base(worker->transport);
  const port_t *port = &schedule->ports[id];
  for (uint64_t before = UINT64_MAX, now = 0; before != now;) {
    int count = transport->receive(transport, datagrams, between(1, BATCH), 0);
    check(schedule, count >= 0, "the transport failed");
    if (schedule->failure) return;
    worker->num_received += (uint32_t)count;
    if (count) take(schedule, worker, datagrams, (uint32_t)count, now_s, totals);
    before = now;
    now = worker->num_received + dropped_by(worker);
  }
  uint64_t counted = worker->num_received + dropped_by(worker);
  check(schedule, counted >= port->least_sent && counted <= port->most_sent, "a datagram on the wire was not counted once");
}

// The oldest tensor of a stream that is not finished counts the chunks that are done, up to the first that is not.
static void check_progress(schedule_t *schedule, uint32_t id) {
  for (uint32_t name = 0; name < NUM_STREAMS; name++) {
    for (uint32_t i = 0; i < schedule->workers[id].num_enqueued[name]; i++) {
      const tensor_t *tensor = &schedule->tensors[name][i];
      const source_t *source = &tensor->parts[id].source;
      if (source->is_finished) continue;
      check(schedule, source->is_abandoned || source->num_done == tensor_in_a_row(tensor, id), "progress is miscounted");
      break;
    }
  }
}

// New tensors, prepared values, and in a hostile schedule what a caller may do besides.
static void submit(schedule_t *schedule, uint32_t id) {
  worker_t *worker = &schedule->workers[id];
  for (uint32_t name = 0; name < NUM_STREAMS; name++) {
    stream_t *stream = reducer_stream(worker->reducer, name);
    uint32_t *num_enqueued = &worker->num_enqueued[name];
    if (*num_enqueued < schedule->num_tensors[name] && happens(300)) {
      source_t *source = &schedule->tensors[name][*num_enqueued].parts[id].source;
      if (schedule->is_hostile && happens(200)) {
        if (!worker->withheld) worker->withheld = calloc(64, 1);
        for (uint32_t i = 0; i < 64; i++) worker->withheld[i] = (uint8_t)draw(2);
        source->withheld = worker->withheld;
      }
      stream_enqueue(stream, source);
      (*num_enqueued)++;
    }
    for (uint32_t i = 0; i < *num_enqueued && stream_is_hungry(stream); i++) {
      source_t *source = &schedule->tensors[name][i].parts[id].source;
      if (source->num_ready < source->num_chunks) source->num_ready += between(1, source->num_chunks - source->num_ready);
    }
    if (schedule->is_hostile && *num_enqueued && happens(5)) {
      stream_abandon(stream, &schedule->tensors[name][draw(*num_enqueued)].parts[id].source);
    }
  }
}

static bool is_done(const schedule_t *schedule) {
  for (uint32_t id = 0; id < schedule->num_workers; id++) {
    for (uint32_t name = 0; name < NUM_STREAMS; name++) {
      for (uint32_t i = 0; i < schedule->num_tensors[name]; i++) {
        if (!schedule->tensors[name][i].parts[id].source.is_finished) return false;
      }
    }
  }
  return true;
}

// When something happens next if nothing is under way.
static double next_s(const schedule_t *schedule, double now_s) {
  double next = INFINITY;
  for (uint32_t id = 0; id < schedule->num_workers; id++) {
    next = fmin(next, reducer_next_s(schedule->workers[id].reducer));
  }
  return fmax(now_s + TICK_S, next < INFINITY ? next : 0);
}

static bool turn(schedule_t *schedule, double now_s, totals_t *totals) {
  bool has_moved = false;
  for (uint32_t id = 0; id < schedule->num_workers; id++) {
    submit(schedule, id);
    check(schedule, reducer_send(schedule->workers[id].reducer, now_s) == 1, "reducer_send failed");
  }
  for (uint32_t id = 0; id < schedule->num_workers && !schedule->failure; id++) switch_turn(schedule, id);
  for (uint32_t id = 0; id < schedule->num_workers && !schedule->failure; id++) {
    has_moved |= port_flush(&schedule->ports[id]);
    receive(schedule, id, now_s, totals);
    check_progress(schedule, id);
    check(schedule, reducer_keep_time(schedule->workers[id].reducer, now_s) == 0, "reducer_keep_time failed");
  }
  return has_moved;
}

// Each chunk has taken at most one result, at the end of a faithful schedule exactly one, with the right sums.
static void check_results(schedule_t *schedule, uint32_t id, totals_t *totals) {
  worker_t *worker = &schedule->workers[id];
  uint64_t received = 0;
  for (uint32_t name = 0; name < NUM_STREAMS; name++) {
    stream_state_t state = stream_state(reducer_stream(worker->reducer, name));
    uint64_t touched = 0, chunks = 0;
    for (uint32_t i = 0; i < schedule->num_tensors[name]; i++) {
      const tensor_t *tensor = &schedule->tensors[name][i];
      touched += tensor_touched(tensor, id);
      chunks += tensor->num_chunks;
      check(schedule, schedule->is_hostile || tensor_is_right(tensor, id, schedule->values_per_packet), "a sum is wrong");
    }
    check(schedule, state.counters.received == touched, "a chunk has taken two results");
    check(schedule, schedule->is_hostile || touched == chunks, "a chunk has no result");
    received += state.counters.received;
    totals->again += state.counters.retransmitted;
  }
  check(schedule, received == worker->num_results, "a result was not counted");
}

bool schedule_run(uint64_t seed, bool is_hostile, totals_t *totals) {
  static schedule_t schedule;
  random_state = seed;
  open_schedule(&schedule, is_hostile);
  double now_s = 1;
  int tick = 0, most = is_hostile ? HOSTILE_TICKS : MOST_TICKS;
  for (; tick < most && !schedule.failure && (is_hostile || !is_done(&schedule)); tick++) {
    now_s = turn(&schedule, now_s, totals) ? now_s + TICK_S : next_s(&schedule, now_s);
  }
  check(&schedule, is_hostile || tick < most, "the sums did not end");
  for (uint32_t id = 0; id < schedule.num_workers; id++) {
    if (!schedule.failure) check_results(&schedule, id, totals);
    totals->datagrams += schedule.workers[id].num_received + dropped_by(&schedule.workers[id]);
    totals->joined += schedule.ports[id].num_joined;
    totals->dropped += dropped_by(&schedule.workers[id]);
  }
  totals->damaged += schedule.num_damaged;
  if (schedule.failure) fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, schedule.failure);
  close_schedule(&schedule);
  return !schedule.failure;
}
