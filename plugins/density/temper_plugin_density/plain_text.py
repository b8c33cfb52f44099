"""Text of others for a terminal."""


def plain(text: str) -> str:
    """Write text that anybody may have written: it must not steer the terminal, or not be text."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
