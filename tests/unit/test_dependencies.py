"""The file of declared dependencies: what it gives, and what it is refused for."""

import pytest

from jobs.dependencies import load_dependencies
from jobs.kafka_client import ConfigurationError


def test_what_is_declared_is_found(tmp_path):
    file = tmp_path / "dependencies.yaml"
    file.write_text("services:\n  chat: [retriever, vllm]\n  retriever: [index]\n  idle:\n")
    declared = load_dependencies(file)
    found = [declared.distance("chat", other) for other in ("chat", "vllm", "index", "idle", "unknown")]
    assert found == [0, 1, 2, None, None]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("", "is empty"),
        ("service: {}", "is not a known field"),
        ("services: [chat]", "is no mapping"),
        ("services: {chat: retriever}", "is no list"),
        ("services: {chat: [1]}", "is no text"),
        ("services: {true: [chat]}", "is no text"),
        ("services: {chat: [chat]}", "calls itself"),
        ("services: {chat: [a], chat: [b]}", "stands twice"),
    ],
)
def test_what_is_wrong_is_refused_with_file_and_remedy(tmp_path, body, problem):
    file = tmp_path / "dependencies.yaml"
    file.write_text(body)
    with pytest.raises(ConfigurationError, match=problem) as refused:
        load_dependencies(file)
    assert str(file) in str(refused.value)
