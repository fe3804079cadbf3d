"""A view that an earlier version has made is made anew, and not taken for an empty one."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import findling


def test_words_are_found_in_a_view_of_another_layout(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.md").write_text("The harbour opens at nine.\n")
    changes = {"store.home": str(tmp_path / "home"), "permissions.unset": "public", "search.mode": "keyword"}
    settings = findling.Settings().override(changes, "test")
    with findling.open(root, settings=settings) as engine:
        engine.index()
        assert engine.as_caller("user:ann").search("harbour").total == 1
        (held,) = engine.home.glob("views/*.seg/held")
    content = held.read_bytes()[:-4].replace(b"|", b"+", 1)
    held.write_bytes(content + crc32(content).to_bytes(4, "little"))
    with findling.open(root, settings=settings) as engine:
        assert engine.as_caller("user:ann").search("harbour").total == 1
        assert [one.text for one in engine.as_caller("user:ann").suggest("harb")] == ["harbour"]
        assert not held.exists()
