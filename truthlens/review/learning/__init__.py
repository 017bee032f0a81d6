"""What settled entries teach: labelled rows, thresholds, rewards of mode auto."""
