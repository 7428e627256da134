"""A comparison on paper: one JSON document that holds everything, and the CSV and HTML that are made of it.

document(comparison, origin, differences) -> dict        what comparison.schema.json describes
write_report(document, folder)            -> comparison.json, .csv, series.csv, report.html
"""
