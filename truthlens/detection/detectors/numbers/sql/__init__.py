"""Look the values that an exchange is about up in databases, read-only and in bounded time."""
