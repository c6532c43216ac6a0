/* Products of weights of 4 or 8 bits with any number of rows in fixed point.

   Each group of a row becomes GROUP numbers of 16 bits and a scale. Within a group the product is
   then one of whole numbers, exact in 32 bits, two of them an instruction and lane where float32
   has one; groups are summed in float32. A row's result does not depend on the rows beside it, nor
   on their number: very few rows take fewer instructions to the same whole numbers. Weights lie as in
   narrow.c.
*/
#include <stdlib.h>
#include "target.h"

#ifndef __AVX512VNNI__

int fixed_is_there(void) { return 0; }
void fixed_linear(void) {}
void fixed_gated(void) {}

#else
#include <immintrin.h>

#define PAIRS (GROUP / 2)
#define MIDDLE 8
#define MIDDLE_BYTE 128
#define READ_BOUND 4
#define LARGEST 32639.0f /* its upper byte, rounded, is 127 */
#define QUADS (GROUP / 4)
#define JOBS 8
#define SMALLEST 1e-30f
#define PANEL_BYTES (1 << 19)

typedef struct {
    int16_t *digits;
    float *scales, *sums;
    int32_t *totals;
} Rows;

int fixed_is_there(void) { return 1; }

/* Lay out scratch, which holds rows * k / GROUP * (2 * GROUP + 12) bytes. */
static Rows rows_in(char *scratch, long rows, long k)
{
    const long groups = rows * (k / GROUP);
    Rows to;
    to.digits = (int16_t *)scratch;
    to.scales = (float *)(scratch + 2 * groups * GROUP);
    to.sums = to.scales + groups;
    to.totals = (int32_t *)(to.sums + groups);
    return to;
}

/* Write a group's numbers as their upper bytes, then their lower ones, each in the order in which
   quad_of gives the weights. */
INLINE void split(__m512i p, __m512i q, int bits, int16_t *to)
{
    const __m128i order = bits == 4
        ? _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)
        : _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m128i *at = (__m128i *)to;
    for (int i = 0; i < 2; i++) {
        const __m512i all = i ? q : p;
        const __m512i upper = _mm512_srai_epi32(_mm512_add_epi32(all, _mm512_set1_epi32(128)), 8);
        const __m512i lower = _mm512_sub_epi32(all, _mm512_slli_epi32(upper, 8));
        _mm_storeu_si128(at + i, _mm_shuffle_epi8(_mm512_cvtepi32_epi8(upper), order));
        _mm_storeu_si128(at + 2 + i, _mm_shuffle_epi8(_mm512_cvtepi32_epi8(lower), order));
    }
}

static void fix_row(const float *x, long k, Rows to, long row, int bits, int few)
{
    for (long g = 0, at = row * (k / GROUP); g < k / GROUP; g++, at++) {
        const vf a = load(x + g * GROUP), b = load(x + g * GROUP + LANES);
        const vf c = choose(a < 0, -a, a), d = choose(b < 0, -b, b);
        const float most = _mm512_reduce_max_ps((__m512)choose(c > d, c, d));
        const float factor = most > SMALLEST ? LARGEST / most : 0;
        const __m512i p = _mm512_cvtps_epi32((__m512)(a * factor));
        const __m512i q = _mm512_cvtps_epi32((__m512)(b * factor));
        int16_t *digits = to.digits + at * GROUP;
        if (few) {
            split(p, q, bits, digits);
        } else {
            _mm256_storeu_si256((void *)digits, _mm512_cvtsepi32_epi16(p));
            _mm256_storeu_si256((void *)(digits + LANES), _mm512_cvtsepi32_epi16(q));
        }
        to.scales[at] = most / LARGEST;
        to.sums[at] = _mm512_reduce_add_ps((__m512)(a + b));
        to.totals[at] = _mm512_reduce_add_epi32(_mm512_add_epi32(p, q));
    }
}

/* Bring rows, normed where there is a norm, into fixed point. */
static Rows fix(const float *x, const float *norm, float eps, long rows, long k, int bits,
                char *scratch)
{
    const Rows to = rows_in(scratch, rows, k);
    #pragma omp parallel if (rows > MAX_ROWS)
    {
        float *normed = norm ? malloc(sizeof(float) * k) : NULL;
        #pragma omp for schedule(static)
        for (long r = 0; r < rows; r++) {
            if (norm) norm_row(x + r * k, norm, eps, k, normed);
            fix_row(norm ? normed : x + r * k, k, to, r, bits, rows <= READ_BOUND);
        }
        free(normed);
    }
    return to;
}

/* Weights 2p and 2p + 1 of a group, of each output, side by side; 4-bit ones as 0..15. */
INLINE vi pair_of(const int32_t *group, int bits, int p)
{
    if (bits == 4) {
        vi word = load_words(group + p / 4 * LANES) >> (8 * (p % 4));
        return (word & 15) | ((word << 12) & 0xf0000);
    }
    vi word = load_words(group + p / 2 * LANES);
    word = p % 2 ? word : word << 16;
    return (((word << 8) >> 24) & 0xffff) | ((word >> 24) << 16);
}

/* Four weights of a group, of each output, as bytes without sign. */
INLINE vi quad_of(const int32_t *group, int bits, int q)
{
    if (bits == 4) return (load_words(group + q / 2 * LANES) >> (4 * (q % 2))) & 0x0f0f0f0f;
    return load_words(group + q * LANES) ^ (int32_t)0x80808080;
}

INLINE vf scaled(vi whole, const int32_t *end, int bits, Rows x, long group, vf total)
{
    const vf scale = load(end - 2 * LANES), low = load(end - LANES);
    const vf offset = bits == 4 ? low + scale * MIDDLE : low;
    total += __builtin_convertvector(whole, vf) * (scale * x.scales[group]);
    return total + offset * x.sums[group];
}

/* Two tiles of outputs of very few rows, those two of the next job being fetched meanwhile. */
INLINE void few_block(Rows x, long row, long k, int rows, int bits, const int32_t *const w[2],
                      vf total[MAX_ROWS][2])
{
    const long groups = k / GROUP, words = group_words(bits);
    for (int r = 0; r < rows; r++) total[r][0] = total[r][1] = (vf){0};
    for (long g = 0; g < groups; g++) {
        const long at = row * groups + g;
        vi upper[READ_BOUND][2], lower[READ_BOUND][2];
        for (int t = 0; t < 2; t++)
            for (int i = 0; i < words; i += LANES)
                __builtin_prefetch(w[t] + (g + 2 * groups) * words + i, 0, 2);
        for (int r = 0; r < rows; r++) {
            const int32_t middle = bits == 4 ? MIDDLE : MIDDLE_BYTE;
            upper[r][0] = upper[r][1] = (vi){0};
            lower[r][0] = lower[r][1] = (vi){0} - middle * x.totals[at + r * groups];
        }
        #pragma GCC unroll 8
        for (int q = 0; q < QUADS; q++) {
            const vi a = quad_of(w[0] + g * words, bits, q), b = quad_of(w[1] + g * words, bits, q);
            #pragma GCC unroll 4
            for (int r = 0; r < rows; r++) {
                const char *bytes = (const char *)(x.digits + (at + r * groups) * GROUP) + 4 * q;
                int32_t up, low;
                memcpy(&up, bytes, sizeof up);
                memcpy(&low, bytes + GROUP, sizeof low);
                const __m512i ups = _mm512_set1_epi32(up), lows = _mm512_set1_epi32(low);
                upper[r][0] = (vi)_mm512_dpbusd_epi32((__m512i)upper[r][0], (__m512i)a, ups);
                upper[r][1] = (vi)_mm512_dpbusd_epi32((__m512i)upper[r][1], (__m512i)b, ups);
                lower[r][0] = (vi)_mm512_dpbusd_epi32((__m512i)lower[r][0], (__m512i)a, lows);
                lower[r][1] = (vi)_mm512_dpbusd_epi32((__m512i)lower[r][1], (__m512i)b, lows);
            }
        }
        for (int r = 0; r < rows; r++)
            for (int t = 0; t < 2; t++)
                total[r][t] = scaled((upper[r][t] << 8) + lower[r][t], w[t] + (g + 1) * words, bits,
                                     x, at + r * groups, total[r][t]);
    }
}

/* Two tiles of outputs of a few rows. */
INLINE void block(Rows x, long row, long k, int rows, int bits, const int32_t *const w[2],
                  vf total[MAX_ROWS][2])
{
    const long groups = k / GROUP, words = group_words(bits);
    for (int r = 0; r < rows; r++) total[r][0] = total[r][1] = (vf){0};
    for (long g = 0; g < groups; g++) {
        const long at = row * groups + g;
        vi acc[MAX_ROWS][2];
        for (int r = 0; r < rows; r++)
            acc[r][0] = acc[r][1] =
                (vi){0} - (bits == 4 ? MIDDLE * x.totals[at + r * groups] : 0);
        #pragma GCC unroll 16
        for (int p = 0; p < PAIRS; p++) {
            const vi a = pair_of(w[0] + g * words, bits, p), b = pair_of(w[1] + g * words, bits, p);
            #pragma GCC unroll 8
            for (int r = 0; r < rows; r++) {
                int32_t digits;
                memcpy(&digits, x.digits + (at + r * groups) * GROUP + 2 * p, sizeof digits);
                const __m512i both = _mm512_set1_epi32(digits);
                acc[r][0] = (vi)_mm512_dpwssd_epi32((__m512i)acc[r][0], (__m512i)a, both);
                acc[r][1] = (vi)_mm512_dpwssd_epi32((__m512i)acc[r][1], (__m512i)b, both);
            }
        }
        #pragma GCC unroll 2
        for (int t = 0; t < 2; t++)
            #pragma GCC unroll 8
            for (int r = 0; r < rows; r++)
                total[r][t] = scaled(acc[r][t], w[t] + (g + 1) * words, bits, x, at + r * groups,
                                     total[r][t]);
    }
}

#define CASE(n, bits) if (rows == n) { block(x, row, k, n, bits, w, total); return; }
#define FEW(n, bits) if (rows == n) { few_block(x, row, k, n, bits, w, total); return; }
#define CASES(bits) { CASE(8, bits) CASE(1, bits) CASE(2, bits) CASE(3, bits) CASE(4, bits) \
                      CASE(5, bits) CASE(6, bits) CASE(7, bits) }
#define FEWS(bits) { FEW(1, bits) FEW(2, bits) FEW(3, bits) FEW(4, bits) }

/* Let the compiler make one loop for each number of rows and bits. */
static void product(Rows x, long row, long k, int rows, int bits, int few, const int32_t *const w[2],
                    vf total[MAX_ROWS][2])
{
    if (few) { if (bits == 4) FEWS(4) else FEWS(8) }
    if (bits == 4) CASES(4) else CASES(8)
}

/* Compute all rows of tile pairs; a job is a pair of tiles and a panel of rows that fits a cache. */
static void compute(Rows x, long rows, long k, int bits, const int32_t *w, Target to, int gated)
{
    const long words = k / GROUP * group_words(bits), tiles = to.n / LANES;
    const long pairs = num_pairs(tiles, gated);
    const long panel = (PANEL_BYTES / (2 * k) / MAX_ROWS + 1) * MAX_ROWS;
    const int few = rows <= READ_BOUND, chunk = few ? JOBS : 1;
    #pragma omp parallel for schedule(dynamic, chunk)
    for (long job = 0; job < pairs * ((rows + panel - 1) / panel); job++) {
        const long t = job % pairs, from = job / pairs * panel;
        const long until = from + panel < rows ? from + panel : rows;
        const TilePair at = tile_pair(t, tiles, gated);
        const int32_t *const both[2] = {w + at.first * words, w + at.next * words};
        for (long row = from; row < until; row += MAX_ROWS) {
            const int count = until - row < MAX_ROWS ? (int)(until - row) : MAX_ROWS;
            vf total[MAX_ROWS][2];
            product(x, row, k, count, bits, few, both, total);
            for (int r = 0; r < count; r++) put_pair(to, row + r, at, total[r]);
        }
    }
}

/* out[r] = weight * norm(x[r]) + bias (+ out[r]) */
void fixed_linear(const float *x, const float *norm, float eps, long rows, long n, long k, int bits,
                  const int32_t *w, const float *bias, float *out, int add, char *scratch)
{
    const Rows fixed = fix(x, norm, eps, rows, k, bits, scratch);
    compute(fixed, rows, k, bits, w, (Target){bias, out, n, add}, 0);
}

/* out[r] = silu(gate * norm(x[r])) * (up * norm(x[r])), w being the n outputs of gate, then up's */
void fixed_gated(const float *x, const float *norm, float eps, long rows, long n, long k, int bits,
                 const int32_t *w, float *out, char *scratch)
{
    const Rows fixed = fix(x, norm, eps, rows, k, bits, scratch);
    compute(fixed, rows, k, bits, w, (Target){NULL, out, n, 0}, 1);
}
#endif
