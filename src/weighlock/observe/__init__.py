"""Events → whoever wants them: the decision log."""
