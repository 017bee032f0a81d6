"""``truthlens review``: list, settle, export and count what is queued for people.

listing   list, show          resolving  resolve            transfer  export, import
stats     stats               opening    migrate, and the database for all
filters   which entries       terminal   texts of others, made harmless
threshold what ``calibrate --from-review`` does
"""

from __future__ import annotations

import typer

from truthlens.cli.review import listing, opening, resolving, stats, transfer

review = typer.Typer(
    help="The queue of answers that people review.", no_args_is_help=True, rich_markup_mode=None
)
review.command("list")(listing.list_entries)
review.command("show")(listing.show)
review.command("resolve")(resolving.resolve)
review.command("export")(transfer.export)
review.command("import")(transfer.import_)
review.command("stats")(stats.stats)
review.command("migrate")(opening.migrate)
