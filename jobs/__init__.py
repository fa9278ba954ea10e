"""One file a job: the topology and nothing else. Addresses come from configuration."""
