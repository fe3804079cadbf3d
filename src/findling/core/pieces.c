/* WordPiece tokens of a text: their number, and the sum of their vectors. The rules stand in wordpieces.py.
 *
 * Words of ASCII are cut here; a cache of fixed size holds those that come again. Python reads all others.
 */

#include "native.h"

#include <math.h>

#define LONGEST_WORD 100  /* BERT reads a longer word as one unknown token */
#define DIMENSIONS 256
#define ROW_SIZE (4 + DIMENSIONS)  /* a float and 256 codes */
#define SHARES 4294967296.0        /* as in models/local/instant.py */

/* rint of a number below 2^51, for which no function is called: such a sum has no room for a fraction. */
#define WHOLE(number) (((number) + 6755399441055744.0) - 6755399441055744.0)

#define CACHE_SLOTS 32768
#define CACHED_BYTES 24
#define CACHED_TOKENS 16
#define WAITING 16  /* words that are looked up together: the cache is as large as that of a processor, and far away */

/* A word with zeros behind it, so that all of it is hashed and compared at once. */
typedef union {
    char letters[CACHED_BYTES];
    uint64_t parts[CACHED_BYTES / 8];
} ShortWord;

/* One line of the processor's cache. No word is empty, so that a free slot is none. */
typedef struct {
    ShortWord word;
    uint64_t count;
    uint16_t tokens[CACHED_TOKENS];
} Cached;

typedef struct {
    uint32_t hash, start;
    uint16_t token;
    uint8_t size;  /* 0: a free slot */
} Entry;

/* Entries by the hash of their letters. */
typedef struct {
    Entry *slots;
    uint32_t mask;
    uint8_t longest[256];  /* by the first byte */
} Table;

typedef struct {
    char *text;
    Table first, later;
    Cached *cache;
    uint32_t *counts;
    double *shares;
    uint32_t size;
    uint16_t unknown;
    uint16_t mark[128];
} Vocabulary;

#if defined(__GNUC__)
#define FETCH_LINE(line) __builtin_prefetch(line)
#else
#define FETCH_LINE(line) ((void)(line))
#endif

static const char CAPSULE[] = "findling.vocabulary";

static const Entry *find_entry(const Vocabulary *vocabulary, const Table *table, uint32_t hash, const char *word,
                               size_t size) {
    for (uint32_t slot = hash & table->mask;; slot = (slot + 1) & table->mask) {
        const Entry *entry = &table->slots[slot];
        if (entry->size == 0) return NULL;
        if (entry->hash == hash && entry->size == size && memcmp(vocabulary->text + entry->start, word, size) == 0)
            return entry;
    }
}

static uint32_t hash_of(const char *word, size_t size) {
    uint32_t hash = HASH_START;
    for (size_t at = 0; at < size; at++) hash = HASHED(hash, word[at]);
    return hash;
}

static int make_table(Table *table, uint32_t entries) {
    uint32_t slots = 64;
    while (slots < entries * 2) slots *= 2;
    table->slots = calloc(slots, sizeof *table->slots);
    table->mask = slots - 1;
    return table->slots == NULL ? -1 : 0;
}

static void add_entry(Vocabulary *vocabulary, Table *table, uint32_t start, size_t size, uint32_t token) {
    const char *word = vocabulary->text + start;
    if (size == 0 || size > LONGEST_WORD) return;
    uint32_t hash = hash_of(word, size), slot = hash & table->mask;
    Entry *entry = (Entry *)find_entry(vocabulary, table, hash, word, size);
    if (entry == NULL) {
        while (table->slots[slot].size) slot = (slot + 1) & table->mask;
        entry = &table->slots[slot];
    }
    *entry = (Entry){hash, start, (uint16_t)token, (uint8_t)size};
    uint8_t *longest = &table->longest[(uint8_t)word[0]];
    if (size > *longest) *longest = (uint8_t)size;
}

static void free_vocabulary(Vocabulary *vocabulary) {
    if (vocabulary == NULL) return;
    free(vocabulary->text);
    free(vocabulary->first.slots);
    free(vocabulary->later.slots);
    free(vocabulary->cache);
    free(vocabulary->counts);
    free(vocabulary->shares);
    free(vocabulary);
}

static void free_capsule(PyObject *capsule) {
    free_vocabulary(PyCapsule_GetPointer(capsule, CAPSULE));
}

static uint32_t count_lines(const char *data, size_t size) {
    uint32_t lines = 0;
    for (size_t at = 0; at < size; at++) lines += data[at] == '\n';
    return lines + (size > 0 && data[size - 1] != '\n');
}

static void read_entries(Vocabulary *vocabulary, size_t size) {
    const char *text = vocabulary->text;
    uint32_t token = 0;
    for (size_t start = 0; start < size; token++) {
        const char *newline = memchr(text + start, '\n', size - start);
        size_t end = newline ? (size_t)(newline - text) : size;
        add_entry(vocabulary, &vocabulary->first, (uint32_t)start, end - start, token);
        if (end - start > 2 && text[start] == '#' && text[start + 1] == '#')
            add_entry(vocabulary, &vocabulary->later, (uint32_t)start + 2, end - start - 2, token);
        start = end + 1;
    }
}

static Vocabulary *make_vocabulary(const char *data, size_t size, uint32_t lines) {
    Vocabulary *vocabulary = calloc(1, sizeof *vocabulary);
    if (vocabulary == NULL) return NULL;
    vocabulary->size = lines;
    vocabulary->text = malloc(size + 1);
    vocabulary->cache = calloc(CACHE_SLOTS, sizeof *vocabulary->cache);
    vocabulary->counts = calloc(lines, sizeof *vocabulary->counts);
    vocabulary->shares = calloc(lines, sizeof *vocabulary->shares);
    if (make_table(&vocabulary->first, lines) < 0 || make_table(&vocabulary->later, lines) < 0
        || !vocabulary->text || !vocabulary->cache || !vocabulary->counts || !vocabulary->shares) {
        free_vocabulary(vocabulary);
        return NULL;
    }
    memcpy(vocabulary->text, data, size);
    read_entries(vocabulary, size);
    return vocabulary;
}

PyObject *native_vocabulary(PyObject *module, PyObject *arguments) {
    Py_buffer entries;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*", &entries)) return NULL;
    size_t size = (size_t)entries.len;
    uint32_t lines = size < 1u << 30 ? count_lines(entries.buf, size) : 0;
    if (lines == 0 || lines > 65535) {
        PyErr_SetString(PyExc_ValueError, "a vocabulary has 1 to 65,535 entries");
        PyBuffer_Release(&entries);
        return NULL;
    }
    Vocabulary *vocabulary = make_vocabulary(entries.buf, size, lines);
    PyBuffer_Release(&entries);
    if (vocabulary == NULL) return PyErr_NoMemory();
    const Entry *unknown = find_entry(vocabulary, &vocabulary->first, hash_of("[UNK]", 5), "[UNK]", 5);
    if (unknown == NULL) {
        free_vocabulary(vocabulary);
        PyErr_SetString(PyExc_ValueError, "a vocabulary has an entry [UNK]");
        return NULL;
    }
    vocabulary->unknown = unknown->token;
    for (int code = 0; code < 128; code++) {
        char mark = (char)code;
        const Entry *entry = find_entry(vocabulary, &vocabulary->first, hash_of(&mark, 1), &mark, 1);
        vocabulary->mark[code] = entry ? entry->token : vocabulary->unknown;
    }
    PyObject *capsule = PyCapsule_New(vocabulary, CAPSULE, free_capsule);
    if (capsule == NULL) free_vocabulary(vocabulary);
    return capsule;
}

/* --- the tokens of a text --- */

/* Tokens that were found; only their number when they are not kept. */
typedef struct {
    uint16_t *tokens;
    size_t count, room;
    int kept;
} Bag;

#define SPARE (WAITING * CACHED_BYTES + CACHED_TOKENS)

/* Makes room for so many more tokens, for those of waiting words, and for as many as a cached word copies too much. */
static int make_room(Bag *bag, size_t count) {
    if (!bag->kept || bag->room - bag->count >= count + SPARE) return 0;
    size_t room = bag->room * 2 + count + SPARE;
    uint16_t *larger = realloc(bag->tokens, room * sizeof *larger);
    if (larger == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    bag->tokens = larger;
    bag->room = room;
    return 0;
}

/* Adds tokens for which there is room. */
static void add_tokens(Bag *bag, const uint16_t *tokens, size_t count) {
    if (bag->kept) memcpy(bag->tokens + bag->count, tokens, count * sizeof *tokens);
    bag->count += count;
}

static void add_token(Bag *bag, uint16_t token) {
    if (bag->kept) bag->tokens[bag->count] = token;
    bag->count++;
}

/* Vocabulary.pieces of wordpieces.py for a word of up to 100 letters; `tokens` has room for one a byte. An entry is
 * whole letters, so what matches its bytes ends where a letter does. */
static size_t cut_word(const Vocabulary *vocabulary, const char *word, size_t size, uint16_t *tokens) {
    size_t count = 0, start = 0;
    const Table *table = &vocabulary->first;
    while (start < size) {
        uint32_t hashes[LONGEST_WORD + 1];
        size_t most = table->longest[(uint8_t)word[start]];
        if (most > size - start) most = size - start;
        uint32_t hash = HASH_START;
        for (size_t at = 0; at < most; at++) hashes[at + 1] = hash = HASHED(hash, word[start + at]);
        const Entry *entry = NULL;
        size_t length = most;
        while (length > 0 && (entry = find_entry(vocabulary, table, hashes[length], word + start, length)) == NULL)
            length--;
        if (entry == NULL) {
            tokens[0] = vocabulary->unknown;
            return 1;
        }
        tokens[count++] = entry->token;
        start += length;
        table = &vocabulary->later;
    }
    return count;
}

/* A short word whose slot in the cache is on its way. */
typedef struct {
    ShortWord word;
    Cached *slot;
    size_t size;
} Waiting;

/* Adds the tokens of waiting words: at most one a letter, for which there is room. */
static void add_waiting(const Vocabulary *vocabulary, Bag *bag, const Waiting *waiting, size_t count) {
    for (const Waiting *one = waiting; one < waiting + count; one++) {
        Cached *slot = one->slot;
        const uint64_t *known = slot->word.parts, *parts = one->word.parts;
        if (((known[0] ^ parts[0]) | (known[1] ^ parts[1]) | (known[2] ^ parts[2])) != 0) {
            uint16_t tokens[LONGEST_WORD];
            size_t found = cut_word(vocabulary, one->word.letters, one->size, tokens);
            if (found > CACHED_TOKENS) {
                add_tokens(bag, tokens, found);
                continue;
            }
            slot->word = one->word;
            slot->count = found;
            memcpy(slot->tokens, tokens, found * sizeof *tokens);
        }
        if (bag->kept) memcpy(bag->tokens + bag->count, slot->tokens, sizeof slot->tokens);
        bag->count += slot->count;
    }
}

/* The word of ASCII that begins here, if it is short, nothing is dropped from it and the text goes on behind it; its size
 * or 0. */
static size_t begin_waiting(const Vocabulary *vocabulary, Waiting *one, const uint8_t *text, const uint8_t *end) {
    static const uint64_t FACTORS[] = {0x9E3779B97F4A7C15u, 0xC2B2AE3D27D4EB4Fu, 0x165667B19E3779F9u};
    uint64_t mixed = 0, others = 0;
    size_t size = 0;
    if (end - text <= CACHED_BYTES) return 0;
    for (size_t part = 0; part < CACHED_BYTES / 8; part++) {
        uint64_t letters = 0;
        if (others == 0) {
            uint64_t bytes = eight_bytes(text + size), low = bytes & EACH(0x7f), small = low | EACH(0x20);
            others = (~(BETWEEN(small, 'a', 'z') | BETWEEN(low, '0', '9')) | bytes) & EACH(0x80);
            unsigned held = others == 0 ? 8 : bytes_before(others);
            letters = held == 8 ? bytes : bytes & ((1ull << 8 * held) - 1);
            letters |= (BETWEEN(letters, 'A', 'Z') & EACH(0x80)) >> 2;
            size += held;
        }
        one->word.parts[part] = letters;
        mixed ^= letters * FACTORS[part];
    }
    if (kind_of[text[size]] & (LOWER | UPPER | DIGIT | HIGH | DROPPED)) return 0;
    one->size = size;
    one->slot = &vocabulary->cache[(mixed ^ mixed >> 20) >> 32 & (CACHE_SLOTS - 1)];
    FETCH_LINE(one->slot);
    return size;
}

/* The tokens that Python reads in a word that is not ASCII: `rest[word]`. */
static int add_other_word(const Vocabulary *vocabulary, Bag *bag, const char *word, size_t size, PyObject *rest) {
    PyObject *key = PyBytes_FromStringAndSize(word, (Py_ssize_t)size);
    PyObject *value = key == NULL ? NULL : PyObject_GetItem(rest, key);
    Py_XDECREF(key);
    if (value == NULL) return -1;
    Py_ssize_t count = PySequence_Size(value);
    int failed = count < 0;
    for (Py_ssize_t at = 0; at < count && !failed; at++) {
        PyObject *number = PySequence_GetItem(value, at);
        long token = number == NULL ? -1 : PyLong_AsLong(number);
        Py_XDECREF(number);
        if (token < 0 || (unsigned long)token >= vocabulary->size) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a token is not in the vocabulary");
            failed = 1;
        } else {
            failed = make_room(bag, 1);
            if (!failed) add_token(bag, (uint16_t)token);
        }
    }
    Py_DECREF(value);
    return failed ? -1 : 0;
}

/* `word` has room for the text. */
static int collect_words(const Vocabulary *vocabulary, Bag *bag, const Utf8 *utf8, char *word, PyObject *rest) {
    const uint8_t *text = (const uint8_t *)utf8->data, *end = text + utf8->size;
    Waiting waiting[WAITING];
    size_t count = 0, size;
    while (text < end) {
        int kind = kind_of[*text], kinds = 0;
        if (!(kind & (LOWER | UPPER | DIGIT | HIGH))) {
            if (bag->kept) bag->tokens[bag->count] = vocabulary->mark[*text];
            bag->count += (kind & (MARK | SIGN)) != 0;
            text++;
            continue;
        }
        if ((size = begin_waiting(vocabulary, &waiting[count], text, end)) > 0) {
            text += size;
            if (++count == WAITING) {
                add_waiting(vocabulary, bag, waiting, count);
                count = 0;
            }
            continue;
        }
        for (size = 0; text < end && (kind = kind_of[*text]) & (LOWER | UPPER | DIGIT | HIGH | DROPPED); text++) {
            word[size] = lower_of[*text];
            size += kind != DROPPED;
            kinds |= kind;
        }
        if (kinds & HIGH) {
            if (add_other_word(vocabulary, bag, word, size, rest) < 0 || make_room(bag, (size_t)(end - text)) < 0)
                return -1;
        } else if (size > LONGEST_WORD) add_token(bag, vocabulary->unknown);
        else {
            uint16_t tokens[LONGEST_WORD];
            add_tokens(bag, tokens, cut_word(vocabulary, word, size, tokens));
        }
    }
    add_waiting(vocabulary, bag, waiting, count);
    return 0;
}

static int collect_tokens(const Vocabulary *vocabulary, Bag *bag, PyObject *text, PyObject *rest) {
    char small[4096], *word = small;
    Utf8 utf8;
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a text is no string");
        return -1;
    }
    if (utf8_of(text, &utf8) < 0) return -1;
    if ((size_t)utf8.size > sizeof small) word = malloc((size_t)utf8.size);
    int failed = -1;
    if (word == NULL) PyErr_NoMemory();
    else if (make_room(bag, (size_t)utf8.size) == 0) failed = collect_words(vocabulary, bag, &utf8, word, rest);
    if (word != small) free(word);
    Py_XDECREF(utf8.owner);
    return failed;
}

PyObject *native_word_pieces(PyObject *module, PyObject *arguments) {
    PyObject *capsule, *word;
    Utf8 utf8;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OU", &capsule, &word)) return NULL;
    Vocabulary *vocabulary = PyCapsule_GetPointer(capsule, CAPSULE);
    if (vocabulary == NULL || utf8_of(word, &utf8) < 0) return NULL;
    uint16_t tokens[4 * LONGEST_WORD] = {vocabulary->unknown};
    size_t count = 1;
    if (PyUnicode_GetLength(word) <= LONGEST_WORD)
        count = cut_word(vocabulary, utf8.data, (size_t)utf8.size, tokens);
    Py_XDECREF(utf8.owner);
    PyObject *result = PyList_New((Py_ssize_t)count);
    for (size_t at = 0; at < count && result != NULL; at++) {
        PyObject *number = PyLong_FromLong(tokens[at]);
        if (number == NULL) Py_CLEAR(result);
        else PyList_SetItem(result, (Py_ssize_t)at, number);
    }
    return result;
}

PyObject *native_count_tokens(PyObject *module, PyObject *arguments) {
    PyObject *capsule, *text, *rest;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OOO", &capsule, &text, &rest)) return NULL;
    Vocabulary *vocabulary = PyCapsule_GetPointer(capsule, CAPSULE);
    Bag bag = {NULL, 0, 0, 0};
    if (vocabulary == NULL || collect_tokens(vocabulary, &bag, text, rest) < 0) return NULL;
    return PyLong_FromSize_t(bag.count);
}

/* --- instant vectors --- */

/* Adds the rows of tokens, each times its share, to `sums`. Parts of rows at a time stay in registers. */
typedef void (*AddRows)(double *sums, const char *table, const uint16_t *tokens, const double *shares, size_t count);

#define PART 32

/* Has a row brought near before it is needed: the table is larger than a cache. */
#define FETCH(row) \
    do { \
        for (int line = 0; line < ROW_SIZE; line += 64) FETCH_LINE((row) + line); \
    } while (0)

static void add_rows_plain(double *sums, const char *table, const uint16_t *tokens, const double *shares,
                           size_t count) {
    for (int part = 0; part < DIMENSIONS; part += PART) {
        double held[PART] = {0};
        for (size_t number = 0; number < count; number++) {
            const int8_t *codes = (const int8_t *)table + (size_t)tokens[number] * ROW_SIZE + 4 + part;
            for (int at = 0; at < PART; at++) held[at] += shares[number] * codes[at];
        }
        memcpy(sums + part, held, sizeof held);
    }
}

static AddRows add_rows = add_rows_plain;

#if defined(__GNUC__) && defined(__x86_64__) && !defined(FINDLING_PLAIN)
#include <immintrin.h>

__attribute__((target("avx2,fma"))) static void add_rows_avx2(double *sums, const char *table,
                                                               const uint16_t *tokens, const double *shares,
                                                               size_t count) {
    for (int part = 0; part < DIMENSIONS; part += PART) {
        __m256d held[PART / 4];
        for (int at = 0; at < PART / 4; at++) held[at] = _mm256_setzero_pd();
        for (size_t number = 0; number < count; number++) {
            const char *codes = table + (size_t)tokens[number] * ROW_SIZE + 4 + part;
            __m256d share = _mm256_set1_pd(shares[number]);
            for (int at = 0; at < PART / 4; at += 2) {
                __m256i eight = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(codes + 4 * at)));
                __m256d low = _mm256_cvtepi32_pd(_mm256_castsi256_si128(eight));
                __m256d high = _mm256_cvtepi32_pd(_mm256_extracti128_si256(eight, 1));
                held[at] = _mm256_fmadd_pd(share, low, held[at]);
                held[at + 1] = _mm256_fmadd_pd(share, high, held[at + 1]);
            }
        }
        for (int at = 0; at < PART / 4; at++) _mm256_storeu_pd(sums + part + 4 * at, held[at]);
    }
}

#define WIDE_PART 64

__attribute__((target("avx512f"))) static void add_rows_avx512(double *sums, const char *table,
                                                                const uint16_t *tokens, const double *shares,
                                                                size_t count) {
    for (int part = 0; part < DIMENSIONS; part += WIDE_PART) {
        __m512d held[WIDE_PART / 8];
        for (int at = 0; at < WIDE_PART / 8; at++) held[at] = _mm512_setzero_pd();
        for (size_t number = 0; number < count; number++) {
            const char *codes = table + (size_t)tokens[number] * ROW_SIZE + 4 + part;
            __m512d share = _mm512_set1_pd(shares[number]);
            for (int at = 0; at < WIDE_PART / 8; at++) {
                __m256i eight = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(codes + 8 * at)));
                held[at] = _mm512_fmadd_pd(share, _mm512_cvtepi32_pd(eight), held[at]);
            }
        }
        for (int at = 0; at < WIDE_PART / 8; at++) _mm512_storeu_pd(sums + part + 8 * at, held[at]);
    }
}

void pieces_prepare(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) add_rows = add_rows_avx2;
    if (__builtin_cpu_supports("avx512f")) add_rows = add_rows_avx512;
}
#else
void pieces_prepare(void) {}
#endif

/* The sum of the tokens' vectors, each times the root of how often it occurs. All numbers are whole and below 2^53, so
 * the order of the sum makes no difference. No Python code runs in here: counts and shares belong to the vocabulary. */
static void sum_tokens(Vocabulary *vocabulary, Bag *bag, const char *table, double *sums) {
    uint32_t *counts = vocabulary->counts;
    size_t distinct = 0;
    for (size_t at = 0; at < bag->count; at++) {
        uint16_t token = bag->tokens[at];
        if (counts[token]++ != 0) continue;
        FETCH(table + (size_t)token * ROW_SIZE);
        bag->tokens[distinct++] = token;
    }
    for (size_t at = 0; at < distinct; at++) {
        uint16_t token = bag->tokens[at];
        float scale;
        memcpy(&scale, table + (size_t)token * ROW_SIZE, sizeof scale);
        vocabulary->shares[at] = WHOLE(sqrt((double)counts[token]) * (double)scale * SHARES);
        counts[token] = 0;
    }
    add_rows(sums, table, bag->tokens, vocabulary->shares, distinct);
}

/* What a function of instant vectors was given. */
typedef struct {
    Vocabulary *vocabulary;
    Py_buffer table;
    const char *rows;
    PyObject *texts, *rest;
    Py_ssize_t count;
} Instant;

static int read_instant(PyObject *arguments, Instant *given) {
    PyObject *capsule, *texts;
    Py_ssize_t offset;
    if (!PyArg_ParseTuple(arguments, "Oy*nOO", &capsule, &given->table, &offset, &texts, &given->rest)) return -1;
    given->texts = NULL;
    given->vocabulary = PyCapsule_GetPointer(capsule, CAPSULE);
    if (given->vocabulary != NULL) {
        Py_ssize_t needed = (Py_ssize_t)given->vocabulary->size * ROW_SIZE;
        if (offset < 0 || given->table.len < needed || offset > given->table.len - needed)
            PyErr_SetString(PyExc_ValueError, "a table has a row for every token");
        else given->texts = PySequence_List(texts);
    }
    if (given->texts == NULL) {
        PyBuffer_Release(&given->table);
        return -1;
    }
    given->rows = (const char *)given->table.buf + offset;
    given->count = PyList_Size(given->texts);
    return 0;
}

static int sum_text(const Instant *given, Bag *bag, Py_ssize_t number, double *sums) {
    bag->count = 0;
    if (collect_tokens(given->vocabulary, bag, PyList_GetItem(given->texts, number), given->rest) < 0) return -1;
    sum_tokens(given->vocabulary, bag, given->rows, sums);
    return 0;
}

static void free_instant(Instant *given, Bag *bag) {
    free(bag->tokens);
    Py_DECREF(given->texts);
    PyBuffer_Release(&given->table);
}

PyObject *native_instant_sums(PyObject *module, PyObject *arguments) {
    Instant given;
    (void)module;
    if (read_instant(arguments, &given) < 0) return NULL;
    Bag bag = {NULL, 0, 0, 1};
    double sums[DIMENSIONS];
    PyObject *result = NULL;
    if (given.count <= PY_SSIZE_T_MAX / (Py_ssize_t)sizeof sums)
        result = PyBytes_FromStringAndSize(NULL, given.count * (Py_ssize_t)sizeof sums);
    else PyErr_NoMemory();
    for (Py_ssize_t number = 0; number < given.count && result != NULL; number++) {
        if (sum_text(&given, &bag, number, sums) < 0) Py_CLEAR(result);
        else memcpy(PyBytes_AsString(result) + number * (Py_ssize_t)sizeof sums, sums, sizeof sums);
    }
    free_instant(&given, &bag);
    return result;
}

static PyObject *codes_of(const double *sums) {
    int8_t codes[DIMENSIONS];
    double largest = 0;
    for (int at = 0; at < DIMENSIONS; at++) {
        double size = fabs(sums[at]);
        if (size > largest) largest = size;
    }
    double factor = 127 / (largest > 0 ? largest : 1);
    for (int at = 0; at < DIMENSIONS; at++) codes[at] = (int8_t)(int32_t)WHOLE(sums[at] * factor);
    return PyBytes_FromStringAndSize((const char *)codes, DIMENSIONS);
}

PyObject *native_instant_codes(PyObject *module, PyObject *arguments) {
    Instant given;
    (void)module;
    if (read_instant(arguments, &given) < 0) return NULL;
    Bag bag = {NULL, 0, 0, 1};
    double sums[DIMENSIONS];
    PyObject *result = PyList_New(given.count);
    for (Py_ssize_t number = 0; number < given.count && result != NULL; number++) {
        PyObject *codes = sum_text(&given, &bag, number, sums) < 0 ? NULL : codes_of(sums);
        if (codes == NULL) Py_CLEAR(result);
        else PyList_SetItem(result, number, codes);
    }
    free_instant(&given, &bag);
    return result;
}

/* --- rows of codes --- */

#define MOST_DIMENSIONS 1024  /* up to here a sum of squares is exact in a float */

/* The scale of a row at length 1, and its signs; -1 for a row whose largest number is not 127. */
static int unit_row(const int8_t *codes, size_t size, float *scale, uint8_t *signs) {
    uint32_t squares = 0;
    int largest = 0, least = 0;
    for (size_t at = 0; at < size; at++) squares += (uint32_t)(codes[at] * codes[at]);
    for (size_t at = 0; at < size; at++) {
        if (codes[at] > largest) largest = codes[at];
        if (codes[at] < least) least = codes[at];
    }
    if ((largest > -least ? largest : -least) != 127) return -1;
    for (size_t at = 0; at < size; at++) signs[at / 8] |= (uint8_t)((codes[at] > 0) << (7 - at % 8));
    *scale = (127 / sqrtf((float)squares)) / 127;
    return 0;
}

PyObject *native_unit_rows(PyObject *module, PyObject *arguments) {
    Py_buffer codes;
    Py_ssize_t size;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*n", &codes, &size)) return NULL;
    PyObject *scales = NULL, *signs = NULL, *result = NULL;
    int fits = size > 0 && size <= MOST_DIMENSIONS && codes.len % size == 0;
    Py_ssize_t rows = fits ? codes.len / size : 0, words = fits ? (size + 63) / 64 * 8 : 0;
    if (fits) {
        scales = PyBytes_FromStringAndSize(NULL, rows * (Py_ssize_t)sizeof(float));
        signs = PyBytes_FromStringAndSize(NULL, rows * words);
    }
    int made = scales != NULL && signs != NULL;
    for (Py_ssize_t row = 0; row < rows && fits && made; row++) {
        float scale = 0;
        uint8_t bits[MOST_DIMENSIONS / 8] = {0};
        fits = unit_row((const int8_t *)codes.buf + row * size, (size_t)size, &scale, bits) == 0;
        memcpy(PyBytes_AsString(scales) + row * (Py_ssize_t)sizeof scale, &scale, sizeof scale);
        memcpy(PyBytes_AsString(signs) + row * words, bits, (size_t)words);
    }
    if (!fits) PyErr_SetString(PyExc_ValueError, "rows of codes have one length, and 127 as their largest number");
    else if (made) result = PyTuple_Pack(2, scales, signs);
    Py_XDECREF(scales);
    Py_XDECREF(signs);
    PyBuffer_Release(&codes);
    return result;
}
