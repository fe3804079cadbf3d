/* Pieces of code in ASCII: definitions, packed or cut. The rules stand in code_chunks.py and windows.py. */

#include "native.h"

enum { MAX_DEPTH = 4, MAX_STEP = 80, LONGEST_CUT = 64 };

typedef struct { Py_ssize_t start, signature, signature_end, level; } Definition;
typedef struct { Py_ssize_t start, end, first, last; } Stretch;
typedef struct {
    const char *text;
    Py_ssize_t length, size;
    const Definition *definitions;
    PyObject *attached, *after, *pieces;
} Code;

static int is_blank(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r') || (byte >= 28 && byte <= 31); }

static Py_ssize_t skip_blank(const char *text, Py_ssize_t start, Py_ssize_t end) {
    while (start < end && is_blank(text[start])) start++;
    return start;
}

static Py_ssize_t stripped(const char *text, Py_ssize_t start, Py_ssize_t end) {
    while (end > start && is_blank(text[end - 1])) end--;
    return end;
}

/* The place behind the last of two bytes from `from` to `to`; -1 without any. */
static Py_ssize_t behind(const char *text, char one, char other, Py_ssize_t from, Py_ssize_t to) {
    while (to > from && text[to - 1] != one && text[to - 1] != other) to--;
    return to > from ? to : -1;
}

static Py_ssize_t skip_blank_lines(const char *text, Py_ssize_t start, Py_ssize_t end) {
    Py_ssize_t first = skip_blank(text, start, end), line = first == end ? end : behind(text, '\n', '\n', start, first);
    return line < start ? start : line;
}

static Py_ssize_t blank_line(const char *text, Py_ssize_t floor, Py_ssize_t limit) {
    for (Py_ssize_t at = limit - 2; at >= floor; at--)
        if (text[at] == '\n' && text[at + 1] == '\n') return at;
    return -1;
}

static Py_ssize_t after_paragraph(const char *text, Py_ssize_t floor, Py_ssize_t limit) {
    Py_ssize_t half = (floor + limit) / 2, last = blank_line(text, floor, limit), found = -1, next;
    for (Py_ssize_t here = last; here >= half; here = blank_line(text, floor, here + 1))
        if (text[here + 2] != ' ' && text[here + 2] != '\t') return here + 2;
    for (Py_ssize_t at = last < 0 ? floor : limit; at < limit; at = next) {
        next = at + 1;
        if (text[at] != '\n') continue;
        while (next < limit && (text[next] == ' ' || text[next] == '\t')) next++;
        if (next > at + 1 && next < limit && text[next] == '\n') found = ++next;
    }
    return last < 0 ? found : last + 2;
}

static Py_ssize_t after_sentence(const char *text, Py_ssize_t floor, Py_ssize_t limit) {
    for (Py_ssize_t at = limit - 2; at >= floor; at--)
        if (text[at + 1] == ' ' && (text[at] == '.' || text[at] == '!' || text[at] == '?')) return at + 2;
    return -1;
}

static Py_ssize_t cut_of(const char *text, Py_ssize_t start, Py_ssize_t limit) {
    Py_ssize_t content = skip_blank(text, start, limit), floor = start + (limit - start) / 4, cut, line;
    if (content > limit - 1) content = limit - 1;
    if (floor < content) floor = content;
    if ((cut = after_paragraph(text, floor, limit)) > start || (cut = behind(text, '\n', '\n', floor, limit)) > start
        || (cut = after_sentence(text, floor, limit)) > start || (cut = behind(text, ' ', '\t', floor, limit)) > start
        || (cut = behind(text, '\n', '\n', content, floor)) > start
        || (cut = behind(text, ' ', '\t', content, floor)) > start) {
        line = behind(text, '\n', '\n', content, cut);
        return line >= 0 && skip_blank(text, line, cut) == cut ? line : cut;
    }
    for (cut = limit; cut > content && cut > limit - LONGEST_CUT; cut--)
        if (text[cut - 1] != '_' && !(kind_of[(uint8_t)text[cut - 1]] & (LOWER | UPPER | DIGIT))) return cut;
    return limit;
}

static int add_piece(const Code *code, Py_ssize_t start, Py_ssize_t end, PyObject *heading) {
    end = stripped(code->text, start, end);
    if (start >= end) return 0;
    PyObject *piece = Py_BuildValue("(nnO)", start, end, heading);
    int failed = piece == NULL ? -1 : PyList_Append(code->pieces, piece);
    Py_XDECREF(piece);
    return failed;
}

static int add_windows(const Code *code, Py_ssize_t start, Py_ssize_t end, PyObject *scope) {
    int failed = 0;
    start = skip_blank_lines(code->text, start, end);
    while (!failed && end - start > code->size) {
        Py_ssize_t limit = start + code->size, most = end - code->size / 4;
        Py_ssize_t cut = cut_of(code->text, start, limit < most ? limit : most);
        failed = add_piece(code, start, cut, scope);
        start = skip_blank_lines(code->text, cut, end);
    }
    return failed ? failed : add_piece(code, start, end, scope);
}

/* The scope and, as one more step, the signatures of the definitions that these parts begin with. */
static PyObject *heading_of(const Code *code, PyObject *scope, const Stretch *parts, Py_ssize_t count) {
    char step[MAX_STEP + 8];
    Py_ssize_t size = 0, held = 0;
    for (Py_ssize_t at = 0; at < count && size < MAX_STEP; at++) {
        if (parts[at].first == parts[at].last) continue;
        const Definition *own = &code->definitions[parts[at].first];
        Py_ssize_t from = own->signature, to = stripped(code->text, from, own->signature_end);
        int is_plain = 1;
        for (const char *byte = code->text + from; byte < code->text + to; byte++)
            is_plain &= *byte != '\t' && *byte != '\n' && (*byte != ' ' || byte[1] != ' ');
        held = size;
        if (size > 0) memcpy(step + (size += 2) - 2, ", ", 2);
        for (from = is_plain ? from : skip_blank(code->text, from, to); from < to && size < MAX_STEP;) {
            int is_gap = !is_plain && is_blank(code->text[from]);
            step[size++] = is_gap ? ' ' : code->text[from];
            from = is_gap ? skip_blank(code->text, from, to) : from + 1;
        }
    }
    if (size == 0) return Py_NewRef(scope);
    if (size >= MAX_STEP) {
        size = held > 0 ? held : MAX_STEP - 1;
        memcpy(step + size, "\xe2\x80\xa6", 3);
        size += 3;
    }
    PyObject *added = Py_BuildValue("(s#)", step, size), *heading = added ? PySequence_Concat(scope, added) : NULL;
    Py_XDECREF(added);
    return heading;
}

/* The place that Python has found; -1 when it failed. */
static Py_ssize_t place_in(const Code *code, PyObject *answer) {
    Py_ssize_t place = answer == NULL ? -1 : PyLong_AsSsize_t(answer);
    if (place > code->length || (place < 0 && !PyErr_Occurred())) PyErr_SetString(PyExc_ValueError, "no such place");
    Py_XDECREF(answer);
    return PyErr_Occurred() ? -1 : place;
}

/* The start of a definition with what is attached to it, or the end of the whole; -1 when that failed. */
static Py_ssize_t bound_of(const Code *code, const Stretch *whole, Py_ssize_t index) {
    if (index == whole->last) return whole->end;
    Py_ssize_t start = code->definitions[index].start;
    if (code->text[start < 2 ? code->length + start - 2 : start - 2] == '\n') return start;
    start = place_in(code, PyObject_CallFunction(code->attached, "n", index));
    return start >= 0 && start < whole->start ? whole->start : start;
}

/* The parts of a stretch with definitions, of which there may be one more than definitions; -1 when that failed. */
static Py_ssize_t parts_of(const Code *code, const Stretch *whole, Stretch *parts) {
    Py_ssize_t count = 0, reached = whole->start, index = whole->first, start = bound_of(code, whole, index), end;
    for (Py_ssize_t following = index; index < whole->last; index = following) {
        do following++;
        while (following < whole->last && code->definitions[following].level != code->definitions[whole->first].level);
        if (start < 0 || (end = bound_of(code, whole, following)) < 0) return -1;
        Py_ssize_t head = start - reached, own = end - start;
        if (head > 0 && (head >= code->size / 4 || (head + own > code->size && code->size >= own))) {
            parts[count++] = (Stretch){reached, start, index, index};
            reached = start;
        }
        parts[count++] = (Stretch){reached, end, index, following};
        reached = start = end;
    }
    return count;
}

static int split(const Code *code, Stretch whole, PyObject *scope, int depth);

static int split_part(const Code *code, const Stretch *part, PyObject *scope, int depth) {
    if (part->first == part->last) return add_windows(code, part->start, part->end, scope);
    const Definition *own = &code->definitions[part->first];
    Py_ssize_t behind_last = code->definitions[part->last - 1].signature_end, indent = own->signature - own->start;
    PyObject *inner = heading_of(code, scope, part, 1);
    PyObject *answer = inner ? PyObject_CallFunction(code->after, "nnn", indent, behind_last, part->end) : NULL;
    Py_ssize_t end = place_in(code, answer);
    int failed = end < 0 || split(code, (Stretch){part->start, end, part->first + 1, part->last}, inner, depth)
                 || (end < part->end && add_windows(code, end, part->end, scope));
    Py_XDECREF(inner);
    return failed ? -1 : 0;
}

static int split(const Code *code, Stretch whole, PyObject *scope, int depth) {
    if (whole.first == whole.last || depth == MAX_DEPTH) return add_windows(code, whole.start, whole.end, scope);
    Stretch *parts = malloc(sizeof(Stretch) * (size_t)(whole.last - whole.first + 1));
    Py_ssize_t count = parts == NULL ? -1 : parts_of(code, &whole, parts), at = 0;
    int failed = count < 0;
    if (parts == NULL) PyErr_NoMemory();
    while (!failed && at < count) {
        Py_ssize_t start = parts[at].start, following = at;
        if (parts[at].first < parts[at].last)
            while (following < count && parts[following].end - start <= code->size) following++;
        if (following == at) {
            failed = split_part(code, &parts[at++], scope, depth + 1);
            continue;
        }
        PyObject *heading = heading_of(code, scope, parts + at, following - at);
        Py_ssize_t end = parts[following - 1].end;
        failed = heading == NULL || add_piece(code, skip_blank_lines(code->text, start, end), end, heading);
        Py_XDECREF(heading);
        at = following;
    }
    free(parts);
    return failed ? -1 : 0;
}

PyObject *native_code_pieces(PyObject *module, PyObject *arguments) {
    PyObject *text, *given, *attached, *after, *scope;
    Py_ssize_t size, end;
    Utf8 utf8;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "UO!nOO", &text, &PyList_Type, &given, &size, &attached, &after)
        || utf8_of(text, &utf8) < 0 || (scope = PyTuple_New(0)) == NULL)
        return NULL;
    Py_ssize_t count = PyList_Size(given);
    Definition *found = malloc(sizeof(Definition) * (size_t)(count + 1)), *own = found;
    Code code = {utf8.data, PyUnicode_GetLength(text), size, found, attached, after, NULL};
    int is_sound = found != NULL && utf8.size == code.length && code.length > size && size > 0;
    for (; is_sound && own < found + count; own++)
        is_sound = PyArg_ParseTuple(PyList_GetItem(given, own - found), "nnnnn", &own->start, &own->signature,
                                    &own->signature_end, &end, &own->level)
                   && 0 <= own->start && own->start <= own->signature && own->signature <= own->signature_end
                   && own->signature_end <= code.length;
    if (is_sound) code.pieces = PyList_New(0);
    else if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a definition lies outside of its text");
    if (code.pieces != NULL && split(&code, (Stretch){0, code.length, 0, count}, scope, 0) < 0) Py_CLEAR(code.pieces);
    Py_DECREF(scope);
    Py_XDECREF(utf8.owner);
    free(found);
    return code.pieces;
}
