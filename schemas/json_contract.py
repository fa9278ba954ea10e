"""A JSON Schema as a contract: the first field of a document that breaks it, with the schema's own words as remedy."""

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator, ValidationError


class Fault(NamedTuple):
    """A field (`a.0.b`, or `(root)`), what is wrong with it, and what to do."""

    field: str
    problem: str
    remedy: str


def first_fault(document: Any, schema_name: str) -> Fault | None:
    """Return the first fault of `document` under the schema `schema_name` of this package; None where it holds.

    The remedy is the description of the field in the schema, or of the nearest one around it that has any. O(document).

    >>> first_fault({}, "model_card.schema.json").field
    'schema_version'
    """
    fault = next(iter(sorted(_validator(schema_name).iter_errors(document), key=_depth_first)), None)
    return None if fault is None else _explained(fault, schema_name)


@cache
def _validator(schema_name: str) -> Draft202012Validator:
    # A package resource, not a path: on a cluster the packages are inside a zip.
    schema = json.loads(files("schemas").joinpath(schema_name).read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def _depth_first(error: ValidationError) -> tuple[list[str], str]:
    return [str(part) for part in error.absolute_path], error.message


def _explained(error: ValidationError, schema_name: str) -> Fault:
    """Name the field a person has to mend; what to write there is the schema's own description of it."""
    path = list(error.absolute_path)
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        path, problem = [*path, missing], "is missing"
    elif error.validator == "additionalProperties":
        path, problem = [*path, min(set(error.instance) - set(error.schema["properties"]))], "is not a known field"
        return Fault(_dotted(path), problem, f"Known here: {', '.join(error.schema['properties'])}")
    else:
        problem = error.message
    return Fault(_dotted(path), problem, _description(path, schema_name))


def _dotted(path: list[str | int]) -> str:
    return ".".join(map(str, path)) or "(root)"


def _description(path: list[str | int], schema_name: str) -> str:
    """The schema's words for the field at `path`, or for the nearest field around it that has any."""
    schema: dict[str, Any] = _validator(schema_name).schema
    found = f"Write one JSON object with the fields of {schema_name}."
    for part in path:
        schema = schema.get("items", {}) if isinstance(part, int) else schema.get("properties", {}).get(part, {})
        found = schema.get("description", found)
    return found
