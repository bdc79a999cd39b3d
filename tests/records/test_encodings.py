"""Characters of a CSV file are decoded one by one, before it is split into records: no record decides another's.

An encoding is UTF-8, UTF-16 or UTF-32, or writes one byte a character; all others are refused where they are declared.
"""

import bz2
import codecs
import csv
import encodings.aliases
import gzip
import lzma
import pkgutil

import pyarrow as pa
import pytest

import pgmpy_dp as dp
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.coins import random_keys
from pgmpy_dp.records import CsvFile, csv_decoding, csv_reading, open_records
from pgmpy_dp.records.units import Unit

CODECS = sorted(
    {*encodings.aliases.aliases.values(), *(found.name for found in pkgutil.iter_modules(encodings.__path__))}
)
STATEFUL = ["iso2022_jp", "iso2022_jp_1", "iso2022_jp_2004", "iso2022_kr", "hz", "utf_7", "unicode_escape"]
STATEFUL += [
    "raw_unicode_escape", "shift_jis", "gbk", "gb18030", "big5", "euc_jp", "johab", "cp932", "punycode", "idna",
]  # fmt: skip
NONE = [
    "nonsense", None, 8, "rot_13", "hex_codec", "base64_codec", "zlib_codec", "uu_codec", "quopri_codec", "undefined",
]  # fmt: skip
BYTEWISE = ["ascii", "latin_1", "cp1252", "iso8859_15", "mac_arabic", "koi8_r", "cp437", "cp864", "cp037", "cp500"]
WIDE = ["utf_8", "utf_8_sig", "utf_16", "utf_16_le", "utf_16_be", "utf_32", "utf_32_le", "utf_32_be"]
OPENED = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
CHARACTERS = [
    *map(chr, [*range(1, 0x800), *range(0x2000, 0xD800, 9)]),
    *"〒€\ufeff\ufffd\ufffe\uffff\U0001f600\U0010ffff",
]


def taken(codec):
    try:
        return dp.CsvFormat(encoding=codec)
    except ValueError:
        return None


def counts(path, schema, unit=None):
    opened = open_records(path, schema, ["v"], unit and Unit(unit, 1, random_keys))
    return opened.counts([("v",)])["v",].tolist()


def schema_of(states, declared):
    return dp.Schema({"v": states}, missing={"v": "missing"}, other={"v": "other"}, csv=declared)


def test_encodings_in_which_one_character_changes_what_others_are_are_refused():
    """Bytes of 〒 in ISO 2022 are those of a quotation mark and a bracket, between two shifts."""
    assert not {codec for codec in [*STATEFUL, *NONE] if taken(codec)}
    assert {codec for codec in CODECS if taken(codec)} >= {*BYTEWISE, *WIDE}
    assert sum(taken(codec) is not None for codec in CODECS) > 70
    with pytest.raises(ValueError, match="does not encode each character independently"):
        CsvFile("a.csv", encoding="iso2022_jp_2004")


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_refused_or_writes_characters_that_are_read_one_by_one(codec, tmp_path):
    declared = taken(codec)
    if declared is None:
        return
    states = [character for character in CHARACTERS if declared.refusal(character) is None]
    assert len(states) > 95
    with open(tmp_path / "a.csv", "w", encoding=codec, newline="") as file:
        csv.writer(file).writerows([["v", "w"], *([state, "x"] for state in states)])
    assert counts(tmp_path / "a.csv", schema_of(states, declared)) == [*[1] * len(states), 0, 0]


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec not in WIDE])
def test_every_byte_is_a_character_of_its_own_or_another_value(codec, tmp_path):
    declared = taken(codec)
    if declared is None:
        return
    quote, end, empty = ('"'.encode(codec), "\n".encode(codec), "".encode(codec))
    alone = [bytes([byte]).decode(codec, "replace") for byte in range(256)]
    sound = [byte for byte in range(256) if alone[byte] not in '"\0']
    content = "v".encode(codec) + end + empty.join(quote + bytes([byte]) + quote + end for byte in sound)
    (tmp_path / "a.csv").write_bytes(content)
    states = sorted({alone[byte] for byte in sound} - {"\ufffd"})
    expected = [sum(alone[byte] == state for byte in sound) for state in states]
    assert counts(tmp_path / "a.csv", schema_of(states, declared)) == [*expected, 0, len(sound) - sum(expected)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 2**20])
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-16", "utf-32"])
def test_texts_that_no_state_is_are_other_values_in_any_block(codec, size, tmp_path, monkeypatch):
    """Lone surrogates, and a byte order mark in the middle, which is a character."""
    monkeypatch.setattr(csv_reading, "_BLOCK_BYTES", size)
    monkeypatch.setattr(csv_decoding, "_CHUNK_BYTES", size)
    text = "v,w\nx,1\n\ud83d,1\n\ude00,1\nx\ud83d,1\n\ufeffx,1\n\U0001f600,1\n,1\n𝒳,1\n\ud83d,1\nx,1\n"
    (tmp_path / "a.csv").write_bytes(text.encode(codec, "surrogatepass"))
    schema = schema_of(["x", "\ufeffx", "\U0001f600", "𝒳"], dp.CsvFormat(encoding=codec))
    assert counts(tmp_path / "a.csv", schema) == [2, 1, 1, 1, 1, 4]


def test_bytes_that_are_no_characters_tell_persons_apart(tmp_path):
    for codec, odd in (
        ("cp1252", [b"\x81", b"\x8d", b"\xc3\x8d", b"\x81\x8d"]),
        ("utf-8", [b"\x81", b"\xc3", b"\xed\xa0\x80"]),
    ):
        (tmp_path / "a.csv").write_bytes(b"v,u\n" + b"".join(b"x,%s\n" % one for one in odd * 3))
        schema = schema_of(["x"], dp.CsvFormat(encoding=codec))
        assert counts(tmp_path / "a.csv", schema, "u") == [len(odd), 0, 0]
    pairs = ["\ud800", "\udc00", "\udbff", "\udfff"]
    (tmp_path / "a.csv").write_bytes(
        "v,u\n{}".format("".join(f"x,{one}\n" for one in pairs * 3)).encode("utf-16", "surrogatepass")
    )
    assert counts(tmp_path / "a.csv", schema_of(["x"], dp.CsvFormat(encoding="utf-16")), "u") == [4, 0, 0]


@pytest.mark.parametrize(
    ("codec", "content"),
    [
        ("utf-16", "v\nx\n".encode("utf-16-le")),  # no byte order mark, and none is guessed
        ("utf-32", "v\nx\n".encode("utf-32-be")),
        ("utf-16-le", "v\nx\n".encode("utf-16-le") + b"\0"),
        ("utf-32-le", "v\nx\n".encode("utf-32-le") + b"x\0"),
        ("utf-32-le", "v\nx\n".encode("utf-32-le") + b"\xff\xff\xff\xff"),
    ],
)
def test_a_file_of_other_bytes_is_refused_without_a_word_of_them(codec, content, tmp_path):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(SchemaError, match=f"a.csv: not a file in {codec}: ") as refused:
        counts(tmp_path / "a.csv", schema_of(["x"], dp.CsvFormat(encoding=codec)))
    assert refused.value.__context__ is None


def test_a_byte_order_mark_that_says_otherwise_is_not_followed(tmp_path):
    """Where the schema declares the order of bytes, a mark for the other order makes a name that no column has."""
    for codec, other in (("utf-16-le", "utf-16-be"), ("utf-32-be", "utf-32-le")):
        (tmp_path / "a.csv").write_bytes("\ufeffv\nx\n".encode(other))
        with pytest.raises(SchemaError, match=r"(has no column|not a file in|empty file)"):
            counts(tmp_path / "a.csv", schema_of(["x"], dp.CsvFormat(encoding=codec)))
        (tmp_path / "a.csv").write_bytes("\ufeffv\nx\n".encode(codec))
        assert counts(tmp_path / "a.csv", schema_of(["x"], dp.CsvFormat(encoding=codec))) == [1, 0, 0]
    (tmp_path / "a.csv").write_bytes(codecs.BOM_UTF8 + b"v\n" + codecs.BOM_UTF8 + b"x\nx\n")
    assert counts(tmp_path / "a.csv", schema_of(["x"], dp.CsvFormat())) == [1, 0, 1]


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz", ".zst", ".GZ"])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "cp037"])
def test_compressed_files_are_decoded_too(ending, codec, tmp_path):
    path = tmp_path / f"a.csv{ending}"
    with pa.output_stream(path, compression="zstd") if ending == ".zst" else OPENED[ending.lower()](path, "wb") as file:
        file.write("v\nx\ny\nx".encode(codec))
    assert counts(path, schema_of(["x"], dp.CsvFormat(encoding=codec))) == [2, 0, 1]
    with OPENED[ending.lower()](path, "wb") if ending != ".zst" else path.open("wb") as file:
        file.write(b"")
    with pytest.raises(SchemaError, match=r"(an empty file|Reading .* failed)"):
        counts(path, schema_of(["x"], dp.CsvFormat(encoding=codec)))
