"""Names that a question asks for, and texts that define them by their look."""

from __future__ import annotations

import pytest

from findling.text.query.asked_names import asked_names, defines, looks_like_code, name_words


@pytest.mark.parametrize(
    ("query", "names", "is_all"),
    [
        ("ClientSession", ("ClientSession",), True),
        ("router", ("router",), True),
        ("Session.send", ("send",), True),
        ("std::vector", ("vector",), True),
        ("function", ("function",), True),
        ("class Router", ("Router",), True),
        ("getUser()", ("getUser",), True),
        ("What does the `run_target` method of the DiffExecutor do?", ("run_target", "DiffExecutor"), False),
        ("how does the decode method work", ("decode",), False),
        ("what does vuln() do", ("vuln",), False),
        ("How is the log file created?", (), False),
        ("connection pooling and limits", (), False),
        ("", (), False),
        ("🚀", (), False),
    ],
)
def test_names_are_found_by_their_look_and_place(query: str, names: tuple[str, ...], is_all: bool) -> None:
    assert asked_names(query) == (names, is_all)


@pytest.mark.parametrize(
    "text",
    [
        "def send(self, request):\n    pass",
        "    async def send(self):",
        "class send:",
        "func (s *Session) send(r Request) error {",
        "pub fn send<T>(&self) {",
        "function send(request) {",
        "const send = (request) => {",
        "Session.prototype.send = function (request) {",
        "  send: function (request) {",
        "public static void send(Request request) throws IOException {",
        "int Session::send(const char *buffer) {",
        "#define send 1",
        "M.send = function()",
    ],
)
def test_definitions_in_many_languages_are_seen(text: str) -> None:
    assert defines(f"first line\n{text}\n", "send")


@pytest.mark.parametrize(
    "text",
    [
        "self.send(request)",
        "return send(request)",
        "x = send(request)",
        "def resend(self): send()",
        "class Sender: # will send",
        "int send(const char *buffer);",
        "# send is defined elsewhere",
        "",
    ],
)
def test_uses_are_no_definitions(text: str) -> None:
    assert not defines(text, "send")


def test_a_definition_behind_many_uses_is_not_looked_for_for_ever() -> None:
    assert not defines("send(1)\n" * 100_000 + "def send(): pass", "send")


def test_words_of_names() -> None:
    assert name_words("getUserName MAX_VALUE HTTPServer utf8") == "get user name max value http server utf 8".split()
    assert name_words("Größe") == ["gr", "öß", "e"]


def test_code_is_told_from_prose() -> None:
    assert looks_like_code("def f(x):\n    return [y for y in x if y == 1]\n")
    assert not looks_like_code("A sentence (with an aside) that goes on for quite a while without any sign of code.")
