"""Evidence about code in trees and items that hold documents as well: a question in prose keeps its documents."""

from pathlib import Path

import pytest

from findling.domain.resources import Resource
from findling.pipelines.retrieve import resource_order
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings
from findling.text.query.asked_names import asks_in_prose

ONBOARDING = """# Set up a local development environment

How we set up a local development environment: install the tools, copy the environment file, start the containers.
Ask for help before you change the settings of the environment, the queue or the storage.
"""
SETTINGS = '''"""Settings of the environment."""


class EnvironmentSettings:
    """Values that a process reads at its start."""

    def setup_environment(self, local: bool = True) -> dict[str, str]:
        return {"environment": "local", "development": str(local)}
'''
OTHERS = {
    f"service/{name}.py": f'"""The {name} of the service, set up from its environment."""\n\n\ndef {name}(value):\n'
    f'    """Local {name} of the development environment."""\n    return {{"{name}": value}}\n'
    for name in ("billing", "mailer", "queue", "storage", "workers")
}


def _opened(tmp_path: Path) -> Engine:
    own = {"store.home": str(tmp_path / "home"), "search.refresh": "never", "semantic.refine": "never"}
    (tmp_path / "root").mkdir(exist_ok=True)
    return open_engine(tmp_path / "root", settings=Settings().override(own, "test"))


@pytest.fixture
def mixed(tmp_path: Path) -> Engine:
    for path, text in {"docs/onboarding.md": ONBOARDING, "service/environment_settings.py": SETTINGS, **OTHERS}.items():
        file = tmp_path / "root" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    engine = _opened(tmp_path)
    engine.index()
    return engine


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_how_to_set_something_up_finds_the_document_before_the_settings(mixed: Engine, mode: str) -> None:
    with mixed:
        answer = mixed.search("how do we set up a local development environment", mode=mode, refresh=False)
    assert answer.hits[0].path == "docs/onboarding.md"


@pytest.mark.parametrize("question", ["environment settings", "setup_environment", "how setup_environment is done"])
def test_a_question_about_code_finds_the_code_before_the_document(mixed: Engine, question: str) -> None:
    with mixed:
        answer = mixed.search(question, refresh=False)
    assert answer.hits[0].path == "service/environment_settings.py"


def test_a_question_in_prose_has_evidence_about_code_where_no_document_is_among_the_best(
    mixed: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "how can the queue, storage, billing and workers of a development environment be seen"
    with mixed:
        hits = mixed.search(question, mode="keyword", refresh=False).hits
        assert "docs/onboarding.md" in [hit.path for hit in hits[3:]]
        assert "file name" in [step.name for step in hits[0].receipt.steps]
        # With all ten the document below counts, too.
        monkeypatch.setattr(resource_order, "_FIRST", 10)
        hits = mixed.search(question, mode="keyword", refresh=False).hits
        assert "file name" not in [step.name for step in hits[0].receipt.steps]


def test_documents_are_held_back_where_two_of_the_best_three_are_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = {
        "docs/a.md": "# Retry\n\nThe mailer retries a message five times, then it gives the message up.\n",
        "docs/b.md": "# Mail\n\nMessages of the mailer that it gives up land in a folder.\n",
    }
    code = {f"mail/part{number}.py": f"def part{number}(mailer):\n    return mailer\n" for number in range(4)}
    for path, text in {**documents, **OTHERS, **code}.items():
        file = tmp_path / "root" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with _opened(tmp_path) as engine:
        engine.index()
        steps = [
            {hit.path: [step.name for step in hit.receipt.steps] for hit in engine.search(question, refresh=False).hits}
            for question in ("mailer messages", "mailer part")
        ]
        assert "path" not in steps[0]["docs/b.md"]
        assert "path" in steps[1]["docs/b.md"]
        monkeypatch.setattr(resource_order, "_CODE_OF_FIRST", 0)
        held = engine.search("mailer messages", refresh=False).hits
    assert "path" in [step.name for hit in held for step in hit.receipt.steps if hit.path == "docs/b.md"]


GUIDE = "Send a message with the client. Retries of a message are counted by the client, and the limit is five. "
SNIPPET = "```python\nclient.send({'id': 1}, retries=5)\nclient.close({'now': True}, [1, 2], {'a': (3, 4)})\n```\n"
CODE = "def send(self, message, *, retries=5):\n    return self._client.post({'id': message.id}, retries=retries)\n"


@pytest.mark.parametrize(("code", "is_weighed"), [(2, False), (6, True)])
def test_items_are_code_where_a_quarter_of_the_best_look_like_it(tmp_path: Path, code: int, is_weighed: bool) -> None:
    items = [SNIPPET * 4 + CODE if number < code else GUIDE * 6 for number in range(10)]
    with _opened(tmp_path) as engine:
        engine.add((Resource(rid=f"r{number}", type="document"), text) for number, text in enumerate(items))
        answer = engine.search("client message retries", mode="keyword", refresh=False)
    steps = {step.name for hit in answer.hits for step in hit.receipt.steps}
    assert len(answer.hits) == 10
    assert ("passages" in steps) == is_weighed


@pytest.mark.parametrize(
    "question",
    [
        "how to set up local development",
        "how do I roll back a release",
        "who is paged when the queue is full",
        "why did we choose YAML",
        "at which latency is there an alarm",
        "may a task use sudo",
        "where can I get help",
        "WHEN IS THE MAINTENANCE WINDOW",
        "wie richte ich meinen Rechner ein",
        "quién aprueba un despliegue",
    ],
)
def test_questions_to_people_are_prose(question: str) -> None:
    assert asks_in_prose(question)


@pytest.mark.parametrize(
    "question",
    [
        "how routes are matched",
        "how does the server parse headers",
        "connection pooling and limits",
        "why does `read_body` block",
        "what does vuln() do",
        "who calls getUserName",
        "where is the decorator implemented",
        "router",
        "",
    ],
)
def test_mechanisms_and_names_of_code_are_not(question: str) -> None:
    assert not asks_in_prose(question)
