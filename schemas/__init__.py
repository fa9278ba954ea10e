"""What a record is: topics, dataclasses, Delta tables, semantic-convention names. Imports nothing of ours."""
