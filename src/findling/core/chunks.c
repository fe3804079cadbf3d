/* The ids and digests of chunks, hashes (BLAKE2b, RFC 7693), and their lines. The rules stand in document_build.py. */

#include "native.h"

#define BLOCK 128

typedef struct {
    uint64_t state[8], count;
    uint8_t block[BLOCK];
    size_t held;
} Hash;

static const uint64_t HASH_INITIAL[8] = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u,
};

static const uint8_t ORDER[12][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
};

#define TURNED(value, bits) ((value) >> (bits) | (value) << (64 - (bits)))
#define MIX(a, b, c, d, x, y) \
    do { \
        a += b + (x); d = TURNED(d ^ a, 32); c += d; b = TURNED(b ^ c, 24); \
        a += b + (y); d = TURNED(d ^ a, 16); c += d; b = TURNED(b ^ c, 63); \
    } while (0)
#define ROUND(n) \
    do { \
        MIX(v0, v4, v8, v12, m[ORDER[n][0]], m[ORDER[n][1]]); MIX(v1, v5, v9, v13, m[ORDER[n][2]], m[ORDER[n][3]]); \
        MIX(v2, v6, v10, v14, m[ORDER[n][4]], m[ORDER[n][5]]); MIX(v3, v7, v11, v15, m[ORDER[n][6]], m[ORDER[n][7]]); \
        MIX(v0, v5, v10, v15, m[ORDER[n][8]], m[ORDER[n][9]]); MIX(v1, v6, v11, v12, m[ORDER[n][10]], m[ORDER[n][11]]); \
        MIX(v2, v7, v8, v13, m[ORDER[n][12]], m[ORDER[n][13]]); MIX(v3, v4, v9, v14, m[ORDER[n][14]], m[ORDER[n][15]]); \
    } while (0)

static void absorb(Hash *hash, const uint8_t *block, size_t size, int is_last) {
    uint64_t *h = hash->state, m[16];
    const uint64_t *initial = HASH_INITIAL;
    memcpy(m, block, BLOCK);
    hash->count += size;
    uint64_t v0 = h[0], v1 = h[1], v2 = h[2], v3 = h[3], v4 = h[4], v5 = h[5], v6 = h[6], v7 = h[7];
    uint64_t v8 = initial[0], v9 = initial[1], v10 = initial[2], v11 = initial[3], v12 = initial[4] ^ hash->count;
    uint64_t v13 = initial[5], v14 = is_last ? ~initial[6] : initial[6], v15 = initial[7];
    ROUND(0); ROUND(1); ROUND(2); ROUND(3); ROUND(4); ROUND(5);
    ROUND(6); ROUND(7); ROUND(8); ROUND(9); ROUND(10); ROUND(11);
    h[0] ^= v0 ^ v8; h[1] ^= v1 ^ v9; h[2] ^= v2 ^ v10; h[3] ^= v3 ^ v11;
    h[4] ^= v4 ^ v12; h[5] ^= v5 ^ v13; h[6] ^= v6 ^ v14; h[7] ^= v7 ^ v15;
}

static void begin_hash(Hash *hash, int digest_size, const char *person) {
    char purpose[16] = {0};
    uint64_t words[2];
    memcpy(purpose, person, strlen(person));
    memcpy(words, purpose, sizeof purpose);
    memcpy(hash->state, HASH_INITIAL, sizeof HASH_INITIAL);
    hash->state[0] ^= 0x01010000u ^ (uint64_t)digest_size;
    hash->state[6] ^= words[0];
    hash->state[7] ^= words[1];
    hash->count = hash->held = 0;
}

static void add_bytes(Hash *hash, const char *data, size_t size) {
    while (size > 0) {
        if (hash->held == BLOCK) {
            absorb(hash, hash->block, BLOCK, 0);
            hash->held = 0;
        }
        /* The last block is kept back: it is marked as the last one. */
        for (; hash->held == 0 && size > BLOCK; data += BLOCK, size -= BLOCK)
            absorb(hash, (const uint8_t *)data, BLOCK, 0);
        size_t part = BLOCK - hash->held < size ? BLOCK - hash->held : size;
        memcpy(hash->block + hash->held, data, part);
        hash->held += part;
        data += part;
        size -= part;
    }
}

static const uint8_t *end_hash(Hash *hash) {
    memset(hash->block + hash->held, 0, BLOCK - hash->held);
    absorb(hash, hash->block, hash->held, 1);
    return (const uint8_t *)hash->state;
}

static uint64_t end_bits(Hash *hash) {
    const uint8_t *digest = end_hash(hash);
    uint64_t bits = 0;
    for (int at = 0; at < 8; at++) bits = bits << 8 | digest[at];
    return bits;
}

static int add_text(Hash *hash, PyObject *text) {
    Utf8 utf8;
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a heading is no string");
        return -1;
    }
    if (utf8_of(text, &utf8) < 0) return -1;
    add_bytes(hash, utf8.data, (size_t)utf8.size);
    Py_XDECREF(utf8.owner);
    return 0;
}

/* A line of the context and a break, unless it is empty, the title or one of the first `before` headings; with -1 it is
 * the title itself. */
static int add_context(Hash *hash, PyObject *line, PyObject *title, PyObject *heading, Py_ssize_t before) {
    if (PyUnicode_Check(line) && PyUnicode_GetLength(line) == 0) return 0;
    if (before >= 0 && PyUnicode_Compare(line, title) == 0) return 0;
    for (Py_ssize_t at = 0; at < before; at++)
        if (PyUnicode_Compare(line, PyTuple_GetItem(heading, at)) == 0) return 0;
    if (PyErr_Occurred() || add_text(hash, line) < 0) return -1;
    add_bytes(hash, "\n", 1);
    return 0;
}

/* The bits of a heading path; what stands above the text of its chunks goes into `passage`. */
static int read_heading(PyObject *heading, PyObject *title, uint64_t *bits, Hash *passage) {
    Hash path;
    begin_hash(&path, 8, "heading");
    begin_hash(passage, 16, "");
    if (add_context(passage, title, title, heading, -1) < 0) return -1;
    for (Py_ssize_t at = 0; at < PyTuple_Size(heading); at++) {
        PyObject *step = PyTuple_GetItem(heading, at);
        if (at > 0) add_bytes(&path, "\x1f", 1);
        if (add_text(&path, step) < 0 || add_context(passage, step, title, heading, at) < 0) return -1;
    }
    *bits = end_bits(&path);
    return 0;
}

/* How many chunks with these bits came before. */
static int count_before(PyObject *seen, uint64_t bits, uint64_t *times) {
    PyObject *key = PyLong_FromUnsignedLongLong(bits), *known = NULL, *now = NULL;
    int failed = key == NULL;
    if (!failed) known = PyDict_GetItemWithError(seen, key);
    *times = known == NULL ? 0 : PyLong_AsUnsignedLongLong(known);
    failed = failed || PyErr_Occurred() || (now = PyLong_FromUnsignedLongLong(*times + 1)) == NULL
             || PyDict_SetItem(seen, key, now) < 0;
    Py_XDECREF(key);
    Py_XDECREF(now);
    return failed ? -1 : 0;
}

typedef struct {
    PyObject *text, *title, *lines, *seen, *nothing;
    uint64_t resource, repeat;
    Py_ssize_t reached, line;
} Source;

/* The line of an offset as it was given, or else counted on from the one before, in a text of ASCII. */
static PyObject *line_at(Source *given, const Utf8 *utf8, Py_ssize_t offset, Py_ssize_t number) {
    if (given->lines != Py_None) return Py_NewRef(PyList_GetItem(given->lines, number));
    Py_ssize_t at = given->reached < offset ? given->reached : offset, end = given->reached + offset - at, breaks = 0;
    for (; end - at >= 8; at += 8)
        breaks += ((~((eight_bytes(utf8->data + at) ^ EACH('\n')) + EACH(0x7f)) & EACH(0x80)) >> 7) * EACH(1) >> 56;
    for (; at < end; at++) breaks += utf8->data[at] == '\n';
    given->line += given->reached < offset ? breaks : -breaks;
    given->reached = offset;
    return PyLong_FromSsize_t(given->line);
}

static PyObject *chunk_row(Source *given, const Utf8 *utf8, Py_ssize_t ordinal, PyObject *piece) {
    Py_ssize_t start, end, length = PyUnicode_GetLength(given->text);
    PyObject *heading, *part = NULL;
    Utf8 own = {utf8->data, 0, NULL};
    uint64_t under, times;
    Hash hash, passage;
    if (!PyTuple_Check(piece)) return PyErr_Format(PyExc_TypeError, "a piece is no tuple");
    if (!PyArg_ParseTuple(piece, "nnO!", &start, &end, &PyTuple_Type, &heading)) return NULL;
    if (start < 0 || start > end || end > length
        || (given->lines == Py_None ? utf8->size != length : PyList_Size(given->lines) < 2 * ordinal + 2))
        return PyErr_Format(PyExc_ValueError, "a piece lies outside of its text");
    if (utf8->size == length) {
        own.data += start;
        own.size = end - start;
    } else if ((part = PyUnicode_Substring(given->text, start, end)) == NULL || utf8_of(part, &own) < 0) {
        Py_XDECREF(part);
        return NULL;
    }
    PyObject *result = NULL;
    begin_hash(&hash, 8, "text");
    add_bytes(&hash, own.data, (size_t)own.size);
    if (read_heading(heading, given->title, &under, &passage) == 0) {
        uint64_t bits = end_bits(&hash) ^ under ^ given->resource;
        add_bytes(&passage, own.data, (size_t)own.size);
        if (count_before(given->seen, bits, &times) == 0)
            result = Py_BuildValue("(Ky#nnnNNOO)", (bits + times * given->repeat) & INT64_MAX, end_hash(&passage),
                                   (Py_ssize_t)16, ordinal, start, end, line_at(given, utf8, start, 2 * ordinal),
                                   line_at(given, utf8, end > start ? end - 1 : start, 2 * ordinal + 1), heading,
                                   given->nothing);
    }
    Py_XDECREF(own.owner);
    Py_XDECREF(part);
    return result;
}

PyObject *native_chunk_rows(PyObject *module, PyObject *arguments) {
    Source given;
    PyObject *pieces, *result = NULL;
    Utf8 utf8;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "UO!OUKK", &given.text, &PyList_Type, &pieces, &given.lines, &given.title,
                          &given.resource, &given.repeat))
        return NULL;
    if (given.lines != Py_None && !PyList_Check(given.lines)) return PyErr_Format(PyExc_TypeError, "lines are no list");
    if (utf8_of(given.text, &utf8) < 0) return NULL;
    given.reached = 0;
    given.line = 1;
    given.seen = PyDict_New();
    given.nothing = PyTuple_New(0);
    if (given.seen != NULL && given.nothing != NULL) result = PyList_New(PyList_Size(pieces));
    for (Py_ssize_t ordinal = 0; result != NULL && ordinal < PyList_Size(result); ordinal++) {
        PyObject *piece = PyList_GetItem(pieces, ordinal);
        PyObject *row = piece == NULL ? NULL : chunk_row(&given, &utf8, ordinal, piece);
        if (row == NULL) Py_CLEAR(result);
        else PyList_SetItem(result, ordinal, row);
    }
    Py_XDECREF(given.seen);
    Py_XDECREF(given.nothing);
    Py_XDECREF(utf8.owner);
    return result;
}
