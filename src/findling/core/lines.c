/* The sentences of a passage and their lines. The rules stand in text/analysis/lines.py. */

#include "native.h"

#define MARKS "-*+|>#=~`•·:$@<.{}/"
#define STOPS ".!?。！？"
#define ENDS STOPS ":;"
#define QUOTES "\"')]*_`”’"
#define ROLE "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:+-"

enum { START, END, FIRST, LAST, ROW, LAST_ROW, TOP, BOTTOM, FIELDS };

/* The bytes of a character by its first one. */
static Py_ssize_t width_of(const char *text) {
    uint8_t byte = (uint8_t)*text;
    return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/* The bytes of the character that begins here if it is one of those, else 0. */
static Py_ssize_t one_of(const char *those, const char *text, Py_ssize_t left) {
    for (; *those; those += width_of(those))
        if (width_of(those) <= left && memcmp(those, text, (size_t)width_of(those)) == 0) return width_of(those);
    return 0;
}

/* Whether a line begins something new: it has a mark there, and no marked words, role or link. */
static int is_entry(const char *text, Py_ssize_t at, Py_ssize_t end) {
    Py_ssize_t next = at + 1;
    if (!one_of(MARKS, text + at, end - at)) return 0;
    if (text[at] == '`') return end - at > 2 && text[next] == '`' && text[next + 1] == '`';
    if (text[at] == '<') return end - at < 5 || memcmp(text + at, "<http", 5) != 0;
    if (text[at] == '*') {
        if (next < end && text[next] == '*') next++;
        return next >= end || (text[next] && strchr("* \t\n\r\f\v", text[next]) != NULL);
    }
    if (text[at] != ':') return 1;
    next += (Py_ssize_t)strspn(text + next, ROLE); /* the text ends with a zero byte, and a line with none of these */
    return next >= end || text[next] != '`' || text[next - 1] != ':' || next - at < 3;
}

static Py_ssize_t characters(const char *text, Py_ssize_t from, Py_ssize_t to) {
    Py_ssize_t count = 0;
    for (; from < to; from++) count += ((uint8_t)text[from] & 0xC0) != 0x80;
    return count;
}

/* The first byte behind the sentence that ends first in a line, of which something follows in it; 0 for none. */
static Py_ssize_t sentence_end(const char *text, Py_ssize_t at, Py_ssize_t end) {
    for (; at < end; at++) {
        Py_ssize_t width, after, spaces = 0;
        if (strchr(".!?", text[at]) != NULL && text[at] != 0) {
            after = at + 1;
            for (int quotes = 0; quotes < 3 && (width = one_of(QUOTES, text + after, end - after)); quotes++)
                after += width;
            for (int space; after < end && (space = space_size(text, after, end)); spaces += space) after += space;
            if (spaces && after < end && !(text[after] >= 'a' && text[after] <= 'z')) return after;
        } else if ((uint8_t)text[at] >= 0xE0 && (width = one_of("。！？", text + at, end - at))) {
            after = at + width;
            if (after < end && !space_size(text, after, end)) return after;
        }
    }
    return 0;
}

/* The first and the last byte of a line that are no space, in `span`; whether there is one. */
static int stripped(const char *text, Py_ssize_t from, Py_ssize_t to, Py_ssize_t span[2]) {
    int space;
    for (; from < to && (space = space_size(text, from, to)); from += space) {}
    span[0] = span[1] = from;
    for (; from < to; from += space ? space : 1)
        if (!(space = space_size(text, from, to))) span[1] = from + 1;
    return span[1] > span[0];
}

/* The end of a line without the quotes behind it, and in `last` where its last character begins. */
static Py_ssize_t unquoted(const char *text, const Py_ssize_t span[2], Py_ssize_t *last) {
    Py_ssize_t end = span[1];
    for (;; end = *last) {
        for (*last = end - 1; *last > span[0] && ((uint8_t)text[*last] & 0xC0) == 0x80; --*last) {}
        if (end <= span[0] || !one_of(QUOTES, text + *last, end - *last)) return end;
    }
}

static int append_all(PyObject *lists, const Py_ssize_t values[FIELDS]) {
    for (int field = 0; field < FIELDS; field++) {
        PyObject *value = PyLong_FromSsize_t(values[field]);
        int failed = value == NULL || PyList_Append(PyTuple_GetItem(lists, field), value) < 0;
        Py_XDECREF(value);
        if (failed) return -1;
    }
    return 0;
}

/* What is known of the line before, and the sentence that is open. */
typedef struct {
    Py_ssize_t values[FIELDS], at_byte, at, row, number, wrapped, spaces, longest;
    int is_open, goes_on;
} State;

/* Adds the sentences that end in a line; the last one stays open. The line ends before `to`, its break begins there. */
static int read_line(PyObject *lists, const char *text, Py_ssize_t from, Py_ssize_t to, State *state) {
    Py_ssize_t span[2], *open = state->values, start = state->at, size = characters(text, from, to), last;
    state->number++;
    state->at += size;
    if (!stripped(text, from, to, span)) return state->goes_on = 0;
    int is_long = size > state->longest;
    Py_ssize_t begin = start + characters(text, from, span[0]), end = begin + characters(text, span[0], span[1]);
    state->row++;
    if (state->goes_on && !is_entry(text, span[0], span[1]) && !is_long
        && start - open[START] <= state->longest) {
        state->is_open = 0;
    } else {
        if (state->is_open && append_all(lists, open) < 0) return -1;
        open[START] = begin, open[FIRST] = state->number, open[ROW] = state->row;
        open[TOP] = is_long ? begin : start;
    }
    open[LAST] = state->number, open[LAST_ROW] = state->row;
    for (Py_ssize_t byte = span[0], after, counted = begin; (after = sentence_end(text, byte, span[1])); byte = after) {
        counted += characters(text, byte, after);
        open[END] = counted, open[BOTTOM] = is_long ? counted : start + size;
        if (append_all(lists, open) < 0) return -1;
        open[START] = counted, open[FIRST] = state->number, open[ROW] = state->row;
        open[TOP] = is_long ? counted : start;
    }
    open[END] = end, open[BOTTOM] = start + size;
    state->is_open = 1;
    Py_ssize_t told = unquoted(text, span, &last), spaces = 0;
    for (Py_ssize_t at = span[0]; at < told; at++) spaces += text[at] == ' ';
    state->goes_on = characters(text, span[0], told) >= state->wrapped && spaces > state->spaces
                     && !one_of(ENDS, text + last, told - last);
    return 0;
}

static int read_lines(PyObject *lists, const Utf8 *utf8, State *state) {
    const char *text = utf8->data;
    for (Py_ssize_t from = 0, to; from <= utf8->size; from = to + 1) {
        for (to = from; to < utf8->size && text[to] != '\n' && text[to] != '\r'; to++) {}
        /* A break of two characters ends where its second one stands. */
        if (to + 1 < utf8->size && text[to] == '\r' && text[to + 1] == '\n') to++;
        if (read_line(lists, text, from, to, state) < 0) return -1;
        state->at++;
    }
    return state->is_open ? append_all(lists, state->values) : 0;
}

PyObject *native_sentences(PyObject *module, PyObject *arguments) {
    PyObject *text, *lists = PyTuple_New(FIELDS);
    State state = {.at = 0};
    Utf8 utf8;
    (void)module;
    for (int field = 0; field < FIELDS && lists != NULL; field++) {
        PyObject *list = PyList_New(0);
        if (list == NULL) Py_CLEAR(lists);
        else PyTuple_SetItem(lists, field, list);
    }
    if (lists == NULL || !PyArg_ParseTuple(arguments, "Unnn", &text, &state.wrapped, &state.spaces, &state.longest)
        || utf8_of(text, &utf8) < 0) {
        Py_XDECREF(lists);
        return NULL;
    }
    if (read_lines(lists, &utf8, &state) < 0) Py_CLEAR(lists);
    Py_XDECREF(utf8.owner);
    return lists;
}
