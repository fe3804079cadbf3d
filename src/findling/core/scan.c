/* Products of one row of 8-bit codes with many. All sums are whole numbers, so every kernel gives the same. */

#include "native.h"

#define LONGEST_ROW 32768  /* a sum then stays within 31 bits */

/* The products of a query with `rows` rows of `size` codes. */
typedef void (*Kernel)(const int8_t *query, const int8_t *codes, size_t rows, size_t size, int32_t *products);

static int32_t product_of(const int8_t *left, const int8_t *right, size_t size) {
    int32_t sum = 0;
    for (size_t at = 0; at < size; at++) sum += (int32_t)left[at] * right[at];
    return sum;
}

static void scan_plain(const int8_t *query, const int8_t *codes, size_t rows, size_t size, int32_t *products) {
    for (size_t row = 0; row < rows; row++) products[row] = product_of(query, codes + row * size, size);
}

/* The kernels that this processor can run, the fastest last. */
static struct {
    const char *name;
    Kernel kernel;
} kernels[3] = {{"plain C", scan_plain}};
static int kernel_count = 1;

#if defined(__GNUC__) && !defined(FINDLING_PLAIN) && (defined(__x86_64__) || defined(__aarch64__))
static void add_kernel(const char *name, Kernel kernel) {
    kernels[kernel_count].name = name;
    kernels[kernel_count++].kernel = kernel;
}
#endif

PyObject *scan_kernels(void) {
    PyObject *names = PyTuple_New(kernel_count);
    for (int number = 0; names != NULL && number < kernel_count; number++) {
        PyObject *name = PyUnicode_FromString(kernels[number].name);
        if (name == NULL || PyTuple_SetItem(names, number, name) < 0) Py_CLEAR(names);
    }
    return names;
}

#if defined(__GNUC__) && defined(__x86_64__) && !defined(FINDLING_PLAIN)
#include <immintrin.h>

#define AHEAD 3072  /* bytes: of 1, 2, 3, 4 and 8 kB the quickest for codes that are in no cache, by a third */

static inline void fetch_ahead(const int8_t *values, size_t size) {
    for (size_t at = 0; at < size; at += 64) __builtin_prefetch(values + AHEAD + at);
}

__attribute__((target("avx2"))) static void scan_avx2(const int8_t *query, const int8_t *codes, size_t rows,
                                                       size_t size, int32_t *products) {
    size_t whole = size - size % 16;
    for (size_t row = 0; row < rows; row++) {
        const int8_t *values = codes + row * size;
        __m256i sums = _mm256_setzero_si256();
        fetch_ahead(values, size);
        for (size_t at = 0; at < whole; at += 16) {
            __m256i left = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(query + at)));
            __m256i right = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(values + at)));
            sums = _mm256_add_epi32(sums, _mm256_madd_epi16(left, right));
        }
        __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
        half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4E));
        half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xB1));
        products[row] = _mm_cvtsi128_si32(half) + product_of(query + whole, values + whole, size - whole);
    }
}

/* VNNI multiplies bytes without a sign by bytes with one: 128 is added to each code, and its share taken off. */
__attribute__((target("avx512f,avx512bw,avx512vnni"))) static void scan_vnni(const int8_t *query, const int8_t *codes,
                                                                              size_t rows, size_t size,
                                                                              int32_t *products) {
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    size_t whole = size - size % 64;
    __mmask64 tail = ((__mmask64)1 << (size - whole)) - 1;
    int32_t excess = 0;
    for (size_t at = 0; at < size; at++) excess += 128 * (int32_t)query[at];
    for (size_t row = 0; row < rows; row++) {
        const int8_t *values = codes + row * size;
        __m512i sums = _mm512_setzero_si512();
        fetch_ahead(values, size);
        for (size_t at = 0; at < whole; at += 64) {
            __m512i left = _mm512_loadu_si512(query + at), right = _mm512_loadu_si512(values + at);
            sums = _mm512_dpbusd_epi32(sums, _mm512_xor_si512(right, sign), left);
        }
        if (tail) {
            __m512i left = _mm512_maskz_loadu_epi8(tail, query + whole);
            __m512i right = _mm512_maskz_loadu_epi8(tail, values + whole);
            sums = _mm512_dpbusd_epi32(sums, _mm512_xor_si512(right, sign), left);
        }
        products[row] = _mm512_reduce_add_epi32(sums) - excess;
    }
}

void scan_prepare(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) add_kernel("AVX2", scan_avx2);
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni"))
        add_kernel("AVX-512 VNNI", scan_vnni);
}

#elif defined(__GNUC__) && defined(__aarch64__) && !defined(FINDLING_PLAIN)
#include <arm_neon.h>

static void scan_neon(const int8_t *query, const int8_t *codes, size_t rows, size_t size, int32_t *products) {
    size_t whole = size - size % 16;
    for (size_t row = 0; row < rows; row++) {
        const int8_t *values = codes + row * size;
        int32x4_t sums = vdupq_n_s32(0);
        for (size_t at = 0; at < whole; at += 16) {
            int8x16_t left = vld1q_s8(query + at), right = vld1q_s8(values + at);
            sums = vpadalq_s16(sums, vmull_s8(vget_low_s8(left), vget_low_s8(right)));
            sums = vpadalq_s16(sums, vmull_high_s8(left, right));
        }
        products[row] = vaddvq_s32(sums) + product_of(query + whole, values + whole, size - whole);
    }
}

#if defined(__linux__) || defined(__APPLE__)
#if defined(__clang__)
#define DOTPROD __attribute__((target("dotprod")))
#else
#define DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))
#endif

DOTPROD static void scan_sdot(const int8_t *query, const int8_t *codes, size_t rows, size_t size, int32_t *products) {
    size_t whole = size - size % 32;
    for (size_t row = 0; row < rows; row++) {
        const int8_t *values = codes + row * size;
        int32x4_t even = vdupq_n_s32(0), odd = vdupq_n_s32(0);
        for (size_t at = 0; at < whole; at += 32) {
            even = vdotq_s32(even, vld1q_s8(query + at), vld1q_s8(values + at));
            odd = vdotq_s32(odd, vld1q_s8(query + at + 16), vld1q_s8(values + at + 16));
        }
        products[row] = vaddvq_s32(vaddq_s32(even, odd)) + product_of(query + whole, values + whole, size - whole);
    }
}
#endif

#if defined(__linux__)
#include <sys/auxv.h>
#define HAS_SDOT (getauxval(AT_HWCAP) & (1ul << 20)) /* HWCAP_ASIMDDP */
#elif defined(__APPLE__)
#define HAS_SDOT 1 /* every processor of theirs that runs this */
#endif

void scan_prepare(void) {
    add_kernel("NEON", scan_neon);
#ifdef HAS_SDOT
    if (HAS_SDOT) add_kernel("NEON sdot", scan_sdot);
#endif
}

#else
void scan_prepare(void) {}
#endif

#define BLOCK 1024

static void scan_rows(Kernel kernel, const int8_t *query, const int8_t *codes, size_t rows, size_t size,
                      const float *scales, float scale, float *out) {
    int32_t products[BLOCK];
    for (size_t row = 0; row < rows; row += BLOCK) {
        size_t count = rows - row < BLOCK ? rows - row : BLOCK;
        kernel(query, codes + row * size, count, size, products);
        for (size_t at = 0; at < count; at++) out[row + at] = (float)products[at] * scale * scales[row + at];
    }
}

PyObject *native_scan(PyObject *module, PyObject *arguments) {
    Py_buffer query, codes, scales, out;
    float scale;
    int number = kernel_count - 1;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*y*y*fw*|i", &query, &codes, &scales, &scale, &out, &number)) return NULL;
    size_t size = (size_t)query.len, rows = size ? (size_t)codes.len / size : 0;
    int fits = number >= 0 && number < kernel_count && size > 0 && size <= LONGEST_ROW && rows * size == (size_t)codes.len
               && (size_t)scales.len == rows * sizeof(float) && (size_t)out.len == rows * sizeof(float)
               && (uintptr_t)scales.buf % sizeof(float) == 0 && (uintptr_t)out.buf % sizeof(float) == 0;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        scan_rows(kernels[number].kernel, query.buf, codes.buf, rows, size, scales.buf, scale, out.buf);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&query);
    PyBuffer_Release(&codes);
    PyBuffer_Release(&scales);
    PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "codes, scales and products have one row length and one number of rows, and kernels a number");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* --- signs --- */

#if defined(__GNUC__)
#define ONES(word) __builtin_popcountll(word)
#else
static int ONES(uint64_t word) {
    int count = 0;
    for (; word; word &= word - 1) count++;
    return count;
}
#endif

#define COUNT_ROWS                                                                        \
    for (size_t row = 0; row < rows; row++) {                                             \
        int count = 0;                                                                    \
        for (size_t at = 0; at < size; at++) count += ONES(query[at] ^ signs[row * size + at]); \
        out[row] = (uint16_t)count;                                                       \
    }

static void count_plain(const uint64_t *query, const uint64_t *signs, size_t rows, size_t size, uint16_t *out) {
    COUNT_ROWS
}

#if defined(__GNUC__) && defined(__x86_64__) && !defined(FINDLING_PLAIN)
__attribute__((target("popcnt"))) static void count_popcnt(const uint64_t *query, const uint64_t *signs, size_t rows,
                                                           size_t size, uint16_t *out) {
    COUNT_ROWS
}

#define COUNTER (__builtin_cpu_supports("popcnt") ? count_popcnt : count_plain)
#else
#define COUNTER count_plain
#endif

PyObject *native_differing_bits(PyObject *module, PyObject *arguments) {
    Py_buffer query, signs, out;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*y*w*", &query, &signs, &out)) return NULL;
    size_t words = (size_t)query.len / 8, rows = words ? (size_t)signs.len / 8 / words : 0;
    int fits = words > 0 && words <= 1023 && words * 8 == (size_t)query.len && rows * words * 8 == (size_t)signs.len
               && (size_t)out.len == rows * sizeof(uint16_t) && (uintptr_t)query.buf % 8 == 0
               && (uintptr_t)signs.buf % 8 == 0 && (uintptr_t)out.buf % sizeof(uint16_t) == 0;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        COUNTER(query.buf, signs.buf, rows, words, out.buf);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&query);
    PyBuffer_Release(&signs);
    PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "query and signs have one row of whole words, and counts one for each row");
        return NULL;
    }
    Py_RETURN_NONE;
}
