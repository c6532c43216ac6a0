/* What a joint encoder does with pairs of texts whose tokens were read alone: hold them against each
   other, pass them through its layers together, and score what comes out.
*/
#include "layers.h"

#ifdef HAS_BYTES
#include "vectors.h"
#include <stdlib.h>
#include <string.h>

#define SHARPNESS 20.0f
#define LEAST_NORM 1e-12f
#define HALVES 2 /* faced rows begin with differences and products, mixed ones with sums and differences */

typedef struct {
    const uint16_t *states; /* (tokens, hidden), the upper halves of floats */
    const int *ids;
    long length;
} Text;

typedef struct {
    Weight align, doubts, mix, out;
    const float *marks; /* (4, hidden): in the first text or the second, held by both or not */
    long faced, found, mixed, scored; /* widths, filled up: of align's and mix's input, of doubts
                                         and out */
} Joint;

typedef struct {
    const Joint *joint;
    const Text *texts; /* two of each pair */
    const long *starts; /* of each pair's rows, and their number */
    long hidden;
    float *states, *marked, *unit, *faced, *cosines; /* of rows; cosines rows * longest */
    long longest;
    float *mixed; /* a row of each pair */
    const float *x, *doubts;
} Pairs;

static float dot(const float *one, const float *other, long size)
{
    vf sum = _mm512_setzero_ps();
    for (long i = 0; i < size; i += LANES) sum += load(one + i) * load(other + i);
    return _mm512_reduce_add_ps(sum);
}

static void widen(const Text *text, float *to, long hidden)
{
    for (long i = 0; i < text->length * hidden; i += LANES) {
        const __m256i half = _mm256_loadu_si256((const void *)(text->states + i));
        store(to + i, (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
    }
}

static int holds(const Text *text, int id)
{
    for (long i = 0; i < text->length; i++)
        if (text->ids[i] == id) return 1;
    return 0;
}

/* Say of each token of a text which text it stands in, and whether the other holds it too. */
static void mark(const Pairs *p, const Text *text, const Text *other, int place, long row)
{
    for (long i = 0; i < text->length; i++, row++) {
        const float *marks = p->joint->marks + (2 * place + holds(other, text->ids[i])) * p->hidden;
        for (long d = 0; d < p->hidden; d += LANES)
            store(p->marked + row * p->hidden + d, load(p->states + row * p->hidden + d) + load(marks + d));
    }
}

/* Take the centre of all rows from each, and make it one long. */
static void centre(const Pairs *p, long first, long count)
{
    const long hidden = p->hidden;
    const float *states = p->states + first * hidden;
    float *unit = p->unit + first * hidden;
    for (long d = 0; d < hidden; d += LANES) {
        vf sum = _mm512_setzero_ps();
        for (long i = 0; i < count; i++) sum += load(states + i * hidden + d);
        const vf mean = sum / (float)count;
        for (long i = 0; i < count; i++) store(unit + i * hidden + d, load(states + i * hidden + d) - mean);
    }
    for (long i = 0; i < count; i++) {
        float *row = unit + i * hidden;
        const float norm = sqrtf(dot(row, row, hidden)), length = norm > LEAST_NORM ? norm : LEAST_NORM;
        for (long d = 0; d < hidden; d += LANES) store(row + d, load(row + d) / length);
    }
}

/* Write how a token differs from the other text's tokens like it, its product with them, and the
   highest cosine, which is returned. Cosines lie `step` apart. */
static float face_token(const Pairs *p, long row, long other, long count, const float *cosines,
                        long step)
{
    const long hidden = p->hidden;
    const float *state = p->states + row * hidden, *others = p->states + other * hidden;
    float *to = p->faced + row * p->joint->faced;
    float best = cosines[0], total = 0, weights[count];
    for (long j = 1; j < count; j++) best = cosines[j * step] > best ? cosines[j * step] : best;
    for (long j = 0; j < count; j++) {
        weights[j] = expf(SHARPNESS * (cosines[j * step] - best));
        total += weights[j];
    }
    for (long j = 0; j < count; j++) weights[j] /= total;
    for (long d = 0; d < hidden; d += LANES) {
        vf like = _mm512_setzero_ps();
        for (long j = 0; j < count; j++) like += weights[j] * load(others + j * hidden + d);
        store(to + d, load(state + d) - like);
        store(to + hidden + d, load(state + d) * like);
    }
    memset(to + HALVES * hidden, 0, (p->joint->faced - HALVES * hidden) * sizeof *to);
    to[HALVES * hidden] = best;
    return best;
}

/* Note the least and the mean of the highest cosines of both texts, the lesser first. */
static void note(float *matched, const float *least, const float *mean)
{
    const int swap_least = least[1] < least[0], swap_mean = mean[1] < mean[0];
    matched[0] = least[swap_least];
    matched[1] = least[!swap_least];
    matched[2] = mean[swap_mean];
    matched[3] = mean[!swap_mean];
}

static void one_face(const void *job, long number)
{
    const Pairs *p = job;
    const Text *one = p->texts + 2 * number, *other = one + 1;
    const long first = p->starts[number], second = first + one->length, hidden = p->hidden;
    float *cosines = p->cosines + first * p->longest;
    float least[2] = {INFINITY, INFINITY}, mean[2] = {0, 0};
    widen(one, p->states + first * hidden, hidden);
    widen(other, p->states + second * hidden, hidden);
    mark(p, one, other, 0, first);
    mark(p, other, one, 1, second);
    centre(p, first, one->length + other->length);
    for (long i = 0; i < one->length; i++)
        for (long j = 0; j < other->length; j++)
            cosines[i * other->length + j] =
                dot(p->unit + (first + i) * hidden, p->unit + (second + j) * hidden, hidden);
    for (long i = 0; i < one->length; i++) {
        const float best = face_token(p, first + i, second, other->length, cosines + i * other->length, 1);
        least[0] = best < least[0] ? best : least[0];
        mean[0] += best / (float)one->length;
    }
    for (long j = 0; j < other->length; j++) {
        const float best = face_token(p, second + j, first, one->length, cosines + j, other->length);
        least[1] = best < least[1] ? best : least[1];
        mean[1] += best / (float)other->length;
    }
    note(p->mixed + number * p->joint->mixed + HALVES * hidden + p->joint->found, least, mean);
}

/* Lay out what a pair is scored by, beside what `note` wrote: its texts' first tokens, and the
   highest of each doubt. */
static void one_mix(const void *job, long number)
{
    const Pairs *p = job;
    const long hidden = p->hidden, found = p->joint->found, last = p->starts[number + 1];
    const float *one = p->x + p->starts[number] * hidden;
    const float *other = one + p->texts[2 * number].length * hidden;
    float *to = p->mixed + number * p->joint->mixed;
    for (long d = 0; d < hidden; d += LANES) {
        store(to + d, load(one + d) + load(other + d));
        store(to + hidden + d, _mm512_abs_ps(load(one + d) - load(other + d)));
    }
    for (long d = 0; d < found; d += LANES) {
        vf most = load(p->doubts + p->starts[number] * found + d);
        for (long row = p->starts[number] + 1; row < last; row++)
            most = _mm512_max_ps(most, load(p->doubts + row * found + d));
        store(to + HALVES * hidden + d, most);
    }
}

static int score(const Joint *joint, const Stack *stack, Pairs *p, long count, Bytes bytes,
                 float *doubts, float *grown, float *scored)
{
    const long rows = p->starts[count], hidden = p->hidden;
    float *x = p->unit; /* no longer wanted once tokens are faced */
    Crew *crew = gather();
    share(crew, one_face, p, count);
    multiply(crew, (Product){joint->align, joint->faced, hidden, rows, p->faced, bytes, x,
                             .add = p->marked});
    const int failed = pass_through(crew, stack, x, rows, p->starts, count);
    multiply(crew, (Product){joint->doubts, hidden, joint->found, rows, x, bytes, doubts});
    p->x = x;
    p->doubts = doubts;
    share(crew, one_mix, p, count);
    multiply(crew, (Product){joint->mix, joint->mixed, hidden, count, p->mixed, bytes, grown,
                             .with_gelu = 1});
    multiply(crew, (Product){joint->out, hidden, joint->scored, count, grown, bytes, scored});
    dismiss(crew);
    return failed;
}

/* Score pairs of texts; 0 when that was done. */
int joint_score(const Joint *joint, const Stack *stack, const Text *texts, long count, float *scores)
{
    long starts[count + 1], longest = 0;
    starts[0] = 0;
    for (long i = 0; i < count; i++) {
        const long one = texts[2 * i].length, other = texts[2 * i + 1].length;
        starts[i + 1] = starts[i] + one + other;
        longest = one > longest ? one : longest;
        longest = other > longest ? other : longest;
    }
    const long rows = starts[count], hidden = stack->hidden;
    const long widest = joint->faced > joint->mixed ? joint->faced : joint->mixed;
    const long of_rows = 3 * hidden + joint->faced + longest + joint->found + widest / GROUP;
    const long floats = rows * of_rows + count * (joint->mixed + hidden + joint->scored);
    float *room = aligned_alloc(64, (floats * 4 + rows * widest + 63) / 64 * 64);
    if (!room) return 1;
    Pairs p = {.joint = joint, .texts = texts, .starts = starts, .hidden = hidden, .longest = longest};
    p.states = room;
    p.marked = p.states + rows * hidden;
    p.unit = p.marked + rows * hidden;
    p.faced = p.unit + rows * hidden;
    p.cosines = p.faced + rows * joint->faced;
    float *doubts = p.cosines + rows * longest;
    p.mixed = doubts + rows * joint->found;
    float *grown = p.mixed + count * joint->mixed, *scored = grown + count * hidden;
    const Bytes bytes = {(uint8_t *)(room + floats), scored + count * joint->scored};
    memset(p.mixed, 0, count * joint->mixed * sizeof *p.mixed);
    const int failed = score(joint, stack, &p, count, bytes, doubts, grown, scored);
    for (long i = 0; i < count; i++) scores[i] = scored[i * joint->scored];
    free(room);
    return failed;
}

#else

int joint_score(void) { return 1; }

#endif
