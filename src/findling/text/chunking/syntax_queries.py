"""Tree-sitter queries that find definitions, language by language.

Captures: `@d` is the definition; its signature ends after `@n` (the name) or before `@b` (the body), without either
at the first bracket of its first line; `@e` is a later sibling that still belongs to it. `@k` is a word that must be
one of the language's `keywords`: predicates inside a query would be run by the binding, node by node, and slower.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SYNTAXES", "Syntax"]


class Syntax(NamedTuple):
    """The wheel of a grammar, the function in it that returns the grammar, and the query for definitions."""

    module: str
    query: str
    language: str = "language"
    keywords: frozenset[str] = frozenset()
    merges: bool = False
    """Whether neighbours of one name are one definition: a type signature and the equations below it."""


def _named(kinds: str, name: str = "name: (_) @n") -> str:
    """One pattern for each kind of node."""
    return "\n".join(f"({kind} {name}) @d" for kind in kinds.split())


_PYTHON = f"""
{_named("function_definition class_definition")}
(decorated_definition definition: (_ name: (_) @n)) @d
(module (if_statement condition: (comparison_operator . (identifier) @k @n)) @d)
"""

_JS_FUNCTION = "[(arrow_function) (function_expression) (generator_function) (class)]"
_JS_DECLARED = f"(variable_declarator name: (_) @n value: {_JS_FUNCTION})"
_ECMASCRIPT = f"""
{_named("function_declaration generator_function_declaration class_declaration method_definition")}
[(lexical_declaration {_JS_DECLARED}) (variable_declaration {_JS_DECLARED})] @d
(export_statement declaration: (_ name: (_) @n)) @d
(export_statement declaration: (_ (variable_declarator name: (_) @n))) @d
(export_statement "default" @n) @d
(program (expression_statement (assignment_expression left: (member_expression) @n)) @d)
(expression_statement (assignment_expression left: (_) @n right: {_JS_FUNCTION})) @d
(expression_statement (call_expression arguments: (arguments . [(string) (template_string)] @n . {_JS_FUNCTION}))) @d
(pair key: (_) @n value: {_JS_FUNCTION}) @d
"""
_JAVASCRIPT = f"""
{_ECMASCRIPT}
(field_definition property: (_) @n value: {_JS_FUNCTION}) @d
"""
_TYPESCRIPT = f"""
{_ECMASCRIPT}
{_named("abstract_class_declaration interface_declaration enum_declaration type_alias_declaration")}
{_named("module internal_module abstract_method_signature function_signature")}
(expression_statement (internal_module name: (_) @n)) @d
(ambient_declaration (_ name: (_) @n)) @d
(public_field_definition name: (_) @n value: {_JS_FUNCTION}) @d
"""

_JAVA = _named(
    "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration "
    "method_declaration constructor_declaration compact_constructor_declaration"
)
_CSHARP = _named(
    "namespace_declaration class_declaration interface_declaration enum_declaration record_declaration "
    "struct_declaration delegate_declaration method_declaration constructor_declaration property_declaration "
    "local_function_statement"
)

_C_TYPES = """
(struct_specifier name: (_) @n body: (_)) @d
(union_specifier name: (_) @n body: (_)) @d
(enum_specifier name: (_) @n body: (_)) @d
(type_definition type: (_ body: (_) @b)) @d
"""
_C = f"""
(function_definition declarator: (function_declarator declarator: (_) @n)) @d
(function_definition declarator: (_ declarator: (function_declarator declarator: (_) @n))) @d
(function_definition declarator: (_ declarator: (_ declarator: (function_declarator declarator: (_) @n)))) @d
{_C_TYPES}
"""
_CPP = f"""
{_C}
(function_definition declarator: (_ (function_declarator declarator: (_) @n))) @d
(namespace_definition body: (_) @b) @d
(class_specifier body: (_) @b) @d
(template_declaration (_ body: (_) @b)) @d
(concept_definition name: (_) @n) @d
"""
_OBJECTIVE_C = f"""
{_C}
(class_interface . "@interface" . (identifier) @n) @d
(class_implementation . "@implementation" . (identifier) @n) @d
(protocol_declaration . "@protocol" . (identifier) @n) @d
(method_definition . (_)* . (identifier) @n) @d
"""

_GO = """
(function_declaration name: (_) @n) @d
(method_declaration name: (_) @n) @d
(type_declaration . "type" . (type_spec type: (struct_type . "struct" @n))) @d
(type_declaration . "type" . (type_spec type: (interface_type . "interface" @n))) @d
(type_declaration . "type" . [(type_spec name: (_) @n) (type_alias name: (_) @n)]) @d
(type_spec name: (_) @n) @d
(source_file [(var_declaration . "var" @n) (const_declaration . "const" @n)] @d)
(source_file (var_declaration . "var" . (var_spec . name: (_) @n)) @d)
(source_file (const_declaration . "const" . (const_spec . name: (_) @n)) @d)
"""

_RUST = f"""
{_named("function_item struct_item enum_item trait_item union_item mod_item macro_definition")}
(function_signature_item name: (_) @n) @d
(impl_item body: (_) @b) @d
(source_file [(const_item name: (_) @n) (static_item name: (_) @n) (type_item name: (_) @n)] @d)
"""

_PHP = _named(
    "namespace_definition class_declaration interface_declaration trait_declaration enum_declaration "
    "function_definition method_declaration"
)
_SWIFT = f"""
{_named("class_declaration protocol_declaration typealias_declaration")}
(function_declaration name: (simple_identifier) @n) @d
(init_declaration "init" @n) @d
(deinit_declaration "deinit" @n) @d
"""
_KOTLIN = f"""
{_named("class_declaration object_declaration function_declaration")}
(companion_object "object" @n) @d
(type_alias type: (_) @n) @d
"""
_SCALA = f"""
{_named("class_definition object_definition trait_definition enum_definition function_definition package_object")}
(given_definition name: (_) @n) @d
(extension_definition parameters: (_) @n) @d
(compilation_unit (type_definition name: (_) @n) @d)
"""
_DART = f"""
{_named("class_definition enum_declaration extension_declaration")}
(mixin_declaration (identifier) @n) @d
((function_signature name: (_) @n) @d . (function_body) @e)
((method_signature (_ name: (_) @n)) @d . (function_body) @e)
"""
_HASKELL = f"""
(declarations [(signature name: (_) @n) (function name: (_) @n) (bind name: (_) @n)] @d)
{_named("data_type newtype type_synonym class")}
(class declarations: (_) @b) @d
(instance patterns: (_) @n) @d
"""
_OCAML_VALUE = "(value_definition (let_binding pattern: (_) @n)) @d"
_OCAML = f"""
(compilation_unit {_OCAML_VALUE})
(structure {_OCAML_VALUE})
(type_definition (type_binding name: (_) @n)) @d
(module_definition (module_binding (module_name) @n)) @d
(module_type_definition (module_type_name) @n) @d
(class_definition (class_binding (class_name) @n)) @d
(method_definition (method_name) @n) @d
(exception_definition (constructor_declaration (constructor_name) @n)) @d
"""
_ELIXIR = """
(call target: (identifier) @k (arguments . [(alias) (identifier)] @n)) @d
(call target: (identifier) @k (arguments . (call target: (_) @n))) @d
(call target: (identifier) @k (arguments . (binary_operator left: (call target: (_) @n)))) @d
(call target: (identifier) @k (arguments . (string) @n) (do_block)) @d
"""
_ELIXIR_WORDS = (
    "defmodule defprotocol defimpl def defp defmacro defmacrop defguard defguardp defdelegate defn defnp describe test"
)
_JULIA = f"""
{_named("function_definition macro_definition", "(signature (call_expression . (_) @n))")}
(function_definition (signature (_ (call_expression . (_) @n)))) @d
{_named("struct_definition abstract_definition", "(type_head . (_ . (identifier) @n))")}
{_named("struct_definition abstract_definition", "(type_head . (identifier) @n)")}
(module_definition name: (_) @n) @d
(source_file (assignment . (call_expression . (_) @n)) @d)
(module_definition (assignment . (call_expression . (_) @n)) @d)
"""
_POWERSHELL = """
(function_statement (function_name) @n) @d
(class_statement . (_)? . (simple_name) @n) @d
(enum_statement . (simple_name) @n) @d
(class_method_definition (simple_name) @n) @d
"""
_LUA = """
(function_declaration name: (_) @n) @d
(assignment_statement (variable_list . name: (_) @n) (expression_list . value: (function_definition))) @d
(variable_declaration
  (assignment_statement (variable_list . name: (_) @n) (expression_list . value: (function_definition)))) @d
(field name: (_) @n value: (function_definition)) @d
"""
_ZIG = """
(function_declaration name: (_) @n) @d
(variable_declaration (identifier) @n
  [(struct_declaration) (enum_declaration) (union_declaration) (opaque_declaration)]) @d
(test_declaration (string) @n) @d
"""

# Left out: the parser for Ruby crashes on some broken texts, the one for Perl does not return from some, and the one
# for SQL fails on most real files.
SYNTAXES: dict[str, Syntax] = {
    "bash": Syntax("tree_sitter_bash", _named("function_definition")),
    "c": Syntax("tree_sitter_c", _C),
    "cpp": Syntax("tree_sitter_cpp", _CPP),
    "csharp": Syntax("tree_sitter_c_sharp", _CSHARP),
    "cuda": Syntax("tree_sitter_cpp", _CPP),
    "dart": Syntax("tree_sitter_dart", _DART),
    "elixir": Syntax("tree_sitter_elixir", _ELIXIR, keywords=frozenset(_ELIXIR_WORDS.split())),
    "go": Syntax("tree_sitter_go", _GO),
    "haskell": Syntax("tree_sitter_haskell", _HASKELL, merges=True),
    "hcl": Syntax("tree_sitter_hcl", "(config_file (body (block) @d))"),
    "java": Syntax("tree_sitter_java", _JAVA),
    "javascript": Syntax("tree_sitter_javascript", _JAVASCRIPT),
    "julia": Syntax("tree_sitter_julia", _JULIA),
    "kotlin": Syntax("tree_sitter_kotlin", _KOTLIN),
    "lua": Syntax("tree_sitter_lua", _LUA),
    "objectivec": Syntax("tree_sitter_objc", _OBJECTIVE_C),
    "ocaml": Syntax("tree_sitter_ocaml", _OCAML, "language_ocaml"),
    "php": Syntax("tree_sitter_php", _PHP, "language_php"),
    "powershell": Syntax("tree_sitter_powershell", _POWERSHELL),
    "python": Syntax("tree_sitter_python", _PYTHON, keywords=frozenset({"__name__"})),
    "rust": Syntax("tree_sitter_rust", _RUST),
    "scala": Syntax("tree_sitter_scala", _SCALA),
    "swift": Syntax("tree_sitter_swift", _SWIFT),
    "typescript": Syntax("tree_sitter_typescript", _TYPESCRIPT, "language_tsx"),
    "zig": Syntax("tree_sitter_zig", _ZIG),
}
