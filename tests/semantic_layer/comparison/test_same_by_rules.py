"""What rules call the same is the same: signs, roles, links, tense, letters and languages count."""

import pytest

from semantic_layer.comparison.edits import compare
from semantic_layer.comparison.guards import first_veto
from semantic_layer.comparison.literal import is_same_text
from semantic_layer.models.scorer import says_the_same
from semantic_layer.text.analysis import analyse
from semantic_layer.text.formulas import formulas
from semantic_layer.text.script import normalise
from semantic_layer.text.tongue import tongue_of

DIFFERENT = {
    "signs": """
Evaluate 7⁴|Evaluate 74
Evaluate 3⁻²|Evaluate 3-2
How long is 10⁵ seconds?|How long is 105 seconds?
Solve y³=27|Solve y3=27
What is 4½ times 2?|What is 41/2 times 2?
How much is 5^-2?|How much is 5^2?
How much is e^-4?|How much is e^4?
Calculate 7!|Calculate 7
How much is 9!/8?|How much is 9/8?
Calculate (4+6)*2|Calculate 4+(6*2)
Calculate (9-5)*3|Calculate 9-5*3
Calculate (-7)*(-2)|Calculate 7*(-2)
Calculate 20/(5*2)|Calculate 20/5*2
Is 9 in (2,9]?|Is 9 in (2,9)?
Is [0,3] a closed interval?|Is [0,3) a closed interval?
Should I wear gloves at -8 degrees?|Should I wear gloves at 8 degrees?
Does a tyre hold air at -30 C?|Does a tyre hold air at 30 C?
How far down is -200 m?|How far down is 200 m?
What does assert(x and y) check?|What does assert(x or y) check?
What does ^b match in a pattern?|What does b^ match in a pattern?
What does b? match in a pattern|What does b match in a pattern
What does cd .. change?|What does cd . change?
What is in ~/bin?|What is in /bin?
What runs with ./run?|What runs with /run?
What happens after b=a?|What happens after b=a[:]?
What does cp -r copy?|What does cp -R copy?
What does tar -x do?|What does tar -X do?
What does #define do?|What does define do?
What does @property do?|What does property do?
What does n:=2 do?|What does n=2 do?
What does y++ return?|What does ++y return?
How is £ typed?|How is € typed?
2³等于多少？|23等于多少？
零下5度穿什么？-5|零下5度穿什么？5
x²怎么求导？|x2怎么求导？
(3+4)*5等于几？|3+4*5等于几？
6!等于多少|6等于多少
""",
    "cases": """
Who can I report?|Who can report me?
Who should I trust?|Who should trust me?
Who must we inform?|Who must inform us?
Who may I copy?|Who may copy me?
Which dogs can I bite?|Which dogs can bite me?
Which clients can I bill?|Which clients can bill me?
Which courts can we fine?|Which courts can fine us?
Who do I hate?|Who hates me?
Who did I text?|Who texted me?
Whom do we feed?|Who feeds us?
What can the doctor ask me?|What can I ask the doctor?
What may the bank charge me?|What may I charge the bank?
What can the teacher tell us?|What can we tell the teacher?
When can the judge see me?|When can I see the judge?
""",
    "counted": """
How many guests may share a room?|How many rooms may a guest share?
How many workers can use one badge?|How many badges can one worker use?
How many pupils may a coach train?|How many coaches may train a pupil?
""",
    "links": """
What is in the bag?|What is on the bag?
What is under the sofa?|What is on the sofa?
Who sang to the crowd?|Who sang for the crowd?
Who spoke for the union?|Who spoke to the union?
Who voted for the law?|Who voted on the law?
Who played for Spain?|Who played with Spain?
Who died of Venice?|Who died in Venice?
Who worked with Tesla?|Who worked for Tesla?
""",
    "moment": """
Who is the mayor of Lyon?|Who was the mayor of Lyon?
Who is the owner of Lego?|Who was the owner of Lego?
Who is the captain of Ajax?|Who was the captain of Ajax?
What is the biggest bank?|What was the biggest bank?
Is Ceres a planet?|Was Ceres a planet?
Is parking allowed in the square?|Was parking allowed in the square?
Where does the firm have its office?|Where did the firm have its office?
这家店的老板是谁？|这家店以前的老板是谁？
公司的总部在哪里？|公司的总部曾在哪里？
""",
    "narrowed": """
Is gold legal in India?|Is gold mining legal in India?
Are knives banned in Japan?|Are pocket knives banned in Japan?
How do I list running jobs?|How do I list all jobs?
Are rabbits allowed in the flat?|Are pets allowed in the flat?
""",
    "literal": """
How many letters are in 'cat'?|How many letters are in 'cats'?
How many hyphens are in "co-op"?|How many hyphens are in "coop"?
How many words are in "pan cake"?|How many words are in "pancake"?
Spell favour|Spell favor
What is the plural of goose?|What is the plural of geese?
What is the past tense of sit?|What is the past tense of set?
How do I write ß?|How do I write ss?
What is the ASCII code of b?|What is the ASCII code of B?
Uppercase: groß|Uppercase: gross
Repeat after me: bye|Repeat after me: Bye
Correct: she have two cat|Correct: she has two cats
Is "Its late" correct?|Is "It's late" correct?
国字的繁体怎么写？|國字的繁體怎麼寫？
""",
    "possessive": """
Who is the woman's boss?|Who is the women's boss?
Which cat's owners are away?|Which cats' owners are away?
""",
    "capitals": """
Is 20 mg much?|Is 20 Mg much?
What does the IT team do?|What does it team do?
""",
    "language": """
What is the capital of Norway?|Quelle est la capitale de la Norvège ?
What is the capital of Peru?|¿Cuál es la capital del Perú?
What is the capital of Austria?|Was ist die Hauptstadt von Österreich?
What is the capital of Greece?|Qual è la capitale della Grecia?
How do I change my address?|Comment changer mon adresse ?
How do I change my address?|Wie ändere ich meine Adresse?
Wie ist das Wetter in Rom?|How is the weather in Rome?
Quelle est la capitale de la Norvège ?|¿Cuál es la capital de Noruega?
How do I reset the router?|Jak se resetuje router a kde je tlačítko?
""",
    "spacing": """
Count the gaps in "a b"|Count the gaps in "a  b"
""",
}
SAME = """
What is photosynthesis?|What's photosynthesis?
Can you explain recursion?|Please explain recursion.
How do I boil an egg?|How can I boil an egg?
how do i boil an egg|How do I boil an egg?
What is the capital of France?|Please, what is the capital of France?
What is the capital of France?|what is the capital of france
What's France's capital?|What is the capital of France?
How do I turn on dark mode?|How do I enable dark mode?
How do I switch off the alarm?|How do I turn off the alarm?
Where can I buy a car?|Where can I purchase a car?
How do I delete a file?|How do I erase a file?
How do I log in?|How do I sign in?
What is 17 * 24?|What is 17*24?
Solve x = 5|Solve x=5
What is 10²?|What is 10^2?
How long is 5 m² of carpet?|How long is 5 m^2 of carpet?
What is CO₂?|What is CO2?
Define entropy|Define entropy.
Define entropy|define entropy!
Thanks! How do I reset my phone?|How do I reset my phone?
Hi, how do I reset my phone?|How do I reset my phone?
How do I reset my phone, please?|How do I reset my phone?
How do I reset my phone??|How do I reset my phone?
How do I reset my phone (Android)?|How do I reset my phone, Android?
Is the shop open on Monday?|Is the store open on Monday?
Which film won an Oscar?|Which movie won an Oscar?
What is the price of milk?|What is the cost of milk?
How do I improve my grades?|How do I better my grades?
Who is the CEO of Lego?|Who's the CEO of Lego?
Who was Mozart?|who was mozart
Can I bring my dog?|May I bring my dog?
Explain e-mail|Explain email
What is the meaning of life?|What's the meaning of life?
What does “carpe diem” mean?|What does "carpe diem" mean?
Does it cost £5?|does it cost £5
How do I learn C++?|how do i learn c++
How do I use C#?|how do I use c#
Do you ship to Spain?|Do you deliver to Spain?
What is the biggest city in Italy?|What is the largest city in Italy?
What are the benefits of tea?|What are the advantages of tea?
What is the colour of gold?|What is the color of gold?
How do I organise a party?|How do I organize a party?
How do I cancel my plan?|How do I cancel my plan
How do I cancell my plan?|How do I cancel my plan?
In Excel, how do I add a row?|How do I add a row in Excel?
Where is the nearest pharmacy?|Where's the nearest pharmacy?
When does the train leave?|when does the train leave
I'd like to know: who wrote Emma?|I would like to know: who wrote Emma?
Is it 3/4 full?|is it 3/4 full
Does she work from 9-5?|Does she work from 9–5?
如何重置密码？|怎么重置密码？
怎么重置密码|怎么重置密码？
请问怎么重置密码？|怎么重置密码？
怎麼重置密碼？|怎么重置密码？
法国的首都是哪里？|请问法国的首都是哪里
怎么煮鸡蛋？|鸡蛋怎么煮？
水的沸点是多少？|水的沸点是多少
２０２４年奥运会在哪里？|2024年奥运会在哪里？
为什么天是蓝的？|为什么天是蓝的
什么是光合作用？|什么是光合作用
推荐三本书|推荐3本书
怎么做蛋糕|如何做蛋糕
¿Cómo abro una cuenta?|cómo abro una cuenta
""".strip().splitlines()
_MISSPELT = frozenset({"cancell"})


def _pairs(lines: str) -> list[tuple[str, str]]:
    split = [line.split("|") for line in lines.strip().splitlines()]
    return [pair for one, other in split for pair in ((one, other), (other, one))]


def _is_same(one: str, other: str) -> bool:
    if is_same_text(one, other):
        return True
    c = compare(analyse(one), analyse(other), lambda word: word not in _MISSPELT)
    return first_veto(c) is None and says_the_same(c)


@pytest.mark.parametrize(
    ("check", "one", "other"),
    [(check, *pair) for check, lines in DIFFERENT.items() for pair in _pairs(lines)],
)
def test_pair_is_refused_when_its_signs_or_roles_differ(check: str, one: str, other: str) -> None:
    """Nothing that changes an answer passes as the same, whichever text was stored first."""
    assert not is_same_text(one, other), check
    assert first_veto(compare(analyse(one), analyse(other))) is not None, check


@pytest.mark.parametrize("line", SAME)
def test_rewording_is_the_same_when_only_harmless_words_differ(line: str) -> None:
    """Contractions, politeness, typing and listed synonyms change nothing."""
    one, other = line.split("|")
    assert _is_same(one, other)
    assert _is_same(other, one)


def test_lines_of_code_are_not_the_same_when_one_begins_further_in() -> None:
    """Where a line begins tells what belongs together; what all lines share does not."""
    one = "What does this print?\nfor i in x:\n    a()\n    b()"
    other = "What does this print?\nfor i in x:\n    a()\nb()"
    moved = "What does this print?\n  for i in x:\n      a()\n      b()"
    assert not is_same_text(one, other)
    assert first_veto(compare(analyse(one), analyse(other))) is not None
    assert is_same_text(one, moved)


def test_powers_are_written_out_when_a_text_is_normalised() -> None:
    """A raised number never becomes a digit beside the number it is a power of."""
    assert normalise("2⁵ 10⁻³ x² 3½ CO₂") == "2^5 10^-3 x^2 3 1/2 CO2"


@pytest.mark.parametrize(
    "text",
    [
        "Hi! How are you? It's e-mail and/or COVID-19 (see below), 10:30, 3/4, 5-day, 20%.",
        "Is C++ (or C#) older than .NET? - Thanks!",
        "student(s), CPU(central processing unit), $20-$30, €5/month, AT&T, Q&A, U.S.",
    ],
)
def test_no_formula_is_read_when_signs_are_plain_punctuation(text: str) -> None:
    """Marks around words and inside numbers say nothing by themselves."""
    assert formulas(text) == ()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What's Mary's phone number?", ""),
        ("Où est la gare ?", "fr"),
        ("Wo ist der Bahnhof?", "de"),
        ("Какая столица России?", "cyrillic"),
        ("日本の首都はどこですか？", "ja"),
        ("docker prune", ""),
    ],
)
def test_language_is_told_when_common_words_or_script_show_it(text: str, language: str) -> None:
    """What too little tells of is left open."""
    assert tongue_of(text) == language
