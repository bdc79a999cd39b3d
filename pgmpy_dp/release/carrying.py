"""Files of models that carry their releases: a zip of the model's JSON and the files of its releases.

The members are ``model.json``, ``release-1.zip``, ``release-2.zip`` and so on, stored without compression, so that none
is larger than the file. Each release is checked like a file of its own. The file is not a signature: that the model was
fitted to these releases is the claim of its maker, as with `attach_release`.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Sequence

from pgmpy_dp._files import path_of, replacing
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.release.archive import check_ending, damage_named, opened, read_release, stored_member, write_release
from pgmpy_dp.release.kinds import Release, interpreted, joint_guarantee

SUFFIX = ".zip"
MODEL = "model.json"
MODEL_AT = 30 + len(MODEL)  # offset of the model, which is the first member, after its header
MAX_RELEASES = 16
_WANTED = (
    f"not a model that carries its release: the zip must hold {MODEL}, release-1.zip and so on. A release by "
    "itself is read by Release.load."
)


def carries(path: str | os.PathLike[str]) -> bool:
    """Whether a file starts like the file of a model with its releases."""
    with path_of(path).open("rb") as file:
        start = file.read(MODEL_AT)
    return start.startswith(b"PK\x03\x04") and start.endswith(MODEL.encode())


def write_carrying(path: str | os.PathLike[str], model: bytes, carried: Release | Sequence[Release] | None) -> None:
    """Write a model and its releases, at least one; an existing file is replaced once the new one is complete."""
    if carried is None:
        raise ValueError(f"{path}: the network has no release for a {SUFFIX} file to carry: end its name in .json.")
    releases = (carried,) if isinstance(carried, Release) else carried
    if not 1 <= len(releases) <= MAX_RELEASES:
        raise ValueError(f"A model carries 1 to {MAX_RELEASES} releases.")
    with replacing(path_of(path)) as handle, zipfile.ZipFile(handle, "w") as archive:
        archive.writestr(stored_member(MODEL), model)
        for number, release in enumerate(releases, 1):
            file = io.BytesIO()
            write_release(release, file)
            archive.writestr(stored_member(f"release-{number}.zip"), file.getvalue())


def promised(promise: Guarantee, releases: Sequence[Release]) -> Guarantee:
    """Return the guarantee of a model that carries releases; raise if it promises less than they cost.

    The guarantee may include more costs, such as that of finding the graph. If a file of an earlier version states only
    sums, they must be those of the releases.
    """
    carried = joint_guarantee(releases)
    if not promise.covers(carried):
        raise ReleaseFormatError(
            f"{MODEL} promises something else than the releases that it carries, or less: it is {promise}, and the "
            f"releases are {carried}. Fit the model to them again."
        )
    return carried if carried.states(promise) else promise


def read_carrying(path: str | os.PathLike[str]) -> tuple[bytes, tuple[Release, ...]]:
    """Read what `write_carrying` wrote, and check its releases; ReleaseFormatError if anything is wrong."""
    with opened(path) as handle:
        stated = check_ending(handle, 1 + MAX_RELEASES, _WANTED)
        with damage_named(), zipfile.ZipFile(handle) as archive:
            members = archive.infolist()
            releases = [f"release-{number}.zip" for number in range(1, len(members))]
            if sorted(info.filename for info in members) != sorted([MODEL, *releases]) or len(members) != stated:
                raise ReleaseFormatError(_WANTED)
            if any(info.flag_bits & 0x1 or info.compress_type != zipfile.ZIP_STORED for info in members):
                raise ReleaseFormatError("its members must be stored, neither compressed nor encrypted.")
            carried = tuple(read_release(io.BytesIO(archive.read(name)), interpreted) for name in releases)
            return archive.read(MODEL), carried
