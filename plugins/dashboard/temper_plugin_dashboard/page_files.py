"""The files of the pages, by the name that a page asks for them by."""

from pathlib import Path

ASSETS = Path(__file__).parent / "assets"


class PageFiles:
    """All files of the pages. Nothing else can be asked for."""

    def __init__(self) -> None:
        self._files = {
            path.relative_to(ASSETS).as_posix(): path
            for path in ASSETS.rglob("*")
            if path.is_file()
        }

    def find(self, name: str) -> Path | None:
        """Return the path of a file, None if there is none of that name."""
        return self._files.get(name)


def media_type(path: Path) -> str:
    """Return the media type of a file. Text is UTF-8."""
    from mimetypes import guess_type  # noqa: PLC0415 - for an agent whose page is opened

    kind = guess_type(path.name)[0] or "text/plain"
    return f"{kind}; charset=utf-8"
