"""Adjacent versions of a model: how far apart their answers (spec D6) and their graphs (spec D7) are."""
