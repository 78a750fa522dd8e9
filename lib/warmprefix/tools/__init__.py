"""A catalogue of tools, the part of it that a run is sent, and how the rest is found."""
