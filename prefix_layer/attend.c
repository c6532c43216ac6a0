/* Rotary positions and attention over keys and values kept in float32; with HALF, in bfloat16.

   With HALF queries meet keys, and weights values, as pairs of bfloat16 whose products are summed in
   float32. Everything else is float32.
*/
#include "vectors.h"

#define MAX_DIM 128
#define STATES 8
#define STEP 8
#define KEYS 64
#define FEW_ROWS 32 /* threads would take longer to come together */

#ifdef HALF
#include "half.h"
#define NAME(verb) half_##verb
#define AT_ONCE 2
typedef Half Stored;
typedef vi Numbers;

INLINE vf widened(const Stored *from) { return widen(from); }
INLINE void keep(const float *from, long count, Stored *to)
{
    for (long i = 0; i < count; i += LANES) put_half(to + i, load(from + i));
}
INLINE void set(Numbers *to, long lane, long number, float value)
{
    const vf all = (vf){0} + value;
    Half halves[LANES];
    put_half(halves, all);
    memcpy((Half *)(to + number / 2) + 2 * lane + number % 2, halves, sizeof(Half));
}
INLINE vf times(vf total, Numbers a, const Stored *b) { return dot(total, a, b); }

/* Bring weights of two keys together, and the values of two slots: [slot / 2][dim][2]. */
INLINE const Numbers *joined(const vf *weights, int count, Numbers *room)
{
    for (int j = 0; j < count; j += 2)
        room[j / 2] = pair(weights[j], j + 1 < count ? weights[j + 1] : (vf){0});
    return room;
}
INLINE const Stored *laid(const Stored *values, long stride, long dim, int count, Stored *room)
{
    for (int j = 0; j < count; j += 2)
        for (long d = 0; d < dim; d += LANES) {
            const Stored *first = values + j * stride + d;
            const vi both = interleaved(first, j + 1 < count ? first + stride : NULL);
            memcpy(room + j * dim + 2 * d, &both, sizeof both);
        }
    return room;
}
INLINE long laid_stride(long stride, long dim) { return 2 * dim; }

#else
#define NAME(verb) narrow_##verb
#define AT_ONCE 1
typedef float Stored;
typedef vf Numbers;

INLINE vf widened(const Stored *from) { return load(from); }
INLINE void keep(const float *from, long count, Stored *to) { memcpy(to, from, sizeof(float) * count); }
INLINE void set(Numbers *to, long lane, long number, float value) { to[number][lane] = value; }
INLINE vf times(vf total, Numbers a, const Stored *b) { return total + a * *b; }
INLINE const Numbers *joined(const vf *weights, int count, Numbers *room) { return weights; }
INLINE const Stored *laid(const Stored *values, long stride, long dim, int count, Stored *room)
{
    return values;
}
INLINE long laid_stride(long stride, long dim) { return stride; }
#endif

/* Turn queries and keys in place; copy keys and values to their slots.
   qkv (rows, heads + 2 * kv_heads, dim); cos and sin (rows, dim), both halves alike. */
void NAME(rotate)(float *qkv, const float *cos, const float *sin, long rows, long heads,
                  long kv_heads, long dim, const int64_t *slots, Stored *keys, Stored *values)
{
    const long half = dim / 2, all = heads + 2 * kv_heads, kv = kv_heads * dim;
    #pragma omp parallel for schedule(static) if (rows > FEW_ROWS)
    for (long r = 0; r < rows; r++) {
        const float *c = cos + r * dim, *s = sin + r * dim;
        float *row = qkv + r * all * dim;
        for (long h = 0; h < heads + kv_heads; h++) {
            float *x = row + h * dim;
            for (long i = 0; i < half; i++) {
                float a = x[i], b = x[i + half];
                x[i] = a * c[i] - b * s[i];
                x[i + half] = b * c[i + half] + a * s[i + half];
            }
        }
        keep(row + heads * dim, kv, keys + slots[r] * kv);
        keep(row + (heads + kv_heads) * dim, kv, values + slots[r] * kv);
    }
}

/* Attend with one head of one row to its runs of slots; softmax as it goes (Milakov & Gimelshein,
   Online normalizer calculation for softmax, 2018). dim is a multiple of LANES, at most MAX_DIM. */
static void attend_head(const float *q, const Stored *keys, const Stored *values, long stride,
                        long dim, const int64_t *runs, long num_runs, float scale, float *out)
{
    const int parts = (int)(dim / LANES);
    vf acc[MAX_DIM / LANES], query[MAX_DIM / LANES];
    float highest = -INFINITY, mass = 0;
    for (int p = 0; p < parts; p++) { acc[p] = (vf){0}; query[p] = load(q + p * LANES) * scale; }
    for (long run = 0; run < num_runs; run++) {
        for (int64_t first = runs[2 * run]; first < runs[2 * run + 1]; first += LANES) {
            const int64_t left = runs[2 * run + 1] - first;
            const int count = left < LANES ? (int)left : LANES;
            vf score = (vf){0} - INFINITY;
            float top = highest;
            for (int i = 0; i < count; i++) {
                vf product = {0};
                for (int p = 0; p < parts; p++)
                    product += query[p] * widened(keys + (first + i) * stride + p * LANES);
                score[i] = sum(product);
                top = score[i] > top ? score[i] : top;
            }
            const float shrink = expf(highest - top);
            vf weight = exp_of(score - top);
            for (int i = count; i < LANES; i++) weight[i] = 0;
            highest = top;
            mass = mass * shrink + sum(weight);
            for (int p = 0; p < parts; p++) acc[p] *= shrink;
            for (int i = 0; i < count; i++)
                for (int p = 0; p < parts; p++)
                    acc[p] += weight[i] * widened(values + (first + i) * stride + p * LANES);
        }
    }
    for (int p = 0; p < parts; p++) store(out + p * LANES, acc[p] / mass);
}

/* Attend with rows of as many sequences. Row r's query heads begin at q + r * q_stride; its runs
   (first, last) are number bounds[r] to bounds[r + 1] of runs. out (rows, heads, dim). */
void NAME(attend)(const float *q, long q_stride, long rows, long heads, long kv_heads, long dim,
                  const Stored *keys, const Stored *values, const int64_t *runs,
                  const int64_t *bounds, float scale, float *out)
{
    #pragma omp parallel for schedule(dynamic, 1)
    for (long job = 0; job < rows * heads; job++) {
        const long r = job / heads, h = job % heads, kv = h / (heads / kv_heads);
        attend_head(q + r * q_stride + h * dim, keys + kv * dim, values + kv * dim, kv_heads * dim,
                    dim, runs + 2 * bounds[r], bounds[r + 1] - bounds[r], scale,
                    out + job * dim);
    }
}

/* Up to LANES queries that share keys, one a lane; states go from one block of keys to the next.
   A query sees the keys numbered from its low up to its high, all of them those from first up to
   last. */
typedef struct {
    Numbers query[MAX_DIM / AT_ONCE];
    vf acc[MAX_DIM], highest, mass;
    vi lows, highs;
    int64_t first, last;
} State;

/* Some keys and their values, the first key with this number. */
typedef struct {
    const Stored *keys, *values;
    long stride, value_stride, dim;
    int count;
    int64_t number;
} Seen;

static void weigh(const State *s, const Seen *seen, vf *scores)
{
    for (int j = 0; j < seen->count; j += STEP) {
        vf score[STEP];
        const Stored *key[STEP];
        for (int i = 0; i < STEP; i++) {
            key[i] = seen->keys + (j + i < seen->count ? j + i : seen->count - 1) * seen->stride;
            score[i] = (vf){0};
        }
        for (long d = 0; d < seen->dim; d += AT_ONCE) {
            const Numbers query = s->query[d / AT_ONCE];
            #pragma GCC unroll 16
            for (int i = 0; i < STEP; i++) score[i] = times(score[i], query, key[i] + d);
        }
        memcpy(scores + j, score, sizeof score);
    }
}

static void gather(State *s, const Seen *seen, const vf *weights, vf shrink)
{
    Numbers room[KEYS / AT_ONCE];
    const Numbers *weight = joined(weights, seen->count, room);
    const int steps = (seen->count + AT_ONCE - 1) / AT_ONCE;
    for (long d = 0; d < seen->dim; d += LANES) {
        vf total[LANES];
        for (int i = 0; i < LANES; i++) total[i] = s->acc[d + i] * shrink;
        for (int j = 0; j < steps; j++) {
            const Numbers by = weight[j];
            const Stored *value = seen->values + j * seen->value_stride + d * AT_ONCE;
            #pragma GCC unroll 16
            for (int i = 0; i < LANES; i++) total[i] = times(total[i], by, value + i * AT_ONCE);
        }
        memcpy(s->acc + d, total, sizeof total);
    }
}

static void attend_block(State *s, const Seen *seen)
{
    vf weights[KEYS], top = s->highest, mass = {0};
    const int64_t number = seen->number;
    const int whole = number >= s->first && number + seen->count <= s->last;
    weigh(s, seen, weights);
    for (int j = 0; j < seen->count; j++) {
        const int32_t at = (int32_t)(number + j);
        if (!whole)
            weights[j] = choose((s->lows <= at) & (s->highs > at), weights[j], (vf){0} - INFINITY);
        top = choose(weights[j] > top, weights[j], top);
    }
    const vf base = choose(top == -INFINITY, (vf){0}, top);
    const vf shrink = choose(s->highest == -INFINITY, (vf){0}, exp_of(s->highest - base));
    for (int j = 0; j < seen->count; j++) {
        const vf weight = exp_of(weights[j] - base);
        weights[j] = whole ? weight : choose(weights[j] == -INFINITY, (vf){0}, weight);
        mass += weights[j];
    }
    s->highest = top;
    s->mass = s->mass * shrink + mass;
    gather(s, seen, weights, shrink);
}

/* Let up to STATES * LANES queries of one group of heads pass over all keys together, the next block
   of keys being fetched meanwhile. */
static void attend_group(State *states, int num_states, const Stored *keys, const Stored *values,
                         long stride, long dim, const int64_t *runs, long num_runs)
{
    Stored room[KEYS * MAX_DIM];
    int64_t number = 0;
    for (long run = 0; run < num_runs; run++) {
        for (int64_t first = runs[2 * run]; first < runs[2 * run + 1]; first += KEYS) {
            const int64_t left = runs[2 * run + 1] - first;
            const int count = left < KEYS ? (int)left : KEYS;
            const int coming = left - count < KEYS ? (int)(left - count) : KEYS;
            for (int j = 0; j < coming; j++)
                for (long d = 0; d < dim; d += LANES) {
                    __builtin_prefetch(keys + (first + KEYS + j) * stride + d, 0, 2);
                    __builtin_prefetch(values + (first + KEYS + j) * stride + d, 0, 2);
                }
            if (number >= states[num_states - 1].highs[LANES - 1]) return;
            if (number + count > states->lows[0]) {
                const Stored *both = laid(values + first * stride, stride, dim, count, room);
                const Seen seen = {keys + first * stride, both, stride, laid_stride(stride, dim),
                                   dim, count, number};
                for (State *s = states; s < states + num_states; s++)
                    if (number < s->highs[LANES - 1] && number + count > s->lows[0])
                        attend_block(s, &seen);
            }
            number += count;
        }
    }
}

/* Attend with consecutive rows of one sequence, the first at position start, each to all before it
   and itself, or to the last window of these. Shapes as for narrow_attend. */
void NAME(attend_span)(const float *q, long q_stride, long rows, long heads, long kv_heads,
                       long dim, const Stored *keys, const Stored *values, const int64_t *runs,
                       long num_runs, int64_t start, int64_t window, float scale, float *out)
{
    const long share = heads / kv_heads, queries = rows * share;
    const long per_job = queries > 2 * STATES * LANES ? STATES * LANES : 3 * LANES;
    const long jobs = (queries + per_job - 1) / per_job;
    #pragma omp parallel for schedule(dynamic, 1)
    for (long job = 0; job < jobs * kv_heads; job++) {
        State states[STATES];
        const long kv = job % kv_heads, first = (jobs - 1 - job / kv_heads) * per_job;
        const long count = queries - first < per_job ? queries - first : per_job;
        const int num_states = (int)((count + LANES - 1) / LANES);
        for (long i = 0; i < num_states * LANES; i++) {
            State *s = states + i / LANES;
            const long at = i % LANES, j = first + (i < count ? i : count - 1);
            const float *from = q + j / share * q_stride + (kv * share + j % share) * dim;
            for (long d = 0; d < dim; d++) {
                set(s->query, at, d, from[d] * scale);
                s->acc[d][at] = 0;
            }
            s->highest[at] = -INFINITY;
            s->mass[at] = 0;
            s->highs[at] = (int32_t)(start + j / share + 1);
            s->lows[at] = window && s->highs[at] > window ? s->highs[at] - (int32_t)window : 0;
        }
        for (int n = 0; n < num_states; n++) {
            states[n].first = states[n].lows[LANES - 1];
            states[n].last = states[n].highs[0];
        }
        attend_group(states, num_states, keys + kv * dim, values + kv * dim, kv_heads * dim, dim,
                     runs, num_runs);
        for (long i = 0; i < count; i++) {
            const State *s = states + i / LANES;
            const long at = i % LANES, j = first + i;
            float *to = out + (j / share * heads + kv * share + j % share) * dim;
            for (long d = 0; d < dim; d++) to[d] = s->acc[d][at] / s->mass[at];
        }
    }
}
