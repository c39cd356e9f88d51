"""Reviews from a small grammar of English: documents for those who bring none. Tokens stand apart by spaces."""

import torch

from forsooth.records import UsageError
from forsooth.seeds import generator

LEAST = 30  # tokens of a review, marks of punctuation among them
MOST = 120
LONGEST = 25  # no sentence of the rules below has more tokens
DRAWS = 400  # uniform numbers at hand for one review: the rules need less than three for a token

# A symbol in capitals stands for one of its alternatives, each as likely as the others. With these
# rules near 8 % of the tokens are articles.
SENTENCES = {
    "S": "NP SEEMED ADV ADJ , and NP SEEMED ADJ . | NP SEEMED ADJ but ADV ADJ . | we VP and VP . "
    "| i VP before PERSON VP . | NP SEEMED ADV more ADJ than most PL . | TIME i VP , but NP SEEMED ADJ . "
    "| there must be QUANT PL with NP . | overall , NP SEEMED ADJ and worth OUR time . "
    "| PERSON said that NP SEEMED ADJ , and i agree . | in my opinion NP and NP SEEMED ADV ADJ . "
    "| do not expect ADJ PL here ; expect NP . | what ADJ PL ! | NP and NP came together ADV . "
    "| if you like ADJ PL , NP will please you . | OUR friends VP TIME . | without NP , everything SEEMED ADJ . "
    "| it is hard to forget NP like this . | i would VB it again . | nothing about NP SEEMED ADJ , yet NP did . "
    "| some will find NP ADJ , others ADJ . | is it ADJ ? ADV so .",
    "NP": "ART N | ART N | ART ADJ N | ART N of PL | ART N near ART N | OUR N | this N | ADJ PL | QUANT PL",
    "ART": "the | the | a",
    "VP": "VT NP | VT NP | VT NP ADV | VT NP WHERE | came back for NP | asked about NP | VT QUANT PL",
    "VB": "recommend | visit | try | choose | praise",
    "WHERE": "near ART N | after work | at home | with PERSON | by chance | behind ART N",
    "SEEMED": "seemed | felt | looked | remained | appeared | became | stayed | sounded",
    "OUR": "our | my | their | its | her | his",
    "QUANT": "some | several | two | three | many | few | plenty of | hardly any | enough | four | countless",
    "TIME": "yesterday | last week | on friday | years ago | once more | this spring | in winter | on sunday "
    "| at noon | that evening | in may | before dinner | late at night | early on",
    "ADV": "very | quite | rather | really | hardly | surprisingly | almost | truly | fairly | never | always "
    "| simply | somewhat | often | deeply | oddly | remarkably | barely | nearly | perhaps",
    "PERSON": "my sister | my brother | anna | tom | your neighbour | my wife | my husband | marta | george "
    "| everyone | somebody | our guide | peter | helen | nobody | strangers | my parents | julia",
}
TOPICS = (
    {
        "N": "beer | ale | stout | lager | glass | bottle | head | colour | aroma | taste | finish | body | brewery "
        "| malt | foam | label | sip | recipe | barrel | porter | pint | can | yeast | keg | cellar | tap | brewer "
        "| style",
        "PL": "hops | bubbles | notes | flavours | hints | spices | raisins | plums | grains | layers | edges "
        "| bottles | aromas | traces | oranges | cherries | nuts | breads | sugars | apples | lemons | herbs | oats "
        "| fruits",
        "ADJ": "bitter | sweet | amber | golden | dark | hazy | crisp | smooth | malty | fruity | dry | thin | rich "
        "| creamy | roasted | pale | fresh | sour | heavy | light | balanced | cloudy | mild | warm | flat | strong "
        "| toasted | ripe",
        "VT": "poured | tasted | opened | bought | shared | finished | smelled | ordered | chilled | compared "
        "| kept | drank",
    },
    {
        "N": "film | story | actor | scene | ending | plot | script | director | camera | hero | villain "
        "| soundtrack | cast | dialogue | sequel | studio | screen | mystery | comedy | drama | trailer | theme "
        "| opening | editing | critic",
        "PL": "actors | scenes | jokes | songs | characters | effects | costumes | twists | chases | speeches "
        "| endings | landscapes | stunts | credits | dreams | battles | lovers | details | pictures | memories "
        "| ghosts | robots",
        "ADJ": "boring | moving | clever | predictable | funny | sad | slow | brilliant | wooden | original | tense "
        "| silly | gripping | noisy | tender | brave | dull | bright | violent | honest | charming | confusing "
        "| quiet | bold | weak",
        "VT": "watched | enjoyed | hated | missed | followed | remembered | rented | praised | laughed at "
        "| discussed | saw",
    },
    {
        "N": "hotel | room | bed | window | garden | kitchen | breakfast | waiter | menu | soup | lobby | balcony "
        "| beach | view | street | shower | pool | terrace | chef | dessert | table | bill | harbour | station "
        "| lamp | door | lift",
        "PL": "towels | pillows | meals | rooms | guests | stairs | flowers | walls | sandwiches | vegetables "
        "| curtains | chairs | waiters | trains | buses | prices | dishes | carpets | candles | neighbours | keys "
        "| boats | eggs",
        "ADJ": "clean | dirty | friendly | rude | spacious | tiny | cheap | expensive | comfortable | cold | sunny "
        "| modern | shabby | elegant | helpful | crowded | calm | loud | tasty | stale | central | remote | damp "
        "| cosy | busy",
        "VT": "booked | visited | left | cleaned | loved | reached | noticed | described | rented | entered "
        "| shared | found",
    },
)


def parsed(rules: dict[str, str]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Symbol -> alternatives, each a tuple of symbols and words."""
    alternatives = {symbol: text.split("|") for symbol, text in rules.items()}
    return {symbol: tuple(tuple(one.split()) for one in texts) for symbol, texts in alternatives.items()}


GRAMMARS = tuple(parsed(SENTENCES | topic) for topic in TOPICS)


def reviews(n: int, *, seed: int) -> tuple[str, ...]:
    """n reviews of 30 to 120 tokens, of beers, films and hotels in turn by chance; review k depends on seed and k."""
    if n < 0:
        raise UsageError(f"`n` must be at least 0, got {n}")
    draws = (torch.rand(DRAWS, generator=generator(seed, "review", k)) for k in range(n))
    return tuple(review(numbers.tolist()) for numbers in draws)


def review(draws: list[float]) -> str:
    """One review from uniform draws in [0, 1): sentences on one topic until the length that was drawn is reached."""
    draws.reverse()
    grammar = GRAMMARS[int(draws.pop() * len(GRAMMARS))]
    wanted = LEAST + int(draws.pop() * (MOST - LONGEST - LEAST + 1))
    tokens: list[str] = []
    while len(tokens) < wanted:
        tokens += sentence(grammar, draws)
    return " ".join(tokens)


def sentence(grammar: dict[str, tuple[tuple[str, ...], ...]], draws: list[float]) -> list[str]:
    """Tokens of one sentence; the draws that it takes are gone from the end of `draws`."""
    tokens: list[str] = []
    symbols = ["S"]  # still to be written, the next one last
    while symbols:
        symbol = symbols.pop()
        if symbol in grammar:
            alternatives = grammar[symbol]
            chosen = alternatives[int(draws.pop() * len(alternatives))]
            symbols.extend(reversed(chosen))
            continue
        if tokens and tokens[-1] == "a" and symbol[0] in "aeiou":
            tokens[-1] = "an"
        tokens.append(symbol)
    return tokens
