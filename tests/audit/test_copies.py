"""Whatever a mechanism releases comes back from its file, from pickles and from copies as the same."""

import copy
import pickle

import pytest

import pgmpy_dp as dp
from pgmpy_dp.release import Release
from pgmpy_dp.release.kinds import KINDS

pytestmark = pytest.mark.full


def test_releases_come_back_as_the_same(mechanism, tmp_path):
    release, path = mechanism.call(mechanism.data(mechanism.neighbours[1]), 0.5), tmp_path / "release.zip"
    if not isinstance(release, Release):
        pytest.skip("it has no file")
    release.save(path)
    content = path.read_bytes()
    read = [type(release).load(path), Release.load(path)]
    for same in (*read, pickle.loads(pickle.dumps(release)), copy.deepcopy(release)):
        assert same == release
        assert same.guarantee == release.guarantee
        assert (hash(same), repr(same)) == (hash(release), repr(release))
        same.save(path)
        assert path.read_bytes() == content
    for other in set(KINDS.values()) - {type(release)}:
        with pytest.raises(dp.ReleaseFormatError, match=rf"another kind of release: use {type(release).__name__}.load"):
            other.load(path)
