/* Where a product goes: to rows of n outputs, added to what is there or not. */
#ifndef TARGET_H
#define TARGET_H
#include "vectors.h"

typedef struct {
    const float *bias;
    float *out;
    long n;
    int add;
} Target;

INLINE void put(Target to, long row, long tile, vf value)
{
    float *at = to.out + row * to.n + tile * LANES;
    if (to.bias) value += load(to.bias + tile * LANES);
    store(at, to.add ? value + load(at) : value);
}

/* Two tiles computed together: neighbours, or, for gates, a tile of the first half and its like of the
   second. The last of an odd number is its own neighbour. */
typedef struct {
    long first, next;
    int gated;
} TilePair;

INLINE TilePair tile_pair(long number, long tiles, int gated)
{
    if (gated) return (TilePair){number, tiles + number, gated};
    const long first = 2 * number;
    return (TilePair){first, first + 1 < tiles ? first + 1 : first, gated};
}

INLINE long num_pairs(long tiles, int gated) { return gated ? tiles : (tiles + 1) / 2; }

INLINE void put_pair(Target to, long row, TilePair at, const vf total[2])
{
    put(to, row, at.first, at.gated ? silu(total[0]) * total[1] : total[0]);
    if (!at.gated && at.next != at.first) put(to, row, at.next, total[1]);
}

#endif
