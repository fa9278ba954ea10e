"""Names of attributes whose value is personal data whatever it is: none of them is kept among free-form attributes.

A masked text can't stand in a column of numbers, so such an attribute is left out (and counted), not masked.
"""

import re

_PERSONAL = re.compile(
    r"(?:^|[._\-])(?:phone|mobile|msisdn|telephone|tel|ssn|sin|iban|passport|national_?id|id_?card|identity_?number|"
    r"credit_?card|card_?number|pan|cvv|tax_?id|bank_?account|account_?number|birth_?date|date_?of_?birth|dob|wechat|"
    r"imei|imsi)(?:[._\-](?:number|no|id|value))?$",
    re.IGNORECASE,
)


def is_personal_key(key: str) -> bool:
    """Whether an attribute of this name holds personal data.

    >>> is_personal_key("user.phone"), is_personal_key("gpu.telemetry"), is_personal_key("cardNumber")
    (True, False, True)
    """
    return _PERSONAL.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key)) is not None
