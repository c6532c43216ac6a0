/* All decoder layers of a decode step in one call, so that nothing waits for Python between them.

   A step of one sequence has some 150 loops of a few microseconds; their threads find the next one
   before they go to sleep. Each loop is the one that a layer alone would call.
*/
#include "layers.h"

enum { NARROW, FIXED, HALF };

typedef struct {
    const int32_t *words;
    const float *bias;
    int64_t outputs, inputs;
    int32_t bits, loops;
} Product;

typedef struct {
    const float *first_norm, *second_norm;
    float first_eps, second_eps;
    Product qkv, out, gate, down;
    void *keys, *values;
    int64_t heads, kv_heads, dim;
    float scale;
    int32_t half; /* keys and values */
} Layer;

static void linear(const Product *p, const float *x, const float *norm, float eps, long rows,
                   float *to, int add, void *scratch)
{
    if (p->loops == FIXED)
        fixed_linear(x, norm, eps, rows, p->outputs, p->inputs, p->bits, p->words, p->bias, to, add,
                     scratch);
    else if (p->loops == HALF)
        half_linear(x, norm, eps, rows, p->outputs, p->inputs, p->bits, p->words, p->bias, to, add,
                    scratch);
    else
        narrow_linear(x, norm, eps, rows, p->outputs, p->inputs, p->bits, p->words, p->bias, to,
                      add, scratch);
}

static void gated(const Product *p, const float *x, const float *norm, float eps, long rows,
                  float *to, void *scratch)
{
    if (p->loops == FIXED)
        fixed_gated(x, norm, eps, rows, p->outputs / 2, p->inputs, p->bits, p->words, to, scratch);
    else if (p->loops == HALF)
        half_gated(x, norm, eps, rows, p->outputs / 2, p->inputs, p->bits, p->words, to, scratch);
    else
        narrow_gated(x, norm, eps, rows, p->outputs / 2, p->inputs, p->bits, p->words, to, scratch);
}

static void attend(const Layer *l, float *wide, long rows, const float *cos, const float *sin,
                   const int64_t *slots, const int64_t *runs, const int64_t *bounds, float *to)
{
    if (l->half) {
        half_rotate(wide, cos, sin, rows, l->heads, l->kv_heads, l->dim, slots, l->keys, l->values);
        half_attend(wide, l->qkv.outputs, rows, l->heads, l->kv_heads, l->dim, l->keys, l->values,
                    runs, bounds, l->scale, to);
    } else {
        narrow_rotate(wide, cos, sin, rows, l->heads, l->kv_heads, l->dim, slots, l->keys, l->values);
        narrow_attend(wide, l->qkv.outputs, rows, l->heads, l->kv_heads, l->dim, l->keys, l->values,
                      runs, bounds, l->scale, to);
    }
}

/* Send rows x (rows, hidden), each the one row of its sequence, through all layers in place.
   cos, sin (rows, dim); runs and bounds as for narrow_attend; wide has room for the widest rows
   between two products, narrow for attended ones. */
void layers_step(const Layer *layers, long num_layers, float *x, long rows, const float *cos,
                 const float *sin, const int64_t *slots, const int64_t *runs, const int64_t *bounds,
                 float *wide, float *narrow, void *scratch)
{
    for (const Layer *l = layers; l < layers + num_layers; l++) {
        linear(&l->qkv, x, l->first_norm, l->first_eps, rows, wide, 0, scratch);
        attend(l, wide, rows, cos, sin, slots, runs, bounds, narrow);
        linear(&l->out, narrow, NULL, 0, rows, x, 1, scratch);
        gated(&l->gate, x, l->second_norm, l->second_eps, rows, wide, scratch);
        linear(&l->down, wide, NULL, 0, rows, x, 1, scratch);
    }
}
