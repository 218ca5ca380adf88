/* SPDX-FileCopyrightText: 2026 The Switchfold Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Pushes to one hot row: docs/protocol.md, "Hot rows: workers and servers". NUM_WORKERS workers push PUSHES times each
 * without waiting, a switch adds the pushes of a round up in a slot with two copies, and a server counts the sums.
 *
 * The network is the worst possible: any packet that was sent may arrive at any later time, any number of times, or never.
 * What workers send by TCP may arrive at any later time, more than once; the server knows what it has taken. The server
 * reads and changes its memory, and logs all of it at any time; a crash takes it back to its log. What it tells workers is
 * in its log. A worker hears of it at any time, and acts on what it heard last.
 *
 * A time is one number: the rounds of all generations, counted. The values of a push are its number. An entry of the row
 * stands for its epoch, its keys and its exponent.
 *
 * Variants, by -D:
 *   CRASHES=1   the server crashes at any time (with LIVENESS: once).
 *   RESTARTS=1  the switch loses its registers at any time, also without a new generation.
 *   EPOCHS=n, GENERATIONS=n  entries of the row one after the other, and views of the job.
 *   RENEWS=1    worker 0 gets a new process, once.
 *   RENAMES=0   workers never push in another round what was too late: it goes by TCP.
 *   FENCES=0    the server never decides a round without a sum.
 *   ANY_TREE=1  instead of the switch: the sum of any workers' pushes of one round may reach the server at any time. This
 *               stands for trees of any depth, whose switches lose their registers at any time.
 *   LIVENESS=1  packets and TCP get through eventually; check that all pushes are settled though the server is never asked.
 *   LIVENESS=2  only TCP gets through eventually; check that all pushes are settled.
 * Defects that the checker must find:
 *   FIRST_ONLY=0    the server applies a second sum of a round if it has other workers
 *   KEEPS_ROUNDS=0  the server forgets its rounds in a crash, and keeps its sum
 *   LOGS_FIRST=0    the server says what is not in its log
 *   KEEPS_NAME=0    a worker sends by TCP what the server has not decided
 *   RENAMES_LOST=0  a worker pushes again, in another round, what the server has not decided
 *   KEEPS_TWO=0     the server knows only the last round that counted a worker
 *   KEEPS_ROWS=0    a worker that was counted is not told so after a new generation
 *   SLOT_RULE=0     workers do not wait for the round before the last
 *   ENTRY_FENCE=0   the server does not decide the rounds of the last entry; it looks at the epoch of sums alone
 *   EPOCH_CHECK=0   the server does not look at the epoch of sums either (with ENTRY_FENCE=0)
 *   PROCESS_FENCE=0 a worker's new process begins with rounds that the old one may have used
 *   ASKS=0          workers never ask the server to decide
 */
#ifndef NUM_WORKERS
#define NUM_WORKERS 2
#endif
#ifndef PUSHES
#define PUSHES 2
#endif
#ifndef ROUNDS
#define ROUNDS 3
#endif
#ifndef GENERATIONS
#define GENERATIONS 1
#endif
#ifndef EPOCHS
#define EPOCHS 1
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef RENEWS
#define RENEWS 0
#endif
#ifndef RENAMES
#define RENAMES 1
#endif
#ifndef FENCES
#define FENCES 1
#endif
#ifndef ANY_TREE
#define ANY_TREE 0
#endif
#ifndef LIVENESS
#define LIVENESS 0
#endif
#ifndef FIRST_ONLY
#define FIRST_ONLY 1
#endif
#ifndef KEEPS_ROUNDS
#define KEEPS_ROUNDS 1
#endif
#ifndef LOGS_FIRST
#define LOGS_FIRST 1
#endif
#ifndef KEEPS_NAME
#define KEEPS_NAME 1
#endif
#ifndef RENAMES_LOST
#define RENAMES_LOST 1
#endif
#ifndef KEEPS_TWO
#define KEEPS_TWO 1
#endif
#ifndef KEEPS_ROWS
#define KEEPS_ROWS 1
#endif
#ifndef SLOT_RULE
#define SLOT_RULE 1
#endif
#ifndef EPOCH_CHECK
#define EPOCH_CHECK 1
#endif
#ifndef ENTRY_FENCE
#define ENTRY_FENCE 1
#endif
#ifndef PROCESS_FENCE
#define PROCESS_FENCE 1
#endif
#ifndef ASKS
#define ASKS 1
#endif

#define TIMES (ROUNDS * GENERATIONS)
#define GENERATION(t) (((t) - 1) / ROUNDS + 1)
#define FIRST(g) (((g) - 1) * ROUNDS + 1)
#define LAST(g) ((g) * ROUNDS)
#define ALL ((1 << NUM_WORKERS) - 1)
#define BIT(i) (1 << (i))
#define AT(w, t) ((w) * (TIMES + 1) + (t))
#define PUSH(w, p) ((w) * PUSHES + (p) - 1)
#define ALL_PUSHES (2 * ((1 << PUSHES) - 1))
byte i; /* loop variable inside d_step; zero in between */

/* ---- server ---- */

typedef server_t {
#if GENERATIONS > 1
  byte generation;
#endif
#if EPOCHS > 1
  byte entry;                           /* the last entry of the row that it has asked for */
#endif
  byte next;                            /* the lowest round of the generation that is not decided */
  bool is_ahead;                        /* the round after it is decided */
  byte last[NUM_WORKERS];               /* the last round that counted this worker */
  byte before[NUM_WORKERS];             /* the one that counted it before */
  byte taken[NUM_WORKERS];              /* pushes that came by TCP */
  byte counted[NUM_WORKERS * PUSHES]    /* how often each push is in the sum */
};
server_t memory;
#if CRASHES
server_t log;
#else
#define log memory /* Without crashes the server logs whatever it does at once: the fewer states. */
#endif
#if LOGS_FIRST
#define SAID log
#else
#define SAID memory
#endif
#if GENERATIONS > 1
#define SERVED(server) server.generation
#else
#define SERVED(server) 1
#endif
#if EPOCHS > 1
#define ENTRY(server) server.entry
#else
#define ENTRY(server) 1
#endif
#define IS_DECIDED(server, t) \
  (GENERATION(t) < SERVED(server) || (t) < server.next || ((t) == server.next + 1 && server.is_ahead))
#define IS_OPEN(server, t) \
  (GENERATION(t) == SERVED(server) && (t) <= server.next + 1 && !IS_DECIDED(server, t))
#if !KEEPS_TWO
#define HAS_COUNTED(server, w, t) (server.last[w] == (t))
#elif !KEEPS_ROWS
#define HAS_COUNTED(server, w, t) \
  ((server.last[w] == (t) || server.before[w] == (t)) && GENERATION(t) == SERVED(server))
#else
#define HAS_COUNTED(server, w, t) (server.last[w] == (t) || server.before[w] == (t))
#endif

/* ---- workers ---- */

byte push_of[NUM_WORKERS * (TIMES + 1)]; /* the push that has the name (worker, time); zero: none */
byte name_of[NUM_WORKERS * PUSHES];      /* the time in the name of each push; zero: none */
byte pushed[NUM_WORKERS];                /* how many pushes there have been */
byte least[NUM_WORKERS];                 /* the next name of the worker has this time, or a later one */
byte heard[NUM_WORKERS];                 /* the lowest round that is not decided, as the worker heard last */
byte cold[NUM_WORKERS];                  /* which pushes the worker sends by TCP */
byte settled[NUM_WORKERS];               /* which pushes the worker has dropped, since they are durable */
#if GENERATIONS > 1
byte heard_generation[NUM_WORKERS];
#define HEARD_GENERATION(w) heard_generation[w]
#else
#define HEARD_GENERATION(w) 1
#endif
#if EPOCHS > 1
byte heard_entry[NUM_WORKERS];
byte made_for[NUM_WORKERS * (TIMES + 1)]; /* the entry that the push of this name was made for */
#define MADE_FOR(w, t) made_for[AT(w, t)]
#else
#define MADE_FOR(w, t) 1
#endif
#if RENEWS
byte gone; /* which pushes went with the old process of worker 0 */
bool is_renewed;
#define IS_GONE(w, p) ((w) == 0 && (gone & BIT(p)) != 0)
#else
#define IS_GONE(w, p) false
#endif

#define IS_SETTLED(w, p) ((settled[w] & BIT(p)) != 0)
#define IS_COLD(w, p) ((cold[w] & BIT(p)) != 0)
#define IS_NAMED(w, p) (name_of[PUSH(w, p)] != 0 && !IS_SETTLED(w, p) && !IS_COLD(w, p) && !IS_GONE(w, p))
/* Its last round was decided without it: it gets another name, or goes by TCP. */
#define IS_NAMELESS(w, p) \
  ((p) <= pushed[w] && name_of[PUSH(w, p)] == 0 && !IS_SETTLED(w, p) && !IS_COLD(w, p) && !IS_GONE(w, p))
#if SLOT_RULE
#define REACH 1
#else
#define REACH 2
#endif
#define MAY_NAME(w) (least[w] <= LAST(HEARD_GENERATION(w)) && least[w] <= heard[w] + REACH)
#define MAY_PUSH(w) (pushed[w] < PUSHES)

inline give_name(w, p) {
  assert(push_of[AT(w, least[w])] == 0); /* no name is given twice */
  push_of[AT(w, least[w])] = p;
  name_of[PUSH(w, p)] = least[w];
#if EPOCHS > 1
  made_for[AT(w, least[w])] = heard_entry[w];
#endif
  least[w]++
}

inline settle(w, p) {
  assert(log.counted[PUSH(w, p)] == 1);
  settled[w] = settled[w] | BIT(p)
}

/* The worker goes on with what the server says. */
inline begin(w) {
  heard[w] = SAID.next;
#if GENERATIONS > 1
  heard_generation[w] = SAID.generation;
#endif
#if EPOCHS > 1
  heard_entry[w] = SAID.entry;
#endif
  if
  :: least[w] < SAID.next -> least[w] = SAID.next
  :: else
  fi;
  if
  :: least[w] == SAID.next + 1 && SAID.is_ahead -> least[w]++
  :: else
  fi
}

/* A decided round has either counted the worker's push, or never will. */
inline hear(w) {
  i = 1;
  do
  :: i <= PUSHES ->
    if
    :: IS_NAMED(w, i) && IS_DECIDED(SAID, name_of[PUSH(w, i)]) ->
      if
      :: HAS_COUNTED(SAID, w, name_of[PUSH(w, i)]) -> settle(w, i)
#if RENAMES
      :: else -> name_of[PUSH(w, i)] = 0
#else
      :: else -> cold[w] = cold[w] | BIT(i)
#endif
      fi
    :: IS_COLD(w, i) && !IS_SETTLED(w, i) && (SAID.taken[w] & BIT(i)) -> settle(w, i)
    :: else
    fi;
    i++
  :: else -> break
  od;
  i = 0;
  begin(w)
}

/* ---- what the server does ---- */

inline decide(t) {
  if
  :: t == memory.next && memory.is_ahead -> memory.next = memory.next + 2; memory.is_ahead = false
  :: t == memory.next && !memory.is_ahead -> memory.next++
  :: else -> memory.is_ahead = true
  fi
}

inline count(w, t) {
  assert(MADE_FOR(w, t) == ENTRY(memory));
  memory.counted[PUSH(w, push_of[AT(w, t)])]++;
  assert(memory.counted[PUSH(w, push_of[AT(w, t)])] == 1);
  memory.before[w] = memory.last[w];
  memory.last[w] = t
}

/* A sum of time t arrives, with the pushes of the workers in `summed`, made for an entry. */
inline apply_sum(t, made, summed) {
  /* Where workers follow the slot rule, no other sum can come. */
  assert(GENERATION(t) != SERVED(memory) || t <= memory.next + 1 || CRASHES && !LOGS_FIRST);
  if
  :: FIRST_ONLY && !IS_OPEN(memory, t)
  :: !FIRST_ONLY && (GENERATION(t) != SERVED(memory) || t > memory.next + 1)
  :: else ->
    if
    :: IS_OPEN(memory, t) -> decide(t)
    :: else
    fi;
    if
    :: EPOCH_CHECK && made != ENTRY(memory)
    :: else ->
      do
      :: i < NUM_WORKERS && (summed & BIT(i)) &&
           (FIRST_ONLY || !HAS_COUNTED(memory, i, t)) -> count(i, t); i++
      :: i < NUM_WORKERS && !((summed & BIT(i)) &&
           (FIRST_ONLY || !HAS_COUNTED(memory, i, t))) -> i++
      :: else -> break
      od;
      i = 0
    fi
  fi
}

/* No sum of any round that a worker may have used will be taken any more. */
inline fence() {
  if
  :: memory.next + 2 <= LAST(SERVED(memory)) + 1 -> memory.next = memory.next + 2
  :: else -> memory.next = LAST(SERVED(memory)) + 1
  fi;
  memory.is_ahead = false
}

#define MAY_RECEIVE_COLD(w, p) (IS_COLD(w, p) && (memory.taken[w] & BIT(p)) == 0)
inline receive_cold(w, p) {
  memory.taken[w] = memory.taken[w] | BIT(p);
  memory.counted[PUSH(w, p)]++;
  assert(memory.counted[PUSH(w, p)] == 1)
}

inline copy_server(from, to) {
#if GENERATIONS > 1
  to.generation = from.generation;
#endif
#if EPOCHS > 1
  to.entry = from.entry;
#endif
  to.next = from.next;
  to.is_ahead = from.is_ahead;
  do
  :: i < NUM_WORKERS ->
    to.last[i] = from.last[i]; to.before[i] = from.before[i]; to.taken[i] = from.taken[i]; i++
  :: else -> break
  od;
  i = 0;
  do
  :: i < NUM_WORKERS * PUSHES -> to.counted[i] = from.counted[i]; i++
  :: else -> break
  od;
  i = 0
}

inline crash() {
  copy_server(log, memory);
#if !KEEPS_ROUNDS
  memory.next = FIRST(SERVED(memory));
  memory.is_ahead = false
#endif
}

#if RENEWS
/* The server logs that there is a new process, and only then tells it with which rounds it begins. */
inline renew() {
  i = 1;
  do
  :: i <= PUSHES ->
    if
    :: i <= pushed[0] && !IS_SETTLED(0, i) -> gone = gone | BIT(i)
    :: else
    fi;
    i++
  :: else -> break
  od;
  i = 0;
  cold[0] = 0;
  is_renewed = true;
#if PROCESS_FENCE
  fence();
#endif
#if CRASHES
  copy_server(memory, log);
#endif
  least[0] = 0;
  begin(0)
}
#endif

/* ---- the switch ---- */

byte generation = 1; /* of the table entries */
byte entry = 1;      /* in table hot_row */

#if !ANY_TREE
typedef copy_t {
  byte round; /* zero: never used */
  byte made_for;
  byte bitmap;
  bool is_closed
};
copy_t copies[2];
byte sums[EPOCHS * (TIMES + 1)]; /* bit b: a sum of this time with bitmap b was sent */
#define SUMS(made, t) sums[((made) - 1) * (TIMES + 1) + (t)]
#define COPY(t) (((t) - 1) & 1)
#define IS_HOT(t, made) (GENERATION(t) == generation && (made) == entry)

inline send_sum(t) {
  SUMS(copies[COPY(t)].made_for, t) = SUMS(copies[COPY(t)].made_for, t) | BIT(copies[COPY(t)].bitmap)
}

inline clear_copies() {
  copies[0].round = 0; copies[0].made_for = 0; copies[0].bitmap = 0; copies[0].is_closed = false;
  copies[1].round = 0; copies[1].made_for = 0; copies[1].bitmap = 0; copies[1].is_closed = false
}

inline receive_push(w, t) {
  if
  :: !IS_HOT(t, MADE_FOR(w, t)) || t < copies[COPY(t)].round /* dropped, COLD, STALE or NOTIFIED */
  :: else ->
    if
    :: t > copies[COPY(t)].round ->
      /* No sum is lost that the server has not decided, unless the switch loses its registers. */
      assert(copies[COPY(t)].round == 0 || GENERATION(copies[COPY(t)].round) != generation ||
             IS_DECIDED(log, copies[COPY(t)].round));
      copies[COPY(t)].round = t;
      copies[COPY(t)].made_for = MADE_FOR(w, t);
      copies[COPY(t)].bitmap = BIT(w);
      copies[COPY(t)].is_closed = false
    :: t == copies[COPY(t)].round && !copies[COPY(t)].is_closed && !(copies[COPY(t)].bitmap & BIT(w)) &&
         copies[COPY(t)].made_for == MADE_FOR(w, t) ->
      copies[COPY(t)].bitmap = copies[COPY(t)].bitmap | BIT(w)
    :: else /* MISMATCH, NOTIFIED or REPLAYED */
    fi;
    if
    :: copies[COPY(t)].round == t && copies[COPY(t)].bitmap == ALL -> copies[COPY(t)].is_closed = true; send_sum(t)
    :: else
    fi
  fi
}

/* A push of the round closes it, since it expects no more workers; or a flush does. */
#define MAY_CLOSE(c) \
  (copies[c].round != 0 && !copies[c].is_closed && IS_HOT(copies[c].round, copies[c].made_for))
inline close(c) {
  copies[c].is_closed = true;
  send_sum(copies[c].round)
}
#endif

#define HAS_PUSHED(w, t, b, e) (!((b) & BIT(w)) || (push_of[AT(w, t)] != 0 && MADE_FOR(w, t) == (e)))
#define IS_OVER(w) (settled[w] == ALL_PUSHES)

/* One option of an `if` for each worker, push, time or sum: a search takes much longer through options that do nothing. */
#if NUM_WORKERS == 3
#define EACH_WORKER(option) option(0) option(1) option(2)
#define EACH_NUMBER(option, n) option(0, n) option(1, n) option(2, n)
#define EACH_BITMAP(option, t, e) \
  option(t, 1, e) option(t, 2, e) option(t, 3, e) option(t, 4, e) option(t, 5, e) option(t, 6, e) option(t, 7, e)
#define HAVE_PUSHED(t, b, e) (HAS_PUSHED(0, t, b, e) && HAS_PUSHED(1, t, b, e) && HAS_PUSHED(2, t, b, e))
#define EVERYTHING_SETTLED (IS_OVER(0) && IS_OVER(1) && IS_OVER(2))
#else
#define EACH_WORKER(option) option(0) option(1)
#define EACH_NUMBER(option, n) option(0, n) option(1, n)
#define EACH_BITMAP(option, t, e) option(t, 1, e) option(t, 2, e) option(t, 3, e)
#define HAVE_PUSHED(t, b, e) (HAS_PUSHED(0, t, b, e) && HAS_PUSHED(1, t, b, e))
#define EVERYTHING_SETTLED (IS_OVER(0) && IS_OVER(1))
#endif
#if PUSHES == 1
#define EACH_PUSH(option) EACH_NUMBER(option, 1)
#elif PUSHES == 2
#define EACH_PUSH(option) EACH_NUMBER(option, 1) EACH_NUMBER(option, 2)
#endif
#if EPOCHS > 1
#define EACH_SUM_AT(option, t) EACH_BITMAP(option, t, 1) EACH_BITMAP(option, t, 2)
#else
#define EACH_SUM_AT(option, t) EACH_BITMAP(option, t, 1)
#endif
#if TIMES == 2
#define EACH_TIME(option) EACH_NUMBER(option, 1) EACH_NUMBER(option, 2)
#define EACH_SUM(option) EACH_SUM_AT(option, 1) EACH_SUM_AT(option, 2)
#elif TIMES == 3
#define EACH_TIME(option) EACH_NUMBER(option, 1) EACH_NUMBER(option, 2) EACH_NUMBER(option, 3)
#define EACH_SUM(option) EACH_SUM_AT(option, 1) EACH_SUM_AT(option, 2) EACH_SUM_AT(option, 3)
#elif TIMES == 4
#define EACH_TIME(option) \
  EACH_NUMBER(option, 1) EACH_NUMBER(option, 2) EACH_NUMBER(option, 3) EACH_NUMBER(option, 4)
#define EACH_SUM(option) \
  EACH_SUM_AT(option, 1) EACH_SUM_AT(option, 2) EACH_SUM_AT(option, 3) EACH_SUM_AT(option, 4)
#endif

#if LIVENESS
/* Push p of worker w: what it sends gets through. */
proctype Push(byte w, p) {
  do
  :: atomic { pushed[w] == p - 1 && MAY_NAME(w) -> d_step { pushed[w]++; give_name(w, p) } }
  :: atomic { pushed[w] == p - 1 && !MAY_NAME(w) -> d_step { pushed[w]++; cold[w] = cold[w] | BIT(p) } }
  :: atomic { IS_NAMELESS(w, p) && MAY_NAME(w) -> d_step { give_name(w, p) } }
  :: atomic { IS_NAMELESS(w, p) && !MAY_NAME(w) -> d_step { cold[w] = cold[w] | BIT(p) } }
  :: d_step { pushed[w] >= p && !IS_SETTLED(w, p) && !IS_NAMELESS(w, p) &&
       (IS_NAMED(w, p) -> IS_DECIDED(log, name_of[PUSH(w, p)]) : log.taken[w] & BIT(p)) -> hear(w) }
  :: d_step { MAY_RECEIVE_COLD(w, p) -> receive_cold(w, p) }
#if LIVENESS == 1
  :: atomic { IS_NAMED(w, p) && !IS_DECIDED(log, name_of[PUSH(w, p)]) ->
       d_step { receive_push(w, name_of[PUSH(w, p)]) } }
#elif ASKS
  :: d_step { IS_NAMED(w, p) && IS_OPEN(memory, name_of[PUSH(w, p)]) -> fence() }
#endif
  :: IS_SETTLED(w, p) -> break
  od
}

#define IS_AWAITED(t) (SUMS(1, t) != 0 && IS_OPEN(memory, t))
#define A_SUM(t) ((SUMS(1, t) & 2) -> 1 : ((SUMS(1, t) & 4) -> 2 : 3))
proctype Server() {
  do
#if LIVENESS == 1 /* A flush gets through, and so does the sum. */
  :: d_step { MAY_CLOSE(0) -> close(0) }
  :: d_step { MAY_CLOSE(1) -> close(1) }
  :: d_step { IS_AWAITED(1) -> apply_sum(1, 1, A_SUM(1)) }
  :: d_step { IS_AWAITED(2) -> apply_sum(2, 1, A_SUM(2)) }
#if TIMES > 2
  :: d_step { IS_AWAITED(3) -> apply_sum(3, 1, A_SUM(3)) }
#endif
#endif
#if CRASHES
  :: d_step { copy_server(memory, log) }
#endif
  :: EVERYTHING_SETTLED -> break
  od
}
#endif

/* Everything that may happen, without fairness. What happens is deterministic; the choice stays outside the d_step. */
init {
  byte w, t, p, b, e;
#if CRASHES && LIVENESS
  bool has_crashed;
#endif
  d_step {
    memory.next = 1;
#if GENERATIONS > 1
    memory.generation = 1;
#endif
#if EPOCHS > 1
    memory.entry = 1;
#endif
#if CRASHES
    copy_server(memory, log);
#endif
    do
    :: w < NUM_WORKERS -> begin(w); w++
    :: else -> break
    od;
    w = 0
  }
#if LIVENESS
  atomic { run Server(); run Push(0, 1); run Push(1, 1)
#if PUSHES > 1
    ; run Push(0, 2); run Push(1, 2)
#endif
  }
#endif
#define PUSHES_NOW(w_) :: MAY_PUSH(w_) -> w = w_
#define HEARS(w_) :: d_step { hear(w_) }
#define GOES_ON(w_, p_) :: IS_NAMELESS(w_, p_) -> d_step { w = w_; p = p_ }
#define FORGETS_NAME(w_, p_) :: d_step { IS_NAMED(w_, p_) -> name_of[PUSH(w_, p_)] = 0 }
#define GOES_COLD(w_, p_) :: d_step { IS_NAMED(w_, p_) -> cold[w_] = cold[w_] | BIT(p_) }
#define COMES_BY_TCP(w_, p_) :: d_step { MAY_RECEIVE_COLD(w_, p_) -> receive_cold(w_, p_) }
#define COMES_TO_SWITCH(w_, t_) :: push_of[AT(w_, t_)] != 0 -> d_step { w = w_; t = t_ }
#if ANY_TREE
#define COMES_AS_SUM(t_, b_, e_) :: HAVE_PUSHED(t_, b_, e_) -> d_step { t = t_; b = b_; e = e_ }
#else
#define COMES_AS_SUM(t_, b_, e_) :: SUMS(e_, t_) & BIT(b_) -> d_step { t = t_; b = b_; e = e_ }
#endif
  do
  :: atomic { /* A worker pushes, hot or cold. */
       if EACH_WORKER(PUSHES_NOW) fi;
       if
       :: MAY_NAME(w) -> d_step { pushed[w]++; give_name(w, pushed[w]); w = 0 }
       :: d_step { pushed[w]++; cold[w] = cold[w] | BIT(pushed[w]); w = 0 }
       fi }
  EACH_WORKER(HEARS)
  :: atomic { /* It pushes again what was too late, or sends it by TCP. */
       if EACH_PUSH(GOES_ON) fi;
       if
       :: MAY_NAME(w) -> d_step { give_name(w, p); w = 0; p = 0 }
       :: d_step { cold[w] = cold[w] | BIT(p); w = 0; p = 0 }
       fi }
#if !RENAMES_LOST
  EACH_PUSH(FORGETS_NAME)
#endif
#if !KEEPS_NAME
  EACH_PUSH(GOES_COLD)
#endif
  EACH_PUSH(COMES_BY_TCP)
#if !ANY_TREE
  :: atomic { /* A push arrives at the switch. */
       if EACH_TIME(COMES_TO_SWITCH) fi;
       d_step { receive_push(w, t); w = 0; t = 0 } }
#endif
  :: atomic { /* A sum arrives. */
       if EACH_SUM(COMES_AS_SUM) fi;
       d_step { apply_sum(t, e, b); t = 0; b = 0; e = 0 } }
#if FENCES
  :: d_step { memory.next <= LAST(SERVED(memory)) -> fence() }
#endif
#if CRASHES
  :: d_step { copy_server(memory, log) }
#if LIVENESS
  :: d_step { !has_crashed -> has_crashed = true; crash() }
#else
  :: d_step { crash() }
#endif
#endif
#if RENEWS
  :: d_step { !is_renewed && pushed[0] != 0 -> renew() }
#endif
#if !ANY_TREE
  :: d_step { MAY_CLOSE(0) -> close(0) }
  :: d_step { MAY_CLOSE(1) -> close(1) }
#if RESTARTS
  :: d_step { clear_copies() }
#endif
#endif
#if GENERATIONS > 1
  /* The controller installs another view; then it tells the server. */
  :: d_step { generation < GENERATIONS -> generation++ }
  :: d_step { memory.generation < generation ->
       memory.generation = generation; memory.next = FIRST(generation); memory.is_ahead = false }
#endif
#if EPOCHS > 1
  /* The server logs another entry; then the controller installs it. */
  :: d_step { memory.entry < EPOCHS -> memory.entry++;
#if ENTRY_FENCE
       fence()
#endif
     }
  :: d_step { entry < log.entry -> entry++ }
#endif
  od
}

#if LIVENESS
ltl all_pushes_settle { <> EVERYTHING_SETTLED }
#endif
