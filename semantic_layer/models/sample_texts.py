"""Texts that a model is tried on once it is loaded: questions of the kinds a cache is asked."""

PAIRS = (
    ("How do I bake bread without yeast?", "what is the way to make bread if there is no yeast"),
    ("Write a Python function that sorts a list.", "Can I cancel order 4711 by 7 pm on Monday?"),
    ("Who was the first person to climb Mount Everest?", "Which year was that, and is it proven?"),
    ("怎么修改银行卡的预留手机号？", "银行预留的电话换了，要怎么改"),
    ("今天北京到上海的高铁票多少钱", "帮我把这句话翻译成英文：周末愉快！"),
    ("Translate “good morning” into French, please", "¿Cómo puedo cambiar mi contraseña?"),
)
TEXTS = tuple(text for pair in PAIRS for text in pair)
