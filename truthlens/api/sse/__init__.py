"""Server-sent event streams: frames, chunks, and streams with new answers."""
