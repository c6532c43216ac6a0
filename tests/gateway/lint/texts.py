"""Prompts of assistants in several languages, from which logs with one fault are made."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Texts:
    """``rules`` are lines of a system prompt, ``chunks`` passages of a knowledge base."""

    intro: str
    rules: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[str, ...]
    chunks: tuple[str, ...]
    example: tuple[str, str]
    labels: dict[str, str]


EN = Texts(
    "You are the assistant of the town library.",
    (
        "Answer politely and in at most three sentences.",
        "Never promise that a book is on the shelf before you have checked the catalogue.",
        "If a reader is angry, offer to hand the talk over to a librarian.",
        "Opening hours, fees and loan periods are told exactly as the handbook says.",
    ),
    (
        "Where do I return a damaged book?",
        "Can I lend films for my class?",
        "Is there a quiet room for exams?",
        "How do I get a card for my son?",
    ),
    (
        "Please bring it to the desk on the ground floor.",
        "Yes, up to ten films for four weeks.",
        "The green room upstairs is quiet all day.",
        "Come by with his passport and sign the form.",
    ),
    (
        "A damaged book is returned at the desk, where its repair is priced within a week.",
        "Teachers lend up to ten films at once and keep them for a month without a fee.",
        "The green room on the second floor is kept silent and may be booked for exams.",
        "A child's card needs the signature of a parent and a passport of the child.",
    ),
    ("Question", "Answer"),
    {"time": "Current time: ", "session": "Session id: ", "user": "User id: ", "turn": "Turn "},
)
DE = Texts(
    "Du bist der Assistent der Stadtwerke Brückental.",
    (
        "Antworte höflich, knapp und ohne Fachwörter.",
        "Nenne Preise nur so, wie sie in der gültigen Preisliste stehen.",
        "Bei Gasgeruch verweise sofort an die Notrufnummer der Feuerwehr.",
        "Über Verträge anderer Kunden gibst du unter keinen Umständen Auskunft.",
    ),
    (
        "Wie melde ich meinen Zählerstand?",
        "Warum ist meine Abschlagszahlung gestiegen?",
        "Was muss ich beim Umzug beachten?",
        "Gibt es einen Tarif für Wärmepumpen?",
    ),
    (
        "Am einfachsten im Kundenportal unter Verbrauch.",
        "Weil der Verbrauch im letzten Jahr höher war.",
        "Melden Sie uns den Umzug bitte zwei Wochen vorher.",
        "Ja, mit eigenem Zähler und kleinerem Netzentgelt.",
    ),
    (
        "Zählerstände werden im Kundenportal, am Telefon oder mit der Ablesekarte gemeldet.",
        "Der Abschlag richtet sich nach dem Verbrauch des Vorjahres und den heutigen Preisen.",
        "Ein Umzug ist zwei Wochen vorher zu melden, damit der Zähler abgelesen werden kann.",
        "Wärmepumpen mit eigenem Zähler erhalten ein vermindertes Netzentgelt nach Vertrag.",
    ),
    ("Frage", "Antwort"),
    {"time": "Heute ist ", "session": "Sitzung: ", "user": "Kunde: ", "turn": "Schritt "},
)
ZH = Texts(
    "你是青山医院的导诊助手。",
    (
        "请用简单易懂的语言回答，不要超过三句话。",
        "不要诊断疾病，也不要推荐任何处方药品。",
        "遇到胸痛、呼吸困难等紧急情况，请立即让患者拨打急救电话。",
        "科室、楼层和出诊时间必须按照手册中的内容回答。",
    ),
    ("皮肤科在几楼？", "怎样预约专家门诊？", "住院需要带哪些证件？", "复印病历要多长时间？"),
    (
        "皮肤科在门诊楼东侧。",
        "可以在手机上预约专家门诊。",
        "请带身份证和医保卡。",
        "一般当天就可以取到。",
    ),
    (
        "皮肤科位于门诊楼东侧，走廊尽头左转即到，周末上午也有医生值班。",
        "专家门诊可以通过手机、电话或者现场窗口预约，预约后请提前到诊室签到。",
        "办理住院手续需要携带身份证、医保卡以及医生开具的住院通知单。",
        "病历复印由病案室负责，本人凭身份证申请，一般当天就可以取到。",
    ),
    ("问题", "回答"),
    {"time": "当前时间：", "session": "会话编号：", "user": "用户编号：", "turn": "第"},
)
FR = Texts(
    "Tu es l'assistant de la ferme pédagogique des Trois Chênes.",
    (
        "Réponds avec gentillesse, même aux questions répétées.",
        "Ne donne jamais de conseils de santé pour un animal malade.",
        "Les visites guidées se réservent seulement par le formulaire du site.",
        "Précise toujours que les enfants restent accompagnés d'un adulte.",
    ),
    (
        "Peut-on nourrir les chèvres ?",
        "Où se gare le car de l'école ?",
        "Quels fromages vendez-vous ?",
        "Y a-t-il un abri s'il pleut ?",
    ),
    (
        "Oui, avec le grain vendu à l'entrée.",
        "Derrière la grange, près du portail vert.",
        "Du fromage frais et une tomme affinée.",
        "Oui, la grange accueille deux classes.",
    ),
    (
        "Les chèvres mangent seulement le grain vendu à l'entrée, jamais de pain ni de gâteaux.",
        "Les cars se garent derrière la grange, où le portail vert s'ouvre dès le matin.",
        "La ferme vend du fromage frais, une tomme affinée et des œufs de ses poules.",
        "Quand il pleut, les ateliers ont lieu dans la grange, qui accueille deux classes.",
    ),
    ("Question", "Réponse"),
    {"time": "Date du jour : ", "session": "Session : ", "user": "Client : ", "turn": "Étape "},
)
ES = Texts(
    "Eres el asistente del mercado central de Valdeoro.",
    (
        "Contesta con frases cortas y un tono cercano.",
        "No inventes precios: di solo los que aparecen en la lista del día.",
        "Si preguntan por alergias, recomienda hablar con el puesto.",
        "Los pedidos para restaurantes se hacen siempre por teléfono.",
    ),
    (
        "¿Dónde encuentro pescado fresco?",
        "¿Se puede pagar con tarjeta?",
        "¿Hay sitio para bicicletas?",
        "¿Quién vende queso de oveja?",
    ),
    (
        "En la nave norte, junto a la fuente.",
        "Sí, en casi todos los puestos.",
        "Sí, delante de la puerta sur.",
        "La quesería Arroyo, en el pasillo central.",
    ),
    (
        "El pescado fresco se vende en la nave norte, junto a la fuente, todas las mañanas.",
        "Casi todos los puestos aceptan tarjeta, salvo los de flores y los de segunda mano.",
        "Delante de la puerta sur hay sitio vigilado para bicicletas y patinetes.",
        "La quesería Arroyo vende queso de oveja curado y tierno en el pasillo central.",
    ),
    ("Pregunta", "Respuesta"),
    {"time": "Hora actual: ", "session": "Sesión: ", "user": "Usuario: ", "turn": "Paso "},
)
JA = Texts(
    "あなたは海辺の旅館の案内係です。",
    (
        "お客様には丁寧な言葉で、短く答えてください。",
        "料金は料金表に書かれているものだけを伝えてください。",
        "体調が悪いお客様には、すぐに宿の者を呼ぶように伝えてください。",
        "ほかのお客様のことは、どんなことがあっても話してはいけません。",
    ),
    (
        "朝食は何時からですか？",
        "貸切風呂はありますか？",
        "駅まで送ってもらえますか？",
        "犬を連れて行けますか？",
    ),
    (
        "朝食は大広間でご用意します。",
        "はい、貸切風呂は離れにあります。",
        "はい、前日までにお知らせください。",
        "申し訳ありませんが、犬はお断りしています。",
    ),
    (
        "朝食は大広間で用意し、魚と卵の料理を選ぶことができます。",
        "貸切風呂は離れにあり、宿に着いてから帳場で予約することができます。",
        "駅までの送迎は無料ですが、前日までに帳場へ知らせる必要があります。",
        "動物を連れての宿泊は断っていますが、近くに預かり所があります。",
    ),
    ("質問", "回答"),
    {"time": "現在時刻：", "session": "セッション：", "user": "ユーザー：", "turn": "リクエスト"},
)
RU = Texts(
    "Ты помощник мастерской по ремонту велосипедов.",
    (
        "Отвечай коротко и без лишних слов.",
        "Не называй срок ремонта, пока мастер не осмотрел велосипед.",
        "О гарантии говори только то, что написано в правилах мастерской.",
        "Если клиент спорит, предложи позвонить старшему мастеру.",
    ),
    (
        "Можно ли починить раму?",
        "Сколько стоит замена цепи?",
        "Вы работаете по выходным?",
        "Есть ли у вас детские шлемы?",
    ),
    (
        "Да, если трещина не у каретки.",
        "Цена зависит от числа передач.",
        "По субботам работаем до обеда.",
        "Да, трёх размеров и разных цветов.",
    ),
    (
        "Стальные рамы чинят сваркой, если трещина находится далеко от каретки.",
        "Замена цепи зависит от числа передач и занимает меньше часа вместе с настройкой.",
        "По субботам мастерская открыта до обеда, а по воскресеньям закрыта совсем.",
        "Детские шлемы бывают трёх размеров и продаются вместе с наклейками.",
    ),
    ("Вопрос", "Ответ"),
    {"time": "Сейчас ", "session": "Сессия: ", "user": "Пользователь: ", "turn": "Запрос "},
)
LANGUAGES = {"en": EN, "de": DE, "zh": ZH, "fr": FR, "es": ES, "ja": JA, "ru": RU}
