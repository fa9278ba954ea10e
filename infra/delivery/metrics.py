"""What forwarders say of themselves, for Prometheus."""

from collections.abc import Sequence

from infra.delivery.forwarder import Forwarder
from infra.prometheus_text import Family, exposition


def forward_page(forwarders: Sequence[Forwarder]) -> bytes:
    """Return the metrics of all targets; `slacktide_forward_away_seconds` above 0 means that a target is away."""

    def family(name: str, kind: str, text: str, values: Sequence[float]) -> Family:
        labels = [{"target": forwarder.target.name} for forwarder in forwarders]
        return Family(f"slacktide_forward_{name}", kind, text, tuple(zip(labels, values, strict=True)))

    figures = [(forwarder, forwarder.figures) for forwarder in forwarders]
    away = [
        0.0 if f.waiting_since_ms is None else max(0.0, (forwarder.clock() - f.waiting_since_ms) / 1000)
        for forwarder, f in figures
    ]
    not_resent = [forwarder.firing.not_kept for forwarder in forwarders]
    return exposition(
        [
            family("taken_total", "counter", "Transitions that the target took", [f.taken for _, f in figures]),
            family("resent_total", "counter", "Firing alerts posted again", [f.resent for _, f in figures]),
            family("refused_total", "counter", "Alerts refused for good", [f.refused for _, f in figures]),
            family("unreadable_total", "counter", "Records that are no alert", [f.unreadable for _, f in figures]),
            family("failed_posts_total", "counter", "Posts to be tried again", [f.failed_posts for _, f in figures]),
            family("firing", "gauge", "Alerts posted again while they fire", [len(f.firing) for f in forwarders]),
            family("not_resent_total", "counter", "Alerts too many to be posted again", not_resent),
            family("away_seconds", "gauge", "How long the target has taken nothing", away),
        ]
    )
