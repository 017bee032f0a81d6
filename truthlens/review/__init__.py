"""Keep flagged answers for people to settle.

    selection   which answers are queued          intake      the gateway's side: choose and hand over
    content     an entry of an exchange's outcome writer      entries into the database, in the background
    redaction   personal data out of texts        queue       the entries in the database: list, settle, count
    records     what an entry is                  database    opens and migrates it; tables, migrations
    service     all of it in a serving process, with its metrics

An answer never waits for any of this: an entry that cannot be kept is counted as lost.
"""
