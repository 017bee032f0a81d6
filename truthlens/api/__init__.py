"""OpenAI-compatible bodies as ``Exchange`` and ``Answer`` records, and back; no I/O."""
