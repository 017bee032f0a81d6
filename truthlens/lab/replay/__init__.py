"""Replay captured exchanges: what another policy, threshold, detector or model would have done with them."""
