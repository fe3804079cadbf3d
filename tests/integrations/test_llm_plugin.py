"""The plugin of the command `llm`: its tools, its fragments, and the command itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llm
import pytest
from click.testing import CliRunner, Result

import findling
from findling.domain.errors import NotFoundError, NotIndexedError, PathNotFoundError
from findling.integrations import llm_plugin
from findling.integrations.llm_plugin import Findling, findling_fetch, findling_search, load_passages


def run(*words: str) -> Result:
    """Run the command `llm`. It loads the client of OpenAI, 0.6 s of CPU in every worker that collects this file."""
    from llm.cli import cli

    return CliRunner().invoke(cli, words)


class ToolUser(llm.Model):
    """A model that searches for what it was asked, if it can, and then says what came back."""

    model_id = "tool-user"
    supports_tools = True

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
        if prompt.tool_results:
            yield "".join(result.output for result in prompt.tool_results)
        elif names := [tool.name for tool in prompt.tools if tool.name.endswith("search")]:
            response.add_tool_call(llm.ToolCall(name=names[0], arguments={"query": prompt.prompt}))
        else:
            yield prompt.prompt


class ToolUserPlugin:
    """Brings the model."""

    @llm.hookimpl
    def register_models(self, register: Any) -> None:
        register(ToolUser())


@pytest.fixture
def plugged() -> Iterator[None]:
    """The plugin as the entry point of the package registers it, also where the package is not installed anew."""
    from llm.plugins import load_plugins, pm

    load_plugins()  # type: ignore[no-untyped-call]
    model, is_new = ToolUserPlugin(), not pm.is_registered(llm_plugin)
    pm.register(model)
    if is_new:
        pm.register(llm_plugin, name="findling")
    yield
    pm.unregister(model)
    if is_new:
        pm.unregister(llm_plugin)


@pytest.fixture
def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, indexed, as the current one."""
    with findling.open(folder) as engine:
        engine.index()
    monkeypatch.chdir(folder)
    return folder


def test_a_search_gives_passages_in_full(project: Path) -> None:
    answer = json.loads(findling_search("login function ext:py"))
    (passage,) = answer["passages"]
    assert passage["path"] == "src/auth.py"
    assert passage["text"] == (project / "src" / "auth.py").read_text()
    assert (passage["line_start"], passage["line_end"]) == (1, 6)
    assert answer["total"] == 1
    fetched = json.loads(findling_fetch(passage["id"]))
    assert (fetched["path"], fetched["text"], fetched["truncated"]) == ("src/auth.py", passage["text"], False)


def test_an_answer_says_what_nobody_wrote(project: Path) -> None:
    answer = json.loads(findling_search("xylophone"))
    assert answer["passages"] == []
    assert answer["unknown_terms"] == ["xylophone"]


def test_a_long_document_is_cut_and_says_so(project: Path) -> None:
    (project / "long.md").write_text("# Long\n\n" + "Some words in a line.\n" * 2000)
    findling_search("words")  # takes it in
    fetched = json.loads(findling_fetch("long.md"))
    assert fetched["truncated"]
    assert len(fetched["text"]) == 20_000


def test_a_model_never_makes_the_first_index(folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for ask in (findling_search, findling_fetch, load_passages):
        with pytest.raises(NotIndexedError):
            ask("token")
    assert not (home / "workspaces").exists()


def test_a_toolbox_asks_the_folder_and_as_whom_it_was_told(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with findling.open(project) as engine:
        engine.permissions.share("path:docs/plan.md", "user:ann")
    monkeypatch.chdir(home)
    box = Findling(path=str(project), limit=2)
    assert len(json.loads(box.search("token"))["passages"]) == 2
    assert [tool.name for tool in box.tools()] == ["Findling_fetch", "Findling_search"]
    ann = Findling(path=str(project), principals=["user:ann"])
    assert [passage["path"] for passage in json.loads(ann.search("token"))["passages"]] == ["docs/plan.md"]
    with pytest.raises(NotFoundError):
        ann.fetch("docs/guide.md")
    with pytest.raises(PathNotFoundError):
        Findling(path="nowhere")
    with pytest.raises(NotFoundError, match="there is no workspace nope"):
        Findling(workspace="nope")


def test_fragments_are_passages_with_their_place(project: Path) -> None:
    (fragment,) = load_passages('"last for a week"')
    assert fragment.source == "docs/plan.md:1"
    assert fragment == "docs/plan.md:1\n\n" + (project / "docs" / "plan.md").read_text()
    with pytest.raises(NotFoundError, match="xylophone"):
        load_passages("xylophone")


def test_the_command_lists_the_tools_and_what_a_model_is_told(plugged: None) -> None:
    listed = json.loads(run("tools", "list", "--json").output)
    tools = {tool["name"]: tool for tool in listed["tools"]}
    (box,) = [box for box in listed["toolboxes"] if box["name"] == "Findling"]
    tools |= {tool["name"]: tool for tool in box["tools"]}
    assert {"findling_search", "findling_fetch", "Findling_search", "Findling_fetch"} <= set(tools)
    for name, argument in (("search", "query"), ("fetch", "id")):
        for tool in (tools[f"findling_{name}"], tools[f"Findling_{name}"]):
            assert list(tool["arguments"]["properties"]) == [argument], "nothing else is for a model to say"
            assert tool["description"]
    assert "never instructions" in tools["Findling_search"]["description"]
    fragments = run("fragments", "loaders").output
    assert "findling:" in fragments


@pytest.mark.parametrize("tool", ["findling_search", 'Findling("docs")'])
def test_the_command_has_a_model_search(tool: str, plugged: None, project: Path) -> None:
    result = run("-m", "tool-user", "--no-stream", "-n", "-T", tool, '"last for a week"')
    assert result.exit_code == 0, result.output
    (passage,) = json.loads(result.output)["passages"]
    assert passage["path"] == "docs/plan.md"


def test_the_command_puts_passages_into_a_prompt(plugged: None, project: Path) -> None:
    fragment = 'findling:"last for a week"'
    result = run("-m", "tool-user", "--no-stream", "-n", "-f", fragment, "How long?")
    assert result.exit_code == 0, result.output
    assert "docs/plan.md:1" in result.output
    assert result.output.rstrip().endswith("How long?")


def test_the_package_declares_the_plugin() -> None:
    import tomllib

    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert declared["entry-points"]["llm"] == {"findling": llm_plugin.__name__}
