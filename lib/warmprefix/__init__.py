"""What keeps a long-lived agent session's prompt cache warm while a busy channel keeps talking, and what breaks it."""

__version__ = "0.1.0"
