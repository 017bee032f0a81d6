"""The gateway: Envoy's ext_proc streams in, replies out. Knows HTTP framing, not what an answer means."""
