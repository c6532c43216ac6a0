"""Fit the intents' weights for the bundled embedder, and tell how right they are.

usage: python -m tests.bench.fit_intents SETS_FOLDER EMBEDDER_FOLDER [--vectors FILE] [--write]

Trained on our own examples (``semantic_layer/data/intent_examples.*.json``), on three quarters of
the questions written for Strata that were labelled special or plain (``AUTHORED``; which of the
plain intents a plain one has is what a fit without them says) and, mapped to our intents, parts of
clinc150's and banking77's training texts; measured on their test texts, on the other quarter, on
clinc150's out-of-scope texts and on question sets without intents, where a special intent is a
false alarm. ``--vectors`` keeps what was embedded, so that a broken run goes on.
"""

import csv
import json
import os
import random
import sys
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from semantic_layer.intents.intent import SPECIAL, detect_intent
from semantic_layer.intents.intent_classifier import IntentClassifier, LinearIntents, Rows, features
from semantic_layer.intents.intent_learning import BUNDLED, shipped_examples
from semantic_layer.models.bert_encoder import BertEncoder
from tests.bench import pair_sets

DATA = Path(__file__).parents[2] / "semantic_layer" / "data"
AUTHORED = Path(__file__).parent / "semantic" / "authored" / "intents.jsonl"
PLAIN = "plain"
CLINC = {
    "time_sensitive": "weather time date traffic flight_status exchange_rate next_holiday "
    "travel_alert how_busy",
    "personal": "balance bill_balance bill_due application_status calendar credit_limit "
    "credit_score find_phone income last_maintenance meeting_schedule min_payment order_status "
    "payday pto_balance pto_request_status pto_used reminder rewards_balance routing shopping_list "
    "spending_history todo_list transactions user_name",
    "transactional": "transfer pay_bill book_flight book_hotel restaurant_reservation "
    "cancel_reservation car_rental alarm timer text make_call schedule_meeting "
    "schedule_maintenance reminder_update calendar_update shopping_list_update todo_list_update "
    "update_playlist play_music next_song smart_home freeze_account report_lost_card order "
    "order_checks change_accent change_ai_name change_language change_speed change_user_name "
    "change_volume reset_settings pto_request uber sync_device share_location whisper_mode "
    "travel_notification flip_coin roll_dice",
    "translation": "translate",
    "creative": "tell_joke",
    "factual": "definition distance measurement_conversion calculator spelling calories "
    "nutrition_info timezone international_visa plug_type meaning_of_life fun_fact vaccines "
    "ingredients_list",
    "general": "recipe cook_time ingredient_substitution meal_suggestion travel_suggestion "
    "restaurant_suggestion carry_on food_last tire_change oil_change_how oil_change_when "
    "jump_start gas_type improve_credit_score direct_deposit taxes replacement_card_duration "
    "international_fees greeting goodbye thank_you are_you_a_bot how_old_are_you "
    "what_is_your_name what_are_your_hobbies what_can_i_ask_you where_are_you_from "
    "who_do_you_work_for who_made_you do_you_have_pets yes no maybe repeat",
}
BANKING = {
    "personal": "balance_not_updated_after_bank_transfer "
    "balance_not_updated_after_cheque_or_cash_deposit card_payment_not_recognised "
    "cash_withdrawal_not_recognised direct_debit_payment_not_recognised pending_card_payment "
    "pending_cash_withdrawal pending_top_up pending_transfer transaction_charged_twice "
    "Refund_not_showing_up transfer_not_received_by_recipient top_up_reverted",
    "general": "age_limit apple_pay_or_google_pay atm_support card_acceptance country_support "
    "fiat_currency_support supported_cards_and_currencies top_up_limits transfer_timing "
    "verify_my_identity why_verify_identity visa_or_mastercard getting_spare_card "
    "getting_virtual_card receiving_money exchange_via_app edit_personal_details "
    "disposable_card_limits top_up_by_bank_transfer_charge top_up_by_card_charge verify_top_up "
    "passcode_forgotten",
}
NUM_CLINC, NUM_BANKING = 24, 12  # texts of each of their intents
NUM_CLINC_TEST, NUM_BANKING_TEST, NUM_UNLABELLED = 6, 3, 250
AUTHORED_SHARE, SPECIAL_TIMES = 0.6, 8.0  # one in fifty is special
OWN_SHARES = {"en": 3.0, "zh": 5.0}
PROBES = (
    "What is the capital of Australia?", "Transfer £50 to Anna", "我的余额是多少？",
    "What's the weather like today?",
)  # fmt: skip
STATEMENT = (
    "Softmax regression over multilingual-e5-small's vectors and the cue weights of "
    "intents.*.json. Fitted on our own (intent_examples.*.json and 4,056 questions of "
    "tests/bench/semantic/authored), on 24 training texts "
    "of each of 118 intents of clinc150 (CC BY 3.0, Larson et al. 2019) and on 12 of each of 35 of "
    "banking77 (CC BY 4.0, PolyAI), mapped to our intents; none of their text is kept here. "
    "'examples' are the vectors of our own examples, in eight bits."
)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text of one of our intents, or of none that is known."""

    text: str
    intent: str | None
    share: float = 1.0


class Vectors:
    """Embeds each text once; keeps the rows in a file where one is named."""

    def __init__(self, encoder: BertEncoder, file: Path | None) -> None:
        self._encoder, self._file = encoder, file
        self._rows: dict[str, Rows] = {}
        if file is not None and file.exists():
            with np.load(file) as kept:
                self._rows = dict(zip(kept["texts"].tolist(), kept["rows"], strict=True))

    def of(self, texts: Sequence[str]) -> Rows:
        missing = sorted({text for text in texts if text not in self._rows}, key=len)
        for start in range(0, len(missing), 16):
            batch = missing[start : start + 16]
            self._rows.update(zip(batch, self._encoder.encode(batch), strict=True))
            if start % 640 == 0:
                self._keep()
        self._keep()
        return np.stack([self._rows[text] for text in texts])

    def _keep(self) -> None:
        if self._file is not None:
            names = np.array(list(self._rows))
            np.savez(self._file, texts=names, rows=np.stack(list(self._rows.values())))


def own() -> list[Labelled]:
    """Return our own examples."""
    return [
        Labelled(text, intent, OWN_SHARES["zh" if not text.isascii() and "£" not in text else "en"])
        for intent, text in zip(*shipped_examples(), strict=True)
    ]


def authored(*, held_out: bool) -> list[Labelled]:
    """Return the labelled questions written for Strata; every fourth is held out."""
    with AUTHORED.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [
        Labelled(
            row["text"],
            row["intent"],
            AUTHORED_SHARE * (1.0 if row["intent"] == PLAIN else SPECIAL_TIMES),
        )
        for at, row in enumerate(rows)
        if (at % 4 == 0) == held_out
    ]


def named(rows: Sequence[Labelled], seed: LinearIntents, vectors: Vectors) -> list[Labelled]:
    """Give plain texts the likeliest of the plain intents."""
    result = []
    for row, vector in zip(rows, vectors.of([row.text for row in rows]), strict=True):
        scores = seed.scores(features(row.text, vector))
        likeliest = max((name for name in scores if name not in SPECIAL), key=scores.__getitem__)
        intent = likeliest if row.intent == PLAIN else row.intent
        result.append(Labelled(row.text, intent, row.share))
    return result


def clinc(folder: Path, part: str, limit: int) -> list[Labelled]:
    """Return so many texts of each of clinc150's intents."""
    data = json.loads((folder / "clinc150" / "data_full.json").read_text(encoding="utf-8"))
    return _mapped([(text, intent) for text, intent in data[part]], CLINC, limit)


def banking(folder: Path, part: str, limit: int) -> list[Labelled]:
    """Return so many texts of each of banking77's intents."""
    path = folder / "banking77" / f"{part}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(row["text"], row["category"]) for row in csv.DictReader(file)]
    return _mapped(rows, BANKING, limit)


def unlabelled(folder: Path) -> dict[str, list[Labelled]]:
    """Return texts of which hardly any is special."""
    sets = {
        "question_pairs_dev": [p.one for p in pair_sets.question_pairs(folder)],
        "quora": [p.one for p in pair_sets.quora(folder)[20_000:21_200]],
        "lcqmc": [p.one for p in pair_sets.lcqmc(folder)[:600]],
        "clinc_oos": [row.text for row in clinc(folder, "oos_test", 10**6)],
    }
    return {
        name: [Labelled(text, None) for text in texts[:NUM_UNLABELLED]]
        for name, texts in sets.items()
    }


def _mapped(rows: Sequence[tuple[str, str]], table: dict[str, str], limit: int) -> list[Labelled]:
    intents = {theirs: ours for ours, names in table.items() for theirs in names.split()}
    by_intent: dict[str, list[str]] = defaultdict(list)
    for text, intent in rows:
        by_intent[intent].append(text)
    rng = random.Random(3)
    chosen = []
    for intent, texts in by_intent.items():
        rng.shuffle(texts)
        chosen += [Labelled(text, intents.get(intent)) for text in texts[:limit]]
    return chosen


def fit(rows: Sequence[Labelled], vectors: Vectors) -> LinearIntents:
    """Fit to the rows that have an intent."""
    known = [row for row in rows if row.intent is not None]
    found = vectors.of([row.text for row in known])
    x = np.stack([features(row.text, v) for row, v in zip(known, found, strict=True)])
    return LinearIntents.fit(x, [str(row.intent) for row in known], [row.share for row in known])


def cross_validated(vectors: Vectors, more: Sequence[Labelled]) -> None:
    """Print how right the examples of ours are told that a fit has not seen."""
    rows, told = own(), Counter[tuple[str, bool]]()
    for fold in range(5):
        names = IntentClassifier(
            fit([r for i, r in enumerate(rows) if i % 5 != fold] + [*more], vectors)
        )
        for at, row in enumerate(rows):
            if at % 5 == fold:
                (vector,) = vectors.of([row.text])
                language = "zh" if row.share == OWN_SHARES["zh"] else "en"
                told[language, names(row.text, vector) == row.intent] += 1
    for language in OWN_SHARES:
        right = told[language, True] / (told[language, True] + told[language, False])
        print(f"own examples, {language}, 5-fold: {right:.1%} right")


def measure(name: str, rows: Sequence[Labelled], names: IntentClassifier, vectors: Vectors) -> None:
    """Print the share of right intents, by the classifier and by words alone."""
    known = [row for row in rows if row.intent is not None]
    found = vectors.of([row.text for row in known])
    told = [names(row.text, vector) for row, vector in zip(known, found, strict=True)]
    words = [detect_intent(row.text) for row in known]
    wanted = [row.intent for row in known]
    print(f"{name}, {len(known)} texts: {_right(told, wanted):.1%} right; words alone "
          f"{_right(words, wanted):.1%}")  # fmt: skip
    for intent in SPECIAL:
        for how, given in (("", told), (" by words", words)):
            both = sum(g == w == intent for g, w in zip(given, wanted, strict=True))
            recall = both / max(1, wanted.count(intent))
            precision = both / max(1, given.count(intent))
            print(f"  {intent}{how}: recall {recall:.1%}, precision {precision:.1%}")


def alarms(name: str, rows: Sequence[Labelled], names: IntentClassifier, vectors: Vectors) -> None:
    """Print the share of texts that are taken for special ones."""
    found = vectors.of([row.text for row in rows])
    told = [names(row.text, vector) for row, vector in zip(rows, found, strict=True)]
    shares = ", ".join(f"{intent} {told.count(intent) / len(told):.1%}" for intent in SPECIAL)
    print(f"{name}, {len(rows)} texts: {shares}")
    for row, intent in zip(rows, told, strict=True):
        if intent in SPECIAL and name == "question_pairs_dev":
            print(f"  {intent}: {row.text[:90]}")


def write(seed: LinearIntents, vectors: Vectors) -> None:
    """Write the data file that ships."""
    _, texts = shipped_examples()
    found = vectors.of(texts)
    scale = 127 / float(np.abs(found).max())
    probes = [
        {
            "text": text,
            "scores": {n: round(p, 4) for n, p in seed.scores(features(text, v)).items()},
        }
        for text, v in zip(PROBES, vectors.of(PROBES), strict=True)
    ]
    data = {
        "statement": STATEMENT,
        "names": seed.names,
        "probes": probes,
        "weights": _encoded(seed.weights.astype("<f2")),
        "bias": _encoded(seed.bias[None].astype("<f4")),
        "examples_scale": scale,
        "examples": _encoded(np.round(found * scale).astype("i1")),
    }
    (DATA / BUNDLED).write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _encoded(rows: Any) -> dict[str, Any]:
    return {"shape": rows.shape, "base64": b64encode(rows.tobytes()).decode()}


def _right(told: Sequence[str], wanted: Sequence[str | None]) -> float:
    return sum(t == w for t, w in zip(told, wanted, strict=True)) / len(told)


def main(arguments: list[str]) -> None:
    """Fit, measure and, where that is asked for, write."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    folder, embedder = Path(arguments[0]), Path(arguments[1])
    kept = Path(arguments[arguments.index("--vectors") + 1]) if "--vectors" in arguments else None
    vectors = Vectors(BertEncoder(embedder), kept)
    more = clinc(folder, "train", NUM_CLINC) + banking(folder, "train", NUM_BANKING)
    more = [row for row in more if row.intent is not None]
    first = fit([*own(), *more], vectors)
    more += named(authored(held_out=False), first, vectors)
    seed = fit([*own(), *more], vectors)
    names = IntentClassifier(seed)
    if "--write" in arguments:
        write(seed, vectors)
    for name, rows in unlabelled(folder).items():
        alarms(name, rows, names, vectors)
    measure("authored, held out", named(authored(held_out=True), first, vectors), names, vectors)
    measure("clinc150 test", clinc(folder, "test", NUM_CLINC_TEST), names, vectors)
    measure("banking77 test", banking(folder, "test", NUM_BANKING_TEST), names, vectors)
    cross_validated(vectors, more)


if __name__ == "__main__":
    main(sys.argv[1:])
