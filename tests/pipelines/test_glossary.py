"""Decisions about terms: what they change, and which of them cannot be."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.domain.errors import FindlingError, InvalidValueError, UsageError
from findling.domain.records import GlossaryTerm
from findling.pipelines.glossary.glossary import (
    Edit,
    Group,
    add,
    approve,
    groups,
    import_terms,
    merge,
    propose,
    protect,
    reject,
    remove,
    unprotect,
)
from findling.text.mining.keys import glossary_key
from tests.counts import tries

Terms = list[GlossaryTerm]


def after(terms: Terms, edit: Edit) -> Terms:
    """The terms as a store would hold them."""
    rows = {(term.group, term.key): term for term in terms}
    for at in edit.dropped:
        assert rows.pop(at, None) is not None, "drops what is not there"
    rows |= {(term.group, term.key): term for term in edit.put}
    return [rows[at] for at in sorted(rows)]


def made(*decisions: Callable[[Terms], Edit]) -> Terms:
    terms: Terms = []
    for decision in decisions:
        terms = after(terms, decision(terms))
    return terms


def adding(canonical: str, *aliases: str) -> Callable[[Terms], Edit]:
    return lambda terms: add(terms, canonical, aliases)


def proposing(*pairs: tuple[str, str]) -> Callable[[Terms], Edit]:
    return lambda terms: propose(terms, [(one, other, "mined", f"{other} ({one})") for one, other in pairs])


def rejecting(surface: str, group: str | None = None) -> Callable[[Terms], Edit]:
    return lambda terms: reject(terms, surface, group)


def statuses(terms: Terms) -> set[tuple[str, str, str]]:
    return {(term.group, term.surface, term.status) for term in terms}


AUTH = made(adding("auth", "authentication", "sign-in"))


# Adding


def test_a_group_has_a_canonical_term_and_aliases() -> None:
    assert groups(AUTH) == [Group("auth", ("authentication", "sign-in"))]
    assert all(term.key == glossary_key(term.surface) and term.source == "user" for term in AUTH)


def test_adding_to_a_group_finds_it_however_it_is_written() -> None:
    terms = after(AUTH, add(AUTH, "Auth", ["login"]))
    assert groups(terms) == [Group("auth", ("authentication", "login", "sign-in"))]


def test_adding_what_is_there_changes_nothing() -> None:
    assert add(AUTH, "auth", ["Sign In"]) == Edit()


def test_a_term_may_be_in_several_groups() -> None:
    terms = made(adding("limit", "quota"), adding("share", "quota"))
    assert groups(terms) == [Group("limit", ("quota",)), Group("share", ("quota",))]


@pytest.mark.parametrize("alias", ["Auths", "AUTH", "a  u", "!!!", "one two three four five six"])
def test_what_is_no_alias_is_refused(alias: str) -> None:
    canonical = "a u" if alias == "a  u" else "auth"
    with pytest.raises(InvalidValueError) as caught:
        add([], canonical, [alias])
    assert caught.value.hint


def test_case_variants_of_a_compound_need_no_entry() -> None:
    with pytest.raises(InvalidValueError, match="are one term"):
        add([], "GitHub", ["github"])


def test_a_canonical_term_alone_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="has no alias"):
        add([], "auth", [])


# The queue


def test_candidates_are_pending_and_never_approved() -> None:
    terms = made(proposing(("TTL", "time to live")))
    assert [(t.group, t.surface, t.status, t.source, t.snippet) for t in terms] == [
        ("time to live", "TTL", "pending", "mined", "time to live (TTL)")
    ]
    assert groups(terms) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("TTL", "time to live"),  # pending
        ("time-to-live", "TTLs"),  # the other way round
        ("login", "log-in"),  # rejected
        ("log in", "login"),  # rejected, the other way round
        ("OTP", "one-time password"),  # protected
        ("one-time password", "otp"),
        ("sign-in", "authentication"),  # in one group already
        ("quota", "Quotas"),  # the same key
        ("GitHub", "github"),
        ("!!!", "quota"),
    ],
)
def test_what_is_known_or_decided_is_not_suggested(one: str, other: str) -> None:
    terms = made(
        proposing(("TTL", "time to live")),
        rejecting("log-in", "login"),
        lambda terms: protect(terms, "OTP"),
        adding("auth", "authentication", "sign-in"),
    )
    assert propose(terms, [(one, other, "mined", "")]) == Edit()


def test_a_candidate_for_an_alias_is_one_for_its_group() -> None:
    terms = after(AUTH, propose(AUTH, [("login", "authentication", "mined", "")]))
    assert ("auth", "login", "pending") in statuses(terms)
    assert propose(terms, [("log-ins", "sign-in", "mined", ""), ("login", "sign in", "mined", "")]).put == (
        GlossaryTerm("auth", glossary_key("log-ins"), "log-ins", "pending", "mined", ""),
    )


def test_a_candidate_joins_the_group_of_the_word_that_has_one() -> None:
    terms = after(AUTH, propose(AUTH, [("authentication", "login", "mined", "")]))
    assert ("auth", "login", "pending") in statuses(terms)


def test_one_batch_does_not_suggest_a_pair_twice() -> None:
    terms = made(proposing(("TTL", "time to live"), ("time to live", "TTL"), ("ttl", "Time-To-Live")))
    assert statuses(terms) == {("time to live", "TTL", "pending")}


def test_approving_makes_the_group_when_there_is_none() -> None:
    terms = made(proposing(("TTL", "time to live")), lambda terms: approve(terms, "ttl"))
    assert statuses(terms) == {("time to live", "time to live", "canonical"), ("time to live", "TTL", "alias")}
    assert {term.source for term in terms} == {"mined"}


def test_approving_as_canonical_renames_the_group() -> None:
    terms = made(
        adding("authentication", "login"),
        proposing(("auth", "authentication"), ("sso", "authentication")),
        rejecting("author", "authentication"),
        lambda terms: approve(terms, "auth", canonical=True),
    )
    assert groups(terms) == [Group("auth", ("authentication", "login"))]
    assert {("auth", "sso", "pending"), ("auth", "author", "rejected")} <= statuses(terms)
    assert {term.group for term in terms} == {"auth"}


def test_an_alias_can_become_the_name_of_its_group() -> None:
    terms = after(AUTH, approve(AUTH, "sign-in", canonical=True))
    assert groups(terms) == [Group("sign-in", ("auth", "authentication"))]


def test_a_name_of_another_group_cannot_become_the_name_of_this_one() -> None:
    terms = made(adding("auth", "login"), adding("login", "logon"))
    with pytest.raises(UsageError, match="login is the name of a group already") as caught:
        approve(terms, "login", "auth", canonical=True)
    assert caught.value.hint == "findling glossary set auth merged --group login"


def test_a_term_that_is_pending_in_several_groups_needs_one_named() -> None:
    terms = made(adding("rate limit", "throttle"), adding("share", "part"))
    terms = after(terms, propose(terms, [("quota", "rate limit", "", ""), ("quota", "share", "", "")]))
    for decide in (approve, reject):
        with pytest.raises(UsageError, match="quota is in several groups: rate limit, share") as caught:
            decide(terms, "quota")
        assert caught.value.hint == f'findling glossary {decide.__name__} quota --group "rate limit"'
    terms = after(terms, approve(terms, "quota", "Rate-Limit"))
    assert {("rate limit", "quota", "alias"), ("share", "quota", "pending")} <= statuses(terms)


@pytest.mark.parametrize("decide", [approve, reject, remove])
def test_what_is_not_there_cannot_be_decided(decide: Callable[..., Edit]) -> None:
    with pytest.raises(UsageError, match="jwt is not in the glossary") as caught:
        decide(AUTH, "jwt")
    assert caught.value.hint == "findling glossary list all"


def test_approving_an_alias_says_what_it_is() -> None:
    with pytest.raises(UsageError, match="sign-in is alias in auth already"):
        approve(AUTH, "sign-in")


# Rejecting


def test_a_rejection_is_for_good_in_both_directions() -> None:
    terms = made(proposing(("TTL", "time to live")), rejecting("TTL"))
    assert statuses(terms) == {("time to live", "TTL", "rejected")}
    for pair in (("TTL", "time to live"), ("time to live", "TTL")):
        assert propose(terms, [(*pair, "mined", "")]) == Edit()
    assert reject(terms, "TTL", "time to live") == Edit()


def test_rejecting_an_alias_takes_it_out_of_the_group() -> None:
    terms = after(AUTH, reject(AUTH, "sign-in"))
    assert groups(terms) == [Group("auth", ("authentication",))]
    terms = after(terms, reject(terms, "authentication"))
    assert groups(terms) == []
    assert statuses(terms) == {("auth", "sign-in", "rejected"), ("auth", "authentication", "rejected")}


def test_only_adding_or_approving_takes_a_rejection_back() -> None:
    terms = made(adding("auth", "login"), rejecting("sso", "auth"))
    assert ("auth", "sso", "alias") in statuses(after(terms, add(terms, "auth", ["sso"])))
    assert ("auth", "sso", "alias") in statuses(after(terms, approve(terms, "sso", "auth")))
    with pytest.raises(UsageError, match="sso is rejected in auth already"):
        approve(terms, "sso")
    with pytest.raises(UsageError, match="sso is rejected in auth already"):
        remove(terms, "sso")


def test_adding_takes_back_a_rejection_of_the_other_direction() -> None:
    terms = made(rejecting("auth", "login"), adding("auth", "login"))
    assert {term.status for term in terms} == {"canonical", "alias"}


def test_a_group_cannot_reject_its_own_name() -> None:
    with pytest.raises(InvalidValueError, match="auth is the name of the group"):
        reject(AUTH, "Auth", "auth")


# Merging and removing


def test_a_merge_moves_aliases_pending_and_rejected_terms() -> None:
    terms = made(
        adding("auth", "authentication", "sso"),
        adding("login", "logon", "sso"),
        proposing(("signing in", "login")),
        rejecting("logging", "login"),
        lambda terms: merge(terms, "login", "auth"),
    )
    assert groups(terms) == [Group("auth", ("authentication", "login", "logon", "sso"))]
    assert {("auth", "signing in", "pending"), ("auth", "logging", "rejected")} <= statuses(terms)
    for pair in (("logging", "login"), ("login", "logging"), ("logging", "auth"), ("authentication", "logging")):
        assert propose(terms, [(*pair, "mined", "")]) == Edit()


def test_a_rejection_from_the_other_side_survives_a_merge() -> None:
    terms = made(adding("auth", "sso"), adding("login", "logon"), rejecting("login", "cabin"))
    terms = after(terms, merge(terms, "login", "auth"))
    assert propose(terms, [("cabin", "auth", "mined", "")]) == Edit()


@pytest.mark.parametrize("refusal", [("login", "auth"), ("auth", "login"), ("sso", "logon"), ("logon", "auth")])
def test_a_rejection_stands_between_two_groups(refusal: tuple[str, str]) -> None:
    terms = made(rejecting(*refusal), adding("auth", "sso"), adding("login", "logon"))
    with pytest.raises(UsageError, match="cannot be one") as caught:
        merge(terms, "login", "auth")
    assert caught.value.hint == f"findling glossary add {refusal[1]} {refusal[0]}"


def test_a_merge_needs_two_groups() -> None:
    with pytest.raises(UsageError, match="there is no group login"):
        merge(AUTH, "login", "auth")
    with pytest.raises(InvalidValueError, match="are one group"):
        merge(AUTH, "Auth", "auth")


def test_removing_an_alias_leaves_the_others() -> None:
    assert groups(after(AUTH, remove(AUTH, "sign in"))) == [Group("auth", ("authentication",))]


def test_removing_the_last_alias_or_the_name_removes_the_group() -> None:
    terms = made(adding("auth", "login"), proposing(("sso", "auth")), rejecting("author", "auth"))
    without_alias = after(terms, remove(terms, "login"))
    assert statuses(without_alias) == {("auth", "sso", "pending"), ("auth", "author", "rejected")}
    assert statuses(after(terms, remove(terms, "auth"))) == {("auth", "author", "rejected")}


def test_a_removed_pending_term_may_come_back() -> None:
    terms = made(proposing(("TTL", "time to live")), lambda terms: remove(terms, "TTL"))
    assert terms == []


# Protecting


def test_a_protected_term_leaves_its_groups() -> None:
    terms = made(
        proposing(("sso", "sign-on service"), ("service", "sso")),
        adding("auth", "login", "sso"),
        adding("single sign-on", "sso"),
    )
    assert {("sign-on service", "sso", "pending"), ("sso", "service", "pending")} <= statuses(terms)
    terms = after(terms, protect(terms, "SSO"))
    assert statuses(terms) == {
        ("", "SSO", "protected"),
        ("auth", "auth", "canonical"),
        ("auth", "login", "alias"),
    }
    assert protect(terms, "sso") == Edit()


def test_a_group_whose_name_is_protected_goes_on_under_another_one() -> None:
    terms = made(adding("auth", "login", "sso"), rejecting("author", "auth"), lambda terms: protect(terms, "auth"))
    assert groups(terms) == [Group("login", ("sso",))]
    terms = after(terms, unprotect(terms, "auth"))
    for other in ("auth", "login", "sso"):
        assert propose(terms, [("author", other, "mined", "")]) == Edit()


def test_a_group_of_two_does_not_survive_the_protection_of_one() -> None:
    assert statuses(made(adding("auth", "login"), lambda t: protect(t, "auth"))) == {("", "auth", "protected")}
    assert statuses(made(adding("auth", "login"), lambda t: protect(t, "login"))) == {("", "login", "protected")}


def test_a_protected_term_cannot_be_added_or_approved() -> None:
    terms = made(rejecting("OTP", "password"), lambda terms: protect(terms, "OTP"))
    tries: list[Callable[[], Edit]] = [
        lambda: add(terms, "password", ["otp"]),
        lambda: add(terms, "otp", ["password"]),
        lambda: approve(terms, "OTPs"),
        lambda: approve(terms, "OTP", "password"),
        lambda: remove(terms, "OTP"),
    ]
    for attempt in tries:
        with pytest.raises(UsageError, match="is protected") as caught:
            attempt()
        assert re.fullmatch("findling glossary set otps? unprotected", caught.value.hint.lower())


def test_protection_can_be_lifted() -> None:
    terms = made(lambda terms: protect(terms, "OTP"), lambda terms: unprotect(terms, "otp"))
    assert terms == []
    with pytest.raises(UsageError, match="OTP is not protected"):
        unprotect(terms, "OTP")


# Taking in


def test_what_is_taken_in_wins_unless_it_is_pending() -> None:
    terms = made(adding("Auth", "login"), proposing(("sso", "Auth")))
    theirs = [
        GlossaryTerm("auth", "auth", "auth", "canonical"),
        GlossaryTerm("auth", "sso", "SSO", "alias"),
        GlossaryTerm("auth", "login", "login", "pending"),
        GlossaryTerm("auth", "author", "author", "rejected"),
    ]
    merged = after(terms, import_terms(terms, theirs))
    assert groups(merged) == [Group("Auth", ("login", "SSO"))]
    assert ("Auth", "author", "rejected") in statuses(merged)
    assert groups(after(terms, import_terms(terms, theirs, replace=True))) == [Group("auth", ("SSO",))]


def test_nothing_is_taken_in_that_breaks_a_rule() -> None:
    with pytest.raises(InvalidValueError, match="sso is an alias of auth, which has no canonical term"):
        import_terms([], [GlossaryTerm("auth", "sso", "sso", "alias")])
    with pytest.raises(InvalidValueError, match="login is protected and cannot be alias in auth"):
        import_terms(made(adding("auth", "login")), [GlossaryTerm("", "login", "login", "protected")])


# All of it

WORDS = st.sampled_from(["auth", "Auth", "login", "log in", "sso", "rate limit", "quota", "otp", "OTPs"])
DECISIONS = st.one_of(
    st.tuples(st.just(add), WORDS, st.lists(WORDS, min_size=1, max_size=2)),
    st.tuples(st.sampled_from([approve, reject, remove]), WORDS, st.none() | WORDS),
    st.tuples(st.just(approve), WORDS, st.none() | WORDS, st.just(True)),
    st.tuples(st.sampled_from([protect, unprotect]), WORDS),
    st.tuples(st.just(merge), WORDS, WORDS),
    st.tuples(st.just(propose), st.lists(st.tuples(WORDS, WORDS, st.just("mined"), st.just("")), max_size=4)),
)


@settings(max_examples=tries(400, short=100), deadline=None)
@given(st.lists(DECISIONS, max_size=14))
def test_the_rules_hold_after_any_decisions(decisions: list[tuple[Callable[..., Edit], ...]]) -> None:
    terms: Terms = []
    for decide, *arguments in decisions:
        before = terms
        try:
            terms = after(terms, decide(terms, *arguments))
        except FindlingError as error:
            assert error.hint, error.message
            continue
        if decide is propose:
            assert {row for row in terms if row.status != "pending"} == {r for r in before if r.status != "pending"}
            refused = pairs(before, "rejected")
            assert refused.isdisjoint(pairs(terms, "pending"))
        if decide in (protect, propose, remove, merge):
            assert pairs(before, "rejected") <= pairs(terms, "rejected") | pairs_with_kin(terms)
        obeys_the_rules(terms)


def pairs(terms: Terms, status: str) -> set[frozenset[str]]:
    return {frozenset((glossary_key(term.group), term.key)) for term in terms if term.status == status}


def pairs_with_kin(terms: Terms) -> set[frozenset[str]]:
    """The rejected pairs of terms that are in a group with another one that is rejected."""
    found = set()
    for row in terms:
        if row.status == "rejected":
            kin = {t.key for t in terms if t.group == row.group and t.status in ("canonical", "alias")}
            found |= {frozenset((key, row.key)) for key in kin}
    return found


def obeys_the_rules(terms: Terms) -> None:
    protected = {term.key for term in terms if term.status == "protected"}
    names: dict[str, str] = {}
    for term in terms:
        assert term.key == glossary_key(term.surface)
        assert (term.group == "") == (term.status == "protected")
        assert (term.key == glossary_key(term.group)) == (term.status == "canonical")
        assert term.status != "canonical" or term.group == term.surface
        assert term.status in ("protected", "rejected") or term.key not in protected
        assert names.setdefault(glossary_key(term.group), term.group) == term.group, "one group, one spelling"
    for group in groups(terms):
        assert group.aliases
        assert any(t.status == "canonical" and t.group == group.canonical for t in terms)


def test_a_rejection_that_moves_with_its_group_strikes_out_what_was_pending() -> None:
    terms = made(
        lambda terms: reject(terms, "login", "rate limit"),
        lambda terms: propose(terms, [("auth", "login", "mined", ""), ("auth", "rate limit", "mined", "")]),
        lambda terms: approve(terms, "auth", "rate limit", canonical=True),
    )
    assert pairs(terms, "rejected") == {frozenset(("auth", "login"))}
    assert pairs(terms, "pending") == set()
