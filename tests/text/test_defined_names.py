"""The names that code defines, in the languages people write."""

from __future__ import annotations

from findling.domain.resources import Chunk
from findling.text.analysis.scripts import name_parts, name_terms, written_name
from findling.text.chunking.defined_names import defined_terms, enclosing_name, named_lines, outline_lines

CODE = {
    "python": (
        "import os\nLIMIT: int = 3\nname == 4\nasync def fetch(url):\n    local = 1\nclass Session(Base):\n"
        "    def send(self):\n        def inner(): pass\nif __name__ == '__main__':\n    main()\n",
        "LIMIT fetch Session Session.send send.inner",
    ),
    "go": (
        "package gin\nconst (\n\tDebug = iota\n\tRelease\n)\nvar Writer io.Writer\n"
        "type Engine struct {\n\tport int\n}\n"
        "func (e *Engine) Run(a string) error {\n\treturn nil\n}\nfunc New[T any](x T) *Engine {\n}\n",
        "Debug Release Writer Engine Engine.Run New",
    ),
    "rust": (
        "pub struct Router<S> {}\nimpl<S> Router<S>\nwhere S: Clone {\n    pub const MAX: u8 = 3;\n"
        "    pub async fn route(self) {}\n}\n"
        "impl<T> From<T> for Json<T> {\n    fn from(x: T) {}\n}\nmacro_rules! get_it {}\npub(crate) mod inner {}\n",
        "Router Router.MAX Router.route Json.from get_it inner",
    ),
    "ruby": (
        "module Rack\n  class Builder < Base\n    BOM = 1\n    def self.parse?(x)\n    end\n"
        "    def call(env) = 1\n  end\n  it 'does things' do\n  end\nend\n",
        "Rack Rack.Builder Builder.BOM Builder.parse? Builder.call",
    ),
    "javascript": (
        "const fs = require('fs');\nconst LIMIT = 5;\nres.send = function send(body) {\n};\nclass App extends Base {\n"
        "  async start(port) {\n    if (port) {\n    }\n  }\n}\nexport default function main() {\n}\n"
        "Foo.prototype.bar = function () {\n};\ndescribe('the app', () => {\n})\n",
        "LIMIT res.send App App.start main Foo.bar",
    ),
    "java": (
        "package a.b;\npublic final class Gson<T> {\n  private static final int MAX = 3;\n  <T> T read(Reader r) {\n"
        "    return foo(r);\n  }\n  public static Map<String, T> toMap(\n      T a) {\n  }\n}\ninterface Shape {\n"
        "  double area(int unit);\n}\n",
        "Gson Gson.MAX Gson.read Gson.toMap Shape Shape.area",
    ),
    "cpp": (
        "#define FMT_API\nnamespace fmt {\ntemplate <typename T> class FMT_API buffer : public base<T> {\n public:\n"
        "  auto size() const -> int { return size_; }\n};\n}\nusing text = std::string;\n"
        "void buffer::grow(int n) {\n  call(n);\n}\ntypedef struct {\n  int x;\n} point;\n",
        "FMT_API fmt buffer buffer.size text buffer.grow point",
    ),
    "lua": (
        "local util = require('util')\nlocal M = {}\nM.cache = {}\nfunction M.setup(opts)\nend\n"
        "local function load(x)\nend\nfunction Plugin:run()\nend\n",
        "M M.cache M.setup load Plugin.run",
    ),
    "php": (
        "<?php\nnamespace App\\Http;\nfinal class Kernel extends Base {\n  public const MAX = 3;\n"
        "  public static function &handle($x) {\n  }\n}\ninterface Sends {}\ndefine('LIMIT', 3);\n",
        "App.Http Kernel Kernel.MAX Kernel.handle Sends LIMIT",
    ),
    "kotlin": (
        "const val LIMIT = 3\ndata class User(val name: String) {\n    suspend fun load(): Int {\n        val x = 1\n"
        "        return x\n    }\n}\nfun <T> List<T>.second(): T = this[1]\ntypealias Id = String\n",
        "LIMIT User User.load List.second Id",
    ),
    "swift": (
        "public struct Point: Shape {\n    static let zero = 0\n    func move(by d: Int) {\n    }\n}\n"
        "extension Point {\n    var x: Int { 1 }\n    func turn() {}\n}\nlet limit = 3\n",
        "Point Point.zero Point.move Point.turn limit",
    ),
    "scala": (
        "sealed trait Shape\ncase class Box(a: Int) extends Shape {\n  def area: Int = a\n}\n",
        "Shape Box Box.area",
    ),
    "c": (
        "#define LIMIT 3\nstatic int counter = 0;\nint add(int a)\n{\n  return sub(a);\n}\n"
        "struct node {\n  int x;\n};\nint prototype(int a);\n",
        "LIMIT counter add node",
    ),
    "sql": ("create table if not exists app.users (\n id int);\nselect name from users;\n", "users"),
    "css": (".button {\n}\n", ""),
    "markdown": ("# class Session\n", ""),
}


def test_named_lines_finds_what_each_language_defines() -> None:
    for lang, (text, expected) in CODE.items():
        found = [f"{line.scope}.{line.name}" if line.scope else line.name for line in named_lines(text, lang)]
        assert found == expected.split(), lang


def test_an_expression_that_is_exported_has_its_own_name() -> None:
    named = {
        "module.exports = function createApp(options) {": "createApp",
        "module.exports = class Router extends Base {": "Router",
        "module.exports = wrap(async function load(a) {": "load",
        "export default memo(function Card(props) {": "Card",
        "export default async function render(a) {": "render",
        "exports.parse = (text) => text;": "parse",
        "exports.use = function use(fn) {": "use",
        "const send = async (a, b) => {": "send",
        "module.exports = function (a) { return function inner() {} }": "",
        "export default class extends Base {": "",
    }
    for lang in ("javascript", "typescript"):
        for line, name in named.items():
            text = f"{line}\n}}\n"
            assert [one.name for one in named_lines(text, lang)] == name.split(), line
            assert [one.name for one in outline_lines(text, lang)] == name.split(), line
            assert defined_terms(text, lang, [_chunk(0, len(text))]) == [name and name_terms(name)], line
            assert enclosing_name(text, lang, (), 0) == name, line


def test_names_do_not_depend_on_line_breaks() -> None:
    for lang, (text, _) in CODE.items():
        names = [line.name for line in named_lines(text, lang)]
        assert [line.name for line in named_lines(text.replace("\n", "\r\n"), lang)] == names, lang


def test_every_chunk_has_the_terms_of_its_own_names() -> None:
    text = "LIMIT = 3\n\nclass Session:\n    def send_all(self):\n        pass\n"
    at = text.index("class")
    chunks = [_chunk(0, 9), _chunk(at, len(text))]
    assert defined_terms(text, "python", chunks) == [
        name_terms("Limit"),
        f"{name_terms('session')} {name_terms('sendAll')}",
    ]
    assert defined_terms(text, "text", chunks) == ["", ""]


def test_name_parts_are_those_of_every_style() -> None:
    for qualified in ("Session.send", "Session::send", "Session->send", "Session#send", "Session.send()"):
        assert name_parts(qualified) == ["Session", "send"]
    assert name_parts("::") == []


def test_a_written_name_is_one_word_with_a_capital_or_an_underscore() -> None:
    names = {"Request": "Request", "url_for": "url_for", "`Session.send()`": "send", "std::Vec": "Vec", "_x": "_x"}
    assert {text: written_name(text) for text in names} == names
    for text in ("", "request", "config.json", "example.com", "The Request", "E-mail", "::", "3.5", "what?"):
        assert written_name(text) == "", text


def _chunk(start: int, end: int) -> Chunk:
    return Chunk(start, b"", 0, start, end, 1, 1)


def test_a_line_is_in_the_innermost_definition_around_it() -> None:
    text = (
        "LIMIT = 3\nclass Session(Base):\n    def send(self):\n        if x:\n            go()\n\n"
        "    def close(self):\n        pass\n\nrun()\n"
    )
    found = [enclosing_name(text, "python", ("class Session",), line) for line in (0, 1, 2, 3, 4, 6, 7, 9)]
    send, close = "Session.send", "Session.close"
    assert found == ["", "Session", send, send, send, close, close, ""]


def test_a_chunk_inside_of_definitions_has_their_names_from_its_headings() -> None:
    body = "if x:\n            go()\n        return 1"
    assert enclosing_name(body, "python", ("class Session", "def send"), 1) == "Session.send"
    method = "def send(self):\n        return 1\n\n    def close(self):\n        pass"
    heading = ("class Session", "def send, def close")
    assert [enclosing_name(method, "python", heading, line) for line in (0, 1, 3, 4)] == [
        *["Session.send", "Session.send", "Session.close", "Session.close"]
    ]
    whole = "class Base:\n    def send(self):\n        return 1\n\n    def close(self):\n        pass"
    assert enclosing_name(whole, "python", ("class Base",), 2) == "Base.send"
    go = "func (c *Context) Get(key string) any {\n\treturn c.keys[key]\n}"
    assert [enclosing_name(go, "go", ("func (c *Context) Get",), line) for line in range(3)] == ["Context.Get"] * 3
    assert enclosing_name("\treturn nil\n}", "go", ("func (c *Context) Get",), 0) == "Context.Get"
    java = ("public class Maps", "public static <K, V extends Comparable<V>> Map<K, V> sorted")
    assert enclosing_name("total += one;\n        return m;", "java", java, 0) == "Maps.sorted"
    assert enclosing_name("# Session\ntext", "markdown", ("Session",), 1) == ""


def test_comments_and_decorators_in_front_of_a_definition_belong_to_it() -> None:
    go = "const a = 1\n\n// Group holds routes.\n// It is shared.\ntype Group struct {\n\tname string\n}\n"
    assert [enclosing_name(go, "go", (), line) for line in (2, 3, 4, 5)] == ["Group"] * 4
    python = "import x\n\nclass A:\n    # Cached for good.\n    @cache\n    def b(self): ...\n\n    # The end.\n"
    assert [enclosing_name(python, "python", (), line) for line in (3, 4, 5, 7)] == ["A.b", "A.b", "A.b", "A"]
