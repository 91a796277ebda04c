"""What each model generation costs and accepts: dated, sourced data files and their loader."""

from weighlock.media.controls import Controls
from weighlock.rules.book import RuleBook
from weighlock.rules.entry import Entry, Generation, RequestLimits, WireControl
from weighlock.rules.estimate import Estimate, estimate
from weighlock.rules.model import ModelRules
from weighlock.rules.names import Match, ResolvedModel

__all__ = [
    "Controls",
    "Entry",
    "Estimate",
    "Generation",
    "Match",
    "ModelRules",
    "RequestLimits",
    "ResolvedModel",
    "RuleBook",
    "WireControl",
    "estimate",
]
