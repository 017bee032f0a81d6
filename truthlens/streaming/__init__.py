"""A streamed answer on its way to the client: observed, or gated sentence by sentence."""
