"""Which requests are scored: by the hash of the trace id, and more of them where traffic is low."""
