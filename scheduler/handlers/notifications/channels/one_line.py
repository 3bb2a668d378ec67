"""one_line: text of any origin -> something that may stand in a header or a title."""

from audit import words


def one_line(text: str, *, limit: int) -> str:
    """One line of visible characters, at most `limit` of the text's own.

    Every kind of line break becomes a blank, so nothing can begin a header of its own.
    What would vanish or turn its neighbours round stands as its number.
    """
    flat = " ".join(text.split())
    return words.shown(flat, limit=limit)
