"""Files: JSON read strictly, and replaced as a whole."""

from __future__ import annotations

import errno
import glob
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from pgmpy_dp.errors import ReleaseFormatError

_TOKEN = 8  # random bytes in the name of a new file
_PAGES = (".html", ".htm")


def path_of(given: Any) -> Path:
    """Return the path of a file; TypeError if it is not named by a text or a path, such as by a number."""
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"A file is named by a text or a path, such as 'release.zip'; got {type(given).__name__}.")
    return Path(given)


def require_page(path: str | os.PathLike[str]) -> None:
    """Require that a file's name ends like that of a page, else raise ValueError."""
    if path_of(path).suffix.lower() not in _PAGES:
        raise ValueError(f"{path}: pages are written to {' and '.join(_PAGES)} files.")


def require_known(version: Any, known: int) -> None:
    """Refuse a file with an unsupported version of its format."""
    if version == known and isinstance(version, int):
        return
    if isinstance(version, int) and version > known:
        raise ReleaseFormatError(f"written by a newer pgmpy_dp (version {version}, {known} is read): upgrade it.")
    raise ValueError("its format has no such version")


def unfinished(path: Path) -> str:
    """Return the pattern of the new files of `replacing`, of which a process that is killed leaves one behind."""
    return f".{glob.escape(path.name)}.{'[0-9a-f]' * (2 * _TOKEN)}.tmp"


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file beside `path` that takes its place once all is on disk; removed if anything fails before."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(_TOKEN)}.tmp")
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder; make it first", str(path.parent))
    try:
        try:
            handle = temporary.open("xb")
        except OSError as error:  # named by the file that was asked for
            raise type(error)(error.errno, error.strerror, str(path)) from None
        with handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
    if hasattr(os, "O_DIRECTORY"):  # make the new name itself survive a power failure
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def parse_json(content: bytes) -> Any:
    """Parse UTF-8 JSON strictly: NaN, Infinity, repeated keys and endless nesting raise ValueError."""
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply.") from error


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a JSON object names a key twice.")
    return mapping


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON.")
