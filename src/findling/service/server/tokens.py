"""Tokens of callers from elsewhere: created and revoked by the owner, kept as hashes only."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.errors import (
    CorruptError,
    FormatError,
    InvalidValueError,
    MissingExtraError,
    NotFoundError,
    TokenError,
)
from findling.domain.permissions import ALL_WORKSPACES, SCOPES, Caller, check_principal, is_principal
from findling.domain.values import read_json
from findling.stores.filesystem import FileErrors, make_private, write_whole
from findling.stores.lock import WriteLock

_FILE, _LOCK, _USED = ".tokens.json", ".tokens.lock", ".tokens.used"
_SCHEMA = 1
_PREFIX = "fdl_"  # by which people and scanners for leaked secrets know it
_NAME = re.compile(r"\w[\w.@-]{0,63}")
_DAY_S = 86_400
_ISSUERS = "findling.tokens"
"""The entry points of other issuers: the value makes a function from a token to its principals."""

_START = 16
"""Characters of a hash that find its token: 64 bits, so that no two tokens share them."""

_SETTLED_NS = 1_000_000_000
"""Age of a change from which the file's time tells it from the next one: clocks of disks tick in milliseconds."""


class TokenAccount(NamedTuple):
    """A token without its secret. `principals` are `None` for the owner; `last_used_at` is the start of a day."""

    name: str
    principals: tuple[str, ...] | None
    scopes: tuple[str, ...]
    workspaces: tuple[str, ...]
    created_at: float
    expires_at: float | None
    last_used_at: float | None = None


class _Token(NamedTuple):
    sha256: str
    account: TokenAccount


class _TokenFile(NamedTuple):
    """The file as it was read; `stamp` is `None` while another change could leave the same one."""

    stamp: tuple[int, ...] | None
    by_start: dict[str, _Token]


class TokenBook:
    """The tokens of one home. A change holds from the next request on, in every process.

    Every method raises CorruptError for a damaged file of tokens: nobody is admitted or refused by accident.
    """

    def __init__(
        self,
        home: Path,
        *,
        issuer: Callable[[str], tuple[str, ...]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`issuer` gives the principals of a token that is not in the book, none for one that is not valid."""
        self._home = home
        self.issuer = issuer
        self._path = home / _FILE
        self._clock = clock
        self._last = _TokenFile(None, {})
        self._noted: dict[str, int] = {}

    def create(
        self,
        name: str,
        *,
        principals: tuple[str, ...] | None,
        scopes: Iterable[str] = ("read",),
        workspaces: Iterable[str] = (),
        expires_at: float | None = None,
    ) -> str:
        """Create a token and return its secret, which is kept nowhere and cannot be shown again.

        It has the rights of its `principals`, `None` for all of the owner's. It may ask `workspaces` besides the
        served one; the owner's may ask all unless some are named. Raises InvalidValueError for a wrong value, or a
        name that is taken; LockedError, ReadOnlyError or DiskFullError when it cannot be written.
        """
        secret, now = _PREFIX + secrets.token_urlsafe(32), self._clock()
        named = tuple(dict.fromkeys(workspaces)) or ((ALL_WORKSPACES,) if principals is None else ())
        account = _checked(TokenAccount(name, principals, tuple(scopes), named, now, expires_at), now)
        with self._changing() as tokens:
            if any(each.account.name == name for each in tokens):
                raise InvalidValueError(f"there is a token {name} already", hint=f"findling token revoke {name}")
            tokens.append(_Token(_digest(secret), account))
        return secret

    def revoke(self, name: str) -> None:
        """Revoke a token. Raises NotFoundError when there is none of that name."""
        with self._changing() as tokens:
            gone = next((each for each in tokens if each.account.name == name), None)
            if gone is None:
                raise NotFoundError(f"there is no token {name}", hint="findling token list")
            tokens.remove(gone)
        with suppress(OSError):  # it only notes the last use
            (self._home / _USED / gone.sha256).unlink(missing_ok=True)

    def caller(self, secret: str) -> Caller:
        """The caller of a secret. Raises TokenError, with one text for every reason."""
        digest = _digest(secret)
        token = self._tokens().get(digest[:_START])
        # The time of the lookup reveals the start of a hash at most; the comparison takes constant time.
        is_known = token is not None and compare_digest(token.sha256, digest)
        account = token.account if token is not None and is_known else self._of_issuer(secret)
        if account is None or (account.expires_at is not None and account.expires_at <= self._clock()):
            raise TokenError("the token is not valid", hint="findling token create gives a new one")
        if is_known:
            self._note_use(digest)
        return Caller(account.name, account.principals, frozenset(account.scopes), account.workspaces)

    def _of_issuer(self, secret: str) -> TokenAccount | None:
        """The account of a token that somebody else has given; it only reads, and never all."""
        principals = () if self.issuer is None or secret.startswith(_PREFIX) else self.issuer(secret)
        if not principals or not all(map(is_principal, principals)):
            return None
        return TokenAccount(principals[0], tuple(principals), ("read",), (), 0.0, None)

    def list(self) -> Sequence[TokenAccount]:
        """All tokens in the order of their names, expired ones included."""
        tokens = sorted(self._tokens().values(), key=lambda token: token.account.name)
        return [token.account._replace(last_used_at=self._last_use(token.sha256)) for token in tokens]

    def _tokens(self) -> dict[str, _Token]:
        """Beginning of its hash → token, read again when the file has changed."""
        with FileErrors(self._path):
            try:
                status = self._path.stat()
                stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
                if stamp != self._last.stamp:
                    is_settled = time.time_ns() - status.st_mtime_ns > _SETTLED_NS
                    data = self._path.read_bytes()
                    self._last = _TokenFile(stamp if is_settled else None, _parsed(data, self._path))
            except FileNotFoundError:
                self._last = _TokenFile(None, {})
        return self._last.by_start

    @contextmanager
    def _changing(self) -> Iterator[MutableSequence[_Token]]:
        """The tokens under a lock, to be changed; they are written when the block ends."""
        with FileErrors(self._home):
            make_private(self._home)
        with WriteLock(self._home / _LOCK):
            tokens = [*self._tokens().values()]
            yield tokens
            rows = [{"sha256": token.sha256, **token.account._asdict()} for token in tokens]
            for row in rows:
                del row["last_used_at"]
            document = {"schema": _SCHEMA, "tokens": rows}
            write_whole(self._path, json.dumps(document, ensure_ascii=False, indent=1).encode())

    def _note_use(self, digest: str) -> None:
        """Note the day as the time of an empty file: one write for a token and a day, and no lock."""
        today = int(self._clock() // _DAY_S)
        if self._noted.get(digest) == today:
            return
        self._noted[digest] = today
        with suppress(OSError):  # read-only or full: the answer matters more
            folder = self._home / _USED
            folder.mkdir(mode=0o700, exist_ok=True)
            (folder / digest).touch(mode=0o600)

    def _last_use(self, digest: str) -> float | None:
        try:
            return (self._home / _USED / digest).stat().st_mtime // _DAY_S * _DAY_S
        except FileNotFoundError:
            return None


def issuer_of(name: str) -> Callable[[str], tuple[str, ...]] | None:
    """The check of tokens that a package brings as an entry point of `findling.tokens`; None for an empty name.

    Raises MissingExtraError when no package does, InvalidValueError for one that cannot be loaded.
    """
    if not name:
        return None
    from importlib.metadata import entry_points

    known = {found.name: found for found in entry_points(group=_ISSUERS)}
    if name not in known:
        there = ", ".join(sorted(known)) or "none"
        hint = f"install one with the entry point {name} in {_ISSUERS}; there are: {there}"
        raise MissingExtraError(f"no installed package knows tokens of {name}", hint=hint)
    try:
        factory: Callable[[], Callable[[str], tuple[str, ...]]] = known[name].load()
    except Exception as error:  # a plugin may raise anything
        message = f"the issuer {name} ({known[name].value}) cannot be loaded: {error}"
        raise InvalidValueError(message, hint="update or remove its package") from error
    return factory()


def _digest(secret: str) -> str:
    # A fast hash suffices: 256 random bits cannot be guessed at any speed.
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _checked(token: TokenAccount, now: float) -> TokenAccount:
    """The token without repetitions. Raises InvalidValueError for a wrong value."""
    if _NAME.fullmatch(token.name) is None:
        hint = "up to 64 letters, digits, dots, dashes, underscores and @, a letter or digit first"
        raise InvalidValueError(f"{token.name!r} is no name of a token", hint=hint)
    if token.principals is not None and not token.principals:
        raise InvalidValueError(f"the token {token.name} is for nobody", hint="--as user:NAME, or --as owner")
    for principal in token.principals or ():
        check_principal(principal)
    strange = [scope for scope in token.scopes if scope not in SCOPES]
    if strange or not token.scopes:
        what = f"{strange[0]!r} is no scope" if strange else f"the token {token.name} has no scope"
        raise InvalidValueError(what, hint=f"one of {', '.join(SCOPES)}")
    if not all(name and name.isprintable() for name in token.workspaces):
        raise InvalidValueError("a workspace needs a name", hint="findling workspaces list")
    if token.expires_at is not None and token.expires_at <= now:
        raise InvalidValueError(f"the token {token.name} would have expired already", hint="--days 30")
    unique = None if token.principals is None else tuple(dict.fromkeys(token.principals))
    return token._replace(principals=unique, scopes=tuple(scope for scope in SCOPES if scope in token.scopes))


def _parsed(data: bytes, path: Path) -> dict[str, _Token]:
    try:
        document = read_json(data)
        if isinstance(document, dict) and isinstance(document.get("schema"), int) and document["schema"] > _SCHEMA:
            raise FormatError(f"{path} was written by a newer findling", hint="upgrade findling")
        tokens = [_restored(row) for row in document["tokens"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        hint = f"bring it back from a backup, or delete it and run findling token create: {path}"
        raise CorruptError(f"{path} is damaged, so that no token can be checked", hint=hint) from error
    return {token.sha256[:_START]: token for token in tokens}


def _restored(row: dict[str, Any]) -> _Token:
    """A token of the file. Raises KeyError, TypeError or ValueError for a damaged row."""
    principals, expires_at = row["principals"], row["expires_at"]
    lists = [row["scopes"], row["workspaces"], [] if principals is None else principals]
    if not all(isinstance(each, list) for each in lists):
        raise TypeError(lists)
    if not all(isinstance(text, str) for text in (row["name"], row["sha256"], *lists[0], *lists[1], *lists[2])):
        raise TypeError(row)
    scopes, workspaces, named = map(tuple, lists)
    expires = None if expires_at is None else float(expires_at)
    principals = None if principals is None else named
    account = TokenAccount(row["name"], principals, scopes, workspaces, float(row["created_at"]), expires)
    return _Token(row["sha256"], account)
