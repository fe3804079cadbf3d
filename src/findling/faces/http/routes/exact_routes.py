"""Complete answers: all lines that match a pattern, all files that a glob names, all uses of a name in code."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from findling.domain.errors import InvalidValueError
from findling.domain.permissions import Caller
from findling.domain.reports import GrepRequest
from findling.domain.strangers import LONGEST_PATTERN, checked_pattern
from findling.faces.http.request.bodies import WorkspaceParameters
from findling.faces.http.request.context import CheckedRoute, Reading
from findling.faces.http.routes.openapi import Report

router = APIRouter(route_class=CheckedRoute, tags=["search"])

_Globs = Annotated[list[Annotated[str, Field(min_length=1, max_length=1_000)]], Field(max_length=100)]
_Within = Annotated[str, Field(max_length=1_000, description="The folder that is searched, from the root.")]


class GrepParameters(WorkspaceParameters):
    """A question for lines."""

    pattern: Annotated[list[Annotated[str, Field(min_length=1, max_length=1_000)]], Field(max_length=100)] = Field(
        description="A regular expression of Python; of several, one has to match. From anybody but the owner it may "
        "hold no repetition, no group and no alternative, unless it is `fixed`."
    )
    fixed: bool = Field(default=False, description="Patterns are texts, no regular expressions.")
    case: Literal["sensitive", "ignore", "smart"] = Field(
        default="sensitive", description="smart ignores it unless a pattern has a capital letter."
    )
    words: bool = Field(default=False, description="Matches are whole words.")
    invert: bool = Field(default=False, description="Lines that do not match.")
    glob: _Globs = Field(default=[], description="Only these files, in gitignore syntax; with ! all others.")
    within: _Within = ""
    before: int = Field(default=0, ge=0, le=100, description="Lines in front of each match.")
    after: int = Field(default=0, ge=0, le=100, description="Lines behind each match.")
    gives: Literal["lines", "counts", "files"] = Field(default="lines", description="What is told of each file.")
    most: int = Field(default=0, ge=0, le=10_000, description="At most so many lines of a file; 0: all.")
    limit: int = Field(default=1_000, ge=1, le=10_000, description="At most so many lines, or files, in all.")

    def request(self, caller: Caller) -> GrepRequest:
        """Raises InvalidValueError for a pattern that could take for ever, unless it is the owner's."""
        if not self.pattern:
            raise InvalidValueError("there is no pattern", hint="pattern=TEXT")
        if not self.fixed:
            for one in self.pattern:
                checked_pattern(one, is_owner=caller.is_owner, name="pattern")
        elif not caller.is_owner and max(map(len, self.pattern)) > LONGEST_PATTERN:
            raise InvalidValueError(f"a pattern is longer than {LONGEST_PATTERN} characters", hint="use a shorter one")
        given = {name: getattr(self, name) for name in _OF_REQUEST}
        return GrepRequest(patterns=tuple(self.pattern), globs=tuple(self.glob), **given)


_OF_REQUEST = GrepParameters.model_fields.keys() - {"workspace", "pattern", "glob"}


class GlobParameters(WorkspaceParameters):
    """A question for files."""

    glob: _Globs = Field(description="Globs in gitignore syntax; the last one that matches decides.")
    within: _Within = ""
    newest: bool = Field(default=False, description="The latest changes first, instead of the order of paths.")
    limit: int = Field(default=1_000, ge=1, le=100_000, description="At most so many files.")


class RefsParameters(WorkspaceParameters):
    """A question for the uses of a name."""

    name: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="A name in code, also with its scope: `send`, `Session.send`, `Session::send`."
    )
    within: _Within = ""
    limit: int = Field(default=1_000, ge=1, le=10_000, description="At most so many lines, definitions first.")


class OutlineParameters(WorkspaceParameters):
    """A question for the definitions of a file."""

    file: Annotated[str, Field(min_length=1, max_length=1_000)] = Field(description="The path of a file, or its id.")


@router.get("/v1/grep", response_model=Report)
async def grep(parameters: Annotated[GrepParameters, Query()], asked: Reading) -> Response:
    """All lines that match: `files` with `path`, `total` and `lines`; `is_cut` says that there may be more."""
    request = parameters.request(asked.caller)
    return await asked.answer(parameters.workspace, lambda client: client.grep(request), "grep")


@router.get("/v1/glob", response_model=Report)
async def glob(parameters: Annotated[GlobParameters, Query()], asked: Reading) -> Response:
    """All indexed files that a glob matches: `files` with `path` and `updated_at`; `total` counts all of them."""
    chosen = parameters.model_dump(exclude={"workspace", "glob"})
    return await asked.answer(parameters.workspace, lambda client: client.glob(parameters.glob, **chosen), "glob")


@router.get("/v1/refs", response_model=Report)
async def refs(parameters: Annotated[RefsParameters, Query()], asked: Reading) -> Response:
    """All lines of code with a name: `references` with `path`, `line`, `kind`, `symbol` and `text`."""
    chosen = parameters.model_dump(exclude={"workspace", "name"})
    return await asked.answer(parameters.workspace, lambda client: client.refs(parameters.name, **chosen), "refs")


@router.get("/v1/outline", response_model=Report)
async def outline(parameters: Annotated[OutlineParameters, Query()], asked: Reading) -> Response:
    """The definitions of a file: `name`, `line`, `end`, `level` and `signature` of each."""
    return await asked.answer(parameters.workspace, lambda client: client.outline(parameters.file), "outline")
