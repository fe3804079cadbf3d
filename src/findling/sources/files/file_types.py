"""Types of files as data: a name gives the language and kind, or the reason to skip the file."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "EXTENSIONS",
    "FALLBACK_TYPE",
    "KNOWN_NAMES",
    "MACHINE_MADE",
    "NEVER_ENTERED",
    "SECRET_FOLDERS",
    "USEFUL_HIDDEN_DIRECTORIES",
    "Exclusion",
    "FileType",
    "classify",
    "file_type",
]

_SECRET_PREFIXES = (".env.", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")
_MINIFIED_SUFFIXES = (".min.js", ".min.mjs", ".min.cjs", ".min.css", ".min.html", ".map")
_LANGUAGES = {
    "code": {
        "abap": ".abap",
        "ada": ".ada .adb .ads",
        "agda": ".agda .lagda",
        "apex": ".apex .trigger",
        "applescript": ".applescript",
        "assembly": ".asm .s .nasm",
        "astro": ".astro",
        "autohotkey": ".ahk",
        "awk": ".awk .gawk",
        "bash": ".sh .bash .zsh .ksh .fish .bats .command",
        "batch": ".bat .cmd",
        "c": ".c .h",
        "clojure": ".clj .cljs .cljc .edn .bb",
        "cmake": ".cmake",
        "cobol": ".cob .cbl .cpy",
        "coffeescript": ".coffee .litcoffee",
        "cpp": ".cc .cpp .cxx .c++ .hh .hpp .hxx .h++ .ipp .inl .tpp .ixx .cppm .ino",
        "crystal": ".cr",
        "csharp": ".cs .csx .cshtml .razor",
        "css": ".css .scss .sass .less .styl .pcss",
        "cuda": ".cu .cuh",
        "cython": ".pyx .pxd .pxi",
        "d": ".d .di",
        "dart": ".dart",
        "dockerfile": ".dockerfile .containerfile",
        "elixir": ".ex .exs .eex .heex .leex",
        "elm": ".elm",
        "erlang": ".erl .hrl .escript",
        "fennel": ".fnl",
        "fortran": ".f .for .f77 .f90 .f95 .f03 .f08",
        "fsharp": ".fs .fsi .fsx",
        "gdscript": ".gd",
        "gleam": ".gleam",
        "glsl": ".glsl .vert .frag .geom .comp .hlsl .wgsl .metal .shader",
        "go": ".go",
        "graphql": ".graphql .gql .graphqls",
        "groovy": ".groovy .gradle .gvy",
        "haskell": ".hs .lhs .hsc",
        "haxe": ".hx",
        "hcl": ".tf .hcl .tfvars .nomad .tofu",
        "idl": ".idl .thrift .capnp .fbs .avdl .smithy",
        "idris": ".idr",
        "janet": ".janet",
        "java": ".java .jsp .aj",
        "javascript": ".js .mjs .cjs .jsx .es6",
        "julia": ".jl",
        "kotlin": ".kt .kts",
        "lean": ".lean",
        "lisp": ".lisp .lsp .cl .el .asd",
        "lua": ".lua .luau",
        "make": ".mk .mak .make .just .ninja",
        "mojo": ".mojo",
        "nim": ".nim .nims .nimble",
        "nix": ".nix",
        "objectivec": ".m .mm",
        "ocaml": ".ml .mli .mll .mly .re .rei",
        "odin": ".odin",
        "pascal": ".pas .pp .dpr .lpr",
        "perl": ".pl .pm .t .pod .raku .rakumod",
        "php": ".php .phtml .php3 .php4 .php5 .inc",
        "policy": ".cue .dhall .rego .jsonnet .libsonnet .bicep .bzl .star .bazel .kcl",
        "powershell": ".ps1 .psm1 .psd1",
        "prisma": ".prisma",
        "prolog": ".pro .prolog",
        "proto": ".proto",
        "puppet": ".puppet",
        "purescript": ".purs",
        "python": ".py .pyi .pyw .gyp .gypi .sage",
        "qml": ".qml",
        "r": ".r .rprofile",
        "racket": ".rkt .rktl",
        "ruby": ".rb .rake .gemspec .erb .ru .haml .slim",
        "rust": ".rs",
        "scala": ".scala .sc .sbt",
        "scheme": ".scm .ss .sld",
        "smalltalk": ".st",
        "solidity": ".sol .vy .cairo .move",
        "sql": ".sql .ddl .dml .psql .pgsql .plsql .pls .pks .pkb .cypher .sparql",
        "stan": ".stan",
        "svelte": ".svelte",
        "swift": ".swift",
        "systemverilog": ".sv .svh .v .vh",
        "tcl": ".tcl .tk .exp",
        "template": ".tmpl .tpl .template .j2 .jinja .jinja2 .mustache .hbs .handlebars .liquid .ejs .pug .twig .njk",
        "typescript": ".ts .tsx .mts .cts",
        "typst": ".typ",
        "vala": ".vala .vapi",
        "vb": ".vb .vbs .bas .frm",
        "vhdl": ".vhd .vhdl",
        "vim": ".vim",
        "vue": ".vue",
        "webassembly": ".wat .wast",
        "zig": ".zig .zon",
    },
    "markdown": {
        "asciidoc": ".adoc .asciidoc",
        "markdown": ".md .markdown .mdown .mkd .mkdn .mdwn .mdc .rmd .qmd",
        "mdx": ".mdx",
        "org": ".org",
        "rst": ".rst .rest",
    },
    "text": {
        "bibtex": ".bib",
        "diff": ".diff .patch",
        "html": ".html .htm .xhtml",
        "latex": ".tex .ltx .sty .cls .bbl .dtx .latex",
        "log": ".log",
        "roff": ".man .roff .mdoc",
        "subtitles": ".srt .vtt .sbv .ass .lrc",
        "texinfo": ".texi .texinfo",
        "text": ".txt .text .nfo .1st .rtxt .in .example .sample .dist .lst .list",
        "textile": ".textile .wiki .mediawiki .creole .dokuwiki",
        "translation": ".po .pot .xlf .xliff .arb .ftl",
    },
    "data": {
        "csv": ".csv .tsv .psv",
        "diagram": ".dot .gv .mmd .mermaid .puml .plantuml .drawio",
        "json": ".geojson .topojson .json .jsonl .ndjson .json5 .jsonc .jsonld .har .webmanifest .code-workspace",
        "notebook": ".ipynb",
        "calendar": ".ics .vcf",
        "ledger": ".ledger .beancount .journal",
        "rdf": ".ttl .nt .n3 .nq .trig",
        "svg": ".svg",
        "xml": ".xml .xsd .xsl .xslt .rss .atom .opml .plist .wsdl .xaml .storyboard .xib .resx .gpx .kml .fxml .dita",
        "yaml": ".yaml .yml",
    },
    "document": {
        "archive": ".zip .tar .gz .tgz .bz2 .tbz2 .xz .txz .jar .war .whl .egg",
        "doc": ".doc",
        "docx": ".docx .docm .dotx",
        "epub": ".epub",
        "mail": ".eml .mbox .mht .mhtml",
        "msg": ".msg",
        "opendocument": ".odt .ott .fodt .odp .otp .fodp",
        "pdf": ".pdf",
        "ppt": ".ppt .pps",
        "pptx": ".pptx .pptm .ppsx .potx",
        "rtf": ".rtf",
        "spreadsheet": ".xlsx .xlsm .xlsb .xltx .xls .ods .ots .fods",
        "sqlite": ".sqlite .sqlite3 .db .db3",
    },
    "config": {
        "apache": ".htaccess",
        "conf": ".conf .config .cnf .cf .nginx .vhost",
        "desktop": ".desktop .service .socket .timer .mount .target .network .rules",
        "ini": ".ini .cfg .properties .prefs .inf .reg .editorconfig .pc .rc .gitconfig",
        "kconfig": ".kconfig .defconfig .dts .dtsi",
        "msbuild": ".csproj .vbproj .fsproj .vcxproj .props .targets .sln .nuspec",
        "toml": ".toml",
    },
}
_UNSUPPORTED = {
    "PostScript": ".ps .eps",
    "Apple iWork document": ".pages .numbers",
    "Hangul document": ".hwp .hwpx",
    "e-book": ".mobi .azw .azw3 .djvu",
    "Outlook mailbox": ".pst .ost",
    "web crawl": ".warc",
    "compiled help": ".chm",
    "Parquet or Arrow table": ".parquet .feather .arrow .orc",
}
_BINARY = {
    "archive": ".zst .7z .rar .deb .rpm .apk .dmg .iso .cab .lz4 .br",
    "audio": ".mp3 .wav .flac .ogg .oga .opus .m4a .aac .wma .mid .midi",
    "compiled code": ".pyc .pyo .pyd .so .dll .dylib .exe .o .obj .a .lib .class .wasm .beam .elc .mo .pdb .nib",
    "font": ".ttf .otf .woff .woff2 .eot .pfb",
    "image": ".png .jpg .jpeg .gif .bmp .tif .tiff .webp .ico .icns .heic .avif .psd .xcf .ai .sketch .fig .raw .jp2",
    "model or array": ".npy .npz .pkl .pickle .pt .pth .onnx .safetensors .gguf .h5 .hdf5 .joblib .tflite .pb .mat",
    "video": ".mp4 .mkv .avi .mov .webm .wmv .flv .m4v .mpg .mpeg .3gp .ogv",
    "disk or memory image": ".img .vmdk .vdi .qcow2 .bin .dat .swp .swo .ttc .blend .fbx .glb .stl",
}
_SECRET_EXTENSIONS = (
    ".pem .key .p8 .p12 .pfx .pkcs12 .keystore .jks .kdb .kdbx .ppk .gpg .pgp .ovpn .env .tfstate .keytab .agekey"
)
_SECRET_NAMES = (
    ".env .envrc .netrc _netrc .pgpass pgpass.conf .npmrc .pypirc .git-credentials .htpasswd .dockercfg .my.cnf .s3cfg "
    ".boto .vault-token .rediscli_auth .mylogin.cnf .passwd-s3fs .authinfo .authinfo.gpg .terraformrc "
    "credentials credentials.json client_secret.json kubeconfig terraform.tfstate.backup .bash_history .zsh_history "
    ".python_history .psql_history .mysql_history .sqlite_history .node_repl_history .lesshst .viminfo"
)
_LOCK_NAMES = (
    "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock poetry.lock uv.lock "
    "pdm.lock pixi.lock pipfile.lock conda-lock.yml pylock.toml cargo.lock go.sum go.work.sum composer.lock "
    "gemfile.lock podfile.lock cartfile.resolved package.resolved pubspec.lock mix.lock rebar.lock flake.lock "
    "packages.lock.json paket.lock project.assets.json gradle.lockfile buildscript-gradle.lockfile stack.yaml.lock "
    "cabal.project.freeze .terraform.lock.hcl chart.lock shard.lock berksfile.lock gopkg.lock glide.lock "
    "module.bazel.lock symfony.lock spago.lock"
)
_NAMES_WITH_VARIANTS = (
    "authors changelog containerfile copying dockerfile jenkinsfile licence license makefile notice readme vagrantfile"
)
NEVER_ENTERED = frozenset({".bzr", ".findling", ".git", ".hg", ".jj", ".pijul", ".svn", "_darcs"})
"""Directories of version control and of findling itself: no rule opens them."""

SECRET_FOLDERS = frozenset({".aws", ".azure", ".docker", ".gcloud", ".gnupg", ".kube", ".password-store", ".ssh"})
"""Directories of keys and passwords: only a path that the user names leads into them."""

_CACHES = (
    ".angular .dart_tool .direnv .eggs .gradle .hypothesis .import_linter_cache .ipynb_checkpoints .mypy_cache .next "
    ".nox .nuxt .nyc_output .parcel-cache .pnpm-store .pytest_cache .pytype .ruff_cache .sass-cache .serverless "
    ".stack-work .svelte-kit .terraform .tox .turbo __MACOSX __pycache__ __pypackages__ bower_components elm-stuff "
    "jspm_packages node_modules"
)
MACHINE_MADE = frozenset(_CACHES.split())
"""Directories that programs write for themselves, whatever they hold."""

USEFUL_HIDDEN_DIRECTORIES = frozenset(
    {".buildkite", ".changeset", ".ci", ".circleci", ".devcontainer", ".forgejo", ".gitea", ".github", ".gitlab"}
)
"""Directories that people write and read although their names begin with a dot."""


class FileType(NamedTuple):
    """Type of a file: `kind` is `code`, `markdown` (structured by headings), `text`, `data`, `config` or `document`.

    A document is no text file; an extractor reads it.
    """

    lang: str
    kind: str


class Exclusion(NamedTuple):
    """Why files of this name are left out; `reason` is one of `discovery.REASONS`."""

    reason: str
    detail: str = ""


FALLBACK_TYPE = FileType("text", "text")
"""The type of a file that only a rule of the user brought in."""


def classify(name: str) -> FileType | Exclusion:
    """The type of a file by its name alone, or why it is left out."""
    lower = name.lower()
    known = KNOWN_NAMES.get(lower)
    if known is not None:
        return known
    if lower.startswith(_SECRET_PREFIXES):
        return _SECRET
    if lower.startswith("~$"):
        return _OWNER_FILE
    dot = lower.rfind(".")
    if dot >= 0:
        if lower.endswith(_MINIFIED_SUFFIXES):
            return _MINIFIED
        by_extension = EXTENSIONS.get(lower[dot:])
        if by_extension is not None:
            return by_extension
    return _by_stem(lower)


def file_type(name: str) -> FileType:
    """The type of a file that is to be indexed."""
    found = classify(name)
    return found if isinstance(found, FileType) else FALLBACK_TYPE


def _by_stem(lower: str) -> FileType | Exclusion:
    """`Dockerfile.dev`, `README.de` and `LICENSE-MIT` are what their first word says."""
    stem = lower.replace("-", ".").partition(".")[0]
    return _STEMS.get(stem, _UNKNOWN)


_SECRET = Exclusion("secret", "may hold a key or a password")
_LOCK_FILE = Exclusion("lock-file", "written by a package manager")
_MINIFIED = Exclusion("minified", "generated from other sources")
_MACHINE_MADE = Exclusion("machine-made", "written by a desktop")
_OWNER_FILE = Exclusion("machine-made", "says who has a document open")
_UNKNOWN = Exclusion("unknown-type")


_NAMES = {
    FileType("make", "code"): "makefile gnumakefile bsdmakefile justfile .justfile tiltfile earthfile",
    FileType("cmake", "code"): "cmakelists.txt",
    FileType("dockerfile", "code"): "dockerfile containerfile",
    FileType("groovy", "code"): "jenkinsfile",
    FileType("ruby", "code"): (
        "gemfile rakefile vagrantfile podfile fastfile appfile brewfile guardfile capfile berksfile dangerfile .irbrc"
    ),
    FileType("python", "code"): "sconstruct sconscript snakefile wscript build workspace .pythonrc",
    FileType("bash", "code"): (
        "configure pkgbuild apkbuild .bashrc .bash_profile .bash_aliases .bash_logout .zshrc .zprofile .zshenv "
        ".profile .xinitrc .xprofile .inputrc"
    ),
    FileType("vim", "code"): ".vimrc .gvimrc .ideavimrc",
    FileType("text", "text"): (
        "license licence copying copyright notice authors contributors maintainers readme changelog changes history "
        "news todo thanks credits install version manifest codeowners owners unlicense patents acknowledgements "
        "hacking faq roadmap security support release_notes .mailmap"
    ),
    FileType("ignore", "config"): (
        ".gitignore .ignore .findlingignore .dockerignore .hgignore .npmignore .eslintignore .prettierignore .rgignore "
        ".stylelintignore .gcloudignore .helmignore .vscodeignore .bzrignore .cvsignore .slugignore .containerignore"
    ),
    FileType("ini", "config"): (
        ".editorconfig .gitattributes .gitmodules .gitconfig .flake8 .pylintrc .coveragerc .pydocstyle .isort.cfg "
        ".bumpversion.cfg .style.yapf .wgetrc .curlrc .buckconfig .hgrc .sqlfluff .ruff.toml .taplo.toml "
        "pipfile procfile go.mod go.work requirements constraints kconfig .env.example .env.sample .env.template "
        ".python-version .node-version .ruby-version .nvmrc .tool-versions .browserslistrc .tmux.conf "
        ".luacheckrc .rustfmt.toml rust-toolchain .clang-format-ignore .yardopts .rspec .ackrc .ctags .gdbinit"
    ),
    FileType("yaml", "config"): (
        ".gitlab-ci.yml .gitlab-ci.yaml .travis.yml .pre-commit-config.yaml .pre-commit-hooks.yaml .readthedocs.yaml "
        ".readthedocs.yml .rubocop.yml .golangci.yml .golangci.yaml .yamllint .yamllint.yml .yamllint.yaml "
        ".codecov.yml .clang-format .clang-tidy .clangd .drone.yml .cirrus.yml .appveyor.yml .mergify.yml "
        ".goreleaser.yml .goreleaser.yaml .markdownlint.yaml .markdownlint.yml .eslintrc.yml .eslintrc.yaml "
        ".prettierrc.yml .prettierrc.yaml .swiftlint.yml .scalafmt.conf .hadolint.yaml .gitpod.yml .ansible-lint"
    ),
    FileType("json", "config"): (
        ".eslintrc .eslintrc.json .prettierrc .prettierrc.json .babelrc .babelrc.json .stylelintrc .stylelintrc.json "
        ".swcrc .jshintrc .jscsrc .markdownlint.json .markdownlint.jsonc .mocharc.json .nycrc .releaserc .lintstagedrc "
        ".bowerrc .arcconfig .all-contributorsrc .renovaterc .renovaterc.json .htmlhintrc"
    ),
    FileType("javascript", "config"): ".eslintrc.js .eslintrc.cjs .prettierrc.js .prettierrc.cjs .babelrc.js .pnp.cjs",
}


def _split(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(extension, meaning) for meaning, extensions in table.items() for extension in extensions.split()]


EXTENSIONS: dict[str, FileType | Exclusion] = {
    **{extension: Exclusion("binary", meaning) for extension, meaning in _split(_BINARY)},
    **{extension: Exclusion("unsupported", meaning) for extension, meaning in _split(_UNSUPPORTED)},
    **dict.fromkeys(_SECRET_EXTENSIONS.split(), _SECRET),
    **{
        extension: FileType(lang, kind)
        for kind, languages in _LANGUAGES.items()
        for extension, lang in _split(languages)
    },
}
"""Type of a file by its extension in lower case, with the dot."""

KNOWN_NAMES: dict[str, FileType | Exclusion] = {
    **{name: meaning for meaning, names in _NAMES.items() for name in names.split()},
    **dict.fromkeys(_LOCK_NAMES.split(), _LOCK_FILE),
    **dict.fromkeys(_SECRET_NAMES.split(), _SECRET),
    ".ds_store": _MACHINE_MADE,
    "thumbs.db": _MACHINE_MADE,
    "desktop.ini": _MACHINE_MADE,
}
"""Type of a file by its whole name in lower case; a leading dot does not hide such a file."""

_STEMS = {name: KNOWN_NAMES[name] for name in _NAMES_WITH_VARIANTS.split()}
