"""Keep state that outlives an exchange: in memory, or in Redis for several processes."""
