"""Graph passes: a traced graph is rewritten before XLA gets it (`pipeline`)."""
