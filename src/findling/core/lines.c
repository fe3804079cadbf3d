/* The lines of a passage that say best why it was found. The rules stand in text/snippets.py. */

#include "native.h"

/* A line by its first byte and its first character, and the same of its end, without the break. */
typedef struct {
    Py_ssize_t byte, start, end_byte, end;
    double near;  /* how near in meaning to the query, once that was asked */
    int said;  /* -1: not looked at */
    int is_judged;  /* whether meaning has judged it */
} Line;

/* A term of a match: its number, and the match it belongs to. */
typedef struct {
    int32_t term;
    Py_ssize_t match;
} Given;

typedef struct {
    Utf8 utf8;
    Line *lines;
    Py_ssize_t line_count;
    Py_ssize_t (*matches)[3];  /* start, end, line, in order */
    Py_ssize_t match_count;
    Given *given;  /* in the order of the matches */
    Py_ssize_t given_count;
    int64_t *units, *held;  /* by the number of a term */
    int32_t term_count;
    int64_t all;
    PyObject *said, *plain, *text, *nearness;
    Py_ssize_t longest_said;
    int has_asked, has_near;  /* whether meaning was asked, and has judged a line */
} Passage;

static void free_passage(Passage *passage) {
    free(passage->lines);
    free(passage->matches);
    free(passage->given);
    free(passage->units);
    free(passage->held);
    Py_XDECREF(passage->utf8.owner);
}

static int find_lines(Passage *passage) {
    const char *text = passage->utf8.data;
    Py_ssize_t size = passage->utf8.size, count = 1, character = 0;
    for (Py_ssize_t at = 0; at < size; at++) count += text[at] == '\n' || text[at] == '\r';
    passage->lines = malloc((size_t)count * sizeof *passage->lines);
    if (passage->lines == NULL) return -1;
    Line *line = passage->lines;
    *line = (Line){0, 0, 0, 0, 0.0, -1, 0};
    for (Py_ssize_t at = 0; at < size; at++, character++) {
        while (at < size && ((uint8_t)text[at] & 0xC0) == 0x80) at++;
        if (at == size) break;
        if (text[at] != '\n' && text[at] != '\r') continue;
        line->end_byte = at;
        line->end = character;
        if (text[at] == '\r' && at + 1 < size && text[at + 1] == '\n') at++, character++;
        *++line = (Line){at + 1, character + 1, 0, 0, 0.0, -1, 0};
    }
    line->end_byte = size;
    line->end = character;
    passage->line_count = line - passage->lines + 1;
    return 0;
}

static Py_ssize_t line_of(const Passage *passage, Py_ssize_t offset, Py_ssize_t from) {
    while (from + 1 < passage->line_count && passage->lines[from + 1].start <= offset) from++;
    return from;
}

/* The number of a term, a new one with its units: `units(term)`. */
static int32_t term_number(Passage *passage, PyObject *numbers, PyObject *term, PyObject *units) {
    PyObject *known = PyDict_GetItemWithError(numbers, term);
    if (known != NULL) return (int32_t)PyLong_AsLong(known);
    if (PyErr_Occurred()) return -1;
    PyObject *number = PyLong_FromLong(passage->term_count), *worth = PyObject_CallFunctionObjArgs(units, term, NULL);
    int64_t value = worth == NULL ? -1 : (int64_t)PyLong_AsLongLong(worth);
    int failed = number == NULL || PyErr_Occurred() || PyDict_SetItem(numbers, term, number) < 0;
    Py_XDECREF(number);
    Py_XDECREF(worth);
    if (failed) return -1;
    if (value < 0 || value > (int64_t)1 << 32) {
        PyErr_SetString(PyExc_ValueError, "units of a term are 0 to 2^32");
        return -1;
    }
    passage->all += value;
    passage->units[passage->term_count] = value;
    return passage->term_count++;
}

static int read_terms(Passage *passage, PyObject *matches, PyObject *units) {
    PyObject *numbers = PyDict_New();
    int failed = numbers == NULL;
    for (Py_ssize_t match = 0; match < passage->match_count && !failed; match++) {
        PyObject *terms = PyTuple_GetItem(PyList_GetItem(matches, match), 2);
        Py_ssize_t count = PyTuple_Size(terms);
        for (Py_ssize_t at = 0; at < count && !failed; at++) {
            int32_t number = term_number(passage, numbers, PyTuple_GetItem(terms, at), units);
            passage->given[passage->given_count++] = (Given){number, match};
            failed = number < 0;
        }
    }
    Py_XDECREF(numbers);
    return failed ? -1 : 0;
}

/* Reads what Python calls matches: a list of (start, end, (term, …)) in order. */
static int read_matches(Passage *passage, PyObject *matches, PyObject *units) {
    passage->match_count = PyList_Size(matches);
    passage->matches = malloc(((size_t)passage->match_count + 1) * sizeof *passage->matches);
    if (passage->matches == NULL) return -1;
    Py_ssize_t terms = 0, line = 0, before = 0;
    for (Py_ssize_t number = 0; number < passage->match_count; number++) {
        PyObject *match = PyList_GetItem(matches, number), *given;
        Py_ssize_t start, end;
        if (!PyTuple_Check(match) || !PyArg_ParseTuple(match, "nnO!", &start, &end, &PyTuple_Type, &given)) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a match is no tuple");
            return -1;
        }
        if (start < before) {
            PyErr_SetString(PyExc_ValueError, "matches stand in order");
            return -1;
        }
        line = line_of(passage, before = start, line);
        passage->matches[number][0] = start;
        passage->matches[number][1] = end;
        passage->matches[number][2] = line;
        terms += PyTuple_Size(given);
    }
    if (terms > INT32_MAX) return -1;
    passage->given = malloc(((size_t)terms + 1) * sizeof *passage->given);
    passage->units = malloc(((size_t)terms + 1) * sizeof *passage->units);
    passage->held = malloc(((size_t)terms + 1) * sizeof *passage->held);
    if (!passage->given || !passage->units || !passage->held) return -1;
    return read_terms(passage, matches, units);
}

#define LONGEST_PLAIN 256

static int is_sign(char byte) {
    return byte != 0 && strchr("#=*-_> \t", byte) != NULL;
}

/* `plain(line)` of an ASCII line. Returns its size, more than `most` once it has more; -1 for any other line. */
static Py_ssize_t plain_ascii(const char *text, Py_ssize_t size, char plain[LONGEST_PLAIN], Py_ssize_t most) {
    Py_ssize_t at = 0, length = 0;
    while (at < size && is_sign(text[at])) at++;
    while (size > at && is_sign(text[size - 1])) size--;
    for (int is_apart = 0; at < size && length <= most; at++) {
        if ((uint8_t)text[at] > 127) return -1;
        if (space_size(text, at, size)) {
            is_apart = length > 0;
            continue;
        }
        if (is_apart) plain[length++] = ' ';
        plain[length++] = lower_of[(uint8_t)text[at]];
        is_apart = 0;
    }
    return length;
}

/* Whether a line is shown elsewhere: `plain(line) in said`. A line with more letters than all of those is not. */
static int is_said(Passage *passage, Py_ssize_t number) {
    Line *line = &passage->lines[number];
    if (line->said >= 0) return line->said;
    if (passage->longest_said < LONGEST_PLAIN - 2) {
        char ascii[LONGEST_PLAIN];
        Py_ssize_t most = passage->longest_said, size = line->end_byte - line->byte;
        Py_ssize_t length = plain_ascii(passage->utf8.data + line->byte, size, ascii, most);
        if (length > most) return line->said = 0;
        if (length >= 0) {
            PyObject *plain = PyUnicode_FromStringAndSize(ascii, length);
            int said = plain == NULL ? -1 : PySequence_Contains(passage->said, plain);
            Py_XDECREF(plain);
            return line->said = said;
        }
    }
    Py_ssize_t letters = 0;
    for (Py_ssize_t at = line->byte; at < line->end_byte && letters <= passage->longest_said; at++)
        letters += (kind_of[(uint8_t)passage->utf8.data[at]] & (LOWER | UPPER | DIGIT)) != 0;
    if (letters > passage->longest_said) return line->said = 0;
    const char *start = passage->utf8.data + line->byte;
    PyObject *text = PyUnicode_DecodeUTF8(start, line->end_byte - line->byte, "surrogatepass");
    PyObject *plain = text == NULL ? NULL : PyObject_CallFunctionObjArgs(passage->plain, text, NULL);
    int said = plain == NULL ? -1 : PySequence_Contains(passage->said, plain);
    Py_XDECREF(text);
    Py_XDECREF(plain);
    return line->said = said;
}

static int is_blank(const Passage *passage, Py_ssize_t number) {
    const Line *line = &passage->lines[number];
    for (Py_ssize_t at = line->byte; at < line->end_byte;) {
        int space = space_size(passage->utf8.data, at, line->end_byte);
        if (!space) return 0;
        at += space;
    }
    return 1;
}

/* The units of the terms in a stretch of lines, each where it counts most; -1 after an error. */
static int64_t units_in(Passage *passage, Py_ssize_t top, Py_ssize_t bottom, Py_ssize_t *first, Py_ssize_t *count) {
    Py_ssize_t at = *first;
    while (at < passage->given_count && passage->matches[passage->given[at].match][2] < top) at++;
    *first = at;
    memset(passage->held, 0, (size_t)passage->term_count * sizeof *passage->held);
    int64_t sum = 0;
    Py_ssize_t last = -1;
    *count = 0;
    for (; at < passage->given_count; at++) {
        const Given *given = &passage->given[at];
        Py_ssize_t line = passage->matches[given->match][2];
        if (line >= bottom) break;
        int said = is_said(passage, line);
        if (said < 0) return -1;
        int64_t worth = passage->units[given->term] / (said ? 5 : 1);
        if (worth > passage->held[given->term]) {
            sum += worth - passage->held[given->term];
            passage->held[given->term] = worth;
        }
        *count += given->match != last;
        last = given->match;
    }
    return sum;
}

#define LONGEST_LINE 400
#define MOST_JUDGED 6

/* The lines to be judged by meaning, in order: those whose words tell most, or all where no two hold any. */
static Py_ssize_t lines_to_judge(Passage *passage, Py_ssize_t chosen[MOST_JUDGED]) {
    Py_ssize_t first = 0, previous = -1, lines = 0, kept = 0, count;
    int64_t worth[MOST_JUDGED];
    for (Py_ssize_t number = 0; number < passage->match_count; number++) {
        Py_ssize_t line = passage->matches[number][2], at;
        if (line == previous) continue;
        int64_t units = units_in(passage, previous = line, line + 1, &first, &count);
        if (units < 0) return -1;
        lines++;
        for (at = kept < MOST_JUDGED ? kept++ : MOST_JUDGED; at > 0 && units > worth[at - 1]; at--)
            if (at < MOST_JUDGED) worth[at] = worth[at - 1], chosen[at] = chosen[at - 1];
        if (at < MOST_JUDGED) worth[at] = units, chosen[at] = line;
    }
    if (lines < 2) return 0;
    for (Py_ssize_t at = 1; at < kept; at++)
        for (Py_ssize_t to = at; to > 0 && chosen[to] < chosen[to - 1]; to--) {
            Py_ssize_t line = chosen[to];
            chosen[to] = chosen[to - 1], chosen[to - 1] = line;
        }
    return kept;
}

/* Adds a line to those that `nearness` is asked about, if it says something. Returns 0 when it is too long for that. */
static int add_piece(Passage *passage, Py_ssize_t number, PyObject *pieces) {
    Line *line = &passage->lines[number];
    int said = is_blank(passage, number) ? 1 : is_said(passage, number);
    if (said) return said < 0 ? -1 : 1;
    if (line->end - line->start > LONGEST_LINE) return 0;
    PyObject *piece = PyUnicode_Substring(passage->text, line->start, line->end);
    int failed = piece == NULL || PyList_Append(pieces, piece) < 0;
    Py_XDECREF(piece);
    line->is_judged = 1;
    return failed ? -1 : 1;
}

static int read_nearness(Passage *passage, PyObject *pieces) {
    if (PyList_Size(pieces) == 0) return 1;
    PyObject *given = PyObject_CallFunctionObjArgs(passage->nearness, pieces, NULL), *values;
    values = given == NULL ? NULL : PySequence_Tuple(given);
    Py_XDECREF(given);
    if (values == NULL) return -1;
    Py_ssize_t at = 0, count = PyTuple_Size(values);
    if (count != PyList_Size(pieces)) PyErr_SetString(PyExc_ValueError, "each line has one nearness");
    for (Py_ssize_t number = 0; number < passage->line_count; number++) {
        if (!passage->lines[number].is_judged || PyErr_Occurred()) continue;
        double near = PyFloat_AsDouble(PyTuple_GetItem(values, at++));
        passage->lines[number].near = near > 0.0 ? near : 0.0;
    }
    Py_DECREF(values);
    passage->has_near = 1;
    return PyErr_Occurred() ? -1 : 1;
}

/* Has meaning judge the lines, once. Returns 0 when one of them is too long, -1 after an error. */
static int ask_meaning(Passage *passage) {
    if (passage->has_asked) return 1;
    passage->has_asked = 1;
    Py_ssize_t chosen[MOST_JUDGED], count = lines_to_judge(passage, chosen);
    PyObject *pieces = count < 0 ? NULL : PyList_New(0);
    if (pieces == NULL) return -1;
    int done = 1;
    for (Py_ssize_t at = 0; at < (count ? count : passage->line_count) && done > 0; at++)
        done = add_piece(passage, count ? chosen[at] : at, pieces);
    if (done > 0) done = read_nearness(passage, pieces);
    Py_DECREF(pieces);
    return done;
}

/* The weight of some lines by words and, where meaning was asked, by meaning, rounded as Python does it. */
static double weight_of(const Passage *passage, int64_t units, double near) {
    if (!passage->has_near) return (double)units;
    char *digits = PyOS_double_to_string((double)units / (double)passage->all + near, 'f', 6, 0, NULL);
    double weight = digits == NULL ? -1.0 : PyOS_string_to_double(digits, NULL, NULL);
    PyMem_Free(digits);
    return weight;
}

/* A stretch of lines by its first one: the units of its words, and the number of its matches. */
typedef struct {
    Py_ssize_t top, count;
    int64_t units;
} Stretch;

static Py_ssize_t last_top(const Passage *passage, Py_ssize_t most) {
    return passage->line_count > most ? passage->line_count - most : 0;
}

/* The stretches that begin with a line that holds a match; their number, -1 after an error. */
static Py_ssize_t matched_stretches(Passage *passage, Py_ssize_t most, Stretch *found) {
    Py_ssize_t last = last_top(passage, most), first = 0, tops = 0;
    for (Py_ssize_t number = 0; number < passage->match_count; number++) {
        Py_ssize_t top = passage->matches[number][2] < last ? passage->matches[number][2] : last;
        if (tops && found[tops - 1].top == top) continue;
        found[tops].top = top;
        found[tops].units = units_in(passage, top, top + most, &first, &found[tops].count);
        if (found[tops++].units < 0) return -1;
    }
    return tops;
}

/* Whether words alone tell which stretch is shown: more than 7 of 10 parts, and 3 of 10 ahead, as in _is_clear. */
static int is_clear(const Passage *passage, Py_ssize_t most, const Stretch *found, Py_ssize_t tops) {
    Py_ssize_t best = 0;
    int64_t rival = 0;
    for (Py_ssize_t at = 1; at < tops; at++)
        if (found[at].units > found[best].units) best = at;
    for (Py_ssize_t at = 0; at < tops; at++) {
        Py_ssize_t distance = at < best ? found[best].top - found[at].top : found[at].top - found[best].top;
        if (distance >= most && found[at].units > rival) rival = found[at].units;
    }
    return tops && 10 * found[best].units > 7 * passage->all
           && 10 * (found[best].units - rival) >= 3 * passage->all;
}

/* Adds the stretches that begin with the nearest lines; their number then, -1 after an error. */
static Py_ssize_t near_stretches(Passage *passage, Py_ssize_t most, Stretch *found, Py_ssize_t tops) {
    Py_ssize_t last = last_top(passage, most), before = -1;
    for (Py_ssize_t taken = 0; taken < most; taken++) {
        Py_ssize_t best = -1, at = 0, first = 0;
        for (Py_ssize_t number = 0; number < passage->line_count; number++) {
            const Line *line = &passage->lines[number];
            if (!line->is_judged) continue;
            /* Those that are nearer, or as near and further up, were taken. */
            if (before >= 0 && (line->near > passage->lines[before].near
                                || (line->near == passage->lines[before].near && number <= before)))
                continue;
            if (best < 0 || line->near > passage->lines[best].near) best = number;
        }
        if (best < 0) break;
        Py_ssize_t top = (before = best) < last ? best : last;
        while (at < tops && found[at].top != top) at++;
        if (at < tops) continue;
        found[tops].top = top;
        found[tops].units = units_in(passage, top, top + most, &first, &found[tops].count);
        if (found[tops++].units < 0) return -1;
    }
    return tops;
}

/* The first line of the stretch that tells most. Returns 0 when a line is too long to be judged, -1 after an error. */
static int best_stretch(Passage *passage, Py_ssize_t most, Py_ssize_t *best) {
    Py_ssize_t spare = most < passage->line_count ? most : passage->line_count;
    Stretch *found = malloc((size_t)(passage->match_count + spare + 1) * sizeof *found);
    if (found == NULL) return PyErr_NoMemory(), -1;
    Py_ssize_t tops = matched_stretches(passage, most, found), best_count = -1;
    int done = tops < 0 ? -1 : 1;
    if (done > 0 && passage->nearness != NULL && !is_clear(passage, most, found, tops)) {
        done = ask_meaning(passage);
        if (done > 0 && (tops = near_stretches(passage, most, found, tops)) < 0) done = -1;
    }
    double most_weight = -1.0;
    for (Py_ssize_t at = 0; at < tops && done > 0; at++) {
        double near = 0.0;
        Py_ssize_t bottom = found[at].top + most < passage->line_count ? found[at].top + most : passage->line_count;
        for (Py_ssize_t number = found[at].top; number < bottom && passage->has_near; number++)
            if (passage->lines[number].near > near) near = passage->lines[number].near;
        double weight = weight_of(passage, found[at].units, near);
        if (weight < most_weight || (weight == most_weight && found[at].count < best_count)) continue;
        if (weight == most_weight && found[at].count == best_count && found[at].top > *best) continue;
        most_weight = weight, best_count = found[at].count, *best = found[at].top;
    }
    free(found);
    if (tops == 0)
        while (*best + 1 < passage->line_count && is_blank(passage, *best)) ++*best;
    return PyErr_Occurred() ? -1 : done;
}

/* The line of a stretch that tells most, or its first. Returns 0 when a line is too long, -1 after an error. */
static int best_line(Passage *passage, Py_ssize_t top, Py_ssize_t bottom, Py_ssize_t *best) {
    Py_ssize_t first = 0, number = 0, count;
    double most = -1.0;
    int holds_match = 0;
    for (Py_ssize_t match = 0; match < passage->match_count && !holds_match; match++)
        holds_match = passage->matches[match][2] >= top && passage->matches[match][2] < bottom;
    if (!holds_match && passage->nearness != NULL) {
        int done = ask_meaning(passage);
        if (done < 1) return done;
    }
    *best = top;
    for (Py_ssize_t line = top; line < bottom; line++) {
        while (number < passage->match_count && passage->matches[number][2] < line) number++;
        int is_matched = number < passage->match_count && passage->matches[number][2] == line;
        if (!is_matched && !(passage->has_near && passage->lines[line].is_judged)) continue;
        int64_t units = is_matched ? units_in(passage, line, line + 1, &first, &count) : 0;
        if (units < 0) return -1;
        double weight = weight_of(passage, units, passage->lines[line].near);
        if (weight > most) most = weight, *best = line;
    }
    return PyErr_Occurred() ? -1 : 1;
}

/* The marks of a line: the parts of matches in it, those that touch each other as one. */
static PyObject *marks_of(const Passage *passage, const Line *line) {
    PyObject *marks = PyList_New(0);
    Py_ssize_t from = line->start > LONGEST_LINE ? line->start - LONGEST_LINE : 0, open = -1, close = -1;
    for (Py_ssize_t number = 0; number <= passage->match_count && marks != NULL; number++) {
        int is_last = number == passage->match_count || passage->matches[number][0] >= line->end;
        if (!is_last) {
            Py_ssize_t start = passage->matches[number][0], end = passage->matches[number][1];
            if (start < from || end <= line->start) continue;
            if (start < line->start) start = line->start;
            if (end > line->end) end = line->end;
            if (open >= 0 && start < close) {
                if (end > close) close = end;
                continue;
            }
            if (start >= end) continue;
            if (open < 0) {
                open = start, close = end;
                continue;
            }
            number--;  /* once more, when the open one is written */
        }
        if (open >= 0) {
            PyObject *mark = Py_BuildValue("(nn)", open - line->start, close - line->start);
            if (mark == NULL || PyList_Append(marks, mark) < 0) Py_CLEAR(marks);
            Py_XDECREF(mark);
            open = -1;
        }
        if (is_last) break;
    }
    if (marks == NULL) return NULL;
    PyObject *result = PyList_AsTuple(marks);
    Py_DECREF(marks);
    return result;
}

static PyObject *shown_lines(const Passage *passage, Py_ssize_t top, Py_ssize_t bottom, Py_ssize_t best) {
    PyObject *lines = PyList_New(bottom - top);
    for (Py_ssize_t number = top; number < bottom && lines != NULL; number++) {
        const Line *line = &passage->lines[number];
        PyObject *marks = marks_of(passage, line);
        PyObject *shown = marks ? Py_BuildValue("(nnnN)", number + 1, line->start, line->end, marks) : NULL;
        if (shown == NULL) Py_CLEAR(lines);
        else PyList_SetItem(lines, number - top, shown);
    }
    return lines == NULL ? NULL : Py_BuildValue("(nN)", best + 1, lines);
}

/* What a caller wants to see. */
typedef struct {
    Py_ssize_t most, context, longest, small;
} Wish;

static PyObject *choose_lines(Passage *passage, const Wish *wish, Py_ssize_t characters) {
    Py_ssize_t top = 0, bottom = passage->line_count, best;
    int done = 1;
    if (characters > wish->small) {
        done = best_stretch(passage, wish->most, &top);
        if (bottom - top > wish->most) bottom = top + wish->most;
    }
    if (done > 0) {
        while (bottom - top > 1 && is_blank(passage, bottom - 1)) bottom--;
        while (bottom - top > 1 && is_blank(passage, top)) top++;
        done = best_line(passage, top, bottom, &best);
    }
    if (done < 0) return NULL;
    if (!done) Py_RETURN_NONE;
    top = top > wish->context ? top - wish->context : 0;
    bottom = passage->line_count - bottom > wish->context ? bottom + wish->context : passage->line_count;
    for (Py_ssize_t number = top; number < bottom; number++) {
        if (passage->lines[number].end - passage->lines[number].start > wish->longest) Py_RETURN_NONE;
    }
    return shown_lines(passage, top, bottom, best);
}

PyObject *native_best_lines(PyObject *module, PyObject *arguments) {
    PyObject *matches, *units, *copy, *result = NULL;
    Passage passage = {.all = 0};
    Wish wish;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "UO!OOOnnnnnO", &passage.text, &PyList_Type, &matches, &units,
                          &passage.said, &passage.plain, &passage.longest_said, &wish.most, &wish.context,
                          &wish.longest, &wish.small, &passage.nearness))
        return NULL;
    if (passage.nearness == Py_None) passage.nearness = NULL;
    if (wish.most < 1 || wish.context < 0) return PyErr_Format(PyExc_ValueError, "lines to show are at least 1");
    copy = PyList_GetSlice(matches, 0, PyList_Size(matches)); /* Python code runs in between */
    if (copy == NULL || utf8_of(passage.text, &passage.utf8) < 0) {
        Py_XDECREF(copy);
        return NULL;
    }
    if (find_lines(&passage) < 0 || read_matches(&passage, copy, units) < 0) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
    } else {
        if (passage.all == 0) passage.all = 1;
        result = choose_lines(&passage, &wish, PyUnicode_GetLength(passage.text));
    }
    free_passage(&passage);
    Py_DECREF(copy);
    return result;
}
