"""Statements for the figures of memories: first ones, near copies, updates, and pairs that are alike and differ.

The sets share no wording, name or property. `development` served to tune, `kept` was written before any rule and asked
once. What it showed was mended, so `fresh` was written after that, and asked once, too.
"""

# ruff: noqa: E501 - wordings that belong together stand together
from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["HALVES", "Statement", "different_pairs", "statements"]

HALVES = ("development", "kept", "fresh")


class Statement(NamedTuple):
    """A text to remember. `kind` is `new`, `copy` or `update`; `of` is the place of the statement it belongs to."""

    text: str
    kind: str
    of: int


class Family(NamedTuple):
    """Wordings of one property. {s} is the subject, {v} its value, {w} a later one."""

    subjects: Sequence[str]
    values: Sequence[str]
    first: Sequence[str]
    copies: Sequence[str]
    updates: Sequence[str] = ()


PEOPLE = "Anna,Bernd,Carla,Dmitri,Elif,Farid,Gesa,Hugo,Ines,Jakob,Karim,Lucia".split(",")
CITIES = (
    "Berlin,Hamburg,Cologne,Munich,Leipzig,Dresden,Bremen,Vienna,Zurich,Basel,Linz,Graz,Essen,Kiel,Mainz,Ulm".split(",")
)
PROJECTS = "Apollo,Borealis,Cobalt,Dynamo,Ember,Falcon,Granite,Horizon,Iris,Jupiter,Kestrel,Lagoon".split(",")
DAYS = "Monday,Tuesday,Wednesday,Thursday,Friday".split(",")
COMPANIES = "Norlight,Acme,Siemens,Contoso,Globex,Initech,Umbrella,Hooli,Vandelay,Wonka,Stark,Wayne,Tyrell,Cyberdyne,Oscorp,Aperture".split(
    ","
)
DATES = "3 June 2027,14 May 2027,1 September 2027,28 February 2027,19 October 2027,7 July 2027,30 April 2027,12 August 2027,22 March 2027,9 November 2027,16 January 2027,25 May 2027,2 October 2027,11 June 2027,8 April 2027,17 December 2027".split(
    ","
)
BIRTHDAYS = "3 June,14 May,1 September,28 February,19 October,7 July,30 April,12 August,22 March,9 November,16 January,25 December,2 October,11 June,8 April,17 December".split(
    ","
)
MANAGERS = "Olga,Pietro,Quentin,Rafael,Sabine,Tilda,Ursula,Viktor,Wanda,Xaver,Yann,Zita,Bruno,Clara,Denis,Edith".split(
    ","
)
DATABASES = "PostgreSQL 15,MySQL 8,SQLite,MongoDB 6,Oracle 19,MariaDB 10,Redis 7,DuckDB,CockroachDB 22,Cassandra 4,Neo4j 5,InfluxDB 2,PostgreSQL 16,MySQL 9,MongoDB 7,MariaDB 11".split(
    ","
)
ALLERGENS = "peanuts,shellfish,gluten,soy,eggs,sesame,mustard,lupins,celery,walnuts,pollen,penicillin,cats,dust,latex,milk".split(
    ","
)


def _numbers(pattern: str, seed: int, count: int = 16) -> list[str]:
    """Different made-up numbers; # stands for a digit."""
    chance = random.Random(seed)
    made: dict[str, None] = {}
    while len(made) < count:
        made["".join(str(chance.randint(1, 9)) if sign == "#" else sign for sign in pattern)] = None
    return list(made)


DEVELOPMENT = (
    Family(PEOPLE, _numbers("0341 ######", 1), ["{s}'s phone number is {v}."],
           ["The phone number of {s} is {v}.", "Phone number of {s}: {v}", "{s} has the telephone number {v}.", "the phone number of {s} is {v}"],
           ["{s}'s phone number is now {w}.", "{s} has a new phone number: {w}.", "{s}'s phone number changed to {w}.", "The new phone number of {s} is {w}."]),
    Family(PEOPLE, CITIES, ["{s} lives in {v}."],
           ["{s} is living in {v}.", "{s}'s home is in {v}.", "{s} resides in {v}", "{s} LIVES IN {v}!"],
           ["{s} moved to {w}.", "{s} now lives in {w}.", "{s} has relocated to {w}.", "{s} lives in {w} now."]),
    Family(PROJECTS, DATABASES, ["We use {v} for {s}."],
           ["For {s} we use {v}.", "For {s}, {v} is used.", "{s} uses {v}.", "we are using {v} for {s}"],
           ["We now use {w} for {s}.", "We switched {s} to {w}.", "{s} was migrated to {w}.", "For {s} we use {w} now."]),
    Family(PROJECTS, DATES, ["The deadline of {s} is {v}."],
           ["{s}'s deadline is {v}.", "{s} is due on {v}.", "The deadline for {s} is on {v}.", "Deadline of {s}: {v}"],
           ["The deadline of {s} was moved to {w}.", "{s}'s deadline has changed to {w}.", "The new deadline of {s} is {w}.", "The deadline of {s} is now {w}."]),
    Family(PEOPLE, MANAGERS, ["{s}'s manager is {v}."],
           ["The manager of {s} is {v}.", "{s} reports to {v}.", "{s} has {v} as manager.", "{s}'s boss is {v}."],
           ["{s} now reports to {w}.", "{s}'s new manager is {w}.", "{s}'s manager is {w} now.", "{s} reports to {w} from now on."]),
    Family(CITIES[:12], _numbers("swan##-otter#", 2), ["The wifi password of the {s} office is {v}."],
           ["The {s} office's wifi password is {v}.", "Wifi password of the {s} office: {v}", "The wi-fi password in the {s} office is {v}.", "{s} office wifi password: {v}"],
           ["The wifi password of the {s} office was changed to {w}.", "The {s} office has a new wifi password: {w}.", "The wifi password of the {s} office is {w} now.", "New wifi password of the {s} office: {w}"]),
    Family([f"{one} plan" for one in PROJECTS], _numbers("##", 3), ["The {s} costs {v} euros a month."],
           ["The price of the {s} is {v} euros a month.", "The {s} costs {v} euros per month.", "The {s} is priced at {v} euros a month.", "Price of the {s}: {v} euros a month"],
           ["The {s} now costs {w} euros a month.", "The price of the {s} rose to {w} euros a month.", "The {s} costs {w} euros a month now.", "The price of the {s} was raised to {w} euros a month."]),
    Family(PROJECTS, DAYS * 4, ["The {s} meeting takes place on {v}."],
           ["The {s} meeting is on {v}.", "The {s} meeting is held on {v}s.", "On {v} the {s} meeting takes place.", "The meeting of {s} takes place on {v}."],
           ["The {s} meeting was moved to {w}.", "The {s} meeting now takes place on {w}.", "The {s} meeting takes place on {w} from now on.", "The {s} meeting has been rescheduled to {w}."]),
    Family([f"{one} server" for one in PROJECTS], _numbers("####", 4), ["{s} port: {v}"],
           ["The port of the {s} is {v}.", "The {s} listens on port {v}.", "The {s} runs on port {v}.", "The {s}'s port is {v}"],
           ["{s} port: {w}", "The {s} listens on port {w} now.", "The port of the {s} was changed to {w}.", "The new port of the {s} is {w}."]),
    Family(PEOPLE, ALLERGENS, ["{s} is allergic to {v}."],
           ["{s} has an allergy to {v}.", "{s} suffers from an allergy to {v}.", "{s} is allergic against {v}", "Note that {s} is allergic to {v}."]),
    Family(PEOPLE, BIRTHDAYS, ["{s}'s birthday is on {v}."],
           ["{s} was born on {v}.", "The birthday of {s} is {v}.", "{s} has birthday on {v}.", "{s}'s birthday: {v}"],
           ["{s}'s birthday is actually on {w}.", "Correction: {s}'s birthday is on {w}.", "{s}'s birthday is {w}, not {v}.", "Correction: {s} was born on {w}."]),
    Family([f"{one} office" for one in COMPANIES[:12]], CITIES, ["The {s} is located in {v}."],
           ["The {s} is in {v}.", "The {s} is situated in {v}.", "The location of the {s} is {v}.", "The {s} can be found in {v}."],
           ["The {s} moved to {w}.", "The {s} has moved to {w}.", "The {s} is now located in {w}.", "The {s} relocated to {w}."]),
    Family("Maren,Nils,Ove,Paula,Ruth,Stefan,Tobias,Uwe,Vroni,Wiebke,Yvonne,Zeno".split(","), "Köln,Bonn,Trier,Jena,Halle,Gera,Fulda,Hagen,Siegen,Worms,Celle,Emden,Husum,Aalen,Lahr,Plauen".split(","), ["{s} wohnt in {v}."],
           ["{s} lebt in {v}.", "{s} wohnt zur Zeit in {v}.", "In {v} wohnt {s}.", "{s} wohnt in {v}!"],
           ["{s} ist nach {w} gezogen.", "{s} wohnt jetzt in {w}.", "{s} ist nach {w} umgezogen.", "{s} lebt jetzt in {w}."]),
    Family("Arne,Birte,Conny,Dörte,Eike,Frauke,Gunda,Heiko,Imke,Jörn,Kerstin,Levke".split(","), _numbers("030 #####", 5), ["Die Telefonnummer von {s} ist {v}."],
           ["Die Telefonnummer von {s} lautet {v}.", "Telefonnummer von {s}: {v}", "{s} hat die Telefonnummer {v}.", "Die Nummer von {s} ist {v}."],
           ["Die Telefonnummer von {s} ist jetzt {w}.", "{s} hat eine neue Telefonnummer: {w}.", "Die neue Telefonnummer von {s} lautet {w}.", "Die Telefonnummer von {s} lautet nun {w}."]),
    Family(PEOPLE, COMPANIES, ["{s} works at {v}."],
           ["{s} is employed at {v}.", "{s} works for {v}.", "{s}'s employer is {v}.", "{s} is working at {v}"],
           ["{s} now works at {w}.", "{s} has a new job at {w}.", "{s} works for {w} now.", "{s} changed jobs and works at {w} now."]),
)  # fmt: skip
"""Wordings that rules were tuned on."""

FOLK = "Marlon,Nadia,Otis,Priya,Ramon,Selma,Tariq,Ugo,Vesna,Wendell,Ximena,Yuki".split(",")
SERVICES = "billing,checkout,search,inventory,shipping,ledger,catalog,session,invoice,mailer,gateway,archive".split(",")
STREETS = "Maple Street,Harbour Road,Mill Lane,Castle Hill,Station Road,Garden Row,Bridge Street,Elm Grove,Abbey Walk,Forest Way,Canal Side,Orchard Court".split(
    ","
)
CARS = "Volvo,Skoda,Fiat,Mazda,Toyota,Peugeot,Seat,Honda,Kia,Dacia,Saab,Opel,Lancia,Subaru,Tesla,Renault".split(",")
FIRMS = "Brightwater,Kolibri,Meridian,Ostrava Steel,Pinecone,Quantis,Redwood,Solaris,Tidewater,Uplink,Vantage,Westgate,Zephyr,Amberly,Birchfield,Coppice".split(
    ","
)
REGIONS = (
    "Oslo,Dublin,Warsaw,Madrid,Milan,Paris,Prague,Lisbon,Athens,Sofia,Tallinn,Riga,Vilnius,Malmo,Ghent,Porto".split(",")
)
LEADERS = "Aiko,Boris,Chen,Dalia,Emre,Fatou,Giles,Hana,Igor,Joana,Kofi,Lars,Mina,Noor,Oskar,Petra".split(",")
MEALS = "porridge,pancakes,toast,yoghurt,muesli,fruit,omelette,croissants,rice,soup,waffles,bagels,beans,crepes,scones,granola".split(
    ","
)
SHOPS = "bakery,library,pharmacy,museum,bookshop,canteen,gym,pool,archive room,print shop,florist,post office".split(
    ","
)
CLOCK = "7:00,7:30,8:00,8:30,9:00,9:30,10:00,10:30,11:00,11:30,12:00,12:30,6:00,6:30,13:00,14:00".split(",")

KEPT = (
    Family(FOLK, [f"{name.lower()}@mail{n}.org" for n, name in enumerate(CARS)], ["The e-mail address of {s} is {v}."],
           ["{s}'s email address is {v}.", "{s} has the e-mail address {v}.", "E-mail address of {s}: {v}", "{s}'s mail address is {v}"],
           ["{s}'s new e-mail address is {w}.", "{s} changed the e-mail address to {w}.", "The e-mail address of {s} is {w} now.", "{s}'s e-mail address was updated to {w}."]),
    Family(FOLK, CARS, ["{s} drives a {v}."],
           ["{s}'s car is a {v}.", "{s} is driving a {v}.", "The car of {s} is a {v}.", "{s} DRIVES A {v}"],
           ["{s} now drives a {w}.", "{s}'s new car is a {w}.", "{s} drives a {w} these days.", "{s} is driving a {w} now."]),
    Family([f"{one} service" for one in SERVICES], REGIONS, ["The {s} is hosted in {v}."],
           ["The {s} is being hosted in {v}.", "The hosting location of the {s} is {v}.", "In {v} the {s} is hosted.", "We host the {s} in {v}."],
           ["The {s} is hosted in {w} from today on.", "The {s} was moved to {w}.", "We host the {s} in {w} now.", "The {s} has been migrated to {w}."]),
    Family([f"{one} worker" for one in SERVICES], [f"Python 3.{n}" for n in range(1, 17)], ["The {s} runs on {v}."],
           ["The {s} is running on {v}.", "The {s} uses {v}.", "On {v} runs the {s}.", "{v} powers the {s}."],
           ["The {s} was upgraded to {w}.", "The {s} now runs on {w}.", "The {s} has been switched to {w}.", "The {s} is running on {w} now."]),
    Family([f"flat in {one}" for one in STREETS], _numbers("1#5#", 11), ["The rent for the {s} is {v} euros."],
           ["Rent for the {s}: {v} euros", "The rent of the {s} is {v} euros.", "The {s} has a rent of {v} euros.", "The {s} is rented for {v} euros."],
           ["The rent for the {s} went up to {w} euros.", "The rent for the {s} is {w} euros now.", "The rent for the {s} was increased to {w} euros.", "New rent for the {s}: {w} euros"]),
    Family(FIRMS[:12], LEADERS, ["Our contact at {s} is {v}."],
           ["At {s}, our contact is {v}.", "Our contact person at {s} is {v}.", "{v} is our contact at {s}.", "Contact at {s}: {v}"],
           ["Our new contact at {s} is {w}.", "Our contact at {s} is {w} now.", "Our contact at {s} changed to {w}.", "As of today, our contact at {s} is {w}."]),
    Family(SHOPS, CLOCK, ["The {s} opens at {v}."],
           ["The {s}'s opening time is {v}.", "The opening time of the {s} is {v}.", "The {s} is open from {v}.", "At {v} the {s} opens."],
           ["The {s} opens at {w} from now on.", "The {s} now opens at {w}.", "The opening time of the {s} was changed to {w}.", "The {s} opens at {w} instead of {v}."]),
    Family([f"{one} team" for one in SERVICES], LEADERS, ["The {s} is led by {v}."],
           ["{v} leads the {s}.", "The leader of the {s} is {v}.", "{v} is leading the {s}.", "{v} heads the {s}."],
           ["{w} now leads the {s}.", "The {s} is led by {w} now.", "The new leader of the {s} is {w}.", "The {s} is now headed by {w}."]),
    Family(_numbers("4.#.#", 12, 12), [f"{n} {m} 2028" for n, m in zip(range(2, 29), "January,March,May,July,August,October,December,February,April,June,September,November,January,March,May,July".split(","), strict=False)], ["Release {s} ships on {v}."],
           ["Release {s} will ship on {v}.", "The ship date of release {s} is {v}.", "On {v} release {s} ships.", "Release {s} is shipping on {v}."],
           ["Release {s} was postponed to {w}.", "Release {s} ships on {w} instead.", "The ship date of release {s} was changed to {w}.", "Release {s} now ships on {w}."]),
    Family(FOLK, _numbers("B#.##", 13), ["{s} sits in room {v}."],
           ["{s}'s room is {v}.", "{s} is sitting in room {v}.", "In room {v} sits {s}.", "{s}'s desk is in room {v}."],
           ["{s} moved to room {w}.", "{s} now sits in room {w}.", "{s}'s new room is {w}.", "{s} sits in room {w} from Monday on."]),
    Family(FOLK, MEALS, ["{s} prefers {v} for breakfast."],
           ["For breakfast {s} prefers {v}.", "{s} would rather have {v} for breakfast.", "For breakfast, {v} is preferred by {s}.", "By the way, {s} prefers {v} for breakfast."]),
    Family(FOLK, _numbers("##", 14), ["{s}'s shoe size is {v}."],
           ["{s} wears shoe size {v}.", "The shoe size of {s} is {v}.", "{s} has shoe size {v}.", "{s} takes size {v} in shoes."],
           ["{s}'s shoe size is {w} now.", "Correction: {s}'s shoe size is {w}.", "{s} wears shoe size {w} now.", "{s}'s shoe size is {w}, not {v}."]),
    Family([f"{one}-Zugang" for one in "VPN,Wiki,Intranet,Drucker,Kamera,Router,Archiv,Portal,Tresor,Labor,Lager,Server".split(",")], _numbers("fisch##turm#", 15), ["Das Passwort für den {s} lautet {v}."],
           ["Das Passwort für den {s} ist {v}.", "Passwort für den {s}: {v}", "Für den {s} lautet das Passwort {v}.", "Das Kennwort für den {s} lautet {v}."],
           ["Das Passwort für den {s} lautet jetzt {w}.", "Das neue Passwort für den {s} lautet {w}.", "Das Passwort für den {s} wurde auf {w} geändert.", "Neues Passwort für den {s}: {w}"]),
    Family("Antje,Benno,Carsten,Doris,Egon,Friedel,Gerda,Horst,Ilse,Jutta,Klaus,Lotte".split(","), "Bosch,Henkel,Miele,Trumpf,Vorwerk,Braun,Haribo,Leitz,Merck,Osram,Puma,Rimowa,Stihl,Tchibo,Varta,Zeiss".split(","), ["{s} arbeitet bei {v}."],
           ["{s} ist bei {v} angestellt.", "Bei {v} arbeitet {s}.", "{s} arbeitet für {v}.", "{s} ist bei {v} beschäftigt."],
           ["{s} arbeitet jetzt bei {w}.", "{s} ist zu {w} gewechselt.", "{s} arbeitet seit heute bei {w}.", "{s} arbeitet nun für {w}."]),
    Family("Amélie,Basile,Céline,Didier,Élodie,Fabrice,Gaspard,Hélène,Irène,Jules,Karine,Loïc".split(","), "Lyon,Nantes,Lille,Nice,Brest,Dijon,Tours,Metz,Reims,Nancy,Rennes,Rouen,Angers,Caen,Pau,Vichy".split(","), ["{s} habite à {v}."],
           ["{s} vit à {v}.", "{s} réside à {v}.", "{s} habite actuellement à {v}.", "{s} habite à {v} !"],
           ["{s} habite maintenant à {w}.", "{s} a déménagé à {w}.", "{s} vit maintenant à {w}.", "{s} habite désormais à {w}."]),
)  # fmt: skip
"""Wordings that only measure."""


GUESTS = "Aldo,Birgit,Cosima,Darius,Esther,Fiona,Gustav,Hilde,Ismail,Josefa,Kasimir,Leonie".split(",")
TOWNS = "Bath,Cork,Derby,Exeter,Fargo,Galway,Hull,Ipswich,Jarrow,Kendal,Leeds,Margate,Norwich,Oxford,Perth,Ripon".split(
    ","
)
TUTORS = "Agnes,Bodo,Cyril,Dagmar,Ewald,Flora,Gregor,Hedda,Ivana,Jonas,Kurt,Lydia,Moritz,Nora,Otto,Paul".split(",")
TRAINS = "ferry,tram,shuttle,night bus,express,water taxi,cable car,school bus,funicular,mail boat,airport train,ring line".split(
    ","
)
CLUBS = "chess,rowing,drama,choir,sailing,judo,film,garden,astronomy,debate,knitting,cycling".split(",")

FRESH = (
    Family(GUESTS, _numbers("DE## ####", 21), ["{s}'s IBAN is {v}."],
           ["The IBAN of {s} is {v}.", "{s} has the IBAN {v}.", "IBAN of {s}: {v}", "{v} is {s}'s IBAN."],
           ["{s}'s IBAN has changed to {w}.", "{s} has a new IBAN: {w}.", "{s}'s IBAN is {w} now.", "The IBAN of {s} was changed to {w}."]),
    Family([f"{one} club" for one in CLUBS], TUTORS, ["The coach of the {s} is {v}."],
           ["{v} is the coach of the {s}.", "The {s}'s coach is {v}.", "Coach of the {s}: {v}", "The {s} has {v} as coach."],
           ["The new coach of the {s} is {w}.", "The coach of the {s} is {w} now.", "{w} is now the coach of the {s}.", "The {s} has a new coach: {w}."]),
    Family(TRAINS, CLOCK, ["The {s} starts at {v}."],
           ["The {s} begins at {v}.", "The start time of the {s} is {v}.", "At {v} the {s} starts.", "The {s} is starting at {v}."],
           ["The {s} now starts at {w}.", "The {s} starts at {w} from now on.", "The start time of the {s} was moved to {w}.", "The {s} starts at {w} instead of {v}."]),
    Family(GUESTS, TOWNS, ["{s} is living in {v}."],
           ["{s} lives in {v}.", "{s} has a home in {v}.", "In {v} lives {s}.", "{s} dwells in {v}."],
           ["{s} has moved to {w}.", "{s} lives in {w} these days.", "{s} is now living in {w}.", "{s} relocated to {w}."]),
    Family([f"ticket {n}" for n in _numbers("##", 22, 12)], TUTORS, ["The owner of {s} is {v}."],
           ["{s}'s owner is {v}.", "{s} is owned by {v}.", "{s} belongs to {v}.", "Owner of {s}: {v}"],
           ["The owner of {s} is {w} now.", "The owner of {s} changed to {w}.", "The new owner of {s} is {w}.", "{s} now belongs to {w}."]),
    Family([f"{one} hall" for one in TOWNS[:12]], _numbers("1##", 23), ["The capacity of the {s} is {v}."],
           ["The {s}'s capacity is {v}.", "The {s} has a capacity of {v}.", "Capacity of the {s}: {v}", "The {s} has capacity {v}."],
           ["The capacity of the {s} was raised to {w}.", "The capacity of the {s} is now {w}.", "The capacity of the {s} dropped to {w}.", "The {s} now has a capacity of {w}."]),
    Family(GUESTS, _numbers("+44 ## ####", 24), ["You reach {s} by phone at {v}."],
           ["By phone you reach {s} at {v}.", "You can reach {s} by telephone at {v}.", "You reach {s} at {v} by phone.", "you reach {s} by phone at {v}"]),
    Family([f"{one}-Server" for one in TOWNS[:12]], _numbers("80##", 25), ["Der Port des {s} ist {v}."],
           ["Port des {s}: {v}", "Der Port vom {s} lautet {v}.", "Der {s} hat den Port {v}.", "Der Port des {s} ist die {v}."],
           ["Der Port des {s} ist jetzt {w}.", "Der Port des {s} wurde auf {w} geändert.", "Der neue Port des {s} ist {w}.", "Der Port des {s} lautet nun {w}."]),
    Family([f"{one} course" for one in CLUBS], DAYS * 4, ["The {s} is on {v}."],
           ["The {s} takes place on {v}.", "The {s} is held on {v}s.", "On {v} the {s} takes place.", "The {s} happens on {v}."],
           ["The {s} was moved to {w}.", "The {s} is on {w} now.", "The {s} takes place on {w} from now on.", "The {s} has been postponed to {w}."]),
    Family(GUESTS, TUTORS, ["{s}'s dentist is {v}."],
           ["The dentist of {s} is {v}.", "{v} is {s}'s dentist.", "{s} has {v} as dentist.", "Dentist of {s}: {v}"],
           ["{s}'s new dentist is {w}.", "{s}'s dentist is {w} now.", "{s} has a new dentist: {w}.", "{s} changed the dentist to {w}."]),
)  # fmt: skip
"""Wordings that only measure what came of mending."""


def statements(half: str) -> list[Statement]:
    """The statements of a set: first ones in any order, then near copies and 60 updates, mixed; 300 of the halves."""
    families = {"development": DEVELOPMENT, "kept": KEPT, "fresh": FRESH}[half]
    chance = random.Random(f"statements {half}")
    first: list[tuple[str, Family, int]] = []
    for family in families:
        for place in range(12):
            wording = family.first[place % len(family.first)]
            first.append((_worded(wording, family, place), family, place))
    chance.shuffle(first)
    places = {(families.index(family), place): number for number, (_, family, place) in enumerate(first)}
    later: list[Statement] = []
    for number, family in enumerate(families):
        for turn in range(4):
            later.append(Statement(_worded(family.copies[turn], family, turn), "copy", places[number, turn]))
    changing = [family for family in families if family.updates]
    for turn in range(60):
        family, place = changing[turn % len(changing)], 4 + turn // len(changing)
        wording = family.updates[place % 4]
        later.append(Statement(_worded(wording, family, place), "update", places[families.index(family), place]))
    chance.shuffle(later)
    return [*(Statement(text, "new", place) for place, (text, *_) in enumerate(first)), *later]


def _worded(wording: str, family: Family, place: int) -> str:
    values = family.values
    later = (
        values[(place + 3) % len(values)] if values[(place + 3) % len(values)] != values[place] else values[place + 1]
    )
    text = wording.format(s=family.subjects[place], v=values[place], w=later)
    return text[:1].upper() + text[1:] if wording[:1].isupper() or wording.startswith("{") else text


DIFFERENT = {
    "development": (
        ("{a} likes {x}.", "{b} likes {x}."),
        ("{a}'s door code is {m}.", "{b}'s door code is {m}."),
        ("The invoice of {a} is over {m} euros.", "The invoice of {a} is over {n} euros."),
        ("{a} eats meat.", "{a} does not eat meat."),
        ("{a} never drives at night.", "{a} always drives at night."),
        ("{a} flies to {p} in May.", "{a} flies to {q} in May."),
        ("The review with {a} is on 3 May.", "The review with {a} is on 4 May."),
        ("{a} reports to {b}.", "{b} reports to {a}."),
        ("The {p} branch is open on Sundays.", "The {p} branch is closed on Sundays."),
        ("{a} arrives before lunch.", "{a} arrives after lunch."),
        ("{a} bought {m} chairs for {p}.", "{a} sold {m} chairs for {p}."),
        ("{a} has a brother in {p}.", "{a} has a sister in {p}."),
        ("{a} wohnt nicht in {p}.", "{a} wohnt in {p}."),
        ("The backup in {p} runs at 3 am.", "The backup in {p} runs at 3 pm."),
        ("{a} is allergic to {x}.", "{a} is allergic to {y}."),
        ("{a} works in {p} with {b}.", "{a} works in {p} without {b}."),
        ("{a} paid the deposit for {p}.", "{a} has not paid the deposit for {p}."),
    ),
    "kept": (
        ("{a} plays chess with {b} on Fridays.", "{a} plays chess with {b} on Saturdays."),
        ("The lease of {a} ends in {m} days.", "The lease of {a} ends in {n} days."),
        ("{a} can come to {p}.", "{a} cannot come to {p}."),
        ("{a}'s mother lives in {p}.", "{a}'s father lives in {p}."),
        ("{a} lent {b} {m} euros.", "{b} lent {a} {m} euros."),
        ("Room {m} in {p} has a projector.", "Room {n} in {p} has a projector."),
        ("The trial of {x} was a success.", "The trial of {y} was a success."),
        ("Use the left entrance in {p}.", "Use the right entrance in {p}."),
        ("{a} accepted the offer from {p}.", "{a} rejected the offer from {p}."),
        ("{a} isn't vegetarian.", "{a} is vegetarian."),
        ("The train to {p} leaves at 7:15.", "The train to {p} leaves at 7:50."),
        ("{a} trinkt keinen Kaffee in {p}.", "{a} trinkt Kaffee in {p}."),
        ("{a} needs the report by 12 March.", "{a} needs the report by 12 April."),
        ("The cheapest supplier is in {p}.", "The most expensive supplier is in {p}."),
        ("{a} owns a house in {p}.", "{b} owns a house in {p}."),
        ("{a} was promoted in 2024.", "{a} was promoted in 2025."),
        ("The {x} are stored in the cellar in {p}.", "The {x} are stored in the attic in {p}."),
    ),
}
"""Pairs that differ in one thing that matters."""


def different_pairs(half: str, count: int = 100) -> Iterator[tuple[str, str]]:
    """Pairs that are alike and must not be merged: another person, number, place, date, role, or a negation."""
    chance = random.Random(f"pairs {half}")
    people, places, things = (PEOPLE, CITIES, ALLERGENS) if half == "development" else (FOLK, REGIONS, MEALS)
    wordings = DIFFERENT.get(half, DIFFERENT["kept"])
    for number in range(count):
        one, other = wordings[number % len(wordings)]
        a, b = chance.sample(people, 2)
        p, q = chance.sample(places, 2)
        x, y = chance.sample(things, 2)
        m, n = chance.sample(range(11, 99), 2)
        names = {"a": a, "b": b, "p": p, "q": q, "x": x, "y": y, "m": m, "n": n}
        yield one.format(**names), other.format(**names)
