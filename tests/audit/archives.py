"""Files of releases and models, as someone has them who changes their contents and writes the right hashes."""

import io
import json
import warnings
import zipfile
from hashlib import sha256

import pytest

from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.privacy.cost import Cost
from pgmpy_dp.release import Guarantee, Release
from pgmpy_dp.release.archive import DESCRIPTOR, MEASUREMENTS, write_release


def packed(release) -> bytes:
    """The file of a release."""
    written = io.BytesIO()
    write_release(release, written)
    return written.getvalue()


def members(content: bytes) -> dict[str, bytes]:
    """What a zip holds."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(entries, compression=zipfile.ZIP_STORED) -> bytes:
    """A zip of members by their names, or of pairs, of which two may have one name."""
    written = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        with zipfile.ZipFile(written, "w", compression) as archive:
            for name, content in entries.items() if isinstance(entries, dict) else entries:
                archive.writestr(name, content)
    return written.getvalue()


def altered(content: bytes, change=lambda descriptor: None, rows=lambda measurements: measurements) -> bytes:
    """A file with other measurements and, after their hash, another descriptor."""
    held = members(content)
    if MEASUREMENTS in held:
        held[MEASUREMENTS] = rows(held[MEASUREMENTS])
    descriptor = json.loads(held[DESCRIPTOR])
    for resource in descriptor["resources"]:
        member = held[resource["path"]]
        resource |= {"hash": f"sha256:{sha256(member).hexdigest()}", "bytes": len(member)}
    change(descriptor)
    return zipped(held | {DESCRIPTOR: json.dumps(descriptor).encode()})


def rewrite(path, change=lambda contents: None, rows=lambda measurements: measurements):
    """Alter the contents that a file states, and its measurements."""
    path.write_bytes(altered(path.read_bytes(), lambda descriptor: change(descriptor["pgmpy_dp:release"]), rows))


def require_refused(path, release, message, **changes):
    """Save a release, alter its file, and require that it is not read."""
    release.save(path)
    rewrite(path, **changes)
    with pytest.raises(ReleaseFormatError, match=message):
        Release.load(path)


def restate(contents, **changes):
    """Change the cost that a file states, and what its guarantee says of it."""
    (cost,) = contents["guarantee"]["costs"]
    contents["guarantee"] = Guarantee(frozenset({Cost.from_dict(cost | changes)})).to_dict()
