"""Where state that outlives an exchange is kept: in memory, or in Redis for several processes."""
