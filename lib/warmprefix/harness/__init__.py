"""An agent's harness: append-only transcript, markers, trimming, calls under approval, subagents."""
