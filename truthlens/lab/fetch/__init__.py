"""Fetching of models from the Hugging Face hub."""

import os

# The library reads these once, when it is imported. It would tell the hub which libraries and which coding
# agent it runs with, fetch from hosts and keep a cache of its own where a hub offers that, and log every
# attempt to resume.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
os.environ.setdefault("HF_HUB_VERBOSITY", "error")
