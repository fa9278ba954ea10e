"""The alert job's SQL as committed, and values that would break a careless split."""

from pathlib import Path

from jobs.alert import statements, validate
from jobs.kafka_client import KafkaClient
from jobs.settings import JobSettings

GOLDEN = Path(__file__).parent.parent / "golden" / "alerts"


def test_tables_as_committed() -> None:
    _, settings = validate(["--bootstrap-servers", "kafka.example:9092", "--topic-prefix", "eu-", "--name-suffix=-b"])
    assert ";\n\n".join(statements(settings)) + ";\n" == (GOLDEN / "tables.sql").read_text()


def test_certificates_and_credentials_survive(tmp_path: Path) -> None:
    certificate = "-----BEGIN CERTIFICATE-----\nMIIB;\n--x\n-----END CERTIFICATE-----\n"
    (tmp_path / "cert.pem").write_text(certificate)
    client = KafkaClient(
        "kafka.example:9093",
        {
            "sasl.mechanism": "PLAIN",
            "sasl.username": "me",
            "sasl.password": "{pass};\nword",
            "ssl.certificate.location": str(tmp_path / "cert.pem"),
            "ssl.key.location": str(tmp_path / "cert.pem"),
        },
    )
    found = statements(JobSettings(client))
    assert len(found) == 6
    for statement in found:
        assert certificate in statement
        assert '{pass};\nword";' in statement
