"""Which pages are worth reading? Simple counts throw out most of what nobody wrote for a reader.

Lists, menus, error messages and machine-made text betray themselves by their numbers: no sentences, the same line again
and again, more symbols than words. And three letters in a row are enough to guess a language.
"""

import functools
import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..softmax import softmax

_STOP_WORDS = frozenset(["the", "be", "to", "of", "and", "that", "have", "with"])

# Signal: (lower limit, upper limit, what is wrong outside). The first seven are rules of Gopher.
QUALITY_RULES = {
    "words": (50, 100_000, "too few or too many words"),
    "mean_word_length": (3, 10, "words too short or too long"),
    "symbols_per_word": (0, 0.1, "too many # and …"),
    "bullet_lines": (0, 0.9, "a list"),
    "cut_lines": (0, 0.3, "lines that are cut off with …"),
    "words_with_letters": (0.8, 1, "too few words with letters"),
    "stop_words": (2, np.inf, "no English sentences"),
    "repeated_lines": (0, 0.3, "the same lines again and again"),
    "repeated_words": (0, 0.2, "the same three words again and again"),
}


def quality_signals(text: str) -> dict[str, float]:
    """What can be counted about a page without understanding it.

    words; mean_word_length, in characters; symbols_per_word, "#" and "…"; bullet_lines and cut_lines, the shares of
    lines that begin with a bullet or end with "…"; words_with_letters, their share; stop_words, how many of eight
    frequent English words; repeated_lines, the share of lines that have stood before; repeated_words, the share of the
    text that is its commonest run of three words.

    Source: 004, data preparation; Rae et al. 2021 (Gopher), appendix A.1.

    >>> signals = quality_signals("To be, or not to be: that is the question.")
    >>> signals["words"], signals["stop_words"], signals["repeated_lines"]
    (10, 4, 0.0)
    """
    words = text.split()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    plain = re.findall(r"\w+", text.lower())
    runs = Counter(zip(plain, plain[1:], plain[2:], strict=False))
    commonest = max(runs.values(), default=0)
    return {
        "words": len(words),
        "mean_word_length": _share(sum(map(len, words)), words),
        "symbols_per_word": _share(text.count("#") + text.count("...") + text.count("…"), words),
        "bullet_lines": _share(sum(line.startswith(("•", "-", "*", "·", "‣")) for line in lines), lines),
        "cut_lines": _share(sum(line.endswith(("...", "…")) for line in lines), lines),
        "words_with_letters": _share(sum(any(map(str.isalpha, word)) for word in words), words),
        "stop_words": len(_STOP_WORDS & {*plain}),
        "repeated_lines": _share(len(lines) - len({*lines}), lines),
        "repeated_words": _share(3 * commonest, plain) if commonest > 1 else 0.0,
    }


def quality_problems(text: str, rules: Mapping[str, tuple] = QUALITY_RULES) -> list[str]:
    """The reasons to leave a page out: each signal outside its limits, in words. No reason is no proof of quality.

    rules: {signal: (lower limit, upper limit, problem)}

    Raises: ValueError for a rule about something that `quality_signals` does not count.

    >>> quality_problems("click here " * 40)
    ['no English sentences', 'the same three words again and again']
    """
    signals = quality_signals(text)
    if unknown := rules.keys() - signals.keys():
        raise ValueError(f"quality_problems() has no signal {min(unknown)!r}; there are {', '.join(signals)}")
    return [problem for name, (low, high, problem) in rules.items() if not low <= signals[name] <= high]


def quality_score(text: str, rules: Mapping[str, tuple] = QUALITY_RULES) -> float:
    """The share of the rules a page keeps, from 0 to 1: crude, and enough to sort pages by.

    >>> round(quality_score("click here " * 40), 2)
    0.78
    """
    return 1 - len(quality_problems(text, rules)) / len(rules)


class LanguageGuess(NamedTuple):
    """A language, or None if the text is too short or too strange, and how likely it is among those known."""

    language: str | None
    probability: float


class LanguageModel(NamedTuple):
    """For each language the log-probability of every run of three letters, and of one that was never seen."""

    trigrams: dict[str, dict[str, float]]
    unseen: dict[str, float]


def train_language_model(samples: Mapping[str, str]) -> LanguageModel:
    """Count the runs of three letters in a sample of each language.

        ln P(abc | language) = ln (count(abc) + ½) / (total + ½ (different + 1))     (13.3)

    Half an occurrence is added to each, so that a run that was never seen is unlikely, not impossible.
    Raises: ValueError for fewer than two languages or a sample without letters.
    Source: 004, data preparation (language detection); Cavnar & Trenkle 1994.

    >>> sorted(train_language_model({"en": "the cat", "de": "die Katze"}).trigrams["en"])
    [' ca', ' th', 'at ', 'cat', 'he ', 'the']
    """
    if len(samples) < 2:
        raise ValueError(f"train_language_model() needs samples of at least two languages, got {len(samples)}")
    counts = {language: Counter(_trigrams(text)) for language, text in samples.items()}
    if empty := [language for language, count in counts.items() if not count]:
        raise ValueError(f"train_language_model() needs letters in the sample of {empty[0]!r}")
    different = len(set().union(*counts.values()))
    trigrams, unseen = {}, {}
    for language, count in counts.items():
        total = count.total() + 0.5 * (different + 1)
        trigrams[language] = {run: float(np.log((n + 0.5) / total)) for run, n in count.items()}
        unseen[language] = float(np.log(0.5 / total))
    return LanguageModel(trigrams, unseen)


def guess_language(text: str, model: LanguageModel | None = None, *, min_letters: int = 20) -> LanguageGuess:
    """The language under which the runs of three letters of a text are most likely (naive Bayes).

        argmax over languages of Σ ln P(abc | language)

    The built-in model was trained on a paragraph and the commonest words of Dutch, English, French, German, Italian,
    Portuguese and Spanish: it errs on short texts, on names and on any other language in Latin letters, which it
    takes for the nearest of the seven. A text with fewer than `min_letters` letters, or of which it has seen less
    than a quarter of the runs, gets no language. The probability is that of naive Bayes over the square root of the
    number of runs, since neighbouring runs overlap and prove less than they seem to.
    Source: 004, data preparation (language detection).

    >>> guess_language("The model reads a sentence and guesses which word is next.").language
    'en'
    >>> guess_language("Das Modell liest einen Satz und errät, welches Wort als nächstes kommt.").language
    'de'
    >>> guess_language("Модель читает предложение и угадывает слово.").language is None
    True
    """
    model = model or _built_in()
    runs = _trigrams(text)
    seen = max((sum(run in table for run in runs) for table in model.trigrams.values()), default=0)
    if sum(map(str.isalpha, text)) < min_letters or seen < len(runs) / 4:
        return LanguageGuess(None, 0.0)
    languages = list(model.trigrams)
    scores = [sum(model.trigrams[name].get(run, model.unseen[name]) for run in runs) for name in languages]
    probability = softmax(np.array(scores) / len(runs) ** 0.5)
    best = int(np.argmax(probability))
    return LanguageGuess(languages[best], float(probability[best]))


def _share(number, of):
    return number / len(of) if of else 0.0


def _trigrams(text):
    """Runs of three letters; a word has a space on either side."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    return [f" {word} "[i : i + 3] for word in words for i in range(len(word))]


@functools.cache
def _built_in():
    return train_language_model(_SAMPLES)


_SAMPLES = {  # for each language a paragraph and its commonest words
    "en": """When the rain had stopped, the children went down to the river with their father. They wanted to know
        where the water comes from and why it never ends. He told them that every drop has been in the sea before,
        that the sun takes it up and the wind carries it over the hills. She laughed, because she would not believe
        that anything so small could travel so far. There is nothing which we have done this year that was more
        beautiful than these evenings; people should think about what they have, and work with each other. the of
        and a to in is you that it he was for on are as with his they I at be this have from or one had by not but
        what all were we when your can said there use an each which she do how their if will my me our who him
        yesterday today very new large house please where""",
    "de": """Als der Regen aufgehört hatte, gingen die Kinder mit ihrem Vater hinunter zum Fluss. Sie wollten
        wissen, woher das Wasser kommt und warum es nie zu Ende geht. Er erzählte ihnen, dass jeder Tropfen schon
        einmal im Meer gewesen ist, dass die Sonne ihn hebt und der Wind ihn über die Berge trägt. Sie lachte, weil
        sie nicht glauben konnte, dass etwas so Kleines so weit reisen kann. Nichts von dem, was wir in diesem Jahr
        gemacht haben, war schöner als diese Abende; man sollte darüber nachdenken, was man hat, und auch
        miteinander arbeiten. der die das und in zu den ist nicht von mit dem des für auf ein eine einen als auch es
        an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über so zum war haben nur oder
        aber vor zur bis mehr durch kann ich du wir ihr mich mein meine sehr neu groß Haus bitte wo gestern heute""",
    "fr": """Quand la pluie eut cessé, les enfants descendirent vers la rivière avec leur père. Ils voulaient savoir
        d'où vient l'eau et pourquoi elle ne finit jamais. Il leur raconta que chaque goutte a déjà été dans la mer,
        que le soleil la prend et que le vent la porte au-dessus des collines. Elle riait, parce qu'elle ne pouvait
        pas croire qu'une chose si petite puisse voyager si loin. Rien de ce que nous avons fait cette année n'était
        plus beau que ces soirées; il faut penser à ce que l'on a, et travailler les uns avec les autres. le la les
        de des un une et à il elle être en avoir que pour dans ce qui ne sur se pas plus par je avec tout faire son
        mettre autre on mais nous comme ou si leur y dire devoir où même prendre aussi bien vous tu mon ma mes sont
        était très nouveau grande maison hier aujourd'hui cette""",
    "es": """Cuando dejó de llover, los niños bajaron al río con su padre. Querían saber de dónde viene el agua y
        por qué nunca se acaba. Él les contó que cada gota ya ha estado alguna vez en el mar, que el sol la levanta
        y el viento la lleva por encima de las montañas. Ella se reía, porque no podía creer que una cosa tan
        pequeña pudiera viajar tan lejos. Nada de lo que hemos hecho este año ha sido más hermoso que estas tardes;
        hay que pensar en lo que uno tiene, y también trabajar los unos con los otros. el la los las de que y a en
        un una ser se no haber por con su para como estar tener le lo todo pero más hacer o poder decir este ir otro
        ese si me ya ver porque dar cuando muy sin vez mucho saber qué sobre mi alguno mismo yo también hasta año
        dos querer está son casa grande nuevo ayer hoy dónde favor""",
    "it": """Quando la pioggia fu finita, i bambini scesero al fiume con il padre. Volevano sapere da dove viene
        l'acqua e perché non finisce mai. Lui raccontò che ogni goccia è già stata nel mare, che il sole la solleva
        e il vento la porta sopra le colline. Lei rideva, perché non poteva credere che una cosa così piccola
        potesse viaggiare tanto lontano. Niente di quello che abbiamo fatto quest'anno è stato più bello di queste
        sere; bisogna pensare a ciò che si ha, e anche lavorare gli uni con gli altri. il lo la i gli le un uno una
        di a da in con su per tra che chi non è sono sei siamo ho hai ha abbiamo hanno mi ti ci vi si mio mia tuo
        sua nostro loro molto questo questa quello come quando dove più anche ma se perché tutto tutti fare dire può
        essere stato della nel alla dal sulla casa grande nuova ieri oggi favore""",
    "nl": """Toen de regen was opgehouden, gingen de kinderen met hun vader naar de rivier. Ze wilden weten waar het
        water vandaan komt en waarom het nooit ophoudt. Hij vertelde hun dat elke druppel al een keer in de zee is
        geweest, dat de zon hem optilt en dat de wind hem over de heuvels draagt. Zij lachte, omdat ze niet kon
        geloven dat iets zo kleins zo ver kan reizen. Niets van wat wij dit jaar hebben gedaan was mooier dan deze
        avonden; men moet denken aan wat men heeft, en ook met elkaar werken. de het een van en in te dat die is op
        zijn met voor niet aan er om ook als dan maar bij of uit nog naar heeft hij ik je zij we hebben had door
        over ze wat kan mijn jij u wij hun zo deze dit worden werd wordt geen veel meer moet waar wie hoe heel nieuw
        groot huis gisteren vandaag""",
    "pt": """Quando a chuva parou, as crianças desceram até ao rio com o pai. Queriam saber de onde vem a água e por
        que ela nunca acaba. Ele contou que cada gota já esteve uma vez no mar, que o sol a levanta e o vento a leva
        por cima das montanhas. Ela ria, porque não podia acreditar que uma coisa tão pequena pudesse viajar tão
        longe. Nada do que fizemos este ano foi mais bonito do que essas noites; é preciso pensar no que se tem, e
        também trabalhar uns com os outros. o a os as de que e do da em um uma para com não se na por mais dos como
        mas ao ele das à seu sua ou quando muito nos já eu também só pelo pela até isso ela entre depois sem mesmo
        aos seus quem nas me esse eles você essa num nem suas meu minha numa está são tem casa grande novo ontem
        hoje onde favor""",
}
