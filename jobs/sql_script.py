"""SQL files of `jobs/sql/`: cut into statements first, filled in afterwards."""

from importlib.resources import files


def sql_statements(file_name: str, **values: str) -> list[str]:
    """Return the statements of `jobs/sql/<file_name>` in order, `{name}` replaced by `values`, comment lines left out.

    The file is cut at `;` at a line's end before anything is filled in: a value may hold semicolons (a JAAS
    configuration) and lines that start with dashes (a PEM certificate). Raises KeyError for a name without a value.
    """
    text = files("jobs").joinpath("sql", file_name).read_text()
    code = "\n".join(line for line in text.splitlines() if not line.startswith("--")) + "\n"
    return [statement.strip().format(**values) for statement in code.split(";\n") if statement.strip()]
