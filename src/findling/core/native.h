/* The compiled core of findling: each function does what a Python function of the same name does, only faster.
 *
 * Python stays the reference. `tests/core` holds both to the same output. Limited API only, so one file
 * serves every Python from 3.11 on; no memory outlives a call but that of a vocabulary, which its capsule owns.
 */

#ifndef FINDLING_NATIVE_H
#define FINDLING_NATIVE_H

#define FINDLING_CORE_VERSION "10" /* as in __init__.py; raised when a function changes its arguments or its answer */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "token vectors are stored in little-endian order"
#endif

/* The bytes of a string in UTF-8; `owner` is set when the string holds lone surrogates and a copy had to be made. */
typedef struct {
    const char *data;
    Py_ssize_t size;
    PyObject *owner;
} Utf8;

int utf8_of(PyObject *text, Utf8 *utf8);

/* Kinds of bytes. */
enum { LOWER = 1, UPPER = 2, DIGIT = 4, SIGN = 8, HIGH = 16, MARK = 32, SPACE = 64, DROPPED = 128 };

#define WORD (LOWER | UPPER | DIGIT | SIGN | HIGH)

extern uint8_t kind_of[256];
extern char lower_of[256];

/* FNV-1a, which grows with a word: the hash of every beginning comes for free. */
#define HASH_START 2166136261u
#define HASHED(hash, byte) (((hash) ^ (uint8_t)(byte)) * 16777619u)

/* Eight letters at a time: loops over single ones end at places that no processor foresees. */
#define EACH(byte) (0x0101010101010101u * (uint64_t)(byte))

/* The high bit of each byte from `first` to `last`; bytes are below 128, and so are the sums. */
#define BETWEEN(bytes, first, last) (((bytes) + EACH(0x80 - (first))) ^ ((bytes) + EACH(0x7f - (last))))

static inline uint64_t eight_bytes(const void *text) {
    uint64_t bytes;
    memcpy(&bytes, text, sizeof bytes);
    return bytes;
}

/* How many bytes come before the first one whose high bit is set, of which there is one. */
static inline unsigned bytes_before(uint64_t high_bits) {
#if defined(__GNUC__)
    return (unsigned)__builtin_ctzll(high_bits) / 8;
#else
    unsigned count = 0;
    for (; !(high_bits & 0x80); high_bits >>= 8) count++;
    return count;
#endif
}

void pieces_prepare(void);
void scan_prepare(void);
PyObject *scan_kernels(void);

/* The bytes of the space that begins here, as `\s` knows spaces; 0 when there is none. */
int space_size(const char *text, Py_ssize_t at, Py_ssize_t size);

PyObject *native_code_pieces(PyObject *module, PyObject *arguments);
PyObject *native_chunk_rows(PyObject *module, PyObject *arguments);
PyObject *native_sentences(PyObject *module, PyObject *arguments);
PyObject *native_vocabulary(PyObject *module, PyObject *arguments);
PyObject *native_word_pieces(PyObject *module, PyObject *arguments);
PyObject *native_count_tokens(PyObject *module, PyObject *arguments);
PyObject *native_instant_sums(PyObject *module, PyObject *arguments);
PyObject *native_instant_codes(PyObject *module, PyObject *arguments);
PyObject *native_unit_rows(PyObject *module, PyObject *arguments);
PyObject *native_scan(PyObject *module, PyObject *arguments);
PyObject *native_differing_bits(PyObject *module, PyObject *arguments);
PyObject *native_trigram_form(PyObject *module, PyObject *text);

#endif
