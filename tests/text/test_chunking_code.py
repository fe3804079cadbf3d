"""Definitions of code: where they begin, what belongs to them, what they are called."""

from __future__ import annotations

import textwrap

import pytest

from findling.text.chunking.chunk_plan import ChunkPlan
from findling.text.chunking.chunker import chunk_text
from findling.text.chunking.code_chunks import chunk_code
from findling.text.chunking.code_grammars import CODE_LANGS, dialect_of, grammar_of


def parts(source: str, lang: str, size: int) -> list[tuple[tuple[str, ...], str]]:
    text = textwrap.dedent(source).lstrip("\n")
    return [(piece.heading, text[piece.start : piece.end]) for piece in chunk_code(text, lang, size)]


def headings(source: str, lang: str, size: int) -> list[tuple[str, ...]]:
    return [heading for heading, _ in parts(source, lang, size)]


def first_lines(source: str, lang: str, size: int) -> list[str]:
    return [body.split("\n", 1)[0] for _, body in parts(source, lang, size)]


PYTHON = '''
    """A module."""

    import os

    LIMIT = 10


    @cache
    def first(a, b):
        return a + b


    # Said about the second.
    @retry(
        times=3,
        wait=1,
    )
    @other
    async def second(session):
        return await session.get()


    class Third(Base):
        """A class."""

        @property
        def name(self):
            return self._name

        async def load(self):
            return 1


    if __name__ == "__main__":
        first(1, 2)
'''


def test_python_definitions_with_their_decorators_and_comments() -> None:
    assert parts(PYTHON, "python", 140) == [
        ((), '"""A module."""\n\nimport os\n\nLIMIT = 10'),
        (("def first",), "@cache\ndef first(a, b):\n    return a + b"),
        (
            ("async def second",),
            "# Said about the second.\n@retry(\n    times=3,\n    wait=1,\n)\n@other\n"
            "async def second(session):\n    return await session.get()",
        ),
        (("class Third",), 'class Third(Base):\n    """A class."""'),
        (
            ("class Third", "def name, async def load"),
            "    @property\n    def name(self):\n        return self._name\n\n"
            "    async def load(self):\n        return 1",
        ),
        (("if __name__",), 'if __name__ == "__main__":\n    first(1, 2)'),
    ]


def test_small_definitions_are_packed_and_all_named() -> None:
    assert headings(PYTHON, "python", 350) == [("def first, async def second",), ("class Third, if __name__",)]
    assert headings(PYTHON, "python", 4000) == [("def first, async def second, class Third, if __name__",)]


def test_names_that_do_not_fit_are_left_out() -> None:
    source = "\n\n".join(f"def a_function_with_a_long_name_{number}(): pass" for number in range(4))
    assert headings(source, "python", 4000) == [
        ("def a_function_with_a_long_name_0, def a_function_with_a_long_name_1…",)
    ]
    assert headings(f"def {'x' * 100}(): pass", "python", 4000) == [(f"def {'x' * 75}…",)]


def test_a_small_head_goes_with_the_first_definition_if_both_fit() -> None:
    function = "def f():\n" + "    call()\n" * 9
    assert headings(f"import os\n\n\n{function}\n\n{function}", "python", 125) == [("def f",), ("def f",)]
    assert headings(f"import os\n\n\n{function}\n\n{function}", "python", 115) == [(), ("def f",), ("def f",)]


def test_a_large_function_is_cut_inside_and_keeps_its_name() -> None:
    body = "".join(f"    step_{number}()\n\n" for number in range(20))
    assert headings(f"class A:\n    x = 1\n\n\ndef large():\n{body}", "python", 120) == [
        ("class A",),
        ("def large",),
        ("def large",),
        ("def large",),
    ]


def test_methods_of_a_large_class_are_packed_up_to_the_size() -> None:
    methods = "".join(f"    def m{number}(self):\n        return {number}\n\n" for number in range(6))
    assert headings(f"class Large:\n{methods}", "python", 90) == [
        ("class Large", "def m0, def m1"),
        ("class Large", "def m2, def m3"),
        ("class Large", "def m4, def m5"),
    ]


def test_statements_below_a_large_definition_are_not_filed_under_it() -> None:
    body = "".join(f"    step_{number}()\n" for number in range(9))
    table = "# The table.\nTABLE = [\n" + "".join(f"    {number},\n" for number in range(20)) + "]\n"
    result = parts(f"def large():\n{body}\n{table}", "python", 120)
    assert result[0][0] == ("def large",)
    assert [(heading, text[:12]) for heading, text in result if "TABLE" in text] == [((), "# The table.")]


def test_words_in_prose_are_no_definitions() -> None:
    source = '"""\nclass of problems\ndef is a keyword\nclass\n"""\nx = 1\n\n\ndef real():\n    pass\n'
    assert headings(source, "python", 4000) == [("def real",)]


def test_tabs_and_two_spaces_are_indentation() -> None:
    for indent in ("\t", "  "):
        methods = "".join(f"{indent}def m{number}(self):\n{indent}{indent}return 1\n\n" for number in range(4))
        assert headings(f"class A:\n{methods}", "python", 70)[0] == ("class A", "def m0, def m1"), repr(indent)


GO = """
    package main

    // T is a type.
    type T struct {
        name string
    }

    // Name returns the name.
    func (t *T) Name() string {
        var local = 1
        return t.name
    }

    func main() {
        fmt.Println("hi")
    }
"""


def test_go() -> None:
    assert headings(GO, "go", 100) == [("type T struct",), ("func (t *T) Name",), ("func main",)]
    assert first_lines(GO, "go", 100)[1] == "// Name returns the name."


RUST = """
    use std::fmt;

    /// A point.
    #[derive(
        Debug,
        Clone,
    )]
    pub struct Point<T> {
        x: T,
    }

    impl<T: Copy> Point<T> {
        /// The x.
        #[inline]
        pub fn x(&self) -> T {
            self.x
        }

        pub(crate) async fn y(&self) -> T {
            self.y
        }
    }

    const fn three() -> i32 { 3 }
"""


def test_rust() -> None:
    assert headings(RUST, "rust", 120) == [
        ("pub struct Point",),
        ("impl<T: Copy> Point<T>", "pub fn x"),
        ("impl<T: Copy> Point<T>", "pub(crate) async fn y"),
        ("const fn three",),
    ]
    assert "    /// The x.\n    #[inline]\n    pub fn x" in parts(RUST, "rust", 120)[1][1]


JAVASCRIPT = """
    import x from "x";

    /**
     * Adds.
     */
    export default function add(a, b) {
      return a + b;
    }

    export const twice = async (a) => {
      return a * 2;
    };

    class Shape extends Base {
      constructor(name) {
        super(name);
      }

      static async area(a, b) {
        if (a) {
          return a * b;
        }
      }

      #secret = () => {
        return 1;
      };
    }

    module.exports = { add };
"""


def test_javascript() -> None:
    assert headings(JAVASCRIPT, "javascript", 120) == [
        ("export default function add",),
        ("export const twice",),
        ("class Shape", "constructor"),
        ("class Shape", "static async area, #secret"),
        ("module.exports",),
    ]
    assert parts(JAVASCRIPT, "javascript", 120)[0][1].startswith('import x from "x";\n\n/**\n * Adds.')


TYPESCRIPT = """
    export interface Options<T> {
      name: string;
      run?: (value: T) => void;
    }

    export abstract class Store<T> implements Options<T> {
      private readonly items: Map<string, T> = new Map();

      @Input()
      public get(key: string, fallback: (key: string) => T): T | undefined {
        return this.items.get(key);
      }
    }

    type Pair = [string, string];
"""


def test_typescript() -> None:
    assert headings(TYPESCRIPT, "typescript", 180) == [
        ("export interface Options",),
        ("export abstract class Store",),
        ("export abstract class Store", "public get"),
        ("type Pair",),
    ]
    assert parts(TYPESCRIPT, "typescript", 180)[2][1].startswith("  @Input()\n  public get")


JAVA = """
    package a.b;

    import java.util.List;

    /** A shop. */
    @Service
    public class Shop<T extends Item> extends Base {

        private final List<T> items = new ArrayList<>();

        @Override
        public <R> Map<String, List<R>> find(Function<T, R> f) throws IOException {
            if (f == null) {
                return null;
            }
            return run(f);
        }

        void clear() {
            items.clear();
        }
    }
"""


def test_java() -> None:
    assert headings(JAVA, "java", 200) == [
        ("public class Shop",),
        ("public class Shop", "public <R> Map<String, List<R>> find"),
        ("public class Shop", "void clear"),
    ]
    assert "/** A shop. */\n@Service\npublic class Shop" in parts(JAVA, "java", 200)[0][1]


CSHARP = """
    namespace Shop.Web
    {
        /// <summary>A shop.</summary>
        [ApiController]
        public sealed class Shop : Base
        {
            public string Name { get; set; }

            [HttpGet]
            public async Task<List<Item>> Find(int id)
            {
                return await items.Find(id);
            }
        }
    }
"""


def test_csharp() -> None:
    shop = ("namespace Shop.Web", "public sealed class Shop")
    assert headings(CSHARP, "csharp", 160) == [
        shop,
        (*shop, "public string Name"),
        (*shop, "public async Task<List<Item>> Find"),
    ]
    assert parts(CSHARP, "csharp", 160)[2][1].startswith("        [HttpGet]\n")


C = """
    #include <stdio.h>

    struct point {
        int x;
    };

    int declared(int a);

    /* Adds
       two numbers. */
    static int
    add(int a,
        int b)
    {
        if (a) {
            return b;
        }
        return a + b;
    }

    int main(void) {
        return add(1, 2);
    }
"""


def test_c() -> None:
    assert headings(C, "c", 130) == [("struct point",), ("add",), ("int main",)]
    assert parts(C, "c", 130)[1][1].startswith("/* Adds\n   two numbers. */\nstatic int\nadd(int a,")


CPP_HEADER = """#include <vector>

namespace shop {

class Basket {
 public:
  void add(int item) {
    items_.push_back(item);
  }

 private:
  std::vector<int> items_;
};

}  // namespace shop
"""


@pytest.mark.parametrize("code", ["patterns", "syntax"])
def test_a_header_of_cpp_is_cut_as_cpp(code: str) -> None:
    plan = ChunkPlan(size=90, code=code)
    assert chunk_text(CPP_HEADER, "c", plan) == chunk_text(CPP_HEADER, "cpp", plan)
    assert any("class Basket" in step for piece in chunk_text(CPP_HEADER, "c", plan) for step in piece.heading)
    assert dialect_of(textwrap.dedent(C), "c") == "c"


CSS = """
    /* Links. */
    a:hover,
    a:focus {
      color: red;
    }

    .button {
      color: blue;
    }
"""


def test_css_rules_keep_all_their_selectors() -> None:
    assert parts(CSS, "css", 60) == [
        (("a:focus",), "/* Links. */\na:hover,\na:focus {\n  color: red;\n}"),
        ((".button",), ".button {\n  color: blue;\n}"),
    ]


SIGNATURES = [
    ("astro", "export async function get({ params }) {", "export async function get"),
    ("bash", "function deploy_all {", "function deploy_all"),
    ("c", "static const char *name(int a)", "static const char *name"),
    ("clojure", "(defn- add-all [a b]", "(defn- add-all"),
    ("cpp", "template <typename T> class Box : public Base {", "template <typename T> class Box : public Base"),
    ("cpp", "void Box::add(const T& item) const {", "void Box::add"),
    ("cpp", "  virtual std::vector<int> all() const {", "virtual std::vector<int> all"),
    ("crystal", "  def self.add(a)", "def self.add"),
    ("csharp", "    protected override void OnInit()", "protected override void OnInit"),
    ("css", ".a > .b:hover {", ".a > .b:hover"),
    ("cuda", "__global__ void add(int n, float *x)", "__global__ void add"),
    ("cython", "cpdef int add(int a, int b):", "cpdef int add"),
    ("dart", "  static Future<int> load(String name) async {", "static Future<int> load"),
    ("elixir", "  defp valid?(x) do", "defp valid?"),
    ("erlang", "add(A, B) -> A + B.", "add"),
    ("fsharp", "let rec add a b =", "let rec add"),
    ("gdscript", "static func add(a, b):", "static func add"),
    ("glsl", "vec4 shade(vec3 normal) {", "vec4 shade"),
    ("go", "type Reader interface {", "type Reader interface"),
    ("graphql", "extend type Query {", "extend type Query"),
    ("groovy", "    private static String name() {", "private static String name"),
    ("haskell", "addAll' :: [Int] -> Int", "addAll'"),
    ("hcl", 'resource "aws_instance" "web" {', 'resource "aws_instance" "web"'),
    ("java", "public sealed interface Shape permits Circle {", "public sealed interface Shape"),
    ("javascript", "Thing.prototype.run = function (a) {", "Thing.prototype.run"),
    ("javascript", '  it("adds numbers", () => {', 'it("adds numbers"'),
    ("julia", "mutable struct Point{T}", "mutable struct Point"),
    ("kotlin", "    override suspend fun <T> load(id: T): T {", "override suspend fun <T> load"),
    ("lisp", "(defun add (a b)", "(defun add"),
    ("lua", "local function add(a, b)", "local function add"),
    ("nim", "proc add*(a, b: int): int =", "proc add"),
    ("objectivec", "- (void)viewDidLoad {", "- (void)viewDidLoad"),
    ("ocaml", "let add a b = a + b", "let add"),
    ("perl", "sub add {", "sub add"),
    ("php", "    public static function add($a) {", "public static function add"),
    ("powershell", "Function Get-Thing {", "Function Get-Thing"),
    ("proto", "message SearchRequest {", "message SearchRequest"),
    ("python", "    async def load[T](self) -> T:", "async def load"),
    ("r", "add.all <- function(a, b) {", "add.all"),
    ("racket", "(define (add a b)", "(define (add"),
    ("ruby", "  def valid?", "def valid?"),
    ("rust", 'pub unsafe extern "C" fn add(a: i32) -> i32 {', 'pub unsafe extern "C" fn add'),
    ("rust", "unsafe impl<T> Send for Box<T> {}", "unsafe impl<T> Send for Box<T>"),
    ("scala", "  private final case class Box[T](item: T)", "private final case class Box"),
    ("scheme", "(define add", "(define add"),
    ("shell", "deploy-all() {", "deploy-all()"),
    ("solidity", "    function add(uint a) public {", "function add"),
    ("sql", "CREATE TABLE IF NOT EXISTS users (", "CREATE TABLE IF NOT EXISTS users"),
    ("svelte", "  function add(a) {", "function add"),
    ("swift", "    public class func make(_ a: Int) -> Box {", "public class func make"),
    ("typescript", "export declare namespace Shop.Web {", "export declare namespace Shop.Web"),
    ("vala", "    public static int main (string[] args) {", "public static int main"),
    ("vue", "    async load(id) {", "async load"),
    ("zig", "pub fn add(a: i32) i32 {", "pub fn add"),
]


@pytest.mark.parametrize(("lang", "line", "signature"), SIGNATURES)
def test_signatures(lang: str, line: str, signature: str) -> None:
    assert headings(f"{line}\n  body\n", lang, 4000) == [(signature,)]


def test_every_language_has_a_signature_here() -> None:
    assert {lang for lang, _, _ in SIGNATURES} == CODE_LANGS


@pytest.mark.parametrize("lang", ["javascript", "typescript", "java", "csharp", "c", "cpp", "dart"])
@pytest.mark.parametrize(
    "line",
    ["if (a) {", "for (;;) {", "while (x) {", "switch (x) {", "return add(a,", "} else if (b) {", "add(a, b);", "}"],
)
def test_statements_are_no_definitions(lang: str, line: str) -> None:
    assert not grammar_of(lang).definition.findall(f"\n{line}\n\n    {line}\n")


@pytest.mark.parametrize("lang", sorted(CODE_LANGS))
def test_patterns_stay_linear_on_hostile_lines(lang: str) -> None:
    """Each of these took minutes if a pattern could try a line in more than a few ways."""
    for unit in ("(", "a ", "<", "template <", "public ", "a(", "export ", "\t", '"', "a,", "(a)", "@", "\n", "\n\n#x"):
        chunk_code("x" + unit * 30_000, lang, 1800)
        chunk_code("\n" + unit * 30_000 + "x", lang, 1800)
