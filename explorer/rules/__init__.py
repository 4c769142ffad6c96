"""Rules: each looks for one fault and says where it is, what shows it and what mending it can gain at most."""

from explorer.rules.finding import Finding, Severity, Where
from explorer.rules.registry import RULES, RuleResults, evaluate

__all__ = ["RULES", "Finding", "RuleResults", "Severity", "Where", "evaluate"]
