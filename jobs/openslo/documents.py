"""The documents of an OpenSLO file: kinds, names, metadata, and references from one to another.

Source: OpenSLO v1 (github.com/OpenSLO/OpenSLO), "General Schema" and "Object Types".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jobs.yaml_fields import (
    REQUIRED,
    Place,
    WrongValueError,
    fields_of,
    nearest,
    one_of,
    optional,
    parsed_documents,
    text,
)

API_VERSION = "openslo/v1"
KINDS = ("SLO", "SLI", "Service", "DataSource", "AlertPolicy", "AlertCondition", "AlertNotificationTarget")
PREFIX = "slacktide.dev/"


def mapping(value: Any) -> dict[str, Any]:
    """A mapping of anything."""
    if not isinstance(value, dict):
        raise WrongValueError("is no mapping", "Write `name: value`, one a line")
    return value


def scalars(value: Any) -> dict[str, str]:
    """A mapping of texts; numbers and true or false are taken as they are written."""
    found = {}
    for name, entry in mapping(value).items():
        if not isinstance(entry, str | int | float):
            raise WrongValueError(f"{name} is no text", "Put its value in quotes")
        found[str(name)] = str(entry).lower() if isinstance(entry, bool) else str(entry)
    return found


_DOCUMENT = {
    "apiVersion": (one_of((API_VERSION,)), REQUIRED),
    "kind": (one_of(KINDS), REQUIRED),
    "metadata": (mapping, REQUIRED),
    "spec": (mapping, REQUIRED),
}
_METADATA = {
    "name": (text, REQUIRED),
    "displayName": (optional(text), None),
    "labels": (mapping, {}),
    "annotations": (scalars, {}),
}


@dataclass(frozen=True)
class Document:
    """One object of the file. `annotations` are Slacktide's own, without their prefix; others are not ours to read."""

    kind: str
    name: str
    display_name: str
    annotations: dict[str, str]
    spec: dict[str, Any]
    place: Place

    @property
    def spec_place(self) -> Place:
        """Where its spec is."""
        return self.place.field("spec")

    def annotation_place(self, name: str) -> Place:
        """Where one of its annotations is."""
        return self.place.field(f"metadata.annotations[{PREFIX}{name}]")

    def check_annotations(self, known: tuple[str, ...]) -> None:
        """Refuse an annotation of ours that nobody reads: it is misspelt."""
        for name in self.annotations:
            if name not in known:
                self.annotation_place(name).refuse("is not known", nearest(name, known))


@dataclass(frozen=True)
class Documents:
    """All objects of a file, by kind and name."""

    place: Place
    by_name: dict[tuple[str, str], Document]

    def of(self, kind: str) -> Iterator[Document]:
        """Yield those of one kind, in the order of the file."""
        return (document for document in self.by_name.values() if document.kind == kind)

    def get(self, kind: str, name: str, place: Place) -> Document:
        """Return the object that `place` refers to, refusing it where there is none."""
        found = self.by_name.get((kind, name))
        if found is None:
            known = [document.name for document in self.of(kind)]
            remedy = nearest(name, known) if known else f"Add a document of kind {kind} with this name"
            place.refuse(f"there is no {kind} called {name!r}", remedy)
        return found


def read_documents(place: Place) -> Documents:
    """Read every document of the file. Raises ConfigurationError naming file, field, problem and remedy."""
    found: dict[tuple[str, str], Document] = {}
    bodies = parsed_documents(place)
    for number, body in enumerate(bodies):
        document = document_of(place.field(f"documents[{number}]") if len(bodies) > 1 else place, body)
        key = document.kind, document.name
        if key in found:
            document.place.field("metadata.name").refuse(
                f"there are two of kind {document.kind} called {document.name!r}", "Give each a name of its own"
            )
        found[key] = document
    if not found:
        place.refuse("holds no document", f"Write one of kind SLO, apiVersion {API_VERSION}")
    return Documents(place, found)


def document_of(place: Place, body: Any) -> Document:
    """Check one object's frame."""
    if isinstance(body, dict) and str(body.get("apiVersion", "")).startswith(("openslo/v1alpha", "openslo/v1beta")):
        place.field("apiVersion").refuse(f"{body['apiVersion']} is an earlier version", f"Convert it to {API_VERSION}")
    values = fields_of(place, body, _DOCUMENT)
    metadata = metadata_of(place.field("metadata"), values["metadata"])
    own = {
        name.removeprefix(PREFIX): value for name, value in metadata["annotations"].items() if name.startswith(PREFIX)
    }
    shown = metadata["displayName"] or metadata["name"]
    return Document(values["kind"], metadata["name"], shown, own, values["spec"], place)


def metadata_of(place: Place, body: Any) -> dict[str, Any]:
    """Check the metadata of an object, or of an indicator that stands inside one."""
    values = fields_of(place, body, _METADATA)
    if len(values["name"]) > 255:
        place.field("name").refuse("is longer than 255 characters", "Give a shorter name")
    return values
