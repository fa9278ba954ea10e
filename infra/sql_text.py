"""SQL as a person types it: where a statement ends, and what an engine's error means in a sentence."""

import re

# A quoted text (a backslash guards what follows it), a comment, or the end of a statement. What is opened and not yet
# closed goes on to the end of the text.
_QUOTED = r"""'(?:\\.|[^'\\])*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)|`[^`]*(?:`|\Z)"""
_COMMENT = r"--[^\n]*|/\*.*?(?:\*/|\Z)"
_PIECES = re.compile(rf"(?P<quoted>{_QUOTED})|(?P<comment>{_COMMENT})|(?P<end>;)", re.DOTALL)
# Where Spark's messages turn to plans and Java.
_PLAN = re.compile(r"\n(?=['+:]|[A-Z][A-Za-z]+ \[|\tat )")
_STATE = re.compile(r" SQLSTATE: \w+")
_CLASS = re.compile(r"^\s*\[[\w.]+\] ")


def split_statements(text: str) -> tuple[list[str], str]:
    """Return the statements that end in `text`, and the rest that does not: stripped, without `;` and comments.

    >>> split_statements("select ';' -- a; b")
    ([], "select ';'")
    >>> split_statements("select 1; select 'a;")
    (['select 1'], "select 'a;")
    """
    pieces, start, statements = [], 0, []
    for match in _PIECES.finditer(text):
        pieces.append(text[start : match.start()])
        start = match.end()
        if match["quoted"]:
            pieces.append(match["quoted"])
        elif match["end"]:
            statements.append("".join(pieces).strip())
            pieces = []
    rest = "".join([*pieces, text[start:]]).strip()
    return [statement for statement in statements if statement], rest


def plain_message(error: str) -> str:
    """Return the sentences of a Spark error, without error class, SQL state, plan and Java frames.

    >>> plain_message("[UNRESOLVED] No column `x`. SQLSTATE: 42703; line 1 pos 7;\\n'Project ['x]\\n+- OneRowRelation")
    'No column `x`. (line 1 pos 7)'
    """
    text = _CLASS.sub("", _STATE.sub("", _PLAN.split(error.strip(), maxsplit=1)[0]))
    text = re.sub(r";? ?\(?(line \d+,? pos \d+)\)?;?", r" (\1)", text)
    return re.sub(r"[ \t]+", " ", text).strip()
