"""Where copies go: a folder, or a file system that fsspec knows. Written aside, read back, then given its name.

Both do the same in the same order, so that the copying (`copy.py`) knows neither: `aside` writes, `digest_aside` reads what was
written, `publish` makes it the file. What goes wrong at the destination is a `DestinationError` that names it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ftui.engine.reading import BLOCK
from ftui.record.files import sync_directory

INCOMING = ".ftui-incoming"
"""Folder at the destination for what is not verified yet; emptied before each copy."""


class DestinationError(Exception):
    """The destination cannot be reached, is full, or does not keep what it is given."""


@dataclass(frozen=True)
class Found:
    """A file at the destination."""

    size: int
    token: str
    """Changes when the file does, as far as the destination can tell without reading it."""


class Destination(Protocol):
    """A place for copies. Paths are relative, with `/`."""

    renames: bool
    """Whether a file changes its content in one step; else it is neither the old nor the new one for a moment."""

    def begin(self) -> None:
        """Make the place and empty what an interrupted copy left aside."""

    def listing(self) -> dict[str, Found]:
        """Every file there."""

    def head(self, path: str, count: int) -> bytes:
        """The first bytes of a file."""

    def digest(self, path: str) -> str:
        """SHA-256 of a file, read from there."""

    def aside(self, blocks: Iterable[bytes]) -> None:
        """Write a file that has no name yet, durably."""

    def digest_aside(self) -> str:
        """SHA-256 of what `aside` wrote, read from there."""

    def publish(self, path: str) -> Found:
        """Make what was written aside the file `path`."""

    def remove(self, path: str) -> None:
        """Delete a file."""

    def end(self) -> None:
        """Leave nothing behind that is not a copy."""


def open_destination(text: str) -> Destination:
    """The destination of a plan. Raises `DestinationError` when it cannot be used."""
    return _Remote(text) if "://" in text else _Folder(Path(text).expanduser())


@contextmanager
def _named(where: object) -> Iterator[None]:
    """Turn whatever a file system raises into a sentence that says where."""
    try:
        yield
    except DestinationError:
        raise
    except OSError as error:
        raise DestinationError(f"{where}: {error.strerror or error or type(error).__name__}") from error
    except Exception as error:  # fsspec's plugins raise what their libraries raise
        raise DestinationError(f"{where}: {type(error).__name__}: {error}") from error


def _hashed(read: Callable[[int], bytes]) -> str:
    digest = hashlib.sha256()
    while block := read(BLOCK):
        digest.update(block)
    return digest.hexdigest()


class _Folder:
    """A directory of a mounted file system."""

    renames = True

    def __init__(self, root: Path) -> None:
        self._root = root
        self._aside = root / INCOMING / "file"

    def begin(self) -> None:
        with _named(self._root):
            shutil.rmtree(self._aside.parent, ignore_errors=True)
            self._aside.parent.mkdir(parents=True, exist_ok=True)

    def listing(self) -> dict[str, Found]:
        found = {}
        with _named(self._root):
            for folder, folders, names in os.walk(self._root):
                folders[:] = [name for name in folders if name != INCOMING]
                for name in names:
                    path = Path(folder, name)
                    found[path.relative_to(self._root).as_posix()] = _found(path)
        return found

    def head(self, path: str, count: int) -> bytes:
        with _named(self._root / path), (self._root / path).open("rb") as file:
            return file.read(count)

    def digest(self, path: str) -> str:
        with _named(self._root / path):
            return _digest_of(self._root / path)

    def aside(self, blocks: Iterable[bytes]) -> None:
        # Only writing is the destination's matter: what reading the source raises goes through as it is.
        with _named(self._root):
            file = self._aside.open("wb", buffering=0)
        with file:
            for block in blocks:
                with _named(self._root):
                    rest = memoryview(block)
                    while rest:
                        rest = rest[file.write(rest) :]
            with _named(self._root):
                os.fsync(file.fileno())

    def digest_aside(self) -> str:
        with _named(self._root):
            return _digest_of(self._aside)

    def publish(self, path: str) -> Found:
        target = self._root / path
        with _named(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            self._aside.replace(target)
            sync_directory(target.parent)
            return _found(target)

    def remove(self, path: str) -> None:
        with _named(self._root / path):
            (self._root / path).unlink(missing_ok=True)
            for folder in (self._root / path).parents:
                if folder == self._root or any(folder.iterdir()):
                    break
                folder.rmdir()

    def end(self) -> None:
        shutil.rmtree(self._aside.parent, ignore_errors=True)


def _found(path: Path) -> Found:
    status = path.lstat()
    return Found(status.st_size, f"{status.st_mtime_ns}-{status.st_ino}")


def _digest_of(path: Path) -> str:
    """Hash of a file as its disk has it, as far as the kernel can be asked to forget what it remembers of it."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return _hashed(file.read)


_TELLING = ("ETag", "etag", "md5Hash", "checksum", "mtime", "LastModified", "last_modified", "updated", "created")
"""What file systems of fsspec say of a file that is another when its content is."""


class _Remote:
    """A folder of a file system that fsspec knows by the URL's scheme. Credentials are fsspec's own matter (its configuration files
    and variables, or those of the plugin)."""

    def __init__(self, url: str) -> None:
        self._url = url
        with _named(url):
            import fsspec  # late: only who copies to a URL needs it

            try:
                self._fs, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
            except (ImportError, ValueError) as error:
                raise DestinationError(f"{url}: {error}") from error
        self._root = str(root).rstrip("/")
        self._aside = f"{self._root}/{INCOMING}/file"
        self.renames = "file" in _protocols(self._fs)

    def begin(self) -> None:
        with _named(self._url):
            self._fs.invalidate_cache()
            if self._fs.exists(self._aside):
                self._fs.rm_file(self._aside)
            self._fs.makedirs(f"{self._root}/{INCOMING}", exist_ok=True)

    def listing(self) -> dict[str, Found]:
        with _named(self._url):
            entries = self._fs.find(self._root, detail=True)
        below = {str(name)[len(self._root) :].lstrip("/"): entry for name, entry in entries.items()}
        return {path: _told(entry) for path, entry in below.items() if not path.startswith(f"{INCOMING}/")}

    def head(self, path: str, count: int) -> bytes:
        with _named(f"{self._url}/{path}"), self._fs.open(f"{self._root}/{path}", "rb") as file:
            return bytes(file.read(count))

    def digest(self, path: str) -> str:
        with _named(f"{self._url}/{path}"), self._fs.open(f"{self._root}/{path}", "rb") as file:
            return _hashed(file.read)

    def aside(self, blocks: Iterable[bytes]) -> None:
        with _named(self._url):
            file = self._fs.open(self._aside, "wb")
        try:
            for block in blocks:
                with _named(self._url):
                    file.write(block)
        except BaseException:
            with _named(self._url):
                file.close()
            raise
        with _named(self._url):
            file.close()

    def digest_aside(self) -> str:
        with _named(self._url), self._fs.open(self._aside, "rb") as file:
            return _hashed(file.read)

    def publish(self, path: str) -> Found:
        target = f"{self._root}/{path}"
        with _named(target):
            self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._fs.mv(self._aside, target)
            self._fs.invalidate_cache()
            return _told(self._fs.info(target))

    def remove(self, path: str) -> None:
        with _named(f"{self._url}/{path}"):
            self._fs.rm_file(f"{self._root}/{path}")

    def end(self) -> None:
        with _named(self._url):
            if self._fs.exists(f"{self._root}/{INCOMING}"):
                self._fs.rm(f"{self._root}/{INCOMING}", recursive=True)


def _protocols(fs: Any) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def _told(entry: dict[str, Any]) -> Found:
    return Found(int(entry["size"]), "-".join(str(entry[name]) for name in _TELLING if name in entry))
