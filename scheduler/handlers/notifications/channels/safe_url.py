"""safe_url: an address of any origin -> one that may be clicked, or none."""

from urllib.parse import urlsplit


def safe_url(url: str) -> str:
    """The address if it is a path of this site or http(s); "" for javascript: and the like."""
    if "\\" in url or any(ord(character) <= 32 for character in url):
        return ""  # browsers drop or turn these, and read something else
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if parts.scheme in {"http", "https"} and parts.netloc:
        return url
    local = not parts.scheme and not parts.netloc and url.startswith("/")
    return url if local and not url.startswith("//") else ""
