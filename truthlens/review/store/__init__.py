"""The entries in a database: opened and migrated, listed, settled, deleted, moved to another."""
