/* Layers of a BERT encoder on rows of tokens: products in whole numbers, everything else in float32.

   The rows of all texts lie one behind the other.
*/
#include "layers.h"

#ifdef HAS_BYTES
#include "vectors.h"
#include <stdlib.h>

#define NORM_ROWS 8
#define QUERIES 4
#define HELPED_ROWS 12 /* fewer are multiplied before a helper wakes */

typedef struct {
    long rows, hidden, heads, inner, num_texts;
    const long *starts; /* of each text, and the number of rows */
    float eps;
    float *x, *qkv, *attended, *sum, *grown;
    Bytes bytes;
} Work;

/* Attend with up to QUERIES tokens of a text; keys are (size, padded), scores room for each. */
INLINE void attend(const Work *w, long first, long length, long query, int queries, long head,
                   const float *keys, long padded, float *scores)
{
    const long size = w->hidden / w->heads, stride = 3 * w->hidden;
    const float *q = w->qkv + (first + query) * stride + head * size;
    const float *v = w->qkv + first * stride + 2 * w->hidden + head * size;
    const float scale = 1.0f / sqrtf((float)size);
    float total[QUERIES];
    for (long j = 0; j < padded; j += LANES) {
        vf s[QUERIES];
        for (int i = 0; i < queries; i++) s[i] = _mm512_setzero_ps();
        for (long d = 0; d < size; d++)
            for (int i = 0; i < queries; i++) s[i] += q[i * stride + d] * load(keys + d * padded + j);
        for (int i = 0; i < queries; i++) store(scores + i * padded + j, s[i] * scale);
    }
    for (int i = 0; i < queries; i++) {
        float *row = scores + i * padded;
        for (long j = length; j < padded; j++) row[j] = -INFINITY;
        vf most = load(row), sum = _mm512_setzero_ps();
        for (long j = LANES; j < padded; j += LANES) most = _mm512_max_ps(most, load(row + j));
        const float highest = _mm512_reduce_max_ps(most);
        for (long j = 0; j < padded; j += LANES) {
            const vf e = exp_of(load(row + j) - highest);
            store(row + j, e);
            sum += e;
        }
        total[i] = _mm512_reduce_add_ps(sum);
    }
    for (long d = 0; d < size; d += LANES) {
        vf found[QUERIES];
        for (int i = 0; i < queries; i++) found[i] = _mm512_setzero_ps();
        for (long j = 0; j < length; j++)
            for (int i = 0; i < queries; i++)
                found[i] += scores[i * padded + j] * load(v + j * stride + d);
        for (int i = 0; i < queries; i++)
            store(w->attended + (first + query + i) * w->hidden + head * size + d, found[i] / total[i]);
    }
}

static void one_head(const void *job, long number)
{
    const Work *w = job;
    const long text = number / w->heads, head = number % w->heads;
    const long first = w->starts[text], length = w->starts[text + 1] - first;
    const long size = w->hidden / w->heads, stride = 3 * w->hidden;
    const long padded = (length + LANES - 1) / LANES * LANES;
    const float *k = w->qkv + first * stride + w->hidden + head * size;
    float keys[size * padded], scores[QUERIES * padded];
    for (long d = 0; d < size; d++)
        for (long j = 0; j < padded; j++) keys[d * padded + j] = j < length ? k[j * stride + d] : 0;
    long query = 0;
    for (; query + QUERIES <= length; query += QUERIES)
        attend(w, first, length, query, QUERIES, head, keys, padded, scores);
    for (; query < length; query++) attend(w, first, length, query, 1, head, keys, padded, scores);
}

typedef struct {
    const Work *work;
    const float *weight, *bias;
} Norm;

static void one_norm(const void *job, long number)
{
    const Norm *norm = job;
    const Work *w = norm->work;
    const long hidden = w->hidden, first = number * NORM_ROWS;
    const long last = first + NORM_ROWS < w->rows ? first + NORM_ROWS : w->rows;
    for (long row = first; row < last; row++) {
        const float *from = w->sum + row * hidden;
        vf sum = _mm512_setzero_ps(), squares = _mm512_setzero_ps();
        for (long i = 0; i < hidden; i += LANES) sum += load(from + i);
        const float mean = _mm512_reduce_add_ps(sum) / (float)hidden;
        for (long i = 0; i < hidden; i += LANES) squares += (load(from + i) - mean) * (load(from + i) - mean);
        const float factor = 1.0f / sqrtf(_mm512_reduce_add_ps(squares) / (float)hidden + w->eps);
        for (long i = 0; i < hidden; i += LANES) {
            const vf v = (load(from + i) - mean) * factor * load(norm->weight + i) + load(norm->bias + i);
            store(w->x + row * hidden + i, v);
        }
    }
}

static void normalise(Crew *crew, const Work *work, const float *weight, const float *bias)
{
    const Norm norm = {work, weight, bias};
    share(crew, one_norm, &norm, (work->rows + NORM_ROWS - 1) / NORM_ROWS);
}

static void apply(Crew *crew, const Work *w, const Layer *layer)
{
    const long rows = w->rows, hidden = w->hidden, inner = w->inner;
    multiply(crew, (Product){layer->qkv, hidden, 3 * hidden, rows, w->x, w->bytes, w->qkv});
    share(crew, one_head, w, w->num_texts * w->heads);
    multiply(crew, (Product){layer->out, hidden, hidden, rows, w->attended, w->bytes, w->sum,
                             .add = w->x});
    normalise(crew, w, layer->mid_weight, layer->mid_bias);
    multiply(crew, (Product){layer->up, hidden, inner, rows, w->x, w->bytes, w->grown,
                             .with_gelu = 1});
    multiply(crew, (Product){layer->down, inner, hidden, rows, w->grown, w->bytes, w->sum,
                             .add = w->x});
    normalise(crew, w, layer->end_weight, layer->end_bias);
}

int pass_through(Crew *crew, const Stack *stack, float *x, long rows, const long *starts,
                 long num_texts)
{
    const long hidden = stack->hidden, inner = stack->inner;
    Work w = {.rows = rows, .hidden = hidden, .heads = stack->heads, .inner = inner,
              .num_texts = num_texts, .starts = starts, .eps = stack->eps, .x = x};
    const long widest = hidden > inner ? hidden : inner;
    const long floats = rows * (5 * hidden + inner + widest / GROUP);
    w.qkv = aligned_alloc(64, (floats * 4 + rows * widest + 63) / 64 * 64);
    if (!w.qkv) return 1;
    w.attended = w.qkv + rows * 3 * hidden;
    w.sum = w.attended + rows * hidden;
    w.grown = w.sum + rows * hidden;
    w.bytes.scales = w.grown + rows * inner;
    w.bytes.digits = (uint8_t *)(w.qkv + floats);
    for (long i = 0; i < stack->count; i++) apply(crew, &w, stack->layers + i);
    free(w.qkv);
    return 0;
}

/* Pass rows through layers, in place; 0 when that was done. */
int encoder_apply(const Stack *stack, float *x, long rows, const long *starts, long num_texts)
{
    Crew *crew = gather();
    const int failed = pass_through(crew, stack, x, rows, starts, num_texts);
    dismiss(crew);
    return failed;
}

/* Multiply float rows (rows, k) by a weight (n, k) of whole groups and tiles; 0 when done. */
int encoder_product(const float *x, long rows, const Weight *weight, long k, long n, float *out)
{
    const long floats = rows * (k / GROUP);
    float *scales = aligned_alloc(64, (floats * 4 + rows * k + 63) / 64 * 64);
    if (!scales) return 1;
    const Bytes bytes = {(uint8_t *)(scales + floats), scales};
    Crew *crew = rows >= HELPED_ROWS ? gather() : NULL;
    multiply(crew, (Product){*weight, k, n, rows, x, bytes, out});
    dismiss(crew);
    free(scales);
    return 0;
}

int encoder_is_there(void) { return 1; }

#else

int encoder_is_there(void) { return 0; }
int encoder_apply(void) { return 1; }
int encoder_product(void) { return 1; }

#endif
