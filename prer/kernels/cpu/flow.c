/* The blocks of a level in training on a CPU: the same as prer/kernels/blocks.py, with one call in each direction.

S seeds, K blocks, D = la + lb dimensions, H hidden, V vector of a class, B samples, T panels of P samples.

Internally, a matrix of features by samples is cut into panels [T, rows, P]. A panel suits the right side of a product:
contiguous, a few registers wide, small enough for the L1 cache. Columns beyond B are cleared before rows are summed.
NaN always propagates, so that diverging training is noticed: comparisons are written so that they keep it. */

#include <math.h>
#include <string.h>

#include "products.h"

/* The compiler of this file: another one may round differently. */
#ifdef __clang__
const char *const compiler = __VERSION__;
#else
const char *const compiler = "GCC " __VERSION__;
#endif

typedef struct {
    int64_t S, K, la, lb, H, V, B, bounded;
    float eps;
} Sizes;

/* Panels of a batch; rows of each saved for the backward pass, by seed and block: normed [D], h [H], out [2 lb]. */
INLINE int64_t panels(const Sizes *n) { return (n->B + P - 1) / P; }
INLINE int64_t rows_kept(const Sizes *n) { return n->la + n->H + 3 * n->lb; }

int64_t kept(const Sizes *n) { return n->S * n->K * panels(n) * rows_kept(n) * P; }
int64_t scratch(const Sizes *n) {
    int64_t rows = 2 * n->la + 6 * n->lb + 2 * n->H + 2 * n->V + 1 + P;
    return (panels(n) * rows + n->la + n->H + n->V) * P;
}

/* Number of columns of panel t that hold a sample. */
INLINE int64_t filled(int64_t B, int64_t t) { return B - t * P < P ? B - t * P : P; }

INLINE void clear_beyond(int64_t B, int64_t t, int64_t rows, float *x) {
    if (filled(B, t) < P)
        for (int64_t r = 0; r < rows; r++) memset(x + r * P + filled(B, t), 0, 4 * (P - filled(B, t)));
}

/* -- matrix products ------------------------------------------------------------------------------------------------ */

/* The transpose of panels [T, N, P], itself in panels of columns [ceil(N / P), T * P, P]. */
static void turn(int64_t T, int64_t N, const float *restrict from, float *restrict to) {
    for (int64_t o = 0; o < N; o += P)
        for (int64_t t = 0; t < T; t++, to += P * P)
            for (int64_t r = 0; r < P; r++)
                for (int64_t j = 0; j < P; j++) to[j * P + r] = o + r < N ? from[(t * N + o + r) * P + j] : 0;
}

/* The gradient of weights [M, N]: panels of inputs, `stride` apart, times transposed panels of output gradients. */
static void gradient(int64_t B, int64_t M, const float *in, int64_t stride, int64_t N, const float *turned,
                     float *column, float *g) {
    for (int64_t o = 0; o < N; o += P) {
        memset(column, 0, 4 * M * P);
        for (int64_t t = 0; t * P < B; t++, turned += P * P)
            product(M, filled(B, t), in + t * stride, P, 1, turned, P, 0, column);
        for (int64_t m = 0; m < M; m++) memcpy(g + m * N + o, column + m * P, 4 * filled(N, o / P));
    }
}

/* -- rows ------------------------------------------------------------------------------------------------------------ */

/* Copy rows of B samples into panels (cut), and back (join). */
static void cut(int64_t T, int64_t B, int64_t rows, const float *from, float *to) {
    for (int64_t t = 0; t < T; t++)
        for (int64_t r = 0; r < rows; r++, to += P) {
            memcpy(to, from + r * B + t * P, 4 * filled(B, t));
            clear_beyond(B, t, 1, to);
        }
}

static void join(int64_t T, int64_t B, int64_t rows, const float *from, float *to) {
    for (int64_t t = 0; t < T; t++)
        for (int64_t r = 0; r < rows; r++, from += P)
            memcpy(to + r * B + t * P, from, 4 * filled(B, t));
}

/* Sum in an order that is the same on every processor with this vector width. */
INLINE float total(float *sums) {
    for (int w = P / 2; w; w /= 2)
        for (int j = 0; j < w; j++) sums[j] += sums[j + w];
    return sums[0];
}

INLINE float row_sum(int64_t T, const float *row, int64_t stride) {
    float sums[P] = {0};
    for (int64_t t = 0; t < T; t++)
        for (int j = 0; j < P; j++) sums[j] += row[t * stride + j];
    return total(sums);
}

/* Written with vectors: libm and compilers do conditions and conversions to integers one number at a time. */
INLINE vec either(ivec first, vec a, vec b) { return (vec)((first & (ivec)a) | (~first & (ivec)b)); }

INLINE vec size_of(vec x) { return (vec)((ivec)x & 0x7fffffff); }

/* e^-x for x >= 0, with a relative error of about 1e-7. */
INLINE vec decayed(vec x) {
    x = either(x > 87, (vec){0} + 87, x);
    ivec n = __builtin_convertvector(x * 1.44269504f + 0.5f, ivec);
    vec r = __builtin_convertvector(n, vec) * 0.693147181f - x, p = r * (1.f / 720) + 1.f / 120;
    p = p * r + 1.f / 24, p = p * r + 1.f / 6, p = p * r + 0.5f, p = p * r + 1, p = p * r + 1;
    return p * (vec)((127 - (uvec)n) << 23);
}

/* -- forward --------------------------------------------------------------------------------------------------------- */

/* Normalise every row to mean 0 and variance 1, up to eps. */
static void normalise(const Sizes *n, int64_t T, int64_t stride, float *x, float *normed, float *mean, float *var,
                      float *rstd) {
    int64_t D = n->la + n->lb;
    for (int64_t d = 0; d < D; d++) {
        float *from = x + d * P, *to = normed + d * P, squares[P] = {0};
        clear_beyond(n->B, T - 1, 1, from + (T - 1) * D * P);
        mean[d] = row_sum(T, from, D * P) / n->B;
        for (int64_t t = 0; t < T; t++) {
            for (int j = 0; j < P; j++) to[t * stride + j] = from[t * D * P + j] - mean[d];
            clear_beyond(n->B, t, 1, to + t * stride);
            for (int j = 0; j < P; j++) squares[j] += to[t * stride + j] * to[t * stride + j];
        }
        var[d] = total(squares) / (n->B - 1);
        rstd[d] = 1 / sqrtf(var[d] + n->eps);
        for (int64_t t = 0; t < T; t++)
            for (int j = 0; j < P; j++) to[t * stride + j] *= rstd[d];
    }
}

/* Scale and shift b, and permute all rows. s and shift are overwritten with what the backward pass needs: the derivative
of log(scale) with respect to s, and the scale. */
static void couple(const Sizes *n, const float *normed, float *restrict out, const int64_t *back, float *x,
                   float *restrict log_det) {
    /* log sigmoid(t) = min(t, 0) - log(1 + e^-|t|): one logarithm of the product over many rows. */
    float low[P] = {0}, high[P];
    for (int j = 0; j < P; j++) high[j] = 1;
    for (int64_t r = 0; r < n->la; r++) memcpy(x + back[r] * P, normed + r * P, 4 * P);
    for (int64_t r = 0; r < n->lb; r++) {
        float *s_of = out + r * P, *shift_of = s_of + n->lb * P, *to = x + back[n->la + r] * P;
        for (int j = 0; j < P; j += LANES) {
            vec s = AT(s_of + j), t = s + 2, slope = (vec){0} + 1;
            if (n->bounded) { /* 3 tanh(s / 3) + 2 = 6 sigmoid(2 s / 3) - 1 */
                vec q = decayed(size_of(s) * (2.f / 3)), e = either(s < 0, q, (vec){0} + 1) / (1 + q);
                t = 6 * e - 1, slope = 4 * e * (1 - e);
            }
            vec q = decayed(size_of(t)), each = 1 / (1 + q), scale = either(t < 0, q * each, each);
            AT(low + j) += either(t < 0, t, (vec){0});
            AT(high + j) *= 1 + q;
            AT(to + j) = AT(normed + (n->la + r) * P + j) * scale + AT(shift_of + j);
            AT(s_of + j) = slope * either(t < 0, each, q * each);
            AT(shift_of + j) = scale;
        }
        if (r % 64 == 63 || r + 1 == n->lb) /* a product of 64 is at most 2^64 */
            for (int j = 0; j < P; j++) log_det[j] += low[j] - logf(high[j]), low[j] = 0, high[j] = 1;
    }
}

void forward(const Sizes *n, const float *u, const float *v, const float *weight_in, const float *weight_condition,
             const float *bias_in, const float *weight_out, const float *bias_out, const int64_t *back, float *u_out,
             float *log_det, float *mean, float *var, float *rstd, float *keep, float *room) {
    int64_t la = n->la, lb = n->lb, D = la + lb, H = n->H, V = n->V, B = n->B, T = panels(n);
    int64_t stride = rows_kept(n) * P;
    float *x = room, *vs = x + T * D * P, *sums = vs + T * V * P;
    for (int64_t s = 0; s < n->S; s++) {
        double norms = 0;
        cut(T, B, D, u + s * D * B, x);
        cut(T, B, V, v + s * V * B, vs);
        memset(sums, 0, 4 * T * P);
        for (int64_t k = 0, sk = s * n->K; k < n->K; k++, sk++, keep += T * stride) {
            normalise(n, T, stride, x, keep, mean + sk * D, var + sk * D, rstd + sk * D);
            for (int64_t d = 0; d < D; d++) norms += logf(rstd[sk * D + d]);
            for (int64_t t = 0; t < T; t++) {
                float *normed = keep + t * stride, *h = normed + D * P, *out = h + H * P;
                product(H, V, weight_condition + sk * V * H, 1, H, vs + t * V * P, P, bias_in + sk * H, h);
                product(H, la, weight_in + sk * la * H, 1, H, normed, P, 0, h);
                for (int64_t j = 0; j < H * P; j++) h[j] = h[j] < 0 ? 0 : h[j];
                product(2 * lb, H, weight_out + sk * H * 2 * lb, 1, 2 * lb, h, P, bias_out + sk * 2 * lb, out);
                couple(n, normed, out, back + k * D, x + t * D * P, sums + t * P);
            }
        }
        join(T, B, D, x, u_out + s * D * B);
        for (int64_t j = 0; j < B; j++) log_det[s * B + j] = sums[j] + norms;
    }
}

/* -- backward -------------------------------------------------------------------------------------------------------- */

/* The gradient of rows from that of normalised rows; `pull` is the summed gradient of all log-determinants. */
static void normalise_back(const Sizes *n, int64_t T, int64_t stride, const float *g_normed, const float *normed,
                           const float *rstd, float pull, float *g) {
    int64_t D = n->la + n->lb;
    for (int64_t d = 0; d < D; d++) {
        const float *from = g_normed + d * P, *value = normed + d * P;
        float dots[P] = {0}, mean = row_sum(T, from, D * P) / n->B;
        for (int64_t t = 0; t < T; t++)
            for (int j = 0; j < P; j++) dots[j] += from[t * D * P + j] * value[t * stride + j];
        float narrow = (total(dots) + pull) / (n->B - 1);
        for (int64_t t = 0; t < T; t++)
            for (int j = 0; j < P; j++)
                g[(t * D + d) * P + j] = (from[t * D * P + j] - mean - value[t * stride + j] * narrow) * rstd[d];
    }
}

static void couple_back(const Sizes *n, const float *normed, const float *out, const int64_t *back, const float *g,
                        const float *g_log_det, float *restrict g_out, float *restrict g_normed) {
    for (int64_t r = 0; r < n->la; r++) memcpy(g_normed + r * P, g + back[r] * P, 4 * P);
    for (int64_t r = 0; r < n->lb; r++) {
        const float *slope = out + r * P, *scale = slope + n->lb * P, *b = normed + (n->la + r) * P;
        const float *from = g + back[n->la + r] * P;
        for (int j = 0; j < P; j++) {
            g_out[r * P + j] = (g_log_det[j] + from[j] * b[j] * scale[j]) * slope[j];
            g_out[(n->lb + r) * P + j] = from[j];
            g_normed[(n->la + r) * P + j] = from[j] * scale[j];
        }
    }
}

void backward(const Sizes *n, const float *g_u_out, const float *g_log_det, const float *v, const float *weight_in,
              const float *weight_condition, const float *weight_out, const int64_t *back, const float *rstd,
              const float *keep, float *g_u, float *g_v, float *g_weight_in, float *g_weight_condition,
              float *g_bias_in, float *g_weight_out, float *g_bias_out, float *room) {
    int64_t la = n->la, lb = n->lb, D = la + lb, H = n->H, V = n->V, B = n->B, T = panels(n);
    int64_t stride = rows_kept(n) * P;
    float *g = room, *g_normed = g + T * D * P, *g_h = g_normed + T * D * P, *g_out = g_h + T * H * P;
    float *vs = g_out + T * 2 * lb * P, *g_vs = vs + T * V * P, *gl = g_vs + T * V * P, *column = gl + T * P;
    float *turned = column + (la + H + V) * P;
    for (int64_t s = 0; s < n->S; s++) {
        cut(T, B, D, g_u_out + s * D * B, g);
        cut(T, B, V, v + s * V * B, vs);
        cut(T, B, 1, g_log_det + s * B, gl);
        memset(g_vs, 0, 4 * T * V * P);
        float pull = row_sum(T, gl, P);
        for (int64_t k = n->K - 1, sk = s * n->K + k; k >= 0; k--, sk--) {
            const float *block = keep + sk * T * stride;
            for (int64_t t = 0; t < T; t++) {
                const float *normed = block + t * stride, *h = normed + D * P, *out = h + H * P;
                float *gn = g_normed + t * D * P, *gh = g_h + t * H * P, *go = g_out + t * 2 * lb * P;
                couple_back(n, normed, out, back + k * D, g + t * D * P, gl + t * P, go, gn);
                memset(gh, 0, 4 * H * P);
                product(H, 2 * lb, weight_out + sk * H * 2 * lb, 2 * lb, 1, go, P, 0, gh);
                for (int64_t j = 0; j < H * P; j++) gh[j] = h[j] == 0 ? 0 : gh[j];
                product(la, H, weight_in + sk * la * H, H, 1, gh, P, 0, gn);
                product(V, H, weight_condition + sk * V * H, H, 1, gh, P, 0, g_vs + t * V * P);
                clear_beyond(B, t, 2 * lb, go), clear_beyond(B, t, H, gh), clear_beyond(B, t, D, gn);
            }
            turn(T, 2 * lb, g_out, turned);
            gradient(B, H, block + D * P, stride, 2 * lb, turned, column, g_weight_out + sk * H * 2 * lb);
            turn(T, H, g_h, turned);
            gradient(B, la, block, stride, H, turned, column, g_weight_in + sk * la * H);
            gradient(B, V, vs, V * P, H, turned, column, g_weight_condition + sk * V * H);
            for (int64_t r = 0; r < 2 * lb; r++) g_bias_out[sk * 2 * lb + r] = row_sum(T, g_out + r * P, 2 * lb * P);
            for (int64_t r = 0; r < H; r++) g_bias_in[sk * H + r] = row_sum(T, g_h + r * P, H * P);
            normalise_back(n, T, stride, g_normed, block, rstd + sk * D, pull, g);
        }
        join(T, B, D, g, g_u + s * D * B);
        join(T, B, V, g_vs, g_v + s * V * B);
    }
}

/* -- the prior ------------------------------------------------------------------------------------------------------- */

/* log N(u; mean, e^2h), where the class gives the mean [D] and h = tanh(raw / 2) of raw [D]. Saved for backward, for each
seed and panel: rows of w = (u - mean) e^-2h [D] and h [D]. Sizes are those of a level with D = lb and la = 0. */
INLINE vec inverse_scale(vec h) { return decayed(2 * h + 2) * 7.38905610f; } /* e^-(2h + 2) e^2: 2h + 2 >= 0 */

void prior_forward(const Sizes *n, const float *u, const float *v, const float *weight, float *log_prob, float *keep,
                   float *room) {
    int64_t D = n->lb, V = n->V, B = n->B, T = panels(n);
    float *x = room, *vs = x + T * D * P, *sums = vs + T * V * P;
    for (int64_t s = 0; s < n->S; s++) {
        cut(T, B, D, u + s * D * B, x);
        cut(T, B, V, v + s * V * B, vs);
        memset(sums, 0, 4 * T * P);
        for (int64_t t = 0; t < T; t++, keep += 2 * D * P) {
            memset(keep, 0, 8 * D * P);
            product(2 * D, V, weight + s * V * 2 * D, 1, 2 * D, vs + t * V * P, P, 0, keep);
            for (int64_t j = 0; j < D * P; j += LANES) {
                vec raw = AT(keep + D * P + j), q = decayed(size_of(raw)), h = either(raw < 0, q - 1, 1 - q) / (1 + q);
                vec w = (AT(x + t * D * P + j) - AT(keep + j)) * inverse_scale(h);
                AT(sums + t * P + j % P) -= 2 * h + 0.5f * w * w;
                AT(keep + j) = w, AT(keep + D * P + j) = h;
            }
        }
        for (int64_t j = 0; j < B; j++) log_prob[s * B + j] = sums[j] - 0.918938533f * D; /* log(2 pi) / 2 */
    }
}

void prior_backward(const Sizes *n, const float *g, const float *v, const float *weight, const float *keep, float *g_u,
                    float *g_v, float *g_weight, float *room) {
    int64_t D = n->lb, V = n->V, B = n->B, T = panels(n);
    float *g_x = room, *g_out = g_x + T * D * P, *vs = g_out + T * 2 * D * P, *g_vs = vs + T * V * P;
    float *gs = g_vs + T * V * P, *column = gs + T * P, *turned = column + V * P;
    for (int64_t s = 0; s < n->S; s++) {
        cut(T, B, V, v + s * V * B, vs);
        cut(T, B, 1, g + s * B, gs);
        memset(g_vs, 0, 4 * T * V * P);
        for (int64_t t = 0; t < T; t++, keep += 2 * D * P) {
            float *go = g_out + t * 2 * D * P;
            for (int64_t j = 0; j < D * P; j += LANES) {
                vec each = AT(gs + t * P + j % P), w = AT(keep + j), h = AT(keep + D * P + j);
                AT(go + j) = each * w * inverse_scale(h);
                AT(g_x + t * D * P + j) = -AT(go + j);
                AT(go + D * P + j) = each * (w * w - 1) * (1 - h * h);
            }
            product(V, 2 * D, weight + s * V * 2 * D, 2 * D, 1, go, P, 0, g_vs + t * V * P);
        }
        turn(T, 2 * D, g_out, turned);
        gradient(B, V, vs, V * P, 2 * D, turned, column, g_weight + s * V * 2 * D);
        join(T, B, D, g_x, g_u + s * D * B);
        join(T, B, V, g_vs, g_v + s * V * B);
    }
}
