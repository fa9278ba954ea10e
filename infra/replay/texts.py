"""Made-up prompts and responses for a replay, in English and Chinese, some with made-up personal data in them.

Their length goes with the request's token counts. They are drawn apart from everything else, so that text changes no
other value of a request.
"""

import random

import numpy as np
import orjson
from numpy.typing import NDArray

from infra.replay.personal_data import MAKERS, value_of
from infra.replay.request_block import RequestBlock
from udfs.privacy.kinds import Kind

TOKENS_A_SENTENCE, MOST_SENTENCES = 14, 24
ASKED = (
    "Please summarise the attached report and keep the figures as they are.",
    "How do I reset the router after the power has been out?",
    "Explain the difference between a list and a tuple, with an example.",
    "Translate the paragraph into formal German.",
    "Which of these two contracts has the shorter notice period?",
    "Write a polite reply to the customer who complained about the delay.",
    "What would change if we moved the deadline by two weeks?",
    "请把下面这段话翻译成英文，并保持语气正式。",
    "帮我写一封邮件，说明为什么订单会晚到三天。",
    "这段代码为什么在空列表上会报错？请给出修改后的版本。",
    "总结一下会议的三个要点，每点不超过二十个字。",
    "推荐一个适合周末带孩子去的地方，并说明理由。",
)
ANSWERED = (
    "Of course. The main point is that both versions give the same result.",
    "First check the cable, then hold the button for ten seconds.",
    "The shorter period is that of the second contract: thirty days.",
    "Here is a version that keeps the figures and drops the rest.",
    "A list can be changed after it is made, a tuple can't.",
    "好的，下面是修改后的版本，请看第三行的变化。",
    "可以。先检查网线，再按住按钮十秒。",
    "主要有三点：时间、费用和人手。",
)
MENTIONS: dict[Kind, tuple[str, ...]] = {
    Kind.EMAIL: ("My address is {}.", "请发到{}，谢谢。"),
    Kind.PHONE: ("You can call me at {}.", "我的手机号是{}。"),
    Kind.CARD: ("The card was {}.", "卡号：{}。"),
    Kind.IBAN: ("Please refund it to {}.", "请退款到{}。"),
    Kind.NATIONAL_ID: ("My id number is {}.", "证件号：{}。"),
    Kind.IP_ADDRESS: ("It came from {} again.", "来自{}的访问失败了。"),
    Kind.TOKEN: ("I used the key {} for it.", "我用的密钥是{}。"),
}


def add_texts(block: RequestBlock, rng: random.Random, personal_share: float) -> list[str]:
    """Give each request of `block` a prompt and a response; return the personal values planted, in order.

    A value is planted in that share of prompts, and again in the answers of half of those.
    """
    planted: list[str] = []
    prompts, responses = [], []
    counts = (_sentences(block.fields[name]) for name in ("input_tokens", "output_tokens"))
    for asked, answered in zip(*counts, strict=True):
        prompt, response = rng.choices(ASKED, k=asked), rng.choices(ANSWERED, k=answered)
        if rng.random() < personal_share:
            kind = rng.choice(list(MAKERS))
            value = value_of(kind, rng)
            planted.append(value)
            prompt.insert(rng.randrange(len(prompt) + 1), rng.choice(MENTIONS[kind]).format(value))
            if rng.random() < 0.5:
                response.append(rng.choice(MENTIONS[kind]).format(value))
        prompts.append(_messages("user", " ".join(prompt)))
        responses.append(_messages("assistant", " ".join(response)))
    block.fields["prompt"], block.fields["response"] = np.array(prompts), np.array(responses)
    return planted


def _sentences(tokens: NDArray[np.int64]) -> list[int]:
    counted: list[int] = np.clip(tokens // TOKENS_A_SENTENCE, 1, MOST_SENTENCES).tolist()
    return counted


def _messages(role: str, text: str) -> str:
    """Return one message as `gen_ai.input.messages` and `gen_ai.output.messages` have it, in a text."""
    return orjson.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}]).decode()
