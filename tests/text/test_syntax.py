"""Definitions by syntax tree: what is one, what it is called, where it begins and ends."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.text.chunking.code_chunks import chunk_code
from findling.text.chunking.code_grammars import CODE_LANGS
from findling.text.chunking.syntax import MAX_SYNTAX_LENGTH, SYNTAXES, Definition, definitions
from tests.counts import tries


def found(source: str, lang: str) -> list[Definition]:
    result = definitions(source, lang)
    assert result is not None
    return result


def plain(source: str) -> str:
    return textwrap.dedent(source).lstrip("\n")


def outline(text: str, lang: str) -> list[str]:
    """One line a definition: the signature, indented by its level."""
    return ["  " * level + " ".join(text[first:last].split()) for _, first, last, _, level in found(text, lang)]


OUTLINES = {
    "bash": (
        """
        function deploy {
          a
        }
        build() {
          b
        }
        """,
        ["function deploy", "build"],
    ),
    "c": (
        """
        typedef struct point {
          int x;
        } point_t;
        static const char *
        name(int a)
        {
          return 0;
        }
        int f(void);
        """,
        ["typedef struct point", "static const char * name"],
    ),
    "cpp": (
        """
        namespace a {
        template <typename T>
        class Box : public Base<T> {
         public:
          T get() const { return x; }
        };
        template <class T>
        void Box<T>::set(T a) {
        }
        }
        """,
        [
            "namespace a",
            "  template <typename T> class Box : public Base<T>",
            "    T get",
            "  template <class T> void Box<T>::set(T a)",
        ],
    ),
    "csharp": (
        """
        namespace A.B
        {
          [Serializable]
          public class C
          {
            [Test]
            public async Task<int> F(int a)
            {
            }
          }
        }
        """,
        ["namespace A.B", "  public class C", "    public async Task<int> F"],
    ),
    "dart": (
        """
        abstract class A extends B {
          static int load(String name) {
            return 1;
          }
        }
        void main() {
          run();
        }
        """,
        ["abstract class A", "  static int load", "void main"],
    ),
    "elixir": (
        """
        defmodule A.B do
          def f(x) when x > 1 do
            g(x)
          end

          defp g?(x), do: x
        end
        """,
        ["defmodule A.B", "  def f", "  defp g?"],
    ),
    "go": (
        """
        package a

        var x = 1

        type T struct {
            n int
        }

        func (t *T) Name() string {
            var y = 1
            return y
        }
        """,
        ["var x", "type T struct", "func (t *T) Name"],
    ),
    "haskell": (
        """
        module A where

        add :: Int -> Int
        add 0 = 1
        add x = y
          where y = x

        data T = A | B
        """,
        ["add", "data T"],
    ),
    "hcl": (
        """
        resource "aws_instance" "web" {
          tags {
          }
        }
        locals {
        }
        """,
        ['resource "aws_instance" "web"', "locals"],
    ),
    "java": (
        """
        package a;

        @Service("x")
        public class A<T> {
          @Override
          public <R> R find(Map<T, R> m) {
            return null;
          }

          A() {
          }
        }
        """,
        ["public class A", "  public <R> R find", "  A"],
    ),
    "javascript": (
        """
        export default {
          name: 'x',
          methods: {
            async load(id) {
              return id;
            },
            save: () => 1,
          },
        };
        export const twice = (a) => {
          return a;
        };
        app.get('/users', (req) => {
          send(req);
        });
        """,
        ["export default", "  async load", "  save", "export const twice", "app.get('/users'"],
    ),
    "julia": (
        """
        module M
        function f(x)
          1
        end
        g(x) = 1
        mutable struct P{T}
          x
        end
        end
        """,
        ["module M", "  function f", "  g", "  mutable struct P"],
    ),
    "kotlin": (
        """
        sealed class A(val x: Int) : B() {
          @Test
          override suspend fun <T> load(id: T): T {
            return id
          }
        }

        object O {
        }

        fun String.ext(): Int = 1
        """,
        ["sealed class A", "  override suspend fun <T> load", "object O", "fun String.ext"],
    ),
    "lua": (
        """
        local function add(a)
        end

        function M.f:g()
        end

        M.x = function()
        end
        """,
        ["local function add", "function M.f:g", "M.x"],
    ),
    "objectivec": (
        """
        @implementation A
        - (void)load:(int)x {
          run();
        }
        @end

        int main(void) {
          return 0;
        }
        """,
        ["@implementation A", "  - (void)load", "int main"],
    ),
    "ocaml": (
        """
        let rec f x =
          let y = 1 in
          y

        type t = A | B

        module M = struct
          let z = 1
        end
        """,
        ["let rec f", "type t", "module M", "  let z"],
    ),
    "php": (
        r"""
        <?php
        namespace A\B;

        final class C extends D
        {
            #[Pure]
            public static function add(int $a): int
            {
                return $a;
            }
        }
        """,
        ["namespace A\\B", "final class C", "  public static function add"],
    ),
    "powershell": (
        """
        function Get-Thing {
          1
        }

        class A {
          [int] F() {
            return 1
          }
        }
        """,
        ["function Get-Thing", "class A", "  F"],
    ),
    "python": (
        """
        @decorator(
            a=[1, 2],
        )
        async def load(
            first: int,
        ) -> None:
            def inner():
                pass


        class A:
            @property
            def b(self): ...
        """,
        ["async def load", "  def inner", "class A", "  def b"],
    ),
    "rust": (
        """
        #[derive(Debug)]
        pub struct P<T> {
          x: T,
        }

        impl<T: Copy> P<T>
        where
            T: Clone,
        {
          pub unsafe extern "C" fn x(&self) -> T {
            self.x
          }
        }
        """,
        ["pub struct P", "impl<T: Copy> P<T> where T: Clone,", '  pub unsafe extern "C" fn x'],
    ),
    "scala": (
        """
        object O {
          private def f(a: Int): Int = {
            1
          }
        }

        case class C(x: Int)

        trait T
        """,
        ["object O", "  private def f", "case class C", "trait T"],
    ),
    "swift": (
        """
        public struct A: B {
          @objc
          func f(_ a: Int) -> Int {
            return 1
          }

          init(x: Int) {
          }
        }

        extension A {
        }
        """,
        ["public struct A", "  func f", "  init", "extension A"],
    ),
    "typescript": (
        """
        export interface O<T> {
          run?: (value: T) => void;
        }

        export abstract class S {
          @Input()
          public get(key: string): string {
            return key;
          }
        }

        type P = [string];
        """,
        ["export interface O", "export abstract class S", "  public get", "type P"],
    ),
    "zig": (
        """
        pub const P = struct {
            x: i32,

            pub fn f(self: P) i32 {
                return self.x;
            }
        };
        """,
        ["pub const P", "  pub fn f"],
    ),
}

SAME_GRAMMAR = {"cuda": "cpp"}


@pytest.mark.parametrize("lang", sorted(OUTLINES))
def test_outline(lang: str) -> None:
    source, expected = OUTLINES[lang]
    assert outline(plain(source), lang) == expected


def test_every_language_has_an_outline_here_and_a_fallback() -> None:
    assert set(OUTLINES) | set(SAME_GRAMMAR) == SYNTAXES.keys()
    assert SYNTAXES.keys() <= CODE_LANGS
    assert len(SYNTAXES) >= 24


@pytest.mark.parametrize(("lang", "same"), sorted(SAME_GRAMMAR.items()))
def test_languages_that_share_a_grammar(lang: str, same: str) -> None:
    text = plain(OUTLINES[same][0])
    assert found(text, lang) == found(text, same)


@pytest.mark.parametrize("lang", sorted(OUTLINES))
def test_definitions_are_whole_lines_inside_one_another(lang: str) -> None:
    text = plain(OUTLINES[lang][0])
    around: list[Definition] = []
    for definition in found(text, lang):
        assert definition.start == 0 or text[definition.start - 1] == "\n"
        assert definition.end == len(text) or text[definition.end - 1] == "\n"
        assert definition.start <= definition.signature_start < definition.signature_end <= definition.end
        del around[definition.level :]
        assert all(outer.start <= definition.start and definition.end <= outer.end for outer in around)
        around.append(definition)


def test_code_in_strings_and_comments_is_no_definition() -> None:
    assert outline('TEXT = """\ndef no():\n    pass\n\nclass No:\n"""\n\n\ndef yes():\n    pass\n', "python") == [
        "def yes"
    ]
    assert outline(
        "/*\nfunction no() {\n}\n*/\nconst a = `\nclass No {\n}\n`;\nfunction yes() {\n}\n", "javascript"
    ) == ["function yes"]


def test_a_definition_ends_where_its_last_line_does() -> None:
    text = "class A:\n    def f(self):\n        return 1\n\n    x = 2\n\n\ny = 3\n"
    assert [text[start:end] for start, _, _, end, _ in found(text, "python")] == [
        "class A:\n    def f(self):\n        return 1\n\n    x = 2\n",
        "    def f(self):\n        return 1\n",
    ]


def test_statements_behind_a_definition_stand_under_the_scope_around_it() -> None:
    body = "".join(f"        step_{number}()\n" for number in range(8))
    text = (
        f"class A:\n    def large(self):\n{body}    table = {{\n"
        + "        'key': 'value',\n" * 8
        + "    }\n\n\nDONE = 1\n"
    )
    pieces = [(piece.heading, text[piece.start : piece.end]) for piece in chunk_code(text, "python", 190, syntax=True)]
    assert {heading for heading, body in pieces if "'key'" in body} == {("class A",)}
    assert {heading for heading, body in pieces if "DONE" in body} == {()}


def test_statements_before_a_large_definition_are_not_filed_under_it() -> None:
    large = "class Large:\n" + "".join(f"    def m{number}(self): ...\n\n" for number in range(9))
    text = f"def small(): ...\n\n\nVERSION = 5\n\n\n{large}"
    assert [piece.heading for piece in chunk_code(text, "python", 150, syntax=True)][:2] == [
        ("def small",),
        ("class Large", "def m0, def m1, def m2, def m3, def m4"),
    ]


def test_closing_brackets_are_no_piece() -> None:
    methods = "".join(f"  m{number}() {{\n    return {number};\n  }}\n\n" for number in range(4))
    text = f"namespace A {{\nclass B {{\n{methods}}}\n}} // namespace A\n"
    assert [piece.heading[-1] for piece in chunk_code(text, "typescript", 80, syntax=True)] == [
        "class B",
        "m0, m1",
        "m2, m3",
    ]


def test_the_tree_is_used_only_where_it_is_asked_for() -> None:
    text = 'TEXT = """\ndef no():\n    pass\n"""\n\n\ndef yes():\n    ' + "step()\n    " * 20
    assert chunk_code(text, "python", 100, syntax=True)[-1].heading == ("def yes",)
    assert chunk_code(text, "python", 100, syntax=True)[0].heading == ()
    assert chunk_code(text, "python", 100)[0].heading == ("def no",)


LINES = ["é", "日本語", "👩\u200d👩", "\ud800", "\udfff x", "e\u0301", "\ufeff", "a\u2028b", "plain"]


@given(st.lists(st.sampled_from(LINES), max_size=12), st.lists(st.sampled_from(LINES), min_size=1, max_size=4))
@settings(deadline=None)
def test_offsets_are_characters_whatever_stands_above(above: list[str], inside: list[str]) -> None:
    head = "".join(f"# {line}\n" for line in above) + "x = 1\n\n"
    body = "".join(f"    # {line}\n    call('{line}')\n" for line in inside) + "    return 1\n"
    text = f"{head}def größe():\n{body}\n\ndef last():\n{body}"
    first, last = found(text, "python")
    assert (first.start, text[first.signature_start : first.signature_end]) == (len(head), "def größe")
    assert text[first.start : first.end] == f"def größe():\n{body}"
    assert text[last.start : last.end] == f"def last():\n{body}"


@given(
    st.lists(
        st.sampled_from(
            [*(line for source, _ in OUTLINES.values() for line in plain(source).splitlines(True)), *LINES, "\n"]
        ),
        max_size=40,
    ).map("".join),
    st.sampled_from(sorted(SYNTAXES.keys() - {"typescript"})),
    st.integers(20, 200),
)
@settings(
    max_examples=tries(300, short=100), deadline=None, derandomize=True
)  # some parsers do not return from some broken texts
def test_pieces_of_any_mixture_of_lines(text: str, lang: str, size: int) -> None:
    reached = 0
    for piece in chunk_code(text, lang, size, syntax=True):
        assert piece.start >= reached
        assert not text[reached : piece.start].strip()
        assert 0 < piece.end - piece.start <= size
        reached = piece.end
    assert not text[reached:].strip()


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    pass\n" * (MAX_SYNTAX_LENGTH // 10),
        f"def f():\n    return '{'x' * 3000}'\n",
        "def f((((\n" * 1000,
        "<html>\n<p>This is no code, & it never was.</p>\n</html>\n" * 20,
    ],
    ids=["too long", "a long line", "open brackets", "another language"],
)
def test_what_is_left_to_the_patterns(text: str) -> None:
    assert definitions(text, "python") is None
    assert chunk_code(text, "python", 400, syntax=True) == chunk_code(text, "python", 400, syntax=False)


def test_a_language_without_grammar_has_no_tree() -> None:
    assert definitions("x", "nim") is None
    assert definitions("x", "perl") is None
    assert definitions("x", "no such language") is None
