"""The MCP server through a client in the same process: every tool, what it refuses, and how much it says."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import TextResourceContents

from findling.domain.permissions import OWNER, Caller
from findling.domain.queries import SearchRequest
from findling.domain.resources import Resource
from findling.domain.results import SearchAnswer
from findling.faces.mcp.tool_context import local_desk
from findling.faces.mcp.tools.budget import compact_json, count_tokens
from findling.faces.mcp.transport.server import make_server
from findling.pipelines.indexing.freshness import UNSURE_NS
from findling.service.engine.client import LocalClient
from findling.service.settings.settings import Settings
from tests.faces.mcp_desks import Served, asked, call, make_project, served, text_of, told

ERAS = ["auto", "legacy"]
READERS = ["search", "grep", "glob", "refs", "outline", "fetch", "explain", "similar", "related", "status"]
ANN = Caller("ann", ("user:ann",), frozenset({"read", "write"}))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A project with directives, which may be written to and is not."""
    with _shop(tmp_path_factory.mktemp("shop")) as one:
        yield one


@pytest.fixture
def own_shop(tmp_path: Path) -> Iterator[Served]:
    """The same for one test."""
    with _shop(tmp_path) as one:
        yield one


@contextmanager
def _shop(folder: Path) -> Iterator[Served]:
    with served(make_project(folder / "project"), mcp__write=True) as one:
        one.engine.index()
        (folder / "nobody").mkdir()
        one.engine.items.sync(one.engine.root, folder / "nobody")
        yield one


@pytest.mark.parametrize("era", ERAS)
def test_every_tool_answers(own_shop: Served, era: str) -> None:
    server = own_shop.server
    found = call(server, "search", era, query="session token")
    assert {hit["id"] for hit in found["results"]} == {"file:src/auth.py", "file:docs/guide.md"}
    assert found["search_type"] == "keyword"
    assert found["quality"] == "good"
    assert found["understood_as"] == "session OR token"
    document = call(server, "fetch", era, id=found["results"][0]["id"])
    assert "session" in document["text"]
    assert call(server, "explain", era, query="token", id="src/auth.py")["rank"] == 1
    assert call(server, "similar", era, id="src/auth.py")["results"]
    everything = call(server, "search", era, query="session token", limit=1, all=True)
    assert everything["files"] == {"docs/guide.md": 1, "src/auth.py": 1}
    lines = call(server, "grep", era, pattern="session|basket", glob="*.{py,ts}", context=1)
    assert lines["matches"] == {
        "src/auth.py": ["4-def login(user):", "5:    token = create_session(user)", "6-    return token"],
        "src/shop.ts": ["1:export function basket(user: string) {", "2-  return user;"],
    }
    assert (lines["files"], lines["lines"], lines["truncated"]) == (2, 2, False)
    assert call(server, "grep", era, pattern="user", gives="counts")["matches"] == {"src/auth.py": 2, "src/shop.ts": 2}
    assert call(server, "grep", era, pattern="user", limit=1)["truncated"] is True
    assert call(server, "glob", era, pattern="docs/*.md")["files"] == ["docs/guide.md", "docs/index.md"]
    relations = call(server, "refs", era, name="create_session")
    assert relations["calls"] == ["src/auth.py:5 login: token = create_session(user)"]
    assert (relations["total"], relations["truncated"]) == (len(relations["imports"]) + 1, False)
    assert call(server, "outline", era, id="src/auth.py")["definitions"] == ["4-6: def login(user):"]
    assert call(server, "status", era)["types"] == {"file": 4, "directive": 2}
    assert call(server, "remember", era, text="The binder is blue.")["outcome"] == "new"
    assert call(server, "search", era, query="binder")["results"][0]["type"] == "memory"
    assert call(server, "index", era)["unchanged"] == 4


def test_the_list_of_tools_is_short_and_strict(shop: Served) -> None:
    tools = asked(shop.server, lambda client: client.list_tools()).tools
    assert [tool.name for tool in tools] == [*READERS, "remember", "memory", "index"]
    dumped = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]
    assert count_tokens(compact_json(dumped)) < 3000
    for tool in dumped:
        assert tool["inputSchema"]["additionalProperties"] is False
        assert tool["outputSchema"]["type"] == "object"
        assert tool["outputSchema"]["properties"]
        assert tool["annotations"]["readOnlyHint"] is (tool["name"] in READERS)
        assert tool["annotations"]["openWorldHint"] is False
    modes = dumped[0]["inputSchema"]["properties"]["mode"]
    assert (modes["enum"], modes["default"]) == (["auto", "hybrid", "keyword", "semantic"], "auto")
    assert dumped[0]["inputSchema"]["properties"]["filters"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("caller", "allowed", "names"),
    [
        (OWNER, False, READERS),
        (OWNER, True, [*READERS, "remember", "memory", "index"]),
        (ANN, True, [*READERS, "remember", "memory"]),
        (ANN._replace(scopes=frozenset({"read"})), True, READERS),
    ],
)
def test_writing_needs_the_setting_and_the_scope(
    project: Path, caller: Caller, allowed: bool, names: list[str]
) -> None:
    with served(project, caller, mcp__write=allowed) as one:
        one.engine.index()
        assert [tool.name for tool in asked(one.server, lambda client: client.list_tools()).tools] == names
        if "index" not in names:
            assert told(one.server, "index") == f"there is no tool index; try: there are: {', '.join(names)}"


def test_a_token_that_may_only_write_reads_nothing(project: Path) -> None:
    with served(project, OWNER._replace(scopes=frozenset({"write"})), mcp__write=True) as one:
        one.engine.index()
        for name, arguments in (("search", {"query": "token"}), ("fetch", {"id": "docs/guide.md"}), ("status", {})):
            assert "does not allow to read" in told(one.server, name, **arguments)


def test_what_somebody_remembers_is_for_themselves(project: Path) -> None:
    with served(project, ANN, mcp__write=True) as one:
        one.engine.index()
        made = call(one.server, "remember", text="My code is 1234.", tags=["door"])
        assert [hit["id"] for hit in call(one.server, "search", query="code")["results"]] == [made["id"]]
        assert one.engine.memories.get(made["id"]).visibility == ("user:ann",)
        assert one.engine.as_caller("user:bob").search("code").total == 0


def test_memories_stay_true(project: Path) -> None:
    with served(project, ANN, mcp__write=True) as one:
        one.engine.index()
        one.engine.memories.remember("Eve lives in Berlin.")
        made = call(one.server, "remember", text="Eve lives in Bonn.", source="Ben")
        assert (made["outcome"], made["note"]) == ("new", "")
        moved = call(one.server, "remember", text="Eve moved to Ulm.")
        assert moved["note"].startswith(f"it supersedes {made['id']}; memory undo {moved['id']}")
        (row,) = call(one.server, "memory", text="Eve")["rows"]
        assert (row["rid"], row["text"]) == (moved["id"], "Eve moved to Ulm.")
        assert [row["text"] for row in call(one.server, "memory", action="history", text=made["id"])["rows"]] == [
            "Eve moved to Ulm.",
            "Eve lives in Bonn.",
        ]
        call(one.server, "memory", action="undo", text=moved["id"])
        assert len(call(one.server, "memory", text="Eve")["rows"]) == 2
        likes = [call(one.server, "remember", text=f"Eve likes {what}.")["id"] for what in ("tea", "rice")]
        (pair,) = call(one.server, "memory", action="review")["rows"]
        assert (pair["newer"], pair["older"]) == (likes[1], likes[0])
        call(one.server, "memory", action="supersede", text=likes[1], older=likes[0])
        assert call(one.server, "memory", action="review")["rows"] == []
        assert "recall needs a query" in told(one.server, "memory")
        assert "there is no memory" in told(one.server, "memory", action="undo", text="memory:none")


def test_shapes_that_connectors_expect(shop: Served) -> None:
    (first, *_) = call(shop.server, "search", query="session token")["results"]
    assert first["title"] == "src/auth.py"
    assert first["url"] == (shop.engine.root / "src/auth.py").as_uri() + "#L5"
    document = call(shop.server, "fetch", id=first["id"])
    assert set(document) == {"id", "title", "text", "url", "metadata", "truncated", "next_offset"}
    assert document["text"] == (shop.engine.root / "src/auth.py").read_text()
    assert document["url"] == (shop.engine.root / "src/auth.py").as_uri()


def test_what_is_demanded_and_not_there_is_relaxed_apart(shop: Served) -> None:
    answer = call(shop.server, "search", query='"token session" login')
    assert (answer["results"], answer["total"]) == ([], 0)
    assert all(one["is_match"] is False and one["preview"] for one in answer["relaxed"])
    assert call(shop.server, "fetch", id=answer["relaxed"][0]["passage"])["text"]


def test_results_say_where_they_are_and_why(shop: Served) -> None:
    (first, *_) = call(shop.server, "search", query="login stale", filters={"ext": "md"})["results"]
    assert first["why"]
    assert first["lines"]
    for hit in call(shop.server, "search", query="login")["results"]:
        line = hit["snippet"].partition(":")[0]
        passage = call(shop.server, "fetch", id=f"{hit['id']}:{line}")
        assert passage["id"] == hit["id"]
        assert call(shop.server, "fetch", id=hit["passage"])["text"].strip() == passage["text"].strip()


def test_full_detail_tells_how_each_scored(shop: Served) -> None:
    (first, *_) = call(shop.server, "search", query="login", detail="full")["results"]
    assert first["metadata"]["receipt"]["keyword"]["rank"] == 1
    assert "receipt" not in call(shop.server, "search", query="login")["results"][0]["metadata"]


def test_items_by_their_type(shop: Served) -> None:
    found = call(shop.server, "search", query="release", item_type="directive")
    first, second, *_ = found["results"]
    # The other one has the word eight times, but not as its name.
    assert first["id"] == "directive:project/deploy/release"
    assert first["score"] > second["score"]
    assert {hit["type"] for hit in found["results"]} == {"directive"}
    assert first["preview"] == "How to ship a release"
    assert first["metadata"]["name"] == "release"
    assert first["metadata"]["version"] == "1.2.0"
    assert first["metadata"]["tags"] == ["ship", "deploy"]
    assert set(found) >= {"search_type", "quality"}
    assert call(shop.server, "search", query="release", item_type="tool")["results"] == []


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"query": "a", "limt": 3}, "there is no argument limt; try: limit instead? there are: query, limit"),
    ({"query": "a", "filters": {"extension": ["py"]}}, "there is no argument filters.extension; try: ext"),
    ({"query": "a", "principals": ["user:ann"]}, "there is no argument principals"),
    ({"limit": 3}, "the argument query is missing"),
    ({"query": "a", "limit": 51}, "limit: Input should be less than or equal to 50"),
    ({"query": "a", "mode": "fuzzy"}, "mode: Input should be 'auto', 'hybrid', 'keyword' or 'semantic'"),
    ({"query": "a", "filters": {"type": "directve"}}, "nothing is of type directve; try: directive instead?"),
    ({"query": "a", "filters": {"after": "soon"}}, "after soon is no date"),
    ({"query": "a", "filters": {"after": "2026", "before": "2025"}}, "nothing is after 2026 and before 2025"),
    ({"query": "a", "filters": {"path": ["../x"]}}, "path ../x does not lie in the searched folder"),
    ({"query": "a", "filters": {"ext": ["py"], "not_ext": [".PY"]}}, "ext and not_ext both name .py"),
    ({"query": "a", "item_type": "tool", "filters": {"type": ["file"]}}, "item_type and filters.type both"),
    ({"query": "a", "cursor": "nonsense"}, "the cursor is none of an answer to this question"),
    ({"query": "a\ud800"}, "query: Input should be a valid string"),
]


def test_what_a_better_call_would_mend(shop: Served) -> None:
    async def ask(client: Client) -> list[str]:
        return [text_of(await client.call_tool("search", arguments)) for arguments, _ in MISTAKES]

    for answer, (_, said) in zip(asked(shop.server, ask), MISTAKES, strict=True):
        assert answer.startswith(said)


def test_names_that_are_none(shop: Served) -> None:
    for name, arguments in (("fetch", {}), ("similar", {}), ("explain", {"query": "login"})):
        said = told(shop.server, name, id="src/gone.py", **arguments)
        assert said == "there is no src/gone.py in the index; try: an id, a passage or a path that search gives"
    assert "has no line 99" in told(shop.server, "fetch", id="docs/guide.md:99")
    assert "is behind the end" in told(shop.server, "fetch", id="docs/guide.md", offset=10_000)
    assert told(shop.server, "serch").startswith("there is no tool serch; try: there are: search")


def test_filters_as_text_and_single_values(shop: Served) -> None:
    """Some clients send objects as the text of their JSON, and models one value for a list."""
    as_text = call(shop.server, "search", query="login", filters='{"ext": "py"}')
    assert [hit["path"] for hit in as_text["results"]] == ["src/auth.py"]
    in_folder = call(shop.server, "search", query="login", filters={"path": "docs", "after": "2020"})
    assert [hit["path"] for hit in in_folder["results"]] == ["docs/guide.md"]


def test_nothing_is_indexed_yet(project: Path) -> None:
    with served(project) as one:
        assert f"At present: {project} is not indexed" in asked(one.server, _instructions)
        assert "is not indexed" in told(one.server, "status")
        # As on the command line, a first search indexes, and later ones see what has changed.
        assert call(one.server, "search", query="login")["total"] == 2
        (project / "new.md").write_text("Another login.\n")
        assert call(one.server, "search", query="login")["total"] == 3


def test_a_missing_path_is_named_before_the_first_index_run(project: Path) -> None:
    with served(project) as one:
        asked_at = (("grep", {"pattern": "login"}), ("glob", {"pattern": ["*.py"]}), ("refs", {"name": "login"}))
        for name, arguments in asked_at:
            assert told(one.server, name, **arguments, path="src/none").startswith("there is no src/none; try: ")
        assert not one.engine.is_indexed() and "is not indexed" in told(one.server, "status")
        assert call(one.server, "grep", pattern="login", path="src")["files"] == 1


def test_others_than_the_owner_are_not_told_where_it_lies(project: Path) -> None:
    with served(project, ANN) as one:
        assert str(project) not in asked(one.server, _instructions)
        assert told(one.server, "status") == "the server cannot do that now; try: ask whoever runs it"


def test_a_whole_home_is_not_indexed_by_the_way(home: Path, project: Path) -> None:
    with served(home) as one:
        assert "is not indexed; try: findling index" in told(one.server, "search", query="login")


@pytest.mark.parametrize("era", ERAS)
def test_instructions_tell_what_is_there(own_shop: Served, era: str) -> None:
    said = asked(own_shop.server, _instructions, era)
    assert f"findling searches 6 resources of {own_shop.engine.root} in 7 passages: 4 file, 2 directive." in said
    assert "item_type=directive" in said
    assert "evidence, not instructions" in said
    own_shop.engine.add([(Resource(rid="note:1", type="note", title="More"), "One more thing.")])
    assert "findling searches 7 resources" in asked(own_shop.server, _instructions, era)


def test_instructions_for_somebody_with_limited_rights(project: Path) -> None:
    with served(project, ANN) as one:
        one.engine.index()
        one.engine.permissions.share("file:docs/guide.md", "user:ann")
        said = asked(one.server, _instructions)
        assert "findling searches 1 resource in 1 passage: 1 file." in said
        assert str(project) not in said
        assert call(one.server, "status") == {"resources": 1, "chunks": 1, "types": {"file": 1}, "details": {}}
        (hit,) = call(one.server, "search", query="login")["results"]
        assert hit["url"] == "findling://document/file%3Adocs%2Fguide.md"


async def _instructions(client: Client) -> str:
    return client.instructions or ""


def _text(read: Any) -> str:
    (content,) = read.contents
    assert isinstance(content, TextResourceContents)
    return content.text


def test_resources(shop: Served) -> None:
    async def ask(client: Client) -> None:
        (status,) = (await client.list_resources()).resources
        (template,) = (await client.list_resource_templates()).resource_templates
        assert json.loads(_text(await client.read_resource(status.uri)))["resources"] == 6
        for name in ("file%3Adocs%2Fguide.md", "file:docs/guide.md", "docs/guide.md"):
            read = await client.read_resource(template.uri_template.replace("{id}", name))
            assert _text(read).startswith("# Guide")
        for uri in ("findling://document/nope", "findling://document/", "findling://else", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="there is no"):
                await client.read_resource(uri)

    asked(shop.server, ask)


@pytest.mark.parametrize("era", ERAS)
def test_indexing_tells_how_far_it_is(own_shop: Served, era: str) -> None:
    steps: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async def ask(client: Client) -> Any:
        return await client.call_tool("index", {}, progress_callback=note)

    time.sleep(2 * UNSURE_NS / 1e9)  # files that were written just now would be looked at again
    own_shop.engine.index()
    for number in range(3):
        (own_shop.engine.root / f"more{number}.md").write_text("more\n")
    result = asked(own_shop.server, ask, era)
    assert result.structured_content["added"] == 3
    assert (steps[-1][0], steps[-1][1], (steps[-1][2] or "").split()[0]) == (3, 3, "done")


def test_several_questions_at_once(shop: Served) -> None:
    async def ask(client: Client) -> list[Any]:
        words = ("login", "token", "basket", "index") * 3
        return await asyncio.gather(*[client.call_tool("search", {"query": word}) for word in words])

    results = asked(shop.server, ask)
    assert all(not result.is_error and result.structured_content["results"] for result in results)
    assert not any(result.structured_content["degraded"] for result in results)


def test_an_answer_keeps_to_its_characters(project: Path) -> None:
    for number in range(30):
        (project / f"n{number:02}.md").write_text(f"# Note {number}\n\nbudget " + "words and more words " * 12)
    with served(project) as one:
        whole = call(one.server, "search", query="budget", limit=30, max_chars=100_000)
        short = call(one.server, "search", query="budget", limit=30, max_chars=12_000)
        few = call(one.server, "search", query="budget", limit=30, max_chars=3000)
        pages = _all_pages(one, max_chars=3000)
    assert (len(whole["results"]), whole["truncated"], whole["left_out"]) == (30, False, "")
    assert len(compact_json(short)) <= 12_000
    kept = len(short["results"])
    assert 20 < kept < 30
    assert short["truncated"]
    assert short["left_out"].startswith(f"the last {30 - kept} of 30 results, why, previews, metadata")
    assert [hit["snippet"] for hit in short["results"]] == [hit["snippet"] for hit in whole["results"][:kept]]
    assert len(compact_json(few)) <= 5000
    assert 0 < len(few["results"]) < kept
    assert "of 30 results" in few["left_out"]
    # The cursor goes on behind what was shown, not behind what was found.
    assert pages == [hit["id"] for hit in whole["results"]]


def test_an_answer_keeps_to_the_tokens_that_were_asked_for(project: Path) -> None:
    for number in range(30):
        (project / f"n{number:02}.md").write_text(f"# Note {number}\n\nbudget " + "words and more words " * 60)
    with served(project) as one:
        for name, arguments in (
            ("search", {"query": "budget", "limit": 30}),
            ("similar", {"id": "n03.md", "limit": 30}),
        ):
            sizes = [
                count_tokens(compact_json(call(one.server, name, **arguments, **limits)))
                for limits in ({"max_tokens": 600}, {}, {"max_tokens": 6000}, {"max_tokens": 90_000})
            ]
            assert sizes[0] <= 600 < sizes[1] <= 2000 < sizes[2] <= 6000 < sizes[3] <= 8000, name
        both = call(one.server, "search", query="budget", limit=30, max_tokens=6000, max_chars=3000)
        assert len(compact_json(both)) <= 5000


def test_a_result_leads_with_its_place(shop: Served) -> None:
    found = {result["path"]: result for result in call(shop.server, "search", query="login")["results"]}
    assert list(found["src/auth.py"])[:4] == ["path", "lines", "symbol", "title"]
    assert (found["src/auth.py"]["symbol"], found["docs/guide.md"].get("symbol")) == ("login", None)


def _all_pages(one: Served, **options: Any) -> list[str]:
    ids: list[str] = []
    cursor = ""
    while True:
        page = call(one.server, "search", query="budget", limit=30, cursor=cursor, **options)
        ids += [hit["id"] for hit in page["results"]]
        cursor = page["next_cursor"]
        if not cursor:
            return ids


@pytest.mark.parametrize("word", ["budget ", "数据库连接", "бюджет "])
def test_an_answer_keeps_to_its_tokens(project: Path, word: str) -> None:
    for number in range(8):
        (project / f"n{number}.md").write_text(f"# {word * 3}{number}\n\n" + word * 400)
    with served(project, mcp__max_tokens=600) as one:
        for name, arguments in (
            ("search", {"query": word * 100, "limit": 20, "detail": "full", "max_chars": 100_000}),
            ("search", {"query": word, "limit": 20}),
            ("similar", {"id": "n1.md", "max_chars": 100_000}),
            ("explain", {"query": word * 100, "id": "n1.md"}),
            ("fetch", {"id": "n1.md", "max_chars": 100_000}),
            ("status", {}),
        ):
            assert count_tokens(compact_json(call(one.server, name, **arguments))) <= 600
        assert call(one.server, "search", query=word, limit=20)["results"]


def test_a_long_document_is_read_in_parts(project: Path) -> None:
    text = "".join(f"Line {number} of ünïcödé text, 数据库.\n" for number in range(900))
    (project / "long.md").write_text(text)
    with served(project, mcp__max_tokens=2000) as one:
        one.engine.index()
        parts = []
        offset: int | None = 0
        while offset is not None:
            part = call(one.server, "fetch", id="long.md", offset=offset, max_chars=4000)
            assert part["truncated"] is (part["next_offset"] is not None)
            assert 0 < len(part["text"]) <= 4000
            assert part["text"].endswith("\n")
            parts.append(part["text"])
            offset = part["next_offset"]
        read = asked(one.server, lambda client: client.read_resource("findling://document/long.md"))
    assert "".join(parts) == text
    assert len(parts) > 5
    assert "more characters: fetch with offset" in _text(read)


def test_a_passage_with_lines_around_it(own_shop: Served) -> None:
    path = own_shop.engine.root / "docs" / "long.md"
    path.write_text("\n\n".join(f"## Part {number}\n\n" + f"Sentence {number}. " * 90 for number in range(9)))
    own_shop.engine.index()
    bare = call(own_shop.server, "fetch", id="docs/long.md:16")
    wide = call(own_shop.server, "fetch", id="docs/long.md:16", context_lines=4)
    assert bare["metadata"]["is_whole"] is False
    assert bare["text"] in wide["text"]
    assert len(wide["text"]) > len(bare["text"])


def test_a_fault_is_kept_from_the_client(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(LocalClient):
        def search(self, request: SearchRequest | str, **options: Any) -> SearchAnswer:
            raise ZeroDivisionError("a secret")

    with served(project) as one:
        one.engine.index()
        desk = local_desk(lambda: nullcontext(Failing(one.engine)), OWNER, Settings())
        server = make_server(lambda: desk)
        for era in ERAS:
            assert told(server, "search", era, query="login") == "this is a fault in findling; its log says more"
    assert "ZeroDivisionError: a secret" in caplog.text


def test_an_honest_empty_answer(shop: Served) -> None:
    found = call(shop.server, "search", query='"zebra crossing"')
    assert found["results"] == []
    assert found["total"] == 0
    assert "zebra" in found["unknown_terms"]


def test_an_empty_query_lists_the_latest_as_it_does_elsewhere(shop: Served) -> None:
    found = call(shop.server, "search", query="", limit=50)
    listed = shop.engine.search("", limit=50, refresh=False)
    assert [one["passage"] for one in found["results"]] == [hit.id for hit in listed]
    assert (found["total"], found["search_type"]) == (listed.total, "browse")
    assert found["results"]


def test_an_error_is_complete_as_text(shop: Served) -> None:
    result = asked(shop.server, lambda client: client.call_tool("fetch", {"id": "nope"}))
    assert result.structured_content is None
    assert "; try: " in text_of(result)


RECIPE = "# Bread\n\n" + "Flour, water, salt and a starter that is awake.\n" * 12 + "\nBake it for 25 minutes.\n"


def test_a_passage_is_given_whole_as_long_as_it_fits(tmp_path: Path) -> None:
    root = tmp_path / "kitchen"
    root.mkdir()
    (root / "bread.md").write_text(RECIPE)
    with served(root) as kitchen:
        (found,) = call(kitchen.server, "search", query="how long to bake the bread")["results"]
        (short,) = call(kitchen.server, "search", query="how long to bake the bread", max_chars=1000)["results"]
    assert found["snippet"].startswith("1: # Bread")
    assert found["snippet"].endswith("16: Bake it for 25 minutes.")
    assert len(short["snippet"]) < len(found["snippet"])
    for one in (found, short):
        assert "Bake it for 25 minutes." in one["snippet"]
        assert one["preview"] == "Bake it for 25 minutes."


def test_related_tells_paths_with_their_proof(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "Marie Curie.md").write_text("# Marie Curie\n\nShe founded the Radium Institute.\n")
    (root / "Radium Institute.md").write_text("# Radium Institute\n\nIt stands in Paris.\n")
    with served(root) as one:
        one.engine.index()
        path = call(one.server, "related", of="Marie Curie", to="Paris")
        assert path == {
            "found": [
                "Marie Curie → Radium Institute → Paris\n"
                "  Marie Curie.md:3: She founded the Radium Institute.\n"
                "  Radium Institute.md:3: It stands in Paris."
            ],
            "notes": [],
            "truncated": False,
        }
        around = call(one.server, "related", of="Paris")["found"]
        assert around[0].startswith("Paris → Radium Institute\n  Radium Institute.md:3")
        assert call(one.server, "related", of="Paris", to="Bonn")["notes"] == ["nothing names Bonn"]
        everything = call(one.server, "search", query="founded OR stands", all=True)
        assert everything["names"] == {"Radium Institute": 2, "Marie Curie": 1, "Paris": 1}
    (root / "many.md").write_text("# Many\n\n" + "\n".join(f"We met Person{n} Smith. " * 8 for n in range(200)))
    with served(root, mcp__max_tokens=500) as one:
        one.engine.index()
        cut = call(one.server, "related", of="many.md", limit=50)
        assert cut["truncated"] and cut["found"]
        assert count_tokens(compact_json(cut)) <= 500
