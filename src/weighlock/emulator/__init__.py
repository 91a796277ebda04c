"""A Gemini API stand-in on loopback: Files life cycle, countTokens, usage, scripted answers, faults, a clock to move.

It takes the rule tables, so it proves behaviour, never figures: no test may use it as evidence that a figure is right.
What it reproduces, and who says that the service does so, is in `behaviours.toml`. Needs `weighlock[service]`.
"""

from weighlock.emulator.accounts import Project
from weighlock.emulator.faults import Faults
from weighlock.emulator.journal import Recorded
from weighlock.emulator.run import Emulator
from weighlock.emulator.script import Answer
from weighlock.emulator.weighing import Remote

__all__ = ["Answer", "Emulator", "Faults", "Project", "Recorded", "Remote"]
