"""Relations and properties of facts: how each is told, and whether several of its values may hold at a time."""

from __future__ import annotations

__all__ = [
    "AFTER",
    "MANY",
    "NOUNS",
    "OWNING",
    "PROPERTIES",
    "RELATIONS",
    "SEVERAL",
    "SOFT",
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

OWNING = frozenset("my our his her their your its mein meine unser unsere sein seine ihr ihre".split())
"""Words that say whose a thing is."""
