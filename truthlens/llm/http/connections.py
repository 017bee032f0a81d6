"""Open connections to models: one for each call, bounded by the calls in flight.

A connection is not used again. A backend that writes more than one response to a request would otherwise
answer the next call, another exchange's, with what it wrote for this one: httpcore keeps what follows a
response and takes it for the next. A handshake per call is little compared with the seconds of a generation.

HTTP/1.1 alone, on purpose: over HTTP/2, httpcore does not reset the stream of a cancelled request, so the
backend would go on generating for nobody and fill the window that other calls share. Here cancelling closes
the connection.
"""

from __future__ import annotations

from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

# The deadline of the exchange bounds an attempt; these end what hangs where the deadline is far.
_TIMEOUTS = httpx.Timeout(connect=5.0, read=120.0, write=30.0, pool=5.0)
# How many connections there are is bounded by the calls in flight, model by model.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=0)


def open_pool(upstream: str | None, transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    """Return a client that follows no redirect (a key must not travel) and keeps no cookie (users share it).

    Args:
        upstream: the gateway's backend. The gateway reaches it directly, so it is reached directly here, too;
            a proxy that the environment names is for the models outside.
        transport: how requests travel; left out, over the network.
    """
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    if transport is not None:
        return httpx.AsyncClient(
            transport=transport, cookies=cookies, timeout=_TIMEOUTS, follow_redirects=False
        )
    tls = httpx.create_ssl_context()
    mounts: dict[str, httpx.AsyncBaseTransport] = {}
    if upstream is not None:
        url = httpx.URL(upstream)
        port = f":{url.port}" if url.port is not None else ""
        host = f"[{url.host}]" if ":" in url.host else url.host
        mounts[f"{url.scheme}://{host}{port}"] = httpx.AsyncHTTPTransport(verify=tls, limits=_LIMITS)
    return httpx.AsyncClient(
        verify=tls,
        limits=_LIMITS,
        mounts=mounts,
        cookies=cookies,
        timeout=_TIMEOUTS,
        follow_redirects=False,
    )
