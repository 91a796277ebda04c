"""Other people's clients and frameworks, with the line in front of every request they make."""
