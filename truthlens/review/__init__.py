"""Keep flagged answers for people to settle.

    selection   which answers are queued          records      what an entry is
    content     an entry of an exchange's outcome redaction    personal data out of texts
    writer      hands entries to the database     queue        the entries in the database: list, settle, count
    database    opens and migrates it             tables       its tables

An answer never waits for any of this: an entry that cannot be kept is counted as lost.
"""
