"""Build the console: health, readiness, metrics, one-off scoring, and a page of recent exchanges."""

from truthlens.console.app import Readiness, console_app
from truthlens.settings import Access

__all__ = ["Access", "Readiness", "console_app"]
