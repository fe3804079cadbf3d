"""The small words that hold sentences together, by language: they tell a language, and are no errors of spelling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from findling.text.analysis.analysis import terms

__all__ = ["FUNCTION_WORDS", "is_function_word", "languages_of"]

FUNCTION_WORDS: Mapping[str, str] = {
    "english": (
        "the of and to in is it you that he was for on are as with his they at be this have from or by not but what "
        "when where which who why how all were we your can there an each their if will about out then them these so "
        "her would has him into could been than its does did do should my me our us any without between while because"
    ),
    "german": (
        "der die das den dem des ein eine einen einem einer und oder aber nicht ist sind war waren wird wurde wurden "
        "werden hat haben hatte kann können muss soll ich du er sie es wir ihr mich mir dich uns euch sich mein sein "
        "was wer wie wo wann warum welche welcher welches für mit von vom zum zur bei nach aus auf über unter ohne "
        "gegen durch wenn dass weil als auch noch nur schon sehr mehr im am um an gibt kein keine wohin woher womit"
    ),
    "french": (
        "le la les un une des du de et ou où mais ne pas est sont était été être avoir ont il elle ils elles je tu "
        "nous vous on se ce cette ces son sa ses leur leurs mon ma mes qui que quoi quel quelle quels quelles quand "
        "comment pourquoi combien avec sans pour dans sur sous par chez entre après avant depuis si comme plus très "
        "aussi faire au aux en y dont lorsque"
    ),
    "spanish": (
        "el la los las un una unos unas y o pero no es son era fue ser estar está están hay ha han yo tú él ella "
        "ellos nosotros me te se lo le les mi su sus que qué quién cuál cuándo dónde cómo cuánto por para con sin en "
        "de del al sobre entre desde hasta porque si cuando como más muy también este esta estos ese esa hacer"
    ),
    "italian": (
        "il lo la i gli le un uno una e o ma non è sono era essere avere ha hanno io tu lui lei noi voi loro mi ti si "
        "ci vi che chi cosa quale quali quando dove come perché quanto con senza per in di del della dei delle al "
        "alla da dal nel nella su tra fra se anche più molto questo questa quello fare"
    ),
    "portuguese": (
        "o a os as um uma uns umas e ou mas não é são era foi ser estar está há eu tu ele ela nós vós eles me te se "
        "lhe meu seu sua que quem qual quais quando onde como porque quanto por para com sem em de do da dos das no "
        "na nos nas ao à sobre entre desde até mais muito também este esta isso fazer"
    ),
    "dutch": (
        "de het een en of maar niet is zijn was waren wordt werd heeft hebben ik jij je hij zij ze wij we jullie mij "
        "hem haar ons hun wat wie waar wanneer waarom hoe welke welk met zonder voor van naar bij uit op over onder "
        "tegen door als dat die deze dit omdat ook nog maar zeer meer kan moet"
    ),
    "swedish": (
        "och eller men inte är var varit vara har hade jag du han hon den det vi ni de mig dig sig oss min din vad "
        "vem vilken vilket vilka när varför hur som att med utan för från till på av om under över mellan en ett "
        "också mycket mer kan ska måste finns"
    ),
    "danish": (
        "og eller men ikke er var været være har havde jeg du han hun den det vi de mig dig sig os min din hvad hvem "
        "hvilken hvilket hvornår hvor hvorfor hvordan som at med uden for fra til på af om under over mellem en et "
        "også meget mere kan skal må"
    ),
    "norwegian": (
        "og eller men ikke er var vært være har hadde jeg du han hun den det vi dere de meg deg seg oss min din hva "
        "hvem hvilken hvilket når hvor hvorfor hvordan som å med uten for fra til på av om under over mellom en ei et "
        "også mye mer kan skal må"
    ),
    "finnish": (
        "ja tai mutta ei on ovat oli olivat olla minä sinä hän me te he se ne tämä tuo nämä mikä mitä kuka ketä "
        "milloin missä mistä mihin miksi miten kuinka joka jotka että jos kun kanssa ilman myös vain hyvin enemmän "
        "voi pitää"
    ),
    "polish": (
        "i lub albo ale nie jest są był była było być ma mają ja ty on ona ono my wy oni mnie się mój jego jej co kto "
        "który która które kiedy gdzie dlaczego jak czy ile z ze bez dla od do na w we o po przez przed między że "
        "jeśli gdy też bardzo więcej można"
    ),
    "czech": (
        "a nebo ale ne je jsou byl byla bylo být má mají já ty on ona ono my vy oni mě se můj jeho její co kdo který "
        "která které kdy kde proč jak kolik s se bez pro od do na v ve o po přes před mezi že jestli když také velmi "
        "více lze"
    ),
    "romanian": (
        "și sau dar nu este sunt era fost fi are au eu tu el ea noi voi ei ele mă se meu său ce cine care când unde "
        "cum cât cu fără pentru de la din pe în prin între dacă că după mai foarte acest această"
    ),
    "hungarian": (
        "a az egy és vagy de nem van vannak volt voltak lesz én te ő mi ti ők ez azt ki mit melyik mikor hol miért "
        "hogyan mennyi hogy ha mert is csak nagyon több nélkül között alatt után előtt lehet kell"
    ),
    "turkish": (
        "ve veya ama değil bir bu şu o ben sen biz siz onlar ne kim hangi nerede nasıl neden niçin kaç için ile gibi "
        "kadar daha çok en da de mi mı var yok olan olarak sonra önce arasında"
    ),
    "russian": (
        "и или но не это этот эта эти есть был была было были быть я ты он она оно мы вы они меня мне его ее их что "
        "кто какой какая какие который которая когда где куда почему зачем как сколько с без для от до на в о об по "
        "из за под над через между при если чтобы потому также очень только можно нет"
    ),
    "ukrainian": (
        "і й та або але не це цей ця ці є був була було були бути я ти він вона воно ми ви вони мене його її їх що "
        "хто який яка які коли де куди чому навіщо як скільки з без для від до на в у про по із за під над через між "
        "при якщо щоб тому також дуже тільки можна немає"
    ),
    "greek": (
        "ο η το οι τα του της των τον την ένας μια ένα και ή αλλά δεν μη είναι ήταν έχει έχουν εγώ εσύ αυτός αυτή "
        "αυτό εμείς εσείς μου σου τι ποιος ποια ποιο πότε όταν πού όπου γιατί πώς όπως πόσο που πως με χωρίς για από "
        "σε στο στη στην στον κατά μετά πριν αν ότι να θα ας πολύ επίσης μόνο"
    ),
    "arabic": (
        "في من على إلى عن مع هذا هذه ذلك تلك التي الذي الذين هو هي هم نحن أنا أنت كان كانت يكون ليس لم لن لا ما ماذا "
        "من متى أين كيف لماذا كم هل أو و ثم لكن إن أن إذا عند بعد قبل بين كل بعض غير حتى قد"
    ),
    "hindi": (
        "का की के को में से पर और या लेकिन नहीं है हैं था थी थे हो मैं तुम आप वह वे हम यह ये मेरा उसका क्या कौन कब "
        "कहाँ क्यों कैसे कितना कौनसा जो कि अगर तो भी ही बहुत लिए साथ बिना बाद पहले तक ने एक"
    ),
    "indonesian": (
        "yang dan atau tetapi tidak adalah ini itu saya kamu anda dia kami kita mereka apa siapa mana kapan dimana "
        "mengapa bagaimana berapa dengan tanpa untuk dari ke di pada oleh dalam antara jika karena juga sangat lebih "
        "dapat bisa akan sudah ada"
    ),
}
"""Written down by hand, some dozens of each language that a stemmer or the index may meet."""


def is_function_word(term: str) -> bool:
    """Whether a term is a small word of some language."""
    return term in _languages()


def languages_of(found: Iterable[str]) -> set[str]:
    """The languages that most of the small words among these terms belong to; empty when none of them is small."""
    counts: dict[str, int] = {}
    for term in found:
        for language in _languages().get(term, ()):
            counts[language] = counts.get(language, 0) + 1
    most = max(counts.values(), default=0)
    return {language for language, count in counts.items() if count == most}


@cache
def _languages() -> dict[str, list[str]]:
    """Term → its languages."""
    known: dict[str, list[str]] = {}
    for language, words in FUNCTION_WORDS.items():
        for term in dict.fromkeys(terms(words)):
            known.setdefault(term, []).append(language)
    return known
