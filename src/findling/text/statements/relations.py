"""Relations and properties of facts: how each is told, and whether several of its values may hold at a time."""

from __future__ import annotations

import re

__all__ = [
    "AFTER",
    "CHANGES",
    "CLAUSES",
    "EXACT",
    "MANY",
    "MOVES",
    "NOUNS",
    "NO_FACTS",
    "OWNING",
    "PROPERTIES",
    "RELATIONS",
    "SEVERAL",
    "SOFT",
    "SOMEBODY",
    "TEAMS",
    "UNITS",
    "VALUE_KINDS",
    "VERBS",
]

UNITS = frozenset({"@euro", "@dollar", "@pound", "@percent", "@day", "@week", "@month", "@year"})
"""Units of a number."""

VERBS = frozenset({"=be", "=take", "=listen"})
"""Verbs that only connect a thing and its value."""

VALUE_KINDS = {
    **dict.fromkeys(("@deadline", "@birthday", "@ship"), ("when",)),
    **dict.fromkeys(("@start", "@end"), ("when", "clock")),
    **dict.fromkeys(("@open", "@close"), ("clock",)),
    **dict.fromkeys(("@price", "@rent", "@salary", "@size"), ("number",)),
}
"""Relations whose value is known by its kind."""

AFTER = frozenset({"@manager", "@use", "@car", "@room", "@version", "@name", "@role"})
"""Relations whose value stands behind them."""

MANY = frozenset({"@like", "@hate", "@speak"})
"""Relations with many values: nothing makes a newer one certain."""

SOFT = frozenset({"@use", "@car", "@role", "@doctor"})
"""Relations that may have several values: only a word such as `now` makes a newer one certain."""

RELATIONS = frozenset({*VALUE_KINDS, *AFTER, *MANY, "@live", "@host", "@work", "@location", "@leader", "@owner"})
"""Concepts that may be meant without a word: Apollo moved to Friday."""

PROPERTIES = frozenset(
    "@phone @email @password @birthday @deadline @price @rent @salary @manager @leader @owner @contact @location "
    "@version @size @room @car @name @role @doctor @spouse @work @open @close @start @end @ship @host code pin port "
    "address usernam login colour color status budget limit target capac ip url region branch height weight age "
    "capit currenc landlord dentist teacher supplier provid nicknam titl database iban vat platform languag adress "
    "farb alter nam hauptstadt datenbank port adresse couleur capital limite extens floor gate platform seat tabl "
    "winner presid ceo cto director chair chairman mayor captain coach mascot slogan motto wallpap thermostat".split()
)
"""Nouns, by their stems, that name one property of a thing."""

SEVERAL = frozenset(
    "friend @child son daughter brother sister cousin uncl aunt hobbi languag skill pet cat dog colleagu member goal "
    "ingredi @allergy interest idea problem issu option featur reason exampl advantag part rule fear dream wish talent "
    "freund bruder schwest sohn tocht hobby sprach haustier katz hund @like @hate @speak @prefer".split()
)
"""Things of which somebody may have several."""

NOUNS = frozenset({"@manager", "@leader", "@car", "@room", "@version", "@name", "@role", "@work"})
"""Relations that are nouns behind an article or an owner."""

EXACT = frozenset({"@password", "code", "pin", "login", "usernam", "token", "key"})
"""Properties whose values differ by the case of a letter."""

OWNING = frozenset("my our his her their your its mein meine unser unsere sein seine ihr ihre".split())
"""Words that say whose a thing is."""

CHANGES = (
    re.compile(
        r"^(?P<slot>.+?)\s+(?:(?:was|were|is|are|has|have|had|been|being|got|will|be|just|recently|finally)\s+)*"
        r"(?P<verb>moved?|moving|changed?|chang(?:es|ing)|switched|switch(?:es|ing)|migrated|upgraded|downgraded|"
        r"updated|relocated|postponed|rescheduled|shifted|delayed|brought forward|pushed back|rose|risen|raised|"
        r"increased|went up|gone up|goes up|dropped|fell|fallen|lowered|reduced|decreased|went down|cut|transferred|"
        r"converted|set|reset|renamed|extended|shortened)\s+(?P<what>(?:(?!to\b)\S+\s+){0,4}?)(?:to|into)\s+(?P<value>.+)$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(?P<slot>.+?)\s+(?:ist|sind|wurde|wurden|wird|hat)\s+(?:(?:von|vom)\s+.+?\s+)?(?:auf|nach|zu|zum|zur|in)\s+"
        r"(?P<value>.+?)\s+(?P<verb>\S*(?:gezogen|geändert|gewechselt|verschoben|verlegt|verlängert|umgestellt|"
        r"umgestiegen|erhöht|gestiegen|gesenkt|gesunken|aktualisiert|migriert))$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(?P<slot>.+?)\s+(?:a|ont|est|sont)\s+(?P<verb>déménagé|changé|passée?|augmenté|déplacée?|reportée?)\s+"
        r"(?:à|au|en|pour)\s+(?P<value>.+)$",
        re.IGNORECASE,
    ),
    re.compile(r"^(?P<slot>.+?)\s+(?:se\s+)?(?P<verb>mudó|cambió|pasó)\s+(?:a|al)\s+(?P<value>.+)$", re.IGNORECASE),
)
"""Statements of a change in English, German, French and Spanish."""

MOVES = re.compile(r"mov|relocat|gezogen|déménag|mudó", re.IGNORECASE)
"""Changes of a place."""

CLAUSES = frozenset(
    "when but because if which what while where than although unless whether weil wenn aber obwohl".split()
)
"""Words that begin another clause."""

TEAMS = frozenset("team group depart divis project unit class committe board squad abteil projekt gruppe".split())
"""Groups that somebody joins, and lives where he did."""

SOMEBODY = re.compile(
    r"^(?:he|she|they|his|her|their|er|sie|ihre?|sein|ils?|elles?|son|sa|él|ellas?|su) ", re.IGNORECASE
)
"""Somebody whom only a text before it names."""

NO_FACTS = (
    re.compile(
        r"\b(?:used to|formerly|previously|in the past|back then|früher|damals|autrefois|antes)\b", re.IGNORECASE
    ),
    re.compile(
        r"\b(?:maybe|perhaps|probably|possibly|likely|apparently|allegedly|supposedly|presumably|could|might|should|"
        r"would|must|please|may (?:be|have)|can be|vielleicht|wahrscheinlich|vermutlich|angeblich|bitte|könnte|sollte|"
        r"müsste|würde|peut-être|probablement|apparemment|pourrait|devrait|quizás?|probablemente|podría|debería)\b",
        re.IGNORECASE,
    ),
    re.compile(r"^(?:>|[\"“„«].*[\"”“»]$)"),
    re.compile(
        r"^(?:its?|it[’']s|there|es|ça|c[’']est|(?:this|that|these|those|das|dies) (?:is|are|was|ist|war)) ", re.I
    ),
)
"""Statements of the past, guesses and wishes, quotations, and something that only a text before it names."""
