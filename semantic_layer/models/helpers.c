/* A helper takes the next task whenever it runs, and nobody waits for one that does not: on a busy
   machine the caller does all by itself. A call's tasks are microseconds apart, so helpers watch for
   them without sleeping until the call ends.
*/
#define _GNU_SOURCE
#include "helpers.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define COUNT_BITS 20
#define COUNT_MASK ((1ULL << COUNT_BITS) - 1)
#define WATCHES_BEFORE_YIELD 4096
#define STALL_S 0.002 /* longer than any task: a helper lost its core in the middle of one */
#define MOST_ALONE 64

struct Crew {
    pthread_mutex_t owner, lock;
    pthread_cond_t called;
    atomic_int is_called;
    int num_helpers;
    int alone, next_alone; /* calls to come without helpers, and after the next stall */
    int has_stalled;
    Task task;
    const void *job;
    _Atomic uint64_t round; /* its number, how many tasks it has, and the next one */
    _Atomic long num_done;
};

static Crew crew_of_all = {
    .owner = PTHREAD_MUTEX_INITIALIZER,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .called = PTHREAD_COND_INITIALIZER,
    .next_alone = 1,
};

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Do tasks as long as there are any. What they are is read once one is taken: until it is done,
   the next round can't begin. */
static void take_part(Crew *crew)
{
    for (;;) {
        uint64_t round = atomic_load_explicit(&crew->round, memory_order_acquire);
        const uint64_t next = round & COUNT_MASK;
        if (next >= (round >> COUNT_BITS & COUNT_MASK)) return;
        if (!atomic_compare_exchange_weak(&crew->round, &round, round + 1)) continue;
        crew->task(crew->job, (long)next);
        atomic_fetch_add_explicit(&crew->num_done, 1, memory_order_release);
    }
}

static void *help(void *argument)
{
    Crew *crew = argument;
    for (;;) {
        pthread_mutex_lock(&crew->lock);
        while (!atomic_load(&crew->is_called)) pthread_cond_wait(&crew->called, &crew->lock);
        pthread_mutex_unlock(&crew->lock);
        for (long watched = 1; atomic_load(&crew->is_called); watched++) {
            take_part(crew);
            pause_briefly();
            if (watched % WATCHES_BEFORE_YIELD == 0) sched_yield();
        }
    }
    return NULL;
}

/* Start helpers, once; returns how many there are. */
int helpers_start(int count)
{
    Crew *crew = &crew_of_all;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_mutex_lock(&crew->owner);
    while (crew->num_helpers < count) {
        pthread_t thread;
        if (pthread_create(&thread, &detached, help, crew)) break;
        crew->num_helpers++;
    }
    const int there = crew->num_helpers;
    pthread_mutex_unlock(&crew->owner);
    pthread_attr_destroy(&detached);
    return there;
}

/* After a stall the cores are wanted by others: work alone for a while, longer each time. */
Crew *gather(void)
{
    Crew *crew = &crew_of_all;
    if (pthread_mutex_trylock(&crew->owner)) return NULL;
    if (!crew->num_helpers || (crew->alone && crew->alone--)) {
        pthread_mutex_unlock(&crew->owner);
        return NULL;
    }
    pthread_mutex_lock(&crew->lock);
    atomic_store(&crew->is_called, 1);
    pthread_cond_broadcast(&crew->called);
    pthread_mutex_unlock(&crew->lock);
    return crew;
}

void dismiss(Crew *crew)
{
    if (!crew) return;
    atomic_store(&crew->is_called, 0);
    if (!crew->has_stalled) {
        crew->next_alone = 1;
    } else {
        crew->has_stalled = 0;
        crew->alone = crew->next_alone;
        if (crew->next_alone < MOST_ALONE) crew->next_alone *= 2;
    }
    pthread_mutex_unlock(&crew->owner);
}

void share(Crew *crew, Task task, const void *job, long count)
{
    if (!crew || count < 2 || count > (long)COUNT_MASK) {
        for (long i = 0; i < count; i++) task(job, i);
        return;
    }
    crew->task = task;
    crew->job = job;
    atomic_store(&crew->num_done, 0);
    const uint64_t number = (atomic_load(&crew->round) >> 2 * COUNT_BITS) + 1;
    const uint64_t round = number << 2 * COUNT_BITS | (uint64_t)count << COUNT_BITS;
    atomic_store_explicit(&crew->round, round, memory_order_release);
    take_part(crew);
    const double began = seconds();
    for (long watched = 1; atomic_load(&crew->num_done) < count; watched++) {
        pause_briefly();
        if (watched % WATCHES_BEFORE_YIELD == 0) sched_yield();
    }
    if (seconds() - began > STALL_S) crew->has_stalled = 1;
}
