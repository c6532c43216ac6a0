#include "bytes.h"

#ifdef HAS_BYTES
#include "vectors.h"
#include <string.h>

#define MOST_ROWS 12
#define NARROWED_ROWS 8
#define LIFT 128
#define MOST 127.0f
#define LEAST 1e-30f
#define GROUP_BYTES (GROUP * TILE + 2 * TILE * 4)

typedef __m512i vi;

INLINE vi load_whole(const void *from) { return _mm512_loadu_si512(from); }

/* Add to each sum four products of bytes without and with sign. In assembly, for GCC's builtin moves
   sums from register to register and to the stack: a third of the speed. */
INLINE void add_products(vi *sum, vi lifted, vi weights)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(lifted), "v"(weights));
}

static void narrow_row(const Product *p, long row)
{
    const long groups = p->k / GROUP;
    for (long g = 0; g < groups; g++) {
        const float *x = p->x + row * p->k + g * GROUP;
        const float *smoothing = p->weight.smoothing + g * GROUP;
        uint8_t *digits = p->bytes.digits + row * p->k + g * GROUP;
        vf most = _mm512_setzero_ps();
        for (long i = 0; i < GROUP; i += LANES)
            most = _mm512_max_ps(most, _mm512_abs_ps(load(x + i) * load(smoothing + i)));
        const float largest = _mm512_reduce_max_ps(most);
        const float factor = largest > LEAST ? MOST / largest : 0;
        p->bytes.scales[row * groups + g] = largest / MOST;
        for (long i = 0; i < GROUP; i += LANES) {
            const vi whole = _mm512_cvtps_epi32(load(x + i) * load(smoothing + i) * factor);
            const vi lifted = _mm512_add_epi32(whole, _mm512_set1_epi32(LIFT));
            _mm_storeu_si128((__m128i *)(digits + i), _mm512_cvtepi32_epi8(lifted));
        }
    }
}

static void narrow(const void *job, long number)
{
    const Product *p = job;
    const long first = number * NARROWED_ROWS;
    const long last = first + NARROWED_ROWS < p->rows ? first + NARROWED_ROWS : p->rows;
    for (long row = first; row < last; row++) narrow_row(p, row);
}

/* Multiply a group of some rows by one of weights; what is found is added to (rows, TILE) sums.
   That group of the next tile is fetched meanwhile. */
INLINE void one_group(const int8_t *w, const uint8_t *digits, long k, const float *scales,
                      int rows, float *sums)
{
    const long groups = k / GROUP;
    const int8_t *next = w + groups * GROUP_BYTES;
    const int8_t *of_weights = w + GROUP * TILE, *taken_back = of_weights + 4 * TILE;
    vi acc[MOST_ROWS][2];
    for (int r = 0; r < rows; r++)
        for (int t = 0; t < 2; t++) acc[r][t] = load_whole(taken_back + 4 * LANES * t);
    for (long i = 0; i < GROUP; i += 4) {
        const vi w0 = load_whole(w + i * TILE), w1 = load_whole(w + i * TILE + 4 * LANES);
        __builtin_prefetch(next + i * TILE, 0, 2);
        __builtin_prefetch(next + i * TILE + 4 * LANES, 0, 2);
        #pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, digits + r * k + i, sizeof four);
            add_products(&acc[r][0], _mm512_set1_epi32(four), w0);
            add_products(&acc[r][1], _mm512_set1_epi32(four), w1);
        }
    }
    #pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
        for (int t = 0; t < 2; t++) {
            float *sum = sums + r * TILE + t * LANES;
            const vf scale = load((const float *)of_weights + t * LANES) * scales[r * groups];
            store(sum, load(sum) + _mm512_cvtepi32_ps(acc[r][t]) * scale);
        }
}

/* Compute some rows of one tile. */
INLINE void block(const Product *p, long tile, long row, int rows)
{
    const long groups = p->k / GROUP;
    const int8_t *w = p->weight.tiles + tile * groups * GROUP_BYTES;
    const uint8_t *digits = p->bytes.digits + row * p->k;
    const float *scales = p->bytes.scales + row * groups;
    float sums[MOST_ROWS * TILE];
    for (int r = 0; r < rows; r++) memcpy(sums + r * TILE, p->weight.bias + tile * TILE, TILE * 4);
    for (long g = 0; g < groups; g++) {
        one_group(w + g * GROUP_BYTES, digits + g * GROUP, p->k, scales + g, rows, sums);
        __asm__("" : "+m"(sums)); /* they stay in memory: products need the registers */
    }
    for (int r = 0; r < rows; r++)
        for (int t = 0; t < 2; t++) {
            const long to = (row + r) * p->n + tile * TILE + t * LANES;
            vf v = load(sums + r * TILE + t * LANES);
            if (p->with_gelu) v = gelu(v);
            if (p->add) v += load(p->add + to);
            store(p->out + to, v);
        }
}

static void one_tile(const void *job, long tile)
{
    const Product *p = job;
    const long blocks = (p->rows + MOST_ROWS - 1) / MOST_ROWS;
    for (long i = 0; i < blocks; i++) {
        const long row = p->rows * i / blocks, count = p->rows * (i + 1) / blocks - row;
        switch (count) {
        case 1: block(p, tile, row, 1); break;
        case 2: block(p, tile, row, 2); break;
        case 3: block(p, tile, row, 3); break;
        case 4: block(p, tile, row, 4); break;
        case 5: block(p, tile, row, 5); break;
        case 6: block(p, tile, row, 6); break;
        case 7: block(p, tile, row, 7); break;
        case 8: block(p, tile, row, 8); break;
        case 9: block(p, tile, row, 9); break;
        case 10: block(p, tile, row, 10); break;
        case 11: block(p, tile, row, 11); break;
        default: block(p, tile, row, 12); break;
        }
    }
}

void multiply(Crew *crew, Product product)
{
    share(crew, narrow, &product, (product.rows + NARROWED_ROWS - 1) / NARROWED_ROWS);
    share(crew, one_tile, &product, product.n / TILE);
}
#endif
