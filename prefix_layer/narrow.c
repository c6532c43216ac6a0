/* Decode steps: products, rotary positions and attention for a few rows at once, in float32.

   Weights are kept in few bits where that loses nothing:
     4 bits   scale * q + offset, q in 0..15, one scale and offset for GROUP weights of an output
     8 bits   the same with q in -127..127
     16 bits  the upper half of a float32 (bfloat16)
   Layout, per tile of LANES outputs, groups one after the other: GROUP * bits / 32 vectors of LANES
   32-bit words, each word holding 32 / bits consecutive weights of one output; then, below 16 bits,
   LANES scales and LANES offsets. What is left of a line of weights behind the last whole group or
   tile is not supported: such layers stay as they are.
*/
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 16
#define GROUP 32
#define MAX_ROWS 8
#define MAX_DIM 128
#define QUERIES 12
#define STATES 8
#define KEYS 64
#define INLINE static inline __attribute__((always_inline))

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));

INLINE vf load(const void *from) { vf v; memcpy(&v, from, sizeof v); return v; }
INLINE vi load_words(const void *from) { vi v; memcpy(&v, from, sizeof v); return v; }
INLINE void store(void *to, vf v) { memcpy(to, &v, sizeof v); }
INLINE vf choose(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }

/* Fold the lanes in halves. */
INLINE float sum(vf v)
{
    float s[LANES];
    memcpy(s, &v, sizeof s);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) s[i] += s[i + half];
    return s[0];
}

INLINE float largest(vf v)
{
    float s[LANES];
    memcpy(s, &v, sizeof s);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) s[i] = s[i + half] > s[i] ? s[i + half] : s[i];
    return s[0];
}

INLINE long group_words(int bits) { return (GROUP * bits / 32 + (bits < 16 ? 2 : 0)) * LANES; }

/* e^x for x <= 0 to float accuracy: 2^n by the exponent bits, the rest by a polynomial (Cephes). */
INLINE vf exp_of(vf x)
{
    x = choose(x < -87.0f, (vf){0} - 87.0f, x);
    vi n = __builtin_convertvector(x * 1.44269504f - 0.5f, vi);
    vf whole = __builtin_convertvector(n, vf);
    vf r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    vf p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * (vf)((n + 127) << 23);
}

INLINE vf decode(vi word, int bits, int j)
{
    if (bits == 16) return (vf)(j ? word & (int32_t)0xffff0000 : word << 16);
    vi q = bits == 4 ? (word >> (4 * j)) & 15 : (word << (24 - 8 * j)) >> 24;
    return __builtin_convertvector(q, vf);
}

INLINE void tile(const float *x, const float *sums, long rows, long k, int bits, const int32_t *w,
                 vf *total)
{
    const int words = GROUP * bits / 32, per_word = 32 / bits;
    const long groups = k / GROUP;
    for (long r = 0; r < rows; r++) total[r] = (vf){0};
    for (long g = 0; g < groups; g++, w += group_words(bits)) {
        vf acc[MAX_ROWS];
        for (long r = 0; r < rows; r++) acc[r] = bits < 16 ? (vf){0} : total[r];
        for (int i = 0; i < words; i++) {
            vi word = load_words(w + i * LANES);
            for (int j = 0; j < per_word; j++) {
                vf value = decode(word, bits, j);
                for (long r = 0; r < rows; r++)
                    acc[r] += value * x[r * k + g * GROUP + i * per_word + j];
            }
        }
        if (bits == 16) {
            for (long r = 0; r < rows; r++) total[r] = acc[r];
            continue;
        }
        vf scale = load(w + words * LANES), offset = load(w + (words + 1) * LANES);
        for (long r = 0; r < rows; r++) total[r] += acc[r] * scale + offset * sums[r * groups + g];
    }
}

#define CASE(n, bits) if (rows <= n) { tile(x, sums, n, k, bits, w, total); return; }
#define CASES(bits) { CASE(1, bits) CASE(2, bits) CASE(3, bits) CASE(4, bits) CASE(5, bits) \
                      CASE(6, bits) CASE(7, bits) CASE(8, bits) }

/* Let the compiler make one loop for each number of rows and bits; x has MAX_ROWS rows. */
static void product(const float *x, const float *sums, long rows, long k, int bits,
                    const int32_t *w, vf *total)
{
    if (bits == 4) CASES(4) else if (bits == 8) CASES(8) else CASES(16)
}

INLINE vf silu(vf v)
{
    vf small = exp_of(choose(v < 0, v, -v));
    return v * choose(v < 0, small, (vf){0} + 1.0f) / (1.0f + small);
}

INLINE void norm_row(const float *x, const float *weight, float eps, long k, float *out)
{
    vf squares = {0};
    for (long i = 0; i < k; i += LANES) squares += load(x + i) * load(x + i);
    const float factor = 1.0f / sqrtf(sum(squares) / (float)k + eps);
    for (long i = 0; i < k; i += LANES) store(out + i, load(weight + i) * (load(x + i) * factor));
}

/* Root-mean-square norm of each row. */
void narrow_norm(const float *x, const float *weight, float eps, long rows, long k, float *out)
{
    #pragma omp parallel for schedule(static)
    for (long r = 0; r < rows; r++) norm_row(x + r * k, weight, eps, k, out + r * k);
}

/* out (rows, n) = silu(x[:, :n]) * x[:, n:] */
void narrow_gate(const float *x, long rows, long n, float *out)
{
    #pragma omp parallel for schedule(static)
    for (long r = 0; r < rows; r++)
        for (long i = 0; i < n; i += LANES)
            store(out + r * n + i, silu(load(x + 2 * r * n + i)) * load(x + (2 * r + 1) * n + i));
}

/* Root-mean-square norm of each row where there is a norm, and the sum of each group of a row. */
static const float *prepare(const float *x, const float *norm, float eps, long rows, long k,
                            float *scratch, float **sums)
{
    *sums = scratch + MAX_ROWS * k;
    if (!norm) {
        if (rows == 1) scratch = (float *)x;
        else memcpy(scratch, x, sizeof(float) * rows * k);
    } else {
        for (long r = 0; r < rows; r++) norm_row(x + r * k, norm, eps, k, scratch + r * k);
    }
    for (long g = 0; g < rows * (k / GROUP); g++)
        (*sums)[g] = sum(load(scratch + g * GROUP) + load(scratch + g * GROUP + LANES));
    return scratch;
}

/* out[r] = weight * norm(x[r]) + bias (+ out[r]); scratch holds MAX_ROWS * (k + k / GROUP) floats. */
void narrow_linear(const float *x, const float *norm, float eps, long rows, long n, long k,
                   int bits, const int32_t *w, const float *bias, float *out, int add,
                   float *scratch)
{
    float *sums;
    const float *ready = prepare(x, norm, eps, rows, k, scratch, &sums);
    const long tile_words = k / GROUP * group_words(bits);
    #pragma omp parallel for schedule(static)
    for (long t = 0; t < n / LANES; t++) {
        vf total[MAX_ROWS];
        product(ready, sums, rows, k, bits, w + t * tile_words, total);
        for (long r = 0; r < rows; r++) {
            float *to = out + r * n + t * LANES;
            if (bias) total[r] += load(bias + t * LANES);
            store(to, add ? total[r] + load(to) : total[r]);
        }
    }
}

/* out[r] = silu(gate * norm(x[r])) * (up * norm(x[r])), w being the n outputs of gate, then up's */
void narrow_gated(const float *x, const float *norm, float eps, long rows, long n, long k,
                  int bits, const int32_t *w, float *out, float *scratch)
{
    float *sums;
    const float *ready = prepare(x, norm, eps, rows, k, scratch, &sums);
    const long tile_words = k / GROUP * group_words(bits);
    #pragma omp parallel for schedule(static)
    for (long t = 0; t < n / LANES; t++) {
        vf g[MAX_ROWS], u[MAX_ROWS];
        product(ready, sums, rows, k, bits, w + t * tile_words, g);
        product(ready, sums, rows, k, bits, w + (n / LANES + t) * tile_words, u);
        for (long r = 0; r < rows; r++) store(out + r * n + t * LANES, silu(g[r]) * u[r]);
    }
}

/* Turn queries and keys in place; copy keys and values to their slots.
   qkv (rows, heads + 2 * kv_heads, dim); cos and sin (rows, dim), both halves alike. */
void narrow_rotate(float *qkv, const float *cos, const float *sin, long rows, long heads,
                   long kv_heads, long dim, const int64_t *slots, float *keys, float *values)
{
    const long half = dim / 2, all = heads + 2 * kv_heads, kv = kv_heads * dim;
    #pragma omp parallel for schedule(static) if (rows > MAX_ROWS)
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
        memcpy(keys + slots[r] * kv, row + heads * dim, sizeof(float) * kv);
        memcpy(values + slots[r] * kv, row + (heads + kv_heads) * dim, sizeof(float) * kv);
    }
}

/* Attend with one head of one row to its runs of slots; softmax as it goes (Milakov & Gimelshein,
   Online normalizer calculation for softmax, 2018). dim is a multiple of LANES, at most MAX_DIM. */
static void attend_head(const float *q, const float *keys, const float *values, long stride,
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
                    product += query[p] * load(keys + (first + i) * stride + p * LANES);
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
                    acc[p] += weight[i] * load(values + (first + i) * stride + p * LANES);
        }
    }
    for (int p = 0; p < parts; p++) store(out + p * LANES, acc[p] / mass);
}

/* Attend with rows of as many sequences. Row r's query heads begin at q + r * q_stride; its runs
   (first, last) are number bounds[r] to bounds[r + 1] of runs. out (rows, heads, dim). */
void narrow_attend(const float *q, long q_stride, long rows, long heads, long kv_heads, long dim,
                   const float *keys, const float *values, const int64_t *runs,
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

/* One block of up to KEYS keys against QUERIES queries that share them; states go from block to
   block. Query i sees the keys numbered from lows[i] up to highs[i]; the block's first is number. */
typedef struct {
    float query[QUERIES][MAX_DIM], acc[QUERIES][MAX_DIM], highest[QUERIES], mass[QUERIES];
    int64_t lows[QUERIES], highs[QUERIES];
} State;

INLINE vf lanes_between(vf v, long low, long high, float other)
{
    const vi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const int32_t from = low < 0 ? 0 : (int32_t)low, to = high < 0 ? 0 : (int32_t)high;
    return choose((lane >= from) & (lane < to), v, (vf){0} + other);
}

static void attend_block(State *s, const vf (*turned)[MAX_DIM], const float *values, long stride,
                         long dim, int count, int64_t number)
{
    vf weights[QUERIES][KEYS / LANES];
    const int parts = (count + LANES - 1) / LANES;
    for (int part = 0; part < parts; part++) {
        vf score[QUERIES];
        for (int i = 0; i < QUERIES; i++) score[i] = (vf){0};
        for (long d = 0; d < dim; d++)
            for (int i = 0; i < QUERIES; i++) score[i] += turned[part][d] * s->query[i][d];
        for (int i = 0; i < QUERIES; i++) weights[i][part] = score[i];
    }
    for (int i = 0; i < QUERIES; i++) {
        const int64_t low = s->lows[i] - number, seen = s->highs[i] - number;
        const int64_t high = seen < count ? seen : count;
        const int whole = low <= 0 && high == parts * LANES;
        vf tops = (vf){0} - INFINITY;
        for (int part = 0; part < parts; part++) {
            vf *w = &weights[i][part];
            if (!whole) *w = lanes_between(*w, low - part * LANES, high - part * LANES, -INFINITY);
            tops = choose(*w > tops, *w, tops);
        }
        const float own = largest(tops), top = own > s->highest[i] ? own : s->highest[i];
        const float base = top == -INFINITY ? 0 : top, shrink = expf(s->highest[i] - base);
        vf mass = {0};
        for (int part = 0; part < parts; part++) {
            vf w = exp_of(weights[i][part] - base);
            if (!whole) w = lanes_between(w, low - part * LANES, high - part * LANES, 0);
            mass += w;
            weights[i][part] = w;
        }
        s->highest[i] = top;
        s->mass[i] = s->mass[i] * shrink + sum(mass);
        for (long p = 0; p < dim; p += LANES) store(s->acc[i] + p, load(s->acc[i] + p) * shrink);
    }
    for (long p = 0; p < dim; p += LANES) {
        vf total[QUERIES];
        for (int i = 0; i < QUERIES; i++) total[i] = load(s->acc[i] + p);
        for (int j = 0; j < count; j++) {
            vf value = load(values + j * stride + p);
            for (int i = 0; i < QUERIES; i++)
                total[i] += value * ((const float *)weights[i])[j];
        }
        for (int i = 0; i < QUERIES; i++) store(s->acc[i] + p, total[i]);
    }
}

/* Let up to STATES * QUERIES queries of one group of heads pass over all keys together. */
static void attend_group(State *states, int num_states, const float *keys, const float *values,
                         long stride, long dim, const int64_t *runs, long num_runs)
{
    vf turned[KEYS / LANES][MAX_DIM];
    int64_t number = 0;
    for (long run = 0; run < num_runs; run++) {
        for (int64_t first = runs[2 * run]; first < runs[2 * run + 1]; first += KEYS) {
            const int64_t left = runs[2 * run + 1] - first;
            const int count = left < KEYS ? (int)left : KEYS;
            int turned_yet = 0;
            for (int n = 0; n < num_states; n++) {
                State *s = states + n;
                if (number >= s->highs[QUERIES - 1] || number + count <= s->lows[0]) continue;
                for (int j = 0; j < KEYS && !turned_yet; j++)
                    for (long d = 0; d < dim; d++)
                        turned[j / LANES][d][j % LANES] =
                            j < count ? keys[(first + j) * stride + d] : 0;
                turned_yet = 1;
                attend_block(s, turned, values + first * stride, stride, dim, count, number);
            }
            number += count;
        }
    }
}

/* Attend with consecutive rows of one sequence, the first at position start, each to all before it
   and itself, or to the last window of these. Shapes as for narrow_attend. */
void narrow_attend_span(const float *q, long q_stride, long rows, long heads, long kv_heads,
                        long dim, const float *keys, const float *values, const int64_t *runs,
                        long num_runs, int64_t start, int64_t window, float scale, float *out)
{
    const long share = heads / kv_heads, queries = rows * share;
    const long per_job = queries > 2 * STATES * QUERIES ? STATES * QUERIES : 3 * QUERIES;
    const long jobs = (queries + per_job - 1) / per_job;
    #pragma omp parallel for schedule(dynamic, 1)
    for (long job = 0; job < jobs * kv_heads; job++) {
        State states[STATES];
        const long kv = job % kv_heads, first = (jobs - 1 - job / kv_heads) * per_job;
        const long count = queries - first < per_job ? queries - first : per_job;
        const int num_states = (int)((count + QUERIES - 1) / QUERIES);
        for (long i = 0; i < num_states * QUERIES; i++) {
            State *s = states + i / QUERIES;
            const long at = i % QUERIES, j = first + (i < count ? i : count - 1);
            const float *from = q + j / share * q_stride + (kv * share + j % share) * dim;
            for (long d = 0; d < dim; d++) { s->query[at][d] = from[d] * scale; s->acc[at][d] = 0; }
            s->highest[at] = -INFINITY;
            s->mass[at] = 0;
            s->highs[at] = start + j / share + 1;
            s->lows[at] = window && s->highs[at] > window ? s->highs[at] - window : 0;
        }
        attend_group(states, num_states, keys + kv * dim, values + kv * dim, kv_heads * dim, dim,
                     runs, num_runs);
        for (long i = 0; i < count; i++) {
            const State *s = states + i / QUERIES;
            const long at = i % QUERIES, j = first + i;
            float *to = out + (j / share * heads + kv * share + j % share) * dim;
            for (long d = 0; d < dim; d++) to[d] = s->acc[at][d] / s->mass[at];
        }
    }
}

static int pack_group(const float *w, int bits, int32_t *to, long lane)
{
    const int per_word = 32 / bits;
    float low = w[0], high = w[0];
    for (int i = 1; i < GROUP; i++) {
        low = w[i] < low ? w[i] : low;
        high = w[i] > high ? w[i] : high;
    }
    const float most = -low > high ? -low : high;
    const float scale = bits == 4 ? (high - low) / 15 : most / 127;
    const float offset = bits == 4 ? low : 0;
    for (int i = 0; i < GROUP; i++) {
        int32_t q = 0;
        if (bits == 16) {
            memcpy(&q, w + i, sizeof q);
            if (q & 0xffff) return 0;
            q = (q >> 16) & 0xffff;
        } else {
            if (scale > 0) q = (int32_t)lrintf((w[i] - offset) / scale);
            if (!(fabsf((float)q * scale + offset - w[i]) <= 1e-6f * most)) return 0;
            q &= (1 << bits) - 1;
        }
        to[i / per_word * LANES + lane] |= (int32_t)((uint32_t)q << (i % per_word * bits));
    }
    if (bits < 16) {
        memcpy(to + GROUP * bits / 32 * LANES + lane, &scale, sizeof scale);
        memcpy(to + (GROUP * bits / 32 + 1) * LANES + lane, &offset, sizeof offset);
    }
    return 1;
}

/* Write weights w (n, k) in so many bits to zeroed memory; 0 when that would change any. */
int narrow_pack(const float *w, long n, long k, int bits, int32_t *out)
{
    int fits = 1;
    #pragma omp parallel for schedule(static)
    for (long row = 0; row < n; row++) {
        int32_t *to = out + row / LANES * (k / GROUP) * group_words(bits);
        for (long g = 0; g < k / GROUP && fits; g++, to += group_words(bits))
            if (!pack_group(w + row * k + g * GROUP, bits, to, row % LANES)) fits = 0;
    }
    return fits;
}
