"""An OpenAI-compatible streaming reverse proxy that asks `Router.route()` which engine each request goes to.

    client ─► front (TLS, bounds) ─► proxy ─► route ─► attempt ─► engine
                                       ▲                  │ not served, before the first byte: once more, elsewhere
                                       └──────────────────┘
    engine's bytes ─► relay (untouched, measured as they pass) ─► client

`core/` decides and is pure; the files beside it are straight lines over aiohttp. What it never does: change a byte of
an answer, hold a stream back, send a request to an engine twice, or tell a client an address.
"""
