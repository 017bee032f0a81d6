"""The number of the rules by which this version of the code makes scores.

A model's fingerprint covers its weights and manifest, but not the code around it: how a text is split into sentences
and windows, which parts claim nothing, the lexical features, how token scores become a response score, how detectors
are fused. Whoever changes one of those so that any score changes raises this number; a threshold that was calibrated
under another one is refused, with the command that makes it again.
"""

from __future__ import annotations

SCORING_VERSION = 9
"""Raised by one with every change of the code that changes a score. Records from before it was counted have 0."""
