"""Keep flagged answers for people to settle, and learn from what they settle.

    intake     which answers are queued, and the way into the database
    entry      what is kept of an exchange
    store      the entries in a database: listed, settled, moved; migrations
    figures    how right the detectors were
    learning   labelled rows, proposed thresholds, rewards of mode auto
    records    what an entry is          service   all of it in a serving process

An answer never waits for any of this: an entry that cannot be kept is counted as lost.
"""
