"""Compiled code that splits CSV files strictly by RFC 4180, and gathers the texts of their fields.

::

    file   = header *(end record) [end]
    record = field *(delimiter field), as many fields as the header
    field  = plain or '"' quoted '"'
    plain  = any bytes but '"', the delimiter, CR, LF and NUL
    quoted = any bytes but NUL, with '""' for '"'
    end    = LF or CRLF, for the whole file as after the header

Which bytes end a record, separate its fields or quote them depends on the header only, never on other records. A file
that does not match is refused, never repaired: a lone CR, which some libraries leave unquoted and others take for the
end of a record, would let one person's text become separate records.
"""

from __future__ import annotations

import numpy as np

from pgmpy_dp._compiled import compiled

# Ends of records.
LF, CRLF, EITHER = 0, 1, 2

# Problems of a file.
SOUND, QUOTE, RETURN, FEED, NUL, WIDTH, UNCLOSED, LONG = range(8)

_QUOTE, _RETURN, _FEED = 34, 13, 10


@compiled
def split(buffer, start, stop, last, delimiter, ending, width, maximum, places, starts, stops):
    """Find the fields of complete records between two bytes of a buffer.

    `places` gives for each field its row of `starts` and `stops`, or -1 for none. These receive the first and last byte
    of each field without its quotes, with one column per record; the function returns when they are full. `last` means
    that the file ends with the buffer. `width` is the number of fields, or -1 if any number is allowed; `maximum`
    bounds the bytes of a record without its end. Returns the number of records, the first byte after them, the number
    of fields of the last, and the problem of the file.
    """
    special = np.zeros(256, dtype=np.bool_)
    special[delimiter] = special[_QUOTE] = special[_RETURN] = special[_FEED] = special[0] = True
    records, at, fields = 0, start, 0
    while records < starts.shape[1] and at < stop:
        here, fields = at, 0
        while True:
            if here < stop and buffer[here] == _QUOTE:
                begin = here + 1
                here = begin
                while True:
                    if here >= stop:
                        return records, at, fields, UNCLOSED if last else SOUND
                    byte = buffer[here]
                    if byte == 0:
                        return records, at, fields, NUL
                    if byte == _QUOTE:
                        if here + 1 >= stop or buffer[here + 1] != _QUOTE:
                            break
                        here += 1
                    here += 1
                end = here
                here += 1
            else:
                begin = here
                while here < stop and not special[buffer[here]]:
                    here += 1
                end = here
            close = here
            if here >= stop and not last:
                return records, at, fields, SOUND  # the record continues beyond the buffer
            if 0 <= width <= fields or fields >= places.size:
                return records, at, fields, WIDTH
            if places[fields] >= 0:
                starts[places[fields], records] = begin
                stops[places[fields], records] = end
            fields += 1
            if here >= stop:
                break
            byte = buffer[here]
            here += 1
            if byte == delimiter:
                continue
            if byte == _FEED and ending != CRLF:
                break
            if byte == _RETURN and ending != LF:
                if here < stop and buffer[here] == _FEED:
                    here += 1
                    break
                if here >= stop and not last:
                    return records, at, fields, SOUND
            if byte == 0:
                return records, at, fields, NUL
            return records, at, fields, RETURN if byte == _RETURN else FEED if byte == _FEED else QUOTE
        if width >= 0 and fields != width:
            return records, at, fields, WIDTH
        if close - at > maximum:
            return records, at, fields, LONG
        at = here
        records += 1
    return records, at, fields, SOUND


@compiled
def gathered(buffer, starts, stops):
    """Put the bytes of a column's fields one after the other; return where each ends, from 0, and the bytes."""
    ends = np.zeros(starts.size + 1, dtype=np.int64)
    for record in range(starts.size):
        ends[record + 1] = ends[record] + stops[record] - starts[record]
    texts = np.empty(ends[-1], dtype=np.uint8)
    for record in range(starts.size):
        texts[ends[record] : ends[record + 1]] = buffer[starts[record] : stops[record]]
    return ends, texts
