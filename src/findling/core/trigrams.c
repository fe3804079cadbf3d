/* The trigrams of a folded text, each once, in the order in which they come. */

#include "native.h"

#define ASCII_BITS 21
#define LINE_FEED '\n'

/* Letters that tantivy splits terms at, as capitals, which no folded text has. */
static unsigned coded(unsigned letter) {
    switch (letter) {
        case ' ': return 'A';
        case '\t': return 'B';
        case '\r': return 'C';
        case '\f': return 'D';
        default: return letter;
    }
}

/* Trigrams with a letter that is not ASCII; a key is never 0. */
typedef struct {
    uint64_t *keys;
    size_t count, mask;
} Seen;

static size_t slot_of(const Seen *seen, uint64_t key) {
    size_t slot = (size_t)((key * 0x9E3779B97F4A7C15u) >> 20) & seen->mask;
    while (seen->keys[slot] && seen->keys[slot] != key) slot = (slot + 1) & seen->mask;
    return slot;
}

static int grow(Seen *seen) {
    Seen more = {NULL, seen->count, seen->keys ? seen->mask * 2 + 1 : 1023};
    more.keys = calloc(more.mask + 1, sizeof *more.keys);
    if (more.keys == NULL) return -1;
    for (size_t slot = 0; seen->keys && slot <= seen->mask; slot++)
        if (seen->keys[slot]) more.keys[slot_of(&more, seen->keys[slot])] = seen->keys[slot];
    free(seen->keys);
    *seen = more;
    return 0;
}

/* Whether a trigram is new; -1 without memory. */
static int is_new(Seen *seen, uint64_t key) {
    if ((seen->keys == NULL || seen->count * 2 > seen->mask) && grow(seen) < 0) return -1;
    size_t slot = slot_of(seen, key);
    if (seen->keys[slot]) return 0;
    seen->keys[slot] = key;
    seen->count++;
    return 1;
}

static size_t put(char *out, unsigned letter) {
    if (letter < 0x80) {
        out[0] = (char)letter;
        return 1;
    }
    size_t size = letter < 0x800 ? 2 : letter < 0x10000 ? 3 : 4;
    for (size_t at = size - 1; at > 0; at--, letter >>= 6) out[at] = (char)(0x80 | (letter & 63));
    out[0] = (char)((0xF00 >> size) | letter);
    return size;
}

static unsigned letter_at(const uint8_t *data, Py_ssize_t *at) {
    unsigned first = data[(*at)++];
    if (first < 0x80) return first;
    int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    unsigned letter = first & (0x3Fu >> more);
    while (more-- > 0) letter = letter << 6 | (data[(*at)++] & 63);
    return letter;
}

static int collect(const uint8_t *data, Py_ssize_t size, uint8_t *ascii, Seen *seen, char **out, size_t *used) {
    unsigned one = LINE_FEED, two = LINE_FEED;
    size_t room = 0;
    for (Py_ssize_t at = 0; at < size;) {
        unsigned three = coded(letter_at(data, &at));
        if (one != LINE_FEED && two != LINE_FEED && three != LINE_FEED) {
            int fresh;
            if ((one | two | three) < 0x80) {
                unsigned key = one << 14 | two << 7 | three;
                fresh = !(ascii[key >> 3] & (1 << (key & 7)));
                ascii[key >> 3] |= (uint8_t)(1 << (key & 7));
            } else {
                fresh = is_new(seen, (uint64_t)one << 42 | (uint64_t)two << 21 | three);
            }
            if (fresh) {
                if (fresh < 0) return -1;
                if (room - *used < 16) {
                    char *larger = realloc(*out, room = room * 2 + 4096);
                    if (larger == NULL) return -1;
                    *out = larger;
                }
                *used += put(*out + *used, one);
                *used += put(*out + *used, two);
                *used += put(*out + *used, three);
                (*out)[(*used)++] = ' ';
            }
        }
        one = two;
        two = three;
    }
    return 0;
}

PyObject *native_trigram_form(PyObject *module, PyObject *text) {
    Py_ssize_t size;
    (void)module;
    const char *data = PyUnicode_AsUTF8AndSize(text, &size);
    if (data == NULL) return NULL;
    Seen seen = {NULL, 0, 0};
    char *out = NULL;
    size_t used = 0;
    uint8_t *ascii = calloc(1u << (ASCII_BITS - 3), 1);
    PyObject *result = NULL;
    if (ascii == NULL || collect((const uint8_t *)data, size, ascii, &seen, &out, &used) < 0) PyErr_NoMemory();
    else result = PyUnicode_DecodeUTF8(out ? out : "", used ? (Py_ssize_t)used - 1 : 0, "strict");
    free(ascii);
    free(seen.keys);
    free(out);
    return result;
}
