"""`headrace replay report`: draws the report of a comparison again, and prints its table and verdict."""

from pathlib import Path

import click
import orjson


@click.command()
@click.argument("place", metavar="DIR", type=click.Path(path_type=Path, exists=True))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Write here instead of into DIR.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of comparison.json, and stop.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole comparison as JSON.")
def command(*, place: Path, out: Path | None, schema: bool, as_json: bool) -> None:
    """Draw the report of a comparison again: DIR is what `replay run` or `replay simulate` wrote, or its JSON file."""
    from headrace.replay.report.text_table import report_lines
    from headrace.replay.report.write import read_document, schema_text, write_report

    if schema:
        click.echo(schema_text(), nl=False)
        return
    document = read_document(place)
    page = write_report(document, out or (place if place.is_dir() else place.parent))
    if as_json:
        click.echo(orjson.dumps(document))
        return
    for line in report_lines(document, page):
        click.echo(line)
