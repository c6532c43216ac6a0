/* Layers of a BERT encoder, one above the other. */
#ifndef LAYERS_H
#define LAYERS_H

#include "bytes.h"

typedef struct {
    Weight qkv, out, up, down;
    const float *mid_weight, *mid_bias, *end_weight, *end_bias;
} Layer;

typedef struct {
    const Layer *layers;
    long count, hidden, heads, inner;
    float eps;
} Stack;

/* Pass rows x (rows, hidden) through the layers, in place; texts lie one behind the other, `starts`
   is where each begins, and the number of rows. Returns 0 when that was done. */
int pass_through(Crew *crew, const Stack *stack, float *x, long rows, const long *starts,
                 long num_texts);

#endif
