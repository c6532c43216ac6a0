"""Pairs of chats that are told different things before one question, and pairs that are not.

Each is (said first here, said first there, the question); the assistant only takes note. Written
for Strata.
"""

Pair = tuple[str, str, str]
Exchange = tuple[str, str]

OTHER_PREMISES: list[Pair] = [
    (
        "I ride a Vespa scooter.",
        "I ride a Honda scooter.",
        "Where is the oil filler cap on the engine?",
    ),
    ("I own a diesel van.", "Hi there!", "Which fuel should go in the tank?"),
    (
        "My flat is in Lisbon.",
        "My flat is in Tokyo.",
        "Which emergency number should one call for an ambulance?",
    ),
    ("I am breastfeeding.", "Hey", "Is a small glass of wine safe in the evening?"),
    ("I have a severe milk allergy.", "hello", "Recommend a dessert for Sunday lunch."),
    ("I'm 70 years old.", "I'm 20 years old.", "Which vaccinations are recommended this winter?"),
    ("I only eat kosher food.", "Hi", "Plan a dinner menu for four guests."),
    ("I am colour blind.", "Good morning", "Suggest two colours for a bar chart."),
    (
        "I'm a complete beginner.",
        "I'm a professional chef.",
        "Explain how a beurre blanc sauce is made.",
    ),
    ("I work night shifts.", "Hello!", "When should coffee be drunk during the day?"),
    ("I take warfarin.", "hi", "Is grapefruit juice safe with breakfast?"),
    (
        "My laptop runs Linux.",
        "My laptop runs Windows.",
        "How do I change the desktop background picture?",
    ),
    ("We are a family of six.", "Hi", "How much rice should be cooked for dinner?"),
    ("I don't have an oven.", "Hello", "Give me a recipe for apple pie."),
    (
        "I have a budget of 200 dollars.",
        "I have a budget of 2000 dollars.",
        "Recommend a mountain bike for weekend rides.",
    ),
    ("Please answer in Spanish from now on.", "Hi", "What is the tallest mountain in Africa?"),
    ("Respond only with yes or no.", "hello", "Is the Nile longer than the Amazon?"),
    ("Keep every reply under ten words.", "Hi", "Explain why the sky looks blue."),
    ("Talk like Shakespeare.", "Hi", "What is the chemical symbol for gold?"),
    ("Give temperatures in kelvin.", "Hello", "What is the freezing point of water?"),
    ("Let's count from zero.", "Hi", "Which planet is number three from the Sun?"),
    ("Write everything in capital letters.", "Hey there", "Who painted the Mona Lisa?"),
    ("Don't use the letter e.", "Hi", "What is the largest ocean on Earth?"),
    ("Whenever I ask something, add a joke.", "Hi", "What is the capital of Norway?"),
    ("Act as a grumpy librarian.", "hello", "Who wrote Pride and Prejudice?"),
    ("Could you be brief, please?", "Hi", "How does a steam engine work?"),
    ("Explain things as if I were five.", "Hi", "How does a nuclear reactor work?"),
    ("Always lie to me.", "hi", "Is Berlin the capital of Germany?"),
    (
        "Use British spelling.",
        "Use American spelling.",
        "Write a sentence on the colour of the sky.",
    ),
    ("I mean the planet, not the god.", "Hi", "How far away is Mercury from Earth?"),
    ("By Python I mean the snake.", "hello", "What do Pythons eat in the wild?"),
    ("I meant Cambridge in Massachusetts.", "Hi", "What is the population of Cambridge?"),
    (
        "When I say football I mean American football.",
        "hi",
        "How many players are there in a football team?",
    ),
    (
        "Suppose gravity is twice as strong.",
        "Hi",
        "How fast does a dropped stone fall after one second?",
    ),
    ("In our story the king is called Edmund.", "Hello", "Who is the king of England?"),
    ("In this exercise pi equals three.", "Hi", "What is the area of a circle of radius two?"),
    ("It is the year 1800.", "hi", "Who is the president of the United States?"),
    ("Assume a leap year.", "Hi", "How many days are there in February?"),
    ("Imagine you are a pilot.", "hi", "How do you start your working day?"),
    (
        "Our company closes on Wednesdays.",
        "Our company closes on Mondays.",
        "On which day is our company closed?",
    ),
    ("Anna is taller than Ben.", "Ben is taller than Anna.", "Who is the taller one, Anna or Ben?"),
    (
        "Here is a poem: roses are red.",
        "Here is a poem: snow is white.",
        "Translate the poem into Italian please.",
    ),
    ("The secret number is seven.", "The secret number is nine.", "Tell me the secret number."),
    ("Our dog's name is Rex.", "Our dog's name is Max.", "What is the name of our dog?"),
    ("What is Ruby?", "What is Rust?", "How do I read a file line by line?"),
    (
        "Do I need a visa for Denmark?",
        "Do I need a visa for Japan?",
        "What is the standard sales tax rate?",
    ),
    ("我开的是特斯拉。", "我开的是宝马。", "雨刮器应该怎么更换？"),
    ("我怀孕三个月了。", "你好", "晚上可以喝一杯红酒吗？"),
    ("我对花生过敏。", "您好", "推荐一道简单的下午茶点心。"),
    ("我住在上海。", "我住在成都。", "明天出门需要带雨伞吗？"),
    ("请用法语回答我。", "你好", "世界上最高的山峰是哪座？"),
    ("以后每次只回答一个字。", "你好", "月亮是恒星还是卫星？"),
    ("假设现在是一九八〇年。", "嗨", "美国总统是谁担任的？"),
    ("你是一个海盗。", "你好", "怎样才能学好游泳这项运动？"),
    ("我说的是苹果公司。", "你好", "苹果的创始人叫什么名字？"),
    ("这段话是：猫很可爱。", "这段话是：狗很忠诚。", "把这段话翻译成英文。"),
    ("我今年八十岁。", "我今年十八岁。", "每天跑步多长时间比较合适？"),
    ("接下来都用英制单位。", "您好", "珠穆朗玛峰的高度是多少？"),
    ("我们公司周三休息。", "我们公司周五休息。", "我们公司星期几不上班？"),
    ("不要提到北京。", "你好", "中国的首都是哪座城市？"),
    ("我用的是安卓手机。", "我用的是苹果手机。", "手机怎么恢复出厂设置？"),
    ("暗号是西瓜。", "暗号是苹果。", "告诉我暗号是什么。"),
]

# What was told before a question on a provider's rules, and taken up at length.
TOLD_TO_PROVIDER: list[tuple[Exchange, Exchange, str]] = [
    (
        ("I'm flying to Chile on Monday.", "Lovely, Chile is warm in this month."),
        ("I'm flying to Malta on Monday.", "Lovely, Malta is warm in this month."),
        "What's the weight limit for cabin bags?",
    ),
    (
        ("The order is for a school.", "Thanks, I have noted the address of the school."),
        ("hi", "Hello!"),
        "How long do you keep invoices available online?",
    ),
    (
        ("We come with three prams.", "Great, all of you are welcome on any day."),
        ("hi", "Hello!"),
        "Do you have a quiet table in the garden?",
    ),
    (
        ("I'm a Silver member.", "Great, thanks for being with us all those years."),
        ("hi", "Hello!"),
        "What is your cancellation fee for hotel bookings?",
    ),
    (
        ("I'm allergic to celery.", "Thanks, I have noted that with your booking."),
        ("hi", "Hello!"),
        "Which starters do you recommend for dinner?",
    ),
    (
        ("Can you speak French with me?", "Bien sûr !"),
        ("hi", "Hello!"),
        "How long do your refunds take to arrive?",
    ),
    (
        ("我用支票支付的。", "好的，我看到这笔支票付款了。"),
        ("我用现金支付的。", "好的，我看到这笔现金付款了。"),
        "你们退款一般多久能到账？",
    ),
    (
        ("是给学校买的。", "好的，已经帮您登记学校信息了。"),
        ("你好", "您好！"),
        "你们的电子发票几天能开出来？",
    ),
]

HARMLESS: list[Pair] = [
    ("Hi", "Good morning!", "What is the tallest mountain in Africa?"),
    ("hello there", "Hey", "How does a steam engine work in winter?"),
    ("Thanks!", "Hello", "Who wrote Pride and Prejudice?"),
    ("How are you today?", "hi", "What is the freezing point of water?"),
    ("What a lovely day!", "Hi", "Is the Nile longer than the Amazon?"),
    ("Nice to meet you", "hello", "Which planet is nearest to the Sun?"),
    ("haha ok", "Hi", "How many days does February have in a leap year?"),
    ("ok cool", "hey", "Do you deliver large parcels to the islands?"),
    ("Are you there?", "Hi there", "What are your opening hours on Sundays?"),
    ("Good evening", "Good morning", "What is your returns policy for sale items?"),
    ("你好", "您好！", "世界上最高的山峰是哪座？"),
    ("在吗", "哈喽", "月亮是恒星还是卫星？"),
    ("谢谢", "早上好", "你们周末几点开门？"),
    ("哈哈", "你好", "退款一般需要多长时间到账？"),
    ("辛苦了", "嗨", "怎样才能学好游泳这项运动？"),
]
ANSWERED: list[tuple[Exchange, Exchange, str]] = [
    (
        ("What is the capital of Peru?", "Lima."),
        ("Who painted Guernica?", "Pablo Picasso, in 1937."),
        "What is the boiling point of ethanol?",
    ),
    (
        ("How many legs does a spider have?", "Eight."),
        ("hi", "Hello!"),
        "Who wrote Pride and Prejudice?",
    ),
    (
        ("Tell me a joke", "Why did the hen cross the road? To reach the other side."),
        ("hi", "Hello! How can I help you today?"),
        "What is the population of Norway?",
    ),
    (
        ("Write a haiku on rain.", "Drops on the window, a long grey afternoon, tea grows cold."),
        ("What does APR stand for?", "Annual percentage rate."),
        "How far away is the Moon from Earth?",
    ),
    (
        ("Is there parking?", "Yes, behind the church."),
        ("Do you take cards?", "Yes, all of them."),
        "What time do you open on Saturdays?",
    ),
    (
        ("my parcel hasn't turned up", "Sorry! The courier tries again tomorrow morning."),
        ("do you wrap presents?", "Yes, for three pounds."),
        "Do you sell gift cards?",
    ),
    (
        ("the app keeps crashing on me", "Please update it in the store, that mends it."),
        ("hello", "Hello!"),
        "Do you offer a student discount?",
    ),
    (
        ("my tap drips all night", "A plumber comes by on Tuesday between nine and noon."),
        ("Where do I pay my rent?", "In the portal, under Payments."),
        "What is your policy on pets in rented flats?",
    ),
    (
        ("our order came without the sauce", "So sorry, the money goes back to the card today."),
        ("is there wifi?", "Yes, free for guests."),
        "Do you have a table for eight on Sundays?",
    ),
    (
        ("my discount code fails", "It is for full-price items only, I am afraid."),
        ("What sizes do the boots come in?", "From 3 to 12."),
        "How long do refunds take to reach my card?",
    ),
    (
        ("秘鲁的首都是哪里？", "利马。"),
        ("谁画了格尔尼卡？", "毕加索，一九三七年。"),
        "世界上最高的山峰是哪座？",
    ),
    (
        ("有停车场吗？", "有的，在楼后面。"),
        ("可以刷卡吗？", "可以的，都支持。"),
        "你们周末几点开门？",
    ),
    (
        ("哪本算法书最好？", "《算法导论》是很经典的一本。"),
        ("你好", "您好！"),
        "光在真空里的速度是多少？",
    ),
    (("靴子有几个颜色？", "黑色和棕色。"), ("在吗", "在的亲。"), "买满多少钱可以包邮到新疆？"),
    (("会员卡怎么暂停？", "在小程序里可以暂停。"), ("你好", "您好"), "停车场前两小时收费吗？"),
]
