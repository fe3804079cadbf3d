"""Requests of all kinds, made from the description of the interface: it keeps to it, and nothing makes it fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from findling.domain.permissions import OWNER
from findling.faces.http.security.guards import Guard
from findling.service.server.engine_pool import Host
from findling.service.server.tokens import TokenBook
from tests.counts import tries
from tests.faces.http_servers import ADDRESS, Client, in_process

EXAMPLES = tries(3, short=1)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, Guard]]:
    root = tmp_path_factory.mktemp("schemas") / "tree"
    (root / "docs").mkdir(parents=True)
    for number in range(4):
        (root / "docs" / f"{number}.md").write_text(f"# Note {number}\n\nEvery login makes a session token.\n")
    with in_process(root) as (host, app):
        host.index()
        host.warm_up()
        with host.opened(OWNER) as engine:
            engine.permissions.share("path:docs", "user:ann")
        yield host, app


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: str(mode.value))
@pytest.mark.parametrize("caller", ["owner", "ann"])
def test_every_route_keeps_to_its_description(served: tuple[Host, Guard], caller: str, mode: GenerationMode) -> None:
    host, app = served
    principals = None if caller == "owner" else ("user:ann",)
    token = TokenBook(host.home).create(f"{caller}-{mode.value}", principals=principals, scopes=("read", "write"))
    schema = schemathesis.openapi.from_dict(Client(app).get("/openapi.json").json())
    schema.app = app
    # A body that is too large is refused before anybody looks at what it says.
    schema.config.checks.negative_data_rejection.expected_statuses.append("413")
    asked: set[str] = set()
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()
        if mode is GenerationMode.NEGATIVE and not (operation.query or operation.body or operation.path_parameters):
            continue
        asked.add(operation.label)
        _try(operation, mode, {"authorization": f"Bearer {token}"})
    assert {"POST /v1/search", "GET /v1/fetch/{id}", "POST /v1/resources", "POST /api/v2/search"} <= asked


def _try(operation: Any, mode: GenerationMode, headers: dict[str, str]) -> None:
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        case.call_and_validate(base_url=ADDRESS, headers=headers, checks=CHECKS)

    check()


def test_the_description_says_all_about_every_knob(served: tuple[Host, Guard]) -> None:
    document = Client(served[1]).get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    for name in ("SearchBody", "FilterBody", "PlanBody", "SecondBody", "ResourcesBody"):
        assert schemas[name]["additionalProperties"] is False
        for key, value in schemas[name]["properties"].items():
            assert value.get("description") or "$ref" in json.dumps(value), f"{name}.{key}"
    limit = schemas["SearchBody"]["properties"]["limit"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (0, 1000, 10)
    for methods in document["paths"].values():
        for operation in methods.values():
            assert {"401", "403", "422", "503"} <= set(operation["responses"])
            assert operation["description"]


def test_fetch_a_path_of_folders(served: tuple[Host, Guard], tmp_path: Path) -> None:
    assert Client(served[1]).get("/v1/fetch/docs/0.md").json()["path"] == "docs/0.md"
