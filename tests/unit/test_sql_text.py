"""SQL as it is typed, and what the engine's errors come to."""

import pytest

from infra.sql_text import plain_message, split_statements


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("", [], ""),
        ("select 1", [], "select 1"),
        ("select 1;", ["select 1"], ""),
        ("select 1;;  ;", ["select 1"], ""),
        ("select ';'; select 2", ["select ';'"], "select 2"),
        (r"select 'it\'s;'; x", [r"select 'it\'s;'"], "x"),
        ('select "a;b"; x', ['select "a;b"'], "x"),
        ("select `a;b`; x", ["select `a;b`"], "x"),
        ("-- a; b\nselect 1;", ["select 1"], ""),
        ("select 1 /* ; */ + 1;", ["select 1  + 1"], ""),
        ("-- nothing", [], ""),
        ("select 'open;", [], "select 'open;"),
        ("select 1 /* open;", [], "select 1"),
        ("select '-- no comment';", ["select '-- no comment'"], ""),
    ],
)
def test_statements_end_at_a_semicolon_outside_quotes_and_comments(text: str, statements: list[str], rest: str) -> None:
    assert split_statements(text) == (statements, rest)


def test_a_message_is_left_without_plan_and_java() -> None:
    error = (
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `x` cannot be found. SQLSTATE: 42P01; line 1 pos 14;\n"
        "'Project [*]\n+- 'UnresolvedRelation [x], [], false\n\n\tat org.apache.spark.sql.Foo.bar(Foo.scala:1)"
    )
    assert plain_message(error) == "The table or view `x` cannot be found. (line 1 pos 14)"


def test_a_syntax_error_keeps_the_place_it_points_at() -> None:
    error = (
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'form'. SQLSTATE: 42601 (line 1, pos 9)\n\n"
        "== SQL ==\nselect * form x\n---------^^^\n"
    )
    shown = plain_message(error)
    assert shown.startswith("Syntax error at or near 'form'. (line 1, pos 9)")
    assert shown.endswith("select * form x\n---------^^^")
