"""The sources: one file or folder each, which declares itself as ``SOURCE`` (``core.registry.SourceType``)."""
