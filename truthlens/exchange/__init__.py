"""One exchange through detection and correction: its ticket, its assessor, and what it may use meanwhile."""
