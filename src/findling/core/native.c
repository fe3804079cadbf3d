/* Words of a text: its terms, and the places of those that are wanted. The rules stand in text/analysis. */

#include "native.h"

#define LONGEST_WORD 128   /* as in text/analysis/scripts.py */
#define MOST_ALTERNATIONS 6

uint8_t kind_of[256];
char lower_of[256];

static void prepare_kinds(void) {
    for (int code = 0; code < 256; code++) {
        lower_of[code] = (char)code;
        if (code >= 128) kind_of[code] = HIGH;
        else if (code >= 'a' && code <= 'z') kind_of[code] = LOWER;
        else if (code >= 'A' && code <= 'Z') { kind_of[code] = UPPER; lower_of[code] = (char)(code + 32); }
        else if (code >= '0' && code <= '9') kind_of[code] = DIGIT;
        else if (code == '+' || code == '#') kind_of[code] = SIGN;
        else if (code == ' ' || code == '\t' || code == '\n' || code == '\r') kind_of[code] = SPACE;
        else if (code < 32 || code == 127) kind_of[code] = DROPPED;
        else kind_of[code] = MARK;
    }
}

int utf8_of(PyObject *text, Utf8 *utf8) {
    utf8->owner = NULL;
    utf8->data = PyUnicode_AsUTF8AndSize(text, &utf8->size);
    if (utf8->data != NULL) return 0;
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) return -1;
    PyErr_Clear();
    char *data;
    utf8->owner = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
    if (utf8->owner == NULL || PyBytes_AsStringAndSize(utf8->owner, &data, &utf8->size) < 0) {
        Py_CLEAR(utf8->owner);
        return -1;
    }
    utf8->data = data;
    return 0;
}

/* --- a buffer that grows --- */

typedef struct {
    char *data;
    size_t size, room;
} Output;

static int make_room(Output *out, size_t more) {
    if (out->room - out->size >= more) return 0;
    size_t room = out->room * 2 + more + 64;
    char *data = realloc(out->data, room);
    if (data == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    out->data = data;
    out->room = room;
    return 0;
}

/* --- the terms of one word --- */

#define MOST_TERMS (3 * LONGEST_WORD + 8)
#define MOST_BYTES (8 * LONGEST_WORD + 64)

/* The terms of a word one behind the other, each with a space after it. */
typedef struct {
    char data[MOST_BYTES];
    int size;
    int starts[MOST_TERMS];
    int count;
} Terms;

static void add_term(Terms *terms, const char *word, int length) {
    terms->starts[terms->count++] = terms->size;
    for (int at = 0; at < length; at++) terms->data[terms->size++] = lower_of[(uint8_t)word[at]];
    terms->data[terms->size++] = ' ';
}

static int term_length(const Terms *terms, int number) {
    int end = number + 1 < terms->count ? terms->starts[number + 1] : terms->size;
    return end - terms->starts[number] - 1;
}

static int kinds_until(const char *word, int from, int length, int kinds) {
    while (from < length && (kind_of[(uint8_t)word[from]] & kinds)) from++;
    return from;
}

static int is_kind(const char *word, int at, int length, int kinds) {
    return at < length && (kind_of[(uint8_t)word[at]] & kinds) != 0;
}

/* The end of the subword that begins here: _SUBWORD of scripts.py. */
static int subword_end(const char *word, int from, int length) {
    int upper = kinds_until(word, from, length, UPPER), capitals = upper - from;
    if (capitals >= 2) {
        if (is_kind(word, upper, length, DIGIT)) return kinds_until(word, upper, length, DIGIT);
        if (is_kind(word, upper, length, LOWER) && is_kind(word, upper + 1, length, DIGIT))
            return kinds_until(word, upper + 1, length, DIGIT);
    }
    if (capitals >= 1 && !is_kind(word, upper, length, LOWER)) return kinds_until(word, upper, length, DIGIT);
    if (capitals >= 2) return upper - 1;
    if (is_kind(word, upper, length, LOWER)) {
        return kinds_until(word, kinds_until(word, upper, length, LOWER), length, DIGIT);
    }
    return kinds_until(word, from, length, DIGIT);
}

/* The end of the letters or digits that begin here: _LETTERS_OR_DIGITS of scripts.py. */
static int stretch_end(const char *word, int from, int length) {
    if (is_kind(word, from, length, DIGIT)) return kinds_until(word, from, length, DIGIT);
    if (is_kind(word, from, length, UPPER) && !is_kind(word, from + 1, length, LOWER))
        return kinds_until(word, from, length, UPPER);
    return kinds_until(word, from + 1, length, LOWER);
}

static int alternations(const char *word, int length) {
    int count = 0, at = 0;
    while (at < length) {
        int kinds = is_kind(word, at, length, DIGIT) ? DIGIT : LOWER | UPPER;
        at = kinds_until(word, at, length, kinds);
        count++;
    }
    return count;
}

/* identifier_terms of scripts.py for letters and digits. */
static void add_identifier(Terms *terms, const char *word, int length, int kinds) {
    if (length == 0 || length > LONGEST_WORD) return;
    int is_alpha = !(kinds & DIGIT);
    if (kinds == LOWER || (!is_alpha && alternations(word, length) > MOST_ALTERNATIONS)) {
        add_term(terms, word, length);
        return;
    }
    if (subword_end(word, 0, length) < length) add_term(terms, word, length);
    for (int from = 0; from < length;) {
        int end = subword_end(word, from, length);
        add_term(terms, word + from, end - from);
        int held = 0;
        for (int at = from; at < end; at++) held |= kind_of[(uint8_t)word[at]];
        if ((held & DIGIT) && held != DIGIT) {
            for (int at = from; at < end;) {
                int after = stretch_end(word, at, end);
                add_term(terms, word + at, after - at);
                at = after;
            }
        }
        from = end;
    }
}

static int kinds_in(const char *word, int length) {
    int kinds = 0;
    for (int at = 0; at < length; at++) kinds |= kind_of[(uint8_t)word[at]];
    return kinds;
}

/* identifier_terms of scripts.py for a word of words_of_run. */
static void word_terms(Terms *terms, const char *word, Py_ssize_t size, int kinds) {
    terms->size = terms->count = 0;
    if (size == 0 || size > LONGEST_WORD) return;
    int length = (int)size;
    if (!(kinds & SIGN)) {
        add_identifier(terms, word, length, kinds);
        return;
    }
    int name = kinds_until(word, 0, length, LOWER | UPPER);
    int signed_end = kinds_until(word, name, length, SIGN);
    if (signed_end < length) add_term(terms, word, length);
    add_identifier(terms, word, name, kinds_in(word, name));
    add_term(terms, word, signed_end);
    add_identifier(terms, word + signed_end, length - signed_end, kinds_in(word + signed_end, length - signed_end));
}

/* The end of the word of a run that begins here, 0 for none: _word of scripts.py. */
static Py_ssize_t word_end(const char *run, Py_ssize_t from, Py_ssize_t size) {
    if (kind_of[(uint8_t)run[from]] & SIGN) return 0;
    Py_ssize_t letters = from;
    while (letters < size && (kind_of[(uint8_t)run[letters]] & (LOWER | UPPER))) letters++;
    Py_ssize_t count = letters - from;
    int is_first = from == 0 || (kind_of[(uint8_t)run[from - 1]] & SIGN);
    if (is_first && count >= 1 && count <= 12 && letters + 1 < size && run[letters] == '+' && run[letters + 1] == '+') {
        Py_ssize_t after = letters + 2;
        int next = after < size ? kind_of[(uint8_t)run[after]] : 0;
        if (!(next & (LOWER | UPPER)) && !(after < size && run[after] == '+')) {
            while (after < size && (kind_of[(uint8_t)run[after]] & (LOWER | UPPER | DIGIT))) after++;
            return after;
        }
    }
    if (is_first && count >= 1 && count <= 2 && letters < size && run[letters] == '#') {
        Py_ssize_t after = letters + 1;
        int next = after < size ? kind_of[(uint8_t)run[after]] : 0;
        if (!(next & (LOWER | UPPER | DIGIT)) && !(after < size && run[after] == '#')) return after;
    }
    Py_ssize_t end = letters;
    while (end < size && !(kind_of[(uint8_t)run[end]] & SIGN)) end++;
    return end;
}

/* The end of a run of letters, digits and signs, and the kinds in it. */
static Py_ssize_t run_end(const char *text, Py_ssize_t from, Py_ssize_t size, int *kinds) {
    int held = 0;
    while (from < size) {
        int kind = kind_of[(uint8_t)text[from]];
        if (!(kind & WORD)) break;
        held |= kind;
        from++;
    }
    *kinds = held;
    return from;
}

/* --- index_form --- */

static int append_run(Output *out, const char *run, Py_ssize_t size, int kinds) {
    Terms terms;
    for (Py_ssize_t at = 0; at < size;) {
        Py_ssize_t end = kinds & SIGN ? word_end(run, at, size) : size;
        if (end == 0) {
            at++;
            continue;
        }
        if (end - at > LONGEST_WORD) {
            at = end;
            continue;
        }
        word_terms(&terms, run + at, end - at, kinds & SIGN ? kinds_in(run + at, (int)(end - at)) : kinds);
        if (make_room(out, (size_t)terms.size + (size_t)size + 2) < 0) return -1;
        memcpy(out->data + out->size, terms.data, (size_t)terms.size);
        out->size += (size_t)terms.size;
        at = end;
    }
    return 0;
}

/* What Python makes of a stretch that is not ASCII: `rest[stretch]`. */
static int append_rest(Output *out, const char *stretch, Py_ssize_t size, PyObject *rest) {
    PyObject *key = PyUnicode_DecodeUTF8(stretch, size, "surrogatepass");
    PyObject *value = key == NULL ? NULL : PyObject_GetItem(rest, key);
    Py_XDECREF(key);
    if (value == NULL) return -1;
    Py_ssize_t length;
    const char *terms = PyUnicode_AsUTF8AndSize(value, &length);
    int failed = terms == NULL || make_room(out, (size_t)length) < 0;
    if (!failed) {
        memcpy(out->data + out->size, terms, (size_t)length);
        out->size += (size_t)length;
    }
    Py_DECREF(value);
    return failed ? -1 : 0;
}

static PyObject *native_index_form(PyObject *module, PyObject *arguments) {
    PyObject *text, *rest, *result = NULL;
    Utf8 utf8;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "UO", &text, &rest) || utf8_of(text, &utf8) < 0) return NULL;
    Output out = {NULL, 0, 0};
    /* There is always room for the rest of the text, a space, and what eight bytes at a time copy too much. */
    int failed = make_room(&out, (size_t)utf8.size + (size_t)utf8.size / 2 + 8);
    for (Py_ssize_t at = 0; at < utf8.size && !failed;) {
        if (!(kind_of[(uint8_t)utf8.data[at]] & WORD)) {
            at++;
            continue;
        }
        /* Most runs are words in small letters: they are copied while their end is looked for. */
        char *copy = out.data + out.size;
        Py_ssize_t end = at;
        while (utf8.size - end >= 8) {
            uint64_t bytes = eight_bytes(utf8.data + end);
            uint64_t others = (~BETWEEN(bytes & EACH(0x7f), 'a', 'z') | bytes) & EACH(0x80);
            unsigned held = others == 0 ? 8 : bytes_before(others);
            memcpy(copy, &bytes, sizeof bytes);
            copy += held;
            end += held;
            if (held < 8) break;
        }
        while (end < utf8.size && kind_of[(uint8_t)utf8.data[end]] == LOWER) *copy++ = utf8.data[end++];
        if (end > at && (end == utf8.size || !(kind_of[(uint8_t)utf8.data[end]] & WORD))) {
            if (end - at <= LONGEST_WORD) {
                *copy++ = ' ';
                out.size = (size_t)(copy - out.data);
            }
            at = end;
            continue;
        }
        int kinds;
        end = run_end(utf8.data, at, utf8.size, &kinds);
        if (kinds & HIGH) {
            /* A mark that follows may change the separator in front: = and U+0338 are one sign. */
            Py_ssize_t start = at > 0 && (kind_of[(uint8_t)utf8.data[at]] & HIGH) ? at - 1 : at;
            failed = append_rest(&out, utf8.data + start, end - start, rest);
        } else failed = append_run(&out, utf8.data + at, end - at, kinds);
        at = end;
        failed = failed || make_room(&out, (size_t)(utf8.size - at) + 8);
    }
    if (!failed) result = PyUnicode_DecodeUTF8(out.data, out.size ? (Py_ssize_t)out.size - 1 : 0, "strict");
    free(out.data);
    Py_XDECREF(utf8.owner);
    return result;
}

/* --- count_bytes --- */

static PyObject *native_count_bytes(PyObject *module, PyObject *arguments) {
    PyObject *text;
    Py_buffer wanted;
    Py_ssize_t most, found = 0;
    Utf8 utf8;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Uy*n", &text, &wanted, &most)) return NULL;
    uint8_t counts[256] = {0};
    for (Py_ssize_t at = 0; at < wanted.len; at++) counts[((const uint8_t *)wanted.buf)[at]] = 1;
    PyBuffer_Release(&wanted);
    if (utf8_of(text, &utf8) < 0) return NULL;
    for (Py_ssize_t at = 0; at < utf8.size && found < most; at++) found += counts[(uint8_t)utf8.data[at]];
    Py_XDECREF(utf8.owner);
    return PyLong_FromSsize_t(found);
}

/* --- matching_spans --- */

/* The wanted terms, by their hashes. */
typedef struct {
    PyObject *list;
    Py_ssize_t count;
    const char **data;
    Py_ssize_t *sizes;
    int32_t *slots;
    uint32_t mask;
} Wanted;

static uint32_t hash_of(const char *data, Py_ssize_t size) {
    uint32_t hash = HASH_START;
    for (Py_ssize_t at = 0; at < size; at++) hash = HASHED(hash, data[at]);
    return hash ^ (hash >> 15);
}

static void free_wanted(Wanted *wanted) {
    free(wanted->data);
    free(wanted->sizes);
    free(wanted->slots);
    Py_XDECREF(wanted->list);
}

static int read_wanted(PyObject *given, Wanted *wanted) {
    memset(wanted, 0, sizeof *wanted);
    wanted->list = PySequence_List(given);
    if (wanted->list == NULL) return -1;
    wanted->count = PyList_Size(wanted->list);
    size_t count = (size_t)wanted->count, slots = 16;
    while (slots < count * 2) slots *= 2;
    wanted->mask = (uint32_t)slots - 1;
    wanted->data = malloc((count + 1) * sizeof *wanted->data);
    wanted->sizes = malloc((count + 1) * sizeof *wanted->sizes);
    wanted->slots = malloc(slots * sizeof *wanted->slots);
    if (count > 1u << 28 || !wanted->data || !wanted->sizes || !wanted->slots) {
        PyErr_NoMemory();
        return -1;
    }
    memset(wanted->slots, 0xff, slots * sizeof *wanted->slots);
    for (Py_ssize_t number = 0; number < wanted->count; number++) {
        PyObject *term = PyList_GetItem(wanted->list, number);
        if (!PyUnicode_Check(term)) {
            PyErr_SetString(PyExc_TypeError, "a wanted term is no string");
            return -1;
        }
        wanted->data[number] = PyUnicode_AsUTF8AndSize(term, &wanted->sizes[number]);
        if (wanted->data[number] == NULL) {
            /* No text gives a term with a lone surrogate. */
            if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) return -1;
            PyErr_Clear();
            continue;
        }
        uint32_t slot = hash_of(wanted->data[number], wanted->sizes[number]) & wanted->mask;
        while (wanted->slots[slot] >= 0) slot = (slot + 1) & wanted->mask;
        wanted->slots[slot] = (int32_t)number;
    }
    return 0;
}

static int32_t find_wanted(const Wanted *wanted, const char *term, Py_ssize_t size) {
    uint32_t slot = hash_of(term, size) & wanted->mask;
    for (int32_t number; (number = wanted->slots[slot]) >= 0; slot = (slot + 1) & wanted->mask) {
        if (wanted->sizes[number] == size && memcmp(wanted->data[number], term, (size_t)size) == 0) return number;
    }
    return -1;
}

/* Adds the span of a word whose terms are wanted; in the order of the wanted terms, or of its own. */
static int add_span(PyObject *spans, const Wanted *wanted, const int32_t *found, int count, Py_ssize_t start,
                    Py_ssize_t end) {
    PyObject *terms = PyList_New(count);
    if (terms == NULL) return -1;
    for (int place = 0; place < count; place++) {
        PyObject *term = PyList_GetItem(wanted->list, found[place]);
        Py_INCREF(term);
        PyList_SetItem(terms, place, term);
    }
    PyObject *span = Py_BuildValue("(nnN)", start, end, terms);
    if (span == NULL) return -1;
    int failed = PyList_Append(spans, span);
    Py_DECREF(span);
    return failed;
}

static int match_word(PyObject *spans, const Wanted *wanted, const char *word, Py_ssize_t size, int kinds,
                      Py_ssize_t start, int in_wanted_order) {
    if (kinds == LOWER) {
        int32_t number = size <= LONGEST_WORD ? find_wanted(wanted, word, size) : -1;
        return number < 0 ? 0 : add_span(spans, wanted, &number, 1, start, start + size);
    }
    Terms terms;
    int32_t found[MOST_TERMS];
    int count = 0;
    word_terms(&terms, word, size, kinds);
    for (int number = 0; number < terms.count; number++) {
        int32_t place = find_wanted(wanted, terms.data + terms.starts[number], term_length(&terms, number));
        if (place < 0) continue;
        int at = 0;
        while (at < count && found[at] != place) at++;
        if (at < count) continue;
        for (at = count++; in_wanted_order && at > 0 && found[at - 1] > place; at--) found[at] = found[at - 1];
        found[at] = place;
    }
    return count == 0 ? 0 : add_span(spans, wanted, found, count, start, start + size);
}

/* The words of a run of ASCII. `offset` is the number of characters in front of it. */
static int match_run(PyObject *spans, const Wanted *wanted, const char *run, Py_ssize_t size, int kinds,
                     Py_ssize_t offset, int in_wanted_order) {
    if (!(kinds & SIGN)) return match_word(spans, wanted, run, size, kinds, offset, in_wanted_order);
    for (Py_ssize_t at = 0; at < size;) {
        Py_ssize_t end = word_end(run, at, size);
        if (end == 0) {
            at++;
            continue;
        }
        Py_ssize_t length = end - at;
        if (length <= LONGEST_WORD
            && match_word(spans, wanted, run + at, length, kinds_in(run + at, (int)length), offset + at, in_wanted_order) < 0)
            return -1;
        at = end;
    }
    return 0;
}

static int match_ascii(PyObject *spans, const Wanted *wanted, const char *text, Py_ssize_t size, Py_ssize_t offset,
                       int in_wanted_order) {
    for (Py_ssize_t at = 0; at < size;) {
        if (!(kind_of[(uint8_t)text[at]] & WORD)) {
            at++;
            continue;
        }
        int kinds;
        Py_ssize_t end = run_end(text, at, size, &kinds);
        if (match_run(spans, wanted, text + at, end - at, kinds, offset + at, in_wanted_order) < 0) return -1;
        at = end;
    }
    return 0;
}

int space_size(const char *text, Py_ssize_t at, Py_ssize_t size) {
    const uint8_t *byte = (const uint8_t *)text + at;
    Py_ssize_t left = size - at;
    if (byte[0] < 128) return byte[0] == ' ' || (byte[0] >= 9 && byte[0] <= 13) || (byte[0] >= 28 && byte[0] <= 31);
    if (left >= 2 && byte[0] == 0xC2 && (byte[1] == 0x85 || byte[1] == 0xA0)) return 2;
    if (left < 3) return 0;
    int code = (byte[0] & 15) << 12 | (byte[1] & 63) << 6 | (byte[2] & 63);
    int is_space = code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029
                   || code == 0x202F || code == 0x205F || code == 0x3000;
    return byte[0] >> 4 == 14 && is_space ? 3 : 0;
}

/* Adds what Python finds in a piece between spaces that is not ASCII: `rest(piece, offset)`. */
static int match_rest(PyObject *spans, PyObject *rest, const char *piece, Py_ssize_t size, Py_ssize_t offset) {
    PyObject *text = PyUnicode_DecodeUTF8(piece, size, "surrogatepass");
    if (text == NULL) return -1;
    PyObject *found = PyObject_CallFunction(rest, "On", text, offset);
    Py_DECREF(text);
    if (found == NULL) return -1;
    Py_ssize_t end = PyList_Size(spans);
    int failed = end < 0 || PyList_SetSlice(spans, end, end, found) < 0;
    Py_DECREF(found);
    return failed ? -1 : 0;
}

static int match_unicode(PyObject *spans, const Wanted *wanted, const char *text, Py_ssize_t size, PyObject *rest) {
    Py_ssize_t offset = 0;
    for (Py_ssize_t at = 0; at < size;) {
        int space = space_size(text, at, size);
        if (space) {
            at += space;
            offset++;
            continue;
        }
        Py_ssize_t end = at, length = 0;
        int is_ascii = 1;
        while (end < size && !space_size(text, end, size)) {
            uint8_t byte = (uint8_t)text[end++];
            is_ascii &= byte < 128;
            length += (byte & 0xC0) != 0x80;
        }
        int failed = is_ascii ? match_ascii(spans, wanted, text + at, end - at, offset, 0)
                              : match_rest(spans, rest, text + at, end - at, offset);
        if (failed) return -1;
        offset += length;
        at = end;
    }
    return 0;
}

static PyObject *native_matching_spans(PyObject *module, PyObject *arguments) {
    PyObject *text, *given, *rest, *spans = NULL;
    Utf8 utf8;
    Wanted wanted;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "UOO", &text, &given, &rest) || utf8_of(text, &utf8) < 0) return NULL;
    if (read_wanted(given, &wanted) == 0 && (spans = PyList_New(0)) != NULL) {
        int is_ascii = utf8.owner == NULL && utf8.size == PyUnicode_GetLength(text);
        int failed = is_ascii ? match_ascii(spans, &wanted, utf8.data, utf8.size, 0, 1)
                              : match_unicode(spans, &wanted, utf8.data, utf8.size, rest);
        if (failed) Py_CLEAR(spans);
    }
    free_wanted(&wanted);
    Py_XDECREF(utf8.owner);
    return spans;
}

/* --- the module --- */

static PyMethodDef methods[] = {
    {"index_form", native_index_form, METH_VARARGS,
     "index_form(text, rest): all terms of a text; `rest[stretch]` gives those of a stretch that is not ASCII."},
    {"count_bytes", native_count_bytes, METH_VARARGS,
     "count_bytes(text, wanted, most): how many bytes of a text in UTF-8 are among the wanted ones, or `most`."},
    {"code_pieces", native_code_pieces, METH_VARARGS,
     "code_pieces(text, definitions, size, attached, after): the pieces of a text of ASCII that is larger than one."},
    {"chunk_rows", native_chunk_rows, METH_VARARGS,
     "chunk_rows(text, pieces, lines or None, title, bits, repeat): the values of a chunk for each piece."},
    {"matching_spans", native_matching_spans, METH_VARARGS,
     "matching_spans(text, wanted, rest): spans of words that give a wanted term; `rest(piece, offset)` for the others."},
    {"sentences", native_sentences, METH_VARARGS,
     "sentences(text, wrapped, spaces, longest): start, end, lines, rows, top and bottom of each, in eight lists."},
    {"vocabulary", native_vocabulary, METH_VARARGS, "vocabulary(entries): a WordPiece vocabulary, one entry a line."},
    {"word_pieces", native_word_pieces, METH_VARARGS,
     "word_pieces(vocabulary, word): the numbers of the entries that make up a word."},
    {"count_tokens", native_count_tokens, METH_VARARGS,
     "count_tokens(vocabulary, text, rest): the number of tokens; `rest[word]` gives those of a word that is not ASCII."},
    {"instant_sums", native_instant_sums, METH_VARARGS,
     "instant_sums(vocabulary, table, offset, texts, rest): 256 doubles a text, in whole numbers."},
    {"instant_codes", native_instant_codes, METH_VARARGS,
     "instant_codes(vocabulary, table, offset, texts, rest): 256 bytes a text."},
    {"unit_rows", native_unit_rows, METH_VARARGS,
     "unit_rows(codes, size): the scales of rows of codes at length 1, and their signs."},
    {"scan", native_scan, METH_VARARGS,
     "scan(query, codes, scales, scale, out[, kernel]): products of a query and all rows, times both scales, into `out`."},
    {"differing_bits", native_differing_bits, METH_VARARGS,
     "differing_bits(query, signs, out): in how many bits each row differs from the query, as 16-bit numbers into `out`."},
    {"trigram_form", native_trigram_form, METH_O,
     "trigram_form(folded): the trigrams of a folded text, each once, with spaces between them."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "The compiled core; `findling.core` loads it.", -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) {
    prepare_kinds();
    pieces_prepare();
    scan_prepare();
    PyObject *module = PyModule_Create(&definition), *kernels = scan_kernels();
    if (module != NULL
        && (kernels == NULL || PyModule_AddObjectRef(module, "KERNELS", kernels) < 0
            || PyModule_AddStringConstant(module, "VERSION", FINDLING_CORE_VERSION) < 0))
        Py_CLEAR(module);
    Py_XDECREF(kernels);
    return module;
}
