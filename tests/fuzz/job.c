// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "job.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "random.h"

#define GENERATION 0x01020304u
#define RECEIVE_BUFFER (1 << 22)

static void draw_places(job_t *job) {
  job->slot_count = 0;
  for (uint32_t tree = 0; tree < job->num_trees; tree++) {
    job->tree_ids[tree] = (uint16_t)(7 + 11 * tree);
    job->tree_slots[tree] = between(2, MOST_SLOTS / job->num_trees);
    job->first_slot[tree] = job->slot_count;
    for (uint32_t local = 0; local < job->tree_slots[tree]; local++) {
      job->places[job->slot_count++] = (slot_place_t){tree, local};
    }
  }
  for (uint32_t i = 0; i < job->slot_count; i++) {
    uint32_t j = draw(job->slot_count);
    slot_place_t place = job->places[i];
    job->places[i] = job->places[j];
    job->places[j] = place;
  }
  job->exponent_slots = between(1, job->slot_count - 1);
}

static void draw_tensors(job_t *job) {
  for (uint32_t stream = 0; stream < NUM_STREAMS; stream++) {
    uint64_t start = 0;
    job->num_tensors[stream] = between(1, MOST_TENSORS);
    for (uint32_t i = 0; i < job->num_tensors[stream]; i++) {
      tensor_t *tensor = &job->tensors[stream][i];
      operation_t operation = stream == EXPONENTS || draw(3) == 0 ? AGGREGATE_MAX : AGGREGATE_ADD;
      tensor_init(tensor, operation, start, 100 + i, job->num_workers, job->values_per_packet, !job->is_hostile);
      start += tensor->num_chunks;
    }
  }
}

// A switch that copies blocks is the job's only one, and reports need room for a row.
static void draw_gathers(job_t *job) {
  job->has_blocks = job->num_trees == 1 && job->values_per_packet >= REPORT_WORDS;
  job->num_gathers = job->has_blocks ? between(1, MOST_GATHERS) : 0;
  for (uint32_t i = 0; i < job->num_gathers; i++) {
    gathered_init(&job->gathers[i], 200 + i, job->num_workers, job->values_per_packet);
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

static void open_transport(const job_t *job, socket_transport_t *transport, const frames_t *frames) {
  if (job->is_packet_socket) {
    bool has_offload_header = job->messages == SUPER_FRAMES;
    const packet_link_t link = {"lo", has_offload_header, has_offload_header ? draw(JOIN_ALWAYS + 1) : JOIN_NEVER};
    socket_transport_open_packets(transport, frames, &link);
  } else {
    socket_transport_open(transport, job->datagram_bytes, job->has_frames ? frames : NULL);
  }
}

static void open_worker(job_t *job, uint32_t id, const weather_t *weather) {
  worker_t *worker = &job->workers[id];
  const endpoint_t local = {{2, 0, 0, 0, 0, 1}, {10, 0, 0, 1}, 5000}, remote = {{2, 0, 0, 0, 0, 2}, {10, 0, 0, 2}, 6000};
  worker->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  worker->wake_fd = eventfd(0, EFD_NONBLOCK);
  int switch_fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (worker->fd < 0 || worker->wake_fd < 0 || switch_fd < 0) abort();
  connect_both(worker->fd, switch_fd);
  worker->transport = socket_transport_new(worker->fd, worker->wake_fd);
  frames_t frames = frames_new(&local, &remote, job->datagram_bytes);
  job->frames = frames_new(&remote, &local, job->datagram_bytes);
  port_init(&job->ports[id], switch_fd, job->messages, &job->frames, weather);
  open_transport(job, worker->transport, &frames);

  const stream_options_t options = {
      .generation = GENERATION,
      .worker_bitmap = UINT32_C(1) << id,
      .child_id = id,
      .num_workers = job->num_workers,
      .values_per_packet = job->values_per_packet,
      .num_trees = job->num_trees,
      .straggler_s = job->is_hostile ? 0.003 : INFINITY,
      .initial_rto_s = 0.01,
      .minimum_rto_s = 0.001,
      .maximum_rto_s = 0.05,
      .window = between(2, 64),
  };
  members_t members = {.num_members = job->num_workers, .own = id};
  for (uint32_t i = 0; i < job->num_workers; i++) members.ids[i] = (uint8_t)i;
  worker->reducer =
      reducer_new(socket_transport_base(worker->transport), &options, job->tree_ids, job->tree_slots, NULL, job->places,
                  job->slot_count, job->exponent_slots, job->has_blocks ? &members : NULL);
}

void job_init(job_t *job, bool is_hostile) {
  static const uint32_t values[] = {1, 2, 8, 32, 352};
  const weather_t weather = {.loss = draw(100),
                             .duplication = draw(150),
                             .delay = draw(150),
                             .damage = draw(is_hostile ? 900 : 200),
                             .truncation = draw(100),
                             .disorder = draw(300),
                             .bad_heads = is_hostile ? draw(300) : 0};
  uint32_t kind = draw(4); // UDP, a tunnel, packet sockets without and with super-frames
  *job = (job_t){
      .is_hostile = is_hostile,
      .has_frames = kind == 1 || kind == 2,
      .is_packet_socket = kind >= 2,
      .messages = kind < 2 ? JOINED : kind == 2 ? SINGLE : SUPER_FRAMES,
      .num_workers = between(1, MOST_WORKERS),
      .num_trees = between(1, MOST_TREES),
      .values_per_packet = values[draw(is_hostile ? 5 : 4)],
  };
  queue_init(&job->in);
  job->datagram_bytes = HEADER_BYTES + VALUE_BYTES * job->values_per_packet;
  job->packet_bytes = job->datagram_bytes + (job->has_frames ? LAYERS_BYTES : 0);
  draw_places(job);
  draw_tensors(job);
  draw_gathers(job);
  slot_switch_init(&job->held, job->num_workers, job->slot_count, job->values_per_packet);
  for (uint32_t id = 0; id < job->num_workers; id++) open_worker(job, id, &weather);
}

void job_close(job_t *job) {
  for (uint32_t id = 0; id < job->num_workers; id++) {
    worker_t *worker = &job->workers[id];
    reducer_free(worker->reducer);
    socket_transport_free(worker->transport);
    close(worker->fd);
    close(worker->wake_fd);
    close(job->ports[id].fd);
    port_close(&job->ports[id]);
    free(worker->withheld);
  }
  for (uint32_t stream = 0; stream < NUM_STREAMS; stream++) {
    for (uint32_t i = 0; i < job->num_tensors[stream]; i++) {
      tensor_close(&job->tensors[stream][i], job->num_workers);
    }
  }
  for (uint32_t i = 0; i < job->num_gathers; i++) gathered_close(&job->gathers[i], job->num_workers);
  slot_switch_close(&job->held);
  queue_close(&job->in);
}

bool job_slot(const job_t *job, const uint8_t *datagram, uint32_t *tree, uint32_t *local) {
  *local = load32(datagram + SLOT_AT);
  for (*tree = 0; *tree < job->num_trees; (*tree)++) {
    if (job->tree_ids[*tree] == load16(datagram + TREE_AT)) return *local < job->tree_slots[*tree];
  }
  return false;
}

static bool is_chunk_of(const job_t *job, const tensor_t *tensor, uint32_t stream, uint32_t slot, const uint8_t *at) {
  uint32_t first = stream == EXPONENTS ? 0 : job->exponent_slots, chunk = load32(at + CHUNK_AT);
  uint32_t count = stream == EXPONENTS ? job->exponent_slots : job->slot_count - job->exponent_slots;
  uint64_t place = tensor->start + chunk;
  return load32(at + TENSOR_AT) == tensor->tensor_id && chunk < tensor->num_chunks && slot == first + place % count &&
         load32(at + ROUND_AT) == place / count + 1;
}

// The sums of the chunk whose result a datagram could be, as far as a worker can see; NULL: of none.
static const int32_t *sums_of(const job_t *job, const uint8_t *at) {
  uint32_t tree, local, slot = 0;
  if (at[VERSION_AT] != WIRE_VERSION || at[OPERATION_AT] != RESULT || load32(at + GENERATION_AT) != GENERATION) return NULL;
  if (!job_slot(job, at, &tree, &local)) return NULL;
  while (job->places[slot].tree != tree || job->places[slot].local != local) slot++;
  uint32_t stream = slot < job->exponent_slots ? EXPONENTS : VALUES;
  for (uint32_t i = 0; i < job->num_tensors[stream]; i++) {
    const tensor_t *tensor = &job->tensors[stream][i];
    if (!is_chunk_of(job, tensor, stream, slot, at)) continue;
    return tensor->expected + (size_t)load32(at + CHUNK_AT) * job->values_per_packet;
  }
  return NULL;
}

bool job_is_multicast(const job_t *job, uint32_t id, const uint8_t *at) {
  return job->has_blocks && at[VERSION_AT] == WIRE_VERSION && at[OPERATION_AT] == MULTICAST &&
         load16(at + TREE_AT) == job->tree_ids[0] && load32(at + GENERATION_AT) == GENERATION &&
         load32(at + BITMAP_AT) == UINT32_C(1) << id;
}

static bool is_any_multicast(const job_t *job, const uint8_t *at) {
  for (uint32_t id = 0; id < job->num_workers; id++) {
    if (job_is_multicast(job, id, at)) return true;
  }
  return false;
}

bool job_is_deceived(const job_t *job, const packet_t *packet) {
  if (packet->bytes != job->packet_bytes) return false;
  const uint8_t *at = packet->data + (job->has_frames ? LAYERS_BYTES : 0);
  if (is_any_multicast(job, at)) return !job->has_frames || has_good_checksum(packet->data, packet->bytes);
  const int32_t *sums = sums_of(job, at);
  if (!sums || (job->has_frames && !has_good_checksum(packet->data, packet->bytes))) return false;
  for (uint32_t i = 0; i < job->values_per_packet; i++) {
    if (load32(at + HEADER_BYTES + VALUE_BYTES * i) != (uint32_t)sums[i]) return true;
  }
  return false;
}
