// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "table_tuples.h"

#include <stdlib.h>
#include <string.h>

#include "packet.h"
#include "pages.h"

enum { PREFIXES_MAX = 128, FIRST_TUPLES = 8, STALE_MIN = 64 };

// An entry in one tuple. Links of equal hash form a chain by falling rank, then rising entry, whatever their tuples.
typedef struct {
  uint32_t entry; // TABLE_NONE: free
  uint32_t hash; // of the masked key, seeded by the tuple
  uint32_t next; // of the chain, or of the free list
  uint32_t sibling; // next link of the same entry
  uint32_t tuple;
} link_t;

typedef struct {
  uint64_t seed;
  uint32_t mask_hash;
  uint32_t count; // links; 0: free
  int32_t best; // no link's entry ranks higher
} tuple_t;

typedef struct {
  int32_t best;
  uint32_t tuple;
  uint32_t single; // the only entry that the tuple ever had; TABLE_NONE if there were more
} place_t;

struct table_tuples {
  const table_shape_t *shape;
  uint32_t range_word, range_width; // of the field that is split into prefixes; width 0: none
  link_t *links;
  uint32_t links_max, links_used, free_link, links_held;
  table_index_t chains; // first link by hash
  table_index_t by_mask;
  tuple_t *tuples;
  uint64_t *masks;
  place_t *order; // tuples by falling best
  uint32_t capacity, used, count; // of tuples
  uint32_t stale; // removals since `best` was exact
};

typedef struct {
  uint64_t value;
  unsigned free_bits;
} prefix_t;

// ---- creation and destruction ----

static size_t links_bytes(const table_tuples_t *set) { return (size_t)set->links_max * sizeof(link_t); }

table_tuples_t *tuples_create(const table_shape_t *shape) {
  table_tuples_t *set = calloc(1, sizeof *set);
  if (set == NULL) return NULL;
  set->shape = shape;
  set->free_link = TABLE_NONE;
  uint32_t word = 0;
  for (uint32_t i = 0; i < shape->num_fields && set->range_width == 0; i++) {
    if (shape->fields[i].kind == MATCH_RANGE && shape->fields[i].width <= 64) {
      set->range_word = word;
      set->range_width = shape->fields[i].width;
    }
    word += (shape->fields[i].width + 63) / 64;
  }
  uint64_t links = (uint64_t)shape->max_entries * (set->range_width == 0 ? 1 : 2 * set->range_width);
  set->links_max = links < INDEX_NONE - INDEX_FIRST ? (uint32_t)links : INDEX_NONE - INDEX_FIRST;
  set->links = pages_reserve(links_bytes(set));
  bool has_chains = index_create(&set->chains), has_masks = index_create(&set->by_mask);
  if (set->links != NULL && has_chains && has_masks) return set;
  tuples_destroy(set);
  return NULL;
}

void tuples_destroy(table_tuples_t *set) {
  pages_release(set->links, links_bytes(set));
  index_destroy(&set->chains);
  index_destroy(&set->by_mask);
  free(set->tuples);
  free(set->masks);
  free(set->order);
  free(set);
}

// ---- from an entry to its links ----

static uint64_t *mask_of(const table_tuples_t *set, uint32_t tuple) {
  return set->masks + (size_t)tuple * set->shape->words;
}

// The prefixes that make up low to high; at most 2 * width - 2, one for a whole field.
static uint32_t split_range(uint64_t low, uint64_t high, uint32_t width, prefix_t *out) {
  for (uint32_t count = 0;; low++) {
    unsigned bits = low == 0 ? width : (unsigned)__builtin_ctzll(low);
    if (bits > width) bits = width;
    while ((low | low_mask(bits)) > high) bits--;
    out[count++] = (prefix_t){.value = low, .free_bits = bits};
    low |= low_mask(bits);
    if (low == high) return count;
  }
}

static uint32_t prefixes_of(const table_tuples_t *set, const uint64_t *key, const uint64_t *mask, prefix_t *out) {
  if (set->range_width == 0) return 1;
  return split_range(key[set->range_word], mask[set->range_word], set->range_width, out);
}

// The bits that a tuple compares; none of a range that is not split into prefixes.
static void tuple_mask(const table_tuples_t *set, const uint64_t *mask, const prefix_t *prefix, uint64_t *out) {
  uint32_t word = 0;
  for (uint32_t i = 0; i < set->shape->num_fields; i++) {
    const key_field_t *field = &set->shape->fields[i];
    uint32_t words = (field->width + 63) / 64;
    for (uint32_t k = word; k < word + words; k++) out[k] = field->kind == MATCH_RANGE ? 0 : mask[k];
    word += words;
  }
  if (set->range_width != 0) out[set->range_word] = low_mask(set->range_width) & ~low_mask(prefix->free_bits);
}

static uint32_t link_hash(const table_tuples_t *set, const uint64_t *key, const uint64_t *mask, const prefix_t *prefix,
                          uint64_t seed) {
  uint64_t hash = seed;
  for (uint32_t i = 0; i < set->shape->words; i++) {
    bool is_range = set->range_width != 0 && i == set->range_word;
    hash = match_mix(hash, (is_range ? prefix->value : key[i]) & mask[i]);
  }
  return match_finish(hash);
}

static uint32_t find_tuple(const table_tuples_t *set, const uint64_t *mask, uint32_t hash) {
  const table_index_t *index = &set->by_mask;
  for (uint32_t round = 0; round < 2; round++) {
    const index_slot_t *slots = round == 0 ? index->slots : index->old;
    uint32_t slot_mask = round == 0 ? index->mask : index->old_mask;
    if (slots == NULL) break;
    for (uint32_t at = hash;;) {
      uint32_t tuple = index_next(slots, slot_mask, hash, &at);
      if (tuple == INDEX_NONE) break;
      if (memcmp(mask_of(set, tuple), mask, set->shape->words * 8) == 0) return tuple;
    }
  }
  return TABLE_NONE;
}

// ---- order of tuples ----

static uint32_t place_of(const table_tuples_t *set, uint32_t tuple) {
  int32_t best = set->tuples[tuple].best;
  uint32_t low = 0;
  for (uint32_t high = set->count; low < high;) {
    uint32_t middle = (low + high) / 2;
    if (set->order[middle].best > best) low = middle + 1;
    else high = middle;
  }
  while (set->order[low].tuple != tuple) low++;
  return low;
}

// Move a place up after its best rank has risen.
static void raise_place(table_tuples_t *set, uint32_t at, int32_t best) {
  place_t place = set->order[at];
  place.best = best;
  set->tuples[place.tuple].best = best;
  uint32_t to = at;
  while (to > 0 && set->order[to - 1].best < best) to--;
  memmove(set->order + to + 1, set->order + to, (at - to) * sizeof *set->order);
  set->order[to] = place;
}

static int compare_places(const void *left, const void *right) {
  int32_t a = ((const place_t *)left)->best, b = ((const place_t *)right)->best;
  return a < b ? 1 : a > b ? -1 : 0;
}

// After many removals, the bounds of ranks are too high, and lookups search more tuples than needed.
static void refresh(table_tuples_t *set, const table_t *table) {
  set->stale = 0;
  for (uint32_t i = 0; i < set->count; i++) set->tuples[set->order[i].tuple].best = INT32_MIN;
  for (uint32_t i = 0; i < set->links_used; i++) {
    if (set->links[i].entry == TABLE_NONE) continue;
    int32_t rank = table_node(table, set->links[i].entry)->rank;
    tuple_t *tuple = &set->tuples[set->links[i].tuple];
    if (rank > tuple->best) tuple->best = rank;
  }
  for (uint32_t i = 0; i < set->count; i++) set->order[i].best = set->tuples[set->order[i].tuple].best;
  qsort(set->order, set->count, sizeof *set->order, compare_places);
}

static bool grow(table_tuples_t *set) {
  uint32_t capacity = set->capacity == 0 ? FIRST_TUPLES : set->capacity * 2;
  tuple_t *tuples = realloc(set->tuples, capacity * sizeof *tuples);
  if (tuples == NULL) return false;
  set->tuples = tuples;
  uint64_t *masks = realloc(set->masks, (size_t)capacity * set->shape->words * 8);
  if (masks == NULL) return false;
  set->masks = masks;
  place_t *order = realloc(set->order, capacity * sizeof *order);
  if (order == NULL) return false;
  set->order = order;
  set->capacity = capacity;
  return true;
}

static uint32_t open_tuple(table_tuples_t *set, const uint64_t *mask, uint32_t hash, int32_t rank, uint32_t entry) {
  uint32_t tuple = set->used;
  if (set->count < set->used) // one that is free
    for (tuple = 0; set->tuples[tuple].count != 0;) tuple++;
  else if (set->used == set->capacity && !grow(set)) return TABLE_NONE;
  if (!index_add(&set->by_mask, hash, tuple)) return TABLE_NONE;
  if (tuple == set->used) set->used++;
  set->tuples[tuple] = (tuple_t){.seed = hash, .mask_hash = hash, .best = INT32_MIN};
  memcpy(mask_of(set, tuple), mask, set->shape->words * 8);
  set->order[set->count] = (place_t){.best = INT32_MIN, .tuple = tuple, .single = entry};
  raise_place(set, set->count++, rank);
  return tuple;
}

static void close_tuple(table_tuples_t *set, uint32_t tuple) {
  uint32_t at = place_of(set, tuple);
  index_remove(&set->by_mask, set->tuples[tuple].mask_hash, tuple);
  set->count--;
  memmove(set->order + at, set->order + at + 1, (set->count - at) * sizeof *set->order);
}

// ---- links ----

static uint32_t take_link(table_tuples_t *set) {
  uint32_t link = set->free_link;
  if (link != TABLE_NONE) set->free_link = set->links[link].next;
  else if (set->links_used < set->links_max) link = set->links_used++;
  else return TABLE_NONE;
  set->links_held++;
  return link;
}

static void give_link(table_tuples_t *set, uint32_t link) {
  set->links[link] = (link_t){.entry = TABLE_NONE, .next = set->free_link};
  set->free_link = link;
  set->links_held--;
}

static bool comes_before(const table_t *table, uint32_t left, uint32_t right) {
  int32_t a = table_node(table, left)->rank, b = table_node(table, right)->rank;
  return a != b ? a > b : left < right;
}

static bool chain_add(table_tuples_t *set, const table_t *table, uint32_t link) {
  link_t *added = &set->links[link];
  uint32_t first = index_get(&set->chains, added->hash);
  if (first == INDEX_NONE) return index_add(&set->chains, added->hash, link);
  if (comes_before(table, added->entry, set->links[first].entry)) {
    added->next = first;
    index_replace(&set->chains, added->hash, first, link);
    return true;
  }
  uint32_t before = first;
  for (uint32_t next = set->links[before].next; next != TABLE_NONE; next = set->links[before].next) {
    if (comes_before(table, added->entry, set->links[next].entry)) break;
    before = next;
  }
  added->next = set->links[before].next;
  set->links[before].next = link;
  return true;
}

static void chain_remove(table_tuples_t *set, uint32_t link) {
  const link_t *gone = &set->links[link];
  uint32_t before = index_get(&set->chains, gone->hash);
  if (before == link) {
    if (gone->next == TABLE_NONE) index_remove(&set->chains, gone->hash, link);
    else index_replace(&set->chains, gone->hash, link, gone->next);
    return;
  }
  while (set->links[before].next != link) before = set->links[before].next;
  set->links[before].next = gone->next;
}

static bool add_link(table_tuples_t *set, const table_t *table, uint32_t entry, const prefix_t *prefix) {
  table_node_t *node = table_node(table, entry);
  const uint64_t *key = table_node_key(node);
  uint64_t mask[MATCH_MAX_WORDS];
  tuple_mask(set, key + set->shape->words, prefix, mask);
  uint32_t mask_hash = match_hash(mask, set->shape->words, 0);
  uint32_t link = take_link(set);
  if (link == TABLE_NONE) return false;
  uint32_t tuple = find_tuple(set, mask, mask_hash);
  bool is_new = tuple == TABLE_NONE;
  if (is_new) tuple = open_tuple(set, mask, mask_hash, node->rank, entry);
  if (tuple != TABLE_NONE) {
    uint32_t hash = link_hash(set, key, mask, prefix, set->tuples[tuple].seed);
    set->links[link] = (link_t){.entry = entry, .hash = hash, .next = TABLE_NONE, .sibling = node->link, .tuple = tuple};
    if (chain_add(set, table, link)) {
      node->link = link;
      set->tuples[tuple].count++;
      if (is_new) return true;
      uint32_t at = place_of(set, tuple);
      set->order[at].single = TABLE_NONE;
      if (node->rank > set->tuples[tuple].best) raise_place(set, at, node->rank);
      return true;
    }
    if (is_new) close_tuple(set, tuple);
  }
  give_link(set, link);
  return false;
}

void tuples_remove(table_t *table, uint32_t entry) {
  table_tuples_t *set = table->tuples;
  table_node_t *node = table_node(table, entry);
  while (node->link != TABLE_NONE) {
    uint32_t link = node->link, tuple = set->links[link].tuple;
    node->link = set->links[link].sibling;
    chain_remove(set, link);
    give_link(set, link);
    if (--set->tuples[tuple].count == 0) close_tuple(set, tuple);
    else if (node->rank == set->tuples[tuple].best) set->stale++;
  }
  // Prefix lengths are the same for all entries of a tuple.
  if (set->shape->kind != MATCH_LPM && set->stale > STALE_MIN && set->stale > set->links_held) refresh(set, table);
}

bool tuples_add(table_t *table, uint32_t entry) {
  prefix_t prefixes[PREFIXES_MAX] = {0};
  const uint64_t *key = table_node_key(table_node(table, entry));
  uint32_t count = prefixes_of(table->tuples, key, key + table->shape->words, prefixes);
  for (uint32_t i = 0; i < count; i++) {
    if (add_link(table->tuples, table, entry, &prefixes[i])) continue;
    tuples_remove(table, entry);
    return false;
  }
  return true;
}

uint32_t tuples_find(const table_t *table, const match_t *match) {
  const table_tuples_t *set = table->tuples;
  uint32_t words = set->shape->words;
  prefix_t prefixes[PREFIXES_MAX] = {0};
  uint64_t mask[MATCH_MAX_WORDS];
  prefixes_of(set, match->key, match->mask, prefixes);
  tuple_mask(set, match->mask, &prefixes[0], mask);
  uint32_t tuple = find_tuple(set, mask, match_hash(mask, words, 0));
  if (tuple == TABLE_NONE) return TABLE_NONE;
  uint32_t hash = link_hash(set, match->key, mask, &prefixes[0], set->tuples[tuple].seed);
  for (uint32_t at = index_get(&set->chains, hash); at != TABLE_NONE; at = set->links[at].next) {
    const table_node_t *node = table_node(table, set->links[at].entry);
    const uint64_t *held = table_node_key(node);
    if (node->rank == match->rank && memcmp(held, match->key, words * 8) == 0 &&
        memcmp(held + words, match->mask, words * 8) == 0)
      return set->links[at].entry;
  }
  return TABLE_NONE;
}

// ---- lookup ----

static bool covers(const table_shape_t *shape, const table_node_t *node, const uint64_t *key) {
  const uint64_t *held = table_node_key(node);
  if (shape->kind == MATCH_RANGE) return match_ranges(shape, held, key);
  uint64_t difference = 0;
  for (uint32_t i = 0; i < shape->words; i++) difference |= (key[i] ^ held[i]) & held[shape->words + i];
  return difference == 0;
}

uint32_t tuples_lookup(const table_t *table, const uint64_t *key) {
  const table_tuples_t *set = table->tuples;
  uint32_t best = TABLE_NONE;
  int32_t best_rank = INT32_MIN;
  for (uint32_t i = 0; i < set->count; i++) {
    const place_t *place = &set->order[i];
    if (best != TABLE_NONE && place->best < best_rank) break;
    if (place->single != TABLE_NONE) {
      const table_node_t *node = table_node(table, place->single);
      if (!covers(set->shape, node, key)) continue;
      if (best != TABLE_NONE && !comes_before(table, place->single, best)) continue;
      best = place->single;
      best_rank = node->rank;
      continue;
    }
    uint64_t seed = set->tuples[place->tuple].seed;
    uint32_t hash = match_masked_hash(key, mask_of(set, place->tuple), set->shape->words, seed);
    for (uint32_t at = index_get(&set->chains, hash); at != TABLE_NONE; at = set->links[at].next) {
      uint32_t entry = set->links[at].entry;
      if (best != TABLE_NONE && !comes_before(table, entry, best)) break;
      if (!covers(set->shape, table_node(table, entry), key)) continue;
      best = entry;
      best_rank = table_node(table, entry)->rank;
      break;
    }
  }
  return best;
}
